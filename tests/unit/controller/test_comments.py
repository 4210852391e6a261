"""A job's user sees beside it what the controller means to do."""

import pytest

from ironburst.burst import Resources
from ironburst.controller import comments
from ironburst.ports import SchedulerError
from tests.fakes.world import World


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, home=1, max_run_s=3600)


def test_a_job_that_is_rented_for_says_what_and_by_when(world):
    world.fill_home()
    job = world.slurm.submit()
    world.until(lambda: "rented for it" in world.slurm.comments.get(job, ""), 600)
    said = world.slurm.comments[job]
    assert said.startswith("ironburst: being rented for it: p5-1 (spot), by 20") and said.endswith("Z")
    world.until(lambda: world.slurm.state(job) == "RUNNING", 1200)
    assert len(said) < 200


def test_a_job_on_a_rented_node_says_where_and_what_that_costs_and_no_more_what_was_meant(world):
    world.fill_home()
    job = world.slurm.submit()
    world.until(lambda: world.slurm.state(job) == "RUNNING", 1200)
    world.tick()
    (lease,) = world.ledger.leases()
    on = world.slurm.jobs[job].job.on
    assert world.slurm.comments[job] == f"ironburst: on p5-1, rented at ${lease.usd_per_hour:.2f} an hour (estimate)"
    assert comments.usd_per_hour(world.slurm.comments[job], on) == lease.usd_per_hour
    assert comments.usd_per_hour(world.slurm.comments[job], ("dgx01",)) is None, "where it was before it was put back"


def test_a_part_of_a_node_costs_a_part(world):
    world.fill_home()
    half = world.slurm.submit(each=Resources(4))
    world.until(lambda: world.slurm.state(half) == "RUNNING", 1200)
    world.tick()
    (lease,) = world.ledger.leases()
    usd = comments.usd_per_hour(world.slurm.comments[half], ("p5-1",))
    assert usd == pytest.approx(lease.usd_per_hour / 2, abs=0.01)


def test_a_job_that_starts_at_home_says_so_if_anything_was_said_of_it(world):
    first = world.fill_home(limit_s=900)
    job = world.slurm.submit()
    world.until(lambda: world.slurm.comments.get(job), 600)
    world.slurm.cancel(first)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 1200)
    world.tick()
    assert world.slurm.comments == {job: "ironburst: on dgx01"}


def test_what_nobody_decides_on_any_more_is_taken_away(world):
    world.fill_home()
    job = world.slurm.submit(limit_s=None)
    world.until(lambda: world.slurm.comments.get(job), 600)
    world.slurm.change(job, partitions=("long",))
    world.tick(2)
    assert world.slurm.comments[job] == ""


def test_a_job_that_no_pool_can_take_says_why(world):
    world.fill_home()
    job = world.slurm.submit(limit_s=None)
    world.pass_by(120)
    assert world.slurm.comments[job] == (
        "ironburst: it has no finite time limit, so its cost has no limit either: submit it with --time"
    )


def test_a_comment_of_the_sites_own_is_never_replaced(world):
    world.fill_home()
    job = world.slurm.submit()
    world.slurm.comments[job] = '{"podname": "train-0"}'
    world.until(lambda: world.slurm.state(job) == "RUNNING", 1200)
    assert world.slurm.comments[job] == '{"podname": "train-0"}'


def test_the_same_thing_in_other_figures_is_said_every_five_minutes_at_most(world):
    world.fill_home(limit_s=900)
    job, written = world.slurm.submit(limit_s=7200), []
    write = world.slurm.comment
    world.slurm.comment = lambda said: (written.append(said), write(said))
    world.pass_by(120, every_s=2)
    mine = [said[str(job)] for said in written if str(job) in said]
    assert 1 <= len(mine) <= 4 and len(set(mine)) == len(mine)


def test_a_long_queue_is_told_by_and_by_the_first_ones_first(world):
    world.fill_home()
    jobs = [world.slurm.submit(limit_s=None) for _ in range(comments.AT_ONCE + 5)]
    world.slurm.comments.clear()
    world.start()
    world.tick()
    assert sum(job in world.slurm.comments for job in jobs) <= comments.AT_ONCE
    world.tick(2)
    assert all(job in world.slurm.comments for job in jobs)


def test_a_scheduler_that_takes_no_comment_stops_nothing(world):
    def refuses(said):
        raise SchedulerError("Access/permission denied")

    world.slurm.comment = refuses
    world.fill_home()
    job = world.slurm.submit()
    world.until(lambda: world.slurm.state(job) == "RUNNING", 1200)
    assert world.slurm.comments == {} and world.slurm.jobs[job].job.on == ("p5-1",)
