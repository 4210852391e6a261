"""A job's user sees beside it what the controller means to do."""

import pytest

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
