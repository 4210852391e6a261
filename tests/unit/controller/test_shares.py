"""Each tick the scheduler is told what the teams may have now."""

import pytest

from ironburst.document import Share
from ironburst.ports import SchedulerError
from ironburst.shares import Quota
from ironburst.shares.model import OVER
from tests.fakes.world import World

VISION = Share(account="vision", guaranteed_gpus=8, over_quota=True, weight=1, max_gpus=None, nodes=[])


@pytest.fixture
def world(tmp_path):
    """Two nodes of eight GPUs at home, and two teams with eight guaranteed each."""
    world = World(tmp_path)
    shares = [VISION, VISION.model_copy(update={"account": "nlp"})]
    world.document = world.document.model_copy(update={"shares": shares})
    return world


def told(world):
    return [text for text in world.events("trouble") if "guarantees are less" in text or "teams' limits" in text]


def test_a_site_without_shares_is_left_alone(tmp_path):
    world = World(tmp_path)
    world.tick()
    assert world.slurm.limits == []


def test_limits_follow_the_nodes_and_what_is_missing_is_told_once(world):
    world.tick()
    assert world.slurm.limits[-1] == {"vision": Quota(8, 16), "nlp": Quota(8, 16)} and told(world) == []
    world.slurm.drain(["dgx02"], "a person's")
    world.tick(2)
    assert world.slurm.limits[-1] == {"vision": Quota(4, 8, 4), "nlp": Quota(4, 8, 4)}
    assert told(world) == ["nodes are away, so guarantees are less: vision by 4, nlp by 4 GPUs"]
    world.slurm.resume(["dgx02"])
    world.tick()
    assert world.slurm.limits[-1]["nlp"] == Quota(8, 16)


def test_work_over_quota_counts_as_what_the_scheduler_says_it_is(world):
    job = world.slurm.submit(account="vision", runs_s=60)
    world.tick()
    assert world.slurm.limits[-1] == {"vision": Quota(8, 8), "nlp": Quota(8, 8)}
    world.slurm.counted[job] = OVER
    world.tick()
    assert world.slurm.limits[-1] == {"vision": Quota(8, 16), "nlp": Quota(8, 8)}


def test_that_nothing_can_be_written_is_told_and_stops_no_tick(world, monkeypatch):
    def refuse(*_):
        raise SchedulerError("slurmdbd doesn't answer")

    monkeypatch.setattr(world.slurm, "limit", refuse)
    world.fill_home()
    job = world.slurm.submit(runs_s=120)
    world.until(lambda: world.slurm.state(job) == "COMPLETED")
    assert told(world) == ["the teams' limits can't be brought to what is in service: slurmdbd doesn't answer"]
