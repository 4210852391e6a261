"""A rented node's whole way with Azure's adapter and the lab's ARM, whose launches take a minute or two: no job is lost
or runs twice, nothing is left over, nothing is launched twice.
"""

import pytest

from tests.fakes.azure import TYPE, AzureCloud
from tests.faults.slow_launches import SlowLaunches, killed, met, short_of_machines, stages
from tests.parts import in_parts

PARTS = 12


class OnAzure(SlowLaunches):
    cloud_of = AzureCloud

    def nothing_is_left(self):
        for _ in range(3):  # what an evicted or a failed launch leaves is looked after later
            self.cloud.lab.passes(700)
            self.cloud.port.instances("lab")
        return self.cloud.lab.left_over() == {}

    def launches(self):
        """Groups that were made."""
        return {call.path["resourceGroupName"] for call in self.cloud.lab.asked("resource_groups.create_or_update")}


@pytest.fixture
def story(tmp_path):
    made = OnAzure(tmp_path / "site")
    yield made
    made.cloud.lab.close()


def test_a_gang_and_a_job_are_rented_for_and_given_back(story):
    story.reach("running").end().check()
    assert len(story.launches()) == 2 and len(story.cloud.lab.made) == 3


def test_a_zone_that_has_one_machine_gives_none_to_a_gang(story):
    """It is made, shown, and taken back; the gang is launched in the next zone."""
    story.cloud.lab.capacity |= {(TYPE, "1", priority): 1 for priority in ("Spot", "Regular")}
    short_of_machines(story)


def test_spot_that_is_evicted_runs_again_elsewhere(story):
    story.reach("running")
    for vm in [vm for vm in story.cloud.lab.vms.values() if vm.priority == "Spot"]:
        story.cloud.lab.evict(vm)
    story.end().check(again=(story.gang, story.single))


FAULTS = {
    "every answer to a launch is lost for a while": (
        "virtual_machines.create_or_update",
        {"drop": True, "after": True, "times": 6},
    ),
    "no answer to anything for two minutes": ("*", {"status": 503, "times": 60}),
    "lists of machines fail": ("virtual_machines.list_all", {"status": 503, "times": 20}),
    "lists of machines are empty": ("virtual_machines.list_all", {"rewrite": lambda _: {"value": []}, "times": 8}),
    "groups can't be seen": ("resource_groups.get", {"status": 503, "times": 10}),
    "groups can't be marked": ("tags.update_at_scope", {"status": 403, "reason": "AuthorizationFailed", "times": 6}),
    "ends are refused": ("resource_groups.delete", {"status": 403, "reason": "AuthorizationFailed", "times": 10}),
    "ends are lost": ("resource_groups.delete", {"drop": True, "times": 10}),
    "slowed down": ("*", {"status": 429, "reason": "TooManyRequests", "times": 40}),
}
OF_LAUNCHES = ("every answer", "groups")


@pytest.mark.parametrize(
    ("fault", "stage"),
    stages(FAULTS, OF_LAUNCHES),
)
def test_faults(story, fault, stage):
    met(story, FAULTS[fault], stage)


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("part", in_parts(PARTS))
def test_killed_at_any_call_outside(tmp_path, part, late):
    killed(OnAzure, tmp_path, part, late)
