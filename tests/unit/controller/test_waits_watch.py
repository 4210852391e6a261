"""The controller counts the waits that its jobs had, and says when they are no longer those that are wanted."""

from dataclasses import replace

import pytest

from ironburst.burst import Resources
from ironburst.burst.waits_kept import LEAST_JOBS, LEAST_WEEKS, WEEK_S
from ironburst.controller import status_report, waits_watch
from ironburst.document import WaitTargetDocument
from tests.fakes import snapshots
from tests.fakes.world import World


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    want(world, 0.5)
    world.clock.at = (world.clock.at // WEEK_S + 1) * WEEK_S
    return world


def want(world, mean_h):
    burst = world.document.burst.model_copy(update={"wait_target": WaitTargetDocument(mean_h=mean_h)})
    world.document = world.document.model_copy(update={"burst": burst})


def weeks_pass(world, wait_h, weeks=LEAST_WEEKS):
    """In each some jobs end that waited so long from when they could start on, and ran for an hour."""
    for _ in range(weeks):
        now_s = world.clock.now()
        begun_s = now_s - 3600
        could_s = begun_s - 3600 * wait_h
        job = replace(
            snapshots.job(1, limit_s=7200.0, submit_s=could_s - 9e5), eligible_s=could_s, start_s=begun_s, on=("dgx1",)
        )
        waits_watch.note(world.ledger, world.document, [(job, 3600.0)] * LEAST_JOBS, now_s)
        world.clock.at += WEEK_S


def test_it_is_told_once_and_status_says_it_as_long_as_it_holds(world):
    weeks_pass(world, 2.0)
    world.tick(3)
    (told,) = world.events("waits")
    assert told.startswith("in the last 4 weeks the mean wait was 2 h, and 30 min is wanted: ") and "fit" in told
    said = status_report.gather(world.document, world.slurm.observe(), world.ledger, world.clock.now())
    assert said["waits"] == told and f"waits: {told}" in status_report.lines(said | {"ticks": {"files": 0}})
    want(world, 2.0)  # somebody wants what there is
    world.tick()
    said = status_report.gather(world.document, world.slurm.observe(), world.ledger, world.clock.now())
    assert said["waits"] == "" and not any(
        line.startswith("waits") for line in status_report.lines(said | {"ticks": {"files": 0}})
    )
    weeks_pass(world, 1.9)
    world.tick()
    assert len(world.events("waits")) == 1


def test_waits_far_below_the_wanted_ones_are_told_too(world):
    weeks_pass(world, 0.1)
    world.tick(2)
    (told,) = world.events("waits")
    assert told.startswith("in the last 4 weeks every wait was below half of what is wanted")


def test_a_percentile_is_told_by_the_jobs_beyond_it(world):
    want(world, 0.8)
    for _ in range(LEAST_WEEKS):
        for wait_h, jobs in ((0.0, 97), (20.0, 3)):
            job = replace(snapshots.job(1, submit_s=0.0), start_s=3600 * wait_h, on=("dgx1",))
            waits_watch.note(world.ledger, world.document, [(job, 60.0)] * jobs, world.clock.now())
        world.clock.at += WEEK_S
    said = waits_watch.said(world.ledger, world.document, world.clock.now())
    assert "3% of the jobs waited longer than 19 h 44 min, the 99th percentile that is wanted (1% may)" in said


def test_the_waits_of_jobs_that_end_are_counted_and_those_without_gpus_are_not(world):
    job = world.slurm.submit(limit_s=600, runs_s=100)
    world.until(lambda: world.slurm.state(job) not in ("PENDING", "RUNNING", "COMPLETING"))
    world.tick()
    assert '"jobs":1' in world.ledger.noted("waits")
    before = world.ledger.noted("waits")
    cpu_only = replace(snapshots.job(2, each=Resources(0)), start_s=world.clock.now(), on=("dgx1",))
    waits_watch.note(world.ledger, world.document, [(cpu_only, 60.0)], world.clock.now())
    assert world.ledger.noted("waits") == before


def test_what_is_kept_of_another_version_is_of_no_use(world):
    world.ledger.note("waits", '{"weeks": "many"}')
    world.tick()
    assert world.events("waits") == []
