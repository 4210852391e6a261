"""A rented node's whole way with Google's adapter and the lab's Compute Engine, whose launches take a minute or two:
no job is lost or runs twice, nothing is left over, nothing is launched twice.
"""

import pytest

from tests.fakes.google import TYPE, GoogleCloud
from tests.faults.slow_launches import SlowLaunches, killed, met, short_of_machines, stages
from tests.faults.test_crashes import PARTS
from tests.parts import in_parts


class OnGoogle(SlowLaunches):
    cloud_of = GoogleCloud

    def nothing_is_left(self):
        return self.cloud.lab.vms == {} == self.cloud.lab.disks

    def launches(self):
        """Operations that made machines."""
        return [each for each in self.cloud.lab.operations if each["operationType"] == "bulkInsert"]


@pytest.fixture
def story(tmp_path):
    made = OnGoogle(tmp_path / "site")
    yield made
    made.cloud.lab.close()


def test_a_gang_and_a_job_are_rented_for_and_given_back(story):
    story.reach("running").end().check()
    assert len(story.launches()) == 2 and not any("error" in each for each in story.launches())


def test_a_zone_that_has_one_machine_gives_none_to_a_gang(story):
    """It is made, shown, and taken back; the gang is launched in the next zone."""
    story.cloud.lab.capacity |= {(TYPE, "us-east-1a", model): 1 for model in ("SPOT", "STANDARD")}
    short_of_machines(story)


def test_spot_that_is_taken_back_runs_again_elsewhere(story):
    story.reach("running")
    spot = [vm for vm in story.cloud.lab.vms.values() if vm.model == "SPOT"]
    for vm in spot:
        story.cloud.lab.preempt(vm)
    story.end().check(again=(story.gang, story.single))


FAULTS = {
    "every answer to a launch is lost for a while": ("instances.bulkInsert", {"drop": True, "after": True, "times": 6}),
    "no answer to anything for two minutes": ("*", {"status": 503, "times": 60}),
    "lists of machines fail": ("instances.aggregatedList", {"status": 503, "times": 20}),
    "operations can't be seen": ("zoneOperations.get", {"status": 503, "times": 10}),
    "operations can't be found": ("zoneOperations.list", {"rewrite": lambda answer: {"items": []}, "times": 10}),
    "ends are refused": ("instances.delete", {"status": 403, "reason": "forbidden", "times": 10}),
    "ends are lost": ("instances.delete", {"drop": True, "times": 10}),
    "slowed down": ("*", {"status": 403, "reason": "rateLimitExceeded", "times": 40}),
}


OF_LAUNCHES = ("every answer", "operations")


@pytest.mark.parametrize(
    ("fault", "stage"),
    stages(FAULTS, OF_LAUNCHES),
)
def test_faults(story, fault, stage):
    met(story, FAULTS[fault], stage)


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("part", in_parts(PARTS))
def test_killed_at_any_call_outside(tmp_path, part, late):
    killed(OnGoogle, tmp_path, part, late)
