"""A rented node's whole way with Google's adapter and the lab's Compute Engine, whose launches take a minute or two:
no job is lost or runs twice, nothing is left over, nothing is launched twice.
"""

import pytest

from ironburst.ports import LAUNCHING
from tests.fakes import Breaking
from tests.fakes.google import TYPE, GoogleCloud
from tests.faults.story import Story
from tests.faults.test_crashes import PARTS, Counter, lives
from tests.parts import a_third, in_parts


class OnGoogle(Story):
    cloud_of = GoogleCloud

    def start(self):
        self.cloud.connect()
        super().start()

    def check(self, again=()):
        lab = self.cloud.lab
        assert self.jobs() == dict.fromkeys(self.slurm.jobs, "COMPLETED"), self.told()[-12:]
        assert {job for job, fake in self.slurm.jobs.items() if len(fake.started) > 1} <= set(again), self.told()[-12:]
        assert lab.vms == {} == lab.disks and self.ledger.leases() == [] and self.slurm.permits == set()
        assert lab.wrong == []

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
    shown = set()
    for _ in range(30):
        story.tick()
        shown |= {each.state for each in story.cloud.port.instances("lab")}
    assert LAUNCHING in shown
    story.end().check()


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
    a_third(
        {
            fault: ["queued"] if fault.startswith(OF_LAUNCHES) else ["queued", "running", "leaving"]
            for fault in sorted(FAULTS)
        }
    ),
)
def test_faults(story, fault, stage):
    name, said = FAULTS[fault]
    story.reach(stage)
    hit = story.cloud.lab.fault(name, **{"status": 0, **said})
    story.end().check()
    assert hit.hits


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("part", in_parts(PARTS))
def test_killed_at_any_call_outside(tmp_path, part, late):
    """A launch under way has a time of its own: the new process finds it."""

    def broken(folder, at):
        story, counter = OnGoogle(folder), Counter()
        for name in ("scheduler", "cloud"):
            port = getattr(story.controller, name)
            setattr(story.controller, name, Breaking(port, counter, at=at, after=late))
        return story, counter

    story, counter = broken(tmp_path / "whole", -1)
    story.end().check()
    story.cloud.lab.close()
    assert len(counter.places) > 25 and len(set(counter.places)) > 10
    for at in counter.points(part):
        story, _ = broken(tmp_path / f"at{at}", at)
        assert lives(story), at
        story.check()
        assert not any(event.kind == "orphan" for event in story.ledger.events()), at
        story.cloud.lab.close()
