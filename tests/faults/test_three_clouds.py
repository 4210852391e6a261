"""A site that rents in three clouds while one of them fails, hangs or lies: no job is lost or runs twice, nothing is
left over in any, nothing is launched twice. Google's and Azure's adapters are the real ones.
"""

from itertools import product

import pytest

from ironburst.ports import OutcomeUnknown
from tests.fakes.three import Trio, burst, in_three
from tests.faults import story as stories
from tests.faults.story import Story

NODES = 2


class TrioOfStory(Trio):
    first = stories.Cloud


class OnThree(Story):
    """A gang and two single jobs; each pool has two nodes, so that they are in at least two clouds."""

    cloud_of, burst = TrioOfStory, burst(NODES)

    def __init__(self, folder):
        super().__init__(folder)
        self.other = self.slurm.submit(nodes=2, limit_s=stories.HOUR, runs_s=800.0)

    def declared(self, document):
        return in_three(document, NODES)

    def start(self):
        self.cloud.connect()
        super().start()

    def check(self, again=()):
        assert self.jobs() == dict.fromkeys(self.slurm.jobs, "COMPLETED"), self.told()[-12:]
        assert {job for job, fake in self.slurm.jobs.items() if len(fake.started) > 1} <= set(again), self.told()[-12:]
        assert self.cloud.alive() == [] and self.ledger.leases() == [] and self.slurm.permits == set()
        assert self.cloud.left_over() == {} and self.cloud.wrong() == []
        first = self.cloud.clouds["aws"]
        tokens = [fake.instance.token for fake in first.all.values()]
        assert all(tokens.count(token) == first.tokens[token][0].count for token in tokens)
        lab = self.cloud.clouds["google"].lab
        assert sum(each["operationType"] == "bulkInsert" and "error" not in each for each in lab.operations) <= 3

    def clouds_used(self):
        return {event.text.split()[0].partition("-")[0] for event in self.ledger.events() if event.kind == "launched"}


@pytest.fixture
def story(tmp_path):
    made = OnThree(tmp_path / "site")
    yield made
    made.cloud.close()


def test_jobs_are_in_all_three_and_nothing_is_left(story):
    story.reach("booting").end().check()
    assert story.clouds_used() == {"p5", "g5", "z5"}


def silent(story, whose):
    """The cloud fails every call."""
    cloud = story.cloud.clouds[whose]
    if whose == "aws":
        cloud.fails = OutcomeUnknown("Could not connect to the endpoint URL")
        return lambda: setattr(cloud, "fails", None)
    fault = cloud.lab.fault("*", 503, times=-1)
    return lambda: cloud.lab.faults.remove(fault)


def lost(story, whose):
    """It does what it is asked for, and no answer arrives."""
    cloud = story.cloud.clouds[whose]
    if whose == "aws":
        cloud.lost_answers = 99
        return lambda: setattr(cloud, "lost_answers", 0)
    fault = cloud.lab.fault("*", drop=True, after=True, times=-1)
    return lambda: cloud.lab.faults.remove(fault)


def lies(story, whose):
    """Its lists show nothing."""
    cloud = story.cloud.clouds[whose]
    if whose == "aws":
        cloud.partial = [0] * 60
        return cloud.partial.clear
    delays = cloud.lab.delays
    before, delays.list_s = delays.list_s, 1e6
    return lambda: setattr(delays, "list_s", before)


def empty(story, whose):
    """It has no capacity."""
    cloud = story.cloud.clouds[whose]
    if whose == "aws":
        cloud.capacity = dict.fromkeys(product(("us-east-1a", "us-east-1b"), ("spot", "on-demand")), 0)
        return cloud.capacity.clear
    cloud.out_of_capacity(0)
    return cloud.lab.capacity.clear


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["aws", "google", "azure"])
@pytest.mark.parametrize("stage", ["queued", "running", "leaving"])
@pytest.mark.parametrize("fault", [silent, lost, lies, empty], ids=lambda fault: fault.__name__)
def test_one_of_them_for_a_quarter_of_an_hour(story, whose, stage, fault):
    if fault is empty and stage != "queued":
        pytest.skip("what runs needs no capacity")
    story.reach(stage)
    over = fault(story, whose)
    story.after(900, over)
    story.end().check()
