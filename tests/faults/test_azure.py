"""A rented node's whole way with Azure's adapter and the lab's ARM, whose launches take a minute or two: no job is lost
or runs twice, nothing is left over, nothing is launched twice.
"""

import pytest

from ironburst.ports import LAUNCHING
from tests.fakes import Breaking
from tests.fakes.azure import TYPE, AzureCloud
from tests.faults.story import Story
from tests.faults.test_crashes import Counter, lives
from tests.parts import a_third, in_parts

PARTS = 12


class OnAzure(Story):
    cloud_of = AzureCloud

    def start(self):
        self.cloud.connect()
        super().start()

    def check(self, again=()):
        lab = self.cloud.lab
        assert self.jobs() == dict.fromkeys(self.slurm.jobs, "COMPLETED"), self.told()[-12:]
        assert {job for job, fake in self.slurm.jobs.items() if len(fake.started) > 1} <= set(again), self.told()[-12:]
        for _ in range(3):  # what an evicted or a failed launch leaves is looked after later
            lab.passes(700)
            self.cloud.port.instances("lab")
        assert lab.left_over() == {} and self.ledger.leases() == [] and self.slurm.permits == set()
        assert lab.wrong == []

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
    shown = set()
    for _ in range(30):
        story.tick()
        shown |= {each.state for each in story.cloud.port.instances("lab")}
    assert LAUNCHING in shown
    story.end().check()


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
        story, counter = OnAzure(folder), Counter()
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
