"""A slurmctld that was set up again counts its jobs from 1: yesterday's job of an id isn't today's."""

import pytest

from ironburst.cli import explain
from tests.fakes.world import World

DAY = 86400.0


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, usd_per_month=1e6)
    world.fill_home(limit_s=9 * DAY)
    return world


def again(world, id, **more):
    """Yesterday's job of that id has gone with its slurmctld; a new one has it."""
    world.slurm.jobs.pop(id), world.slurm.unfinished.pop(id, None)
    return world.slurm.submit(id=id, **more)


def test_todays_job_is_not_explained_by_yesterdays(world):
    job = world.slurm.submit(limit_s=3600, runs_s=600, name="old")
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 3600)
    world.pass_by(DAY, 600)
    assert explain.gather(world.ledger, job, world.clock.now())["leases"]
    began = world.clock.now()
    again(world, job, limit_s=7200.0, name="new", user="bob")
    world.slurm.change(job, held=True)
    world.tick(2)
    told = explain.gather(world.ledger, job, world.clock.now())
    assert (told["name"], told["user"], told["leases"], told["submit_s"]) == ("new", "bob", [], began)
    assert told["story"] and all(item["at_s"] >= began for item in told["story"])


def test_a_lease_of_yesterdays_job_is_not_todays(world):
    world.slurm._may = lambda name, job: not name.startswith("p5")
    job = world.slurm.submit(limit_s=3600, runs_s=600)
    world.until(lambda: world.states() == ["ready"], 600)
    world.clock.at += 60
    again(world, job, limit_s=3600.0, each=world.slurm.jobs[job].job.each)
    world.ledger.forget_others([world.slurm.jobs[job].job], world.clock.now())
    assert world.ledger.jobs_of(world.ledger.leases()[0].id) == ()


def test_a_job_that_was_put_back_is_the_same_one(world):
    job = world.slurm.submit(limit_s=3600, runs_s=1200)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 600)
    world.cloud.die(world.cloud.alive()[0].id)
    world.until(lambda: world.slurm.jobs[job].job.restarts == 1, 3600)
    world.tick(3)
    told = explain.gather(world.ledger, job, world.clock.now())
    assert told["leases"] and world.ledger.job(job).since_s == 0.0


def test_another_user_has_another_job_whatever_the_times_say(world):
    job = world.slurm.submit(limit_s=3600)
    world.tick()
    seen = world.slurm.jobs[job].job
    world.slurm.change(job, user="mallory", restarts=4)
    assert world.ledger.forget_others([seen], world.clock.now()) == []
    assert world.ledger.forget_others([world.slurm.jobs[job].job], world.clock.now()) == [job]
