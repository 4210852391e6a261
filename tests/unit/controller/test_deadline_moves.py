"""Jobs that save their work and have a deadline, in a whole site: from on demand to spot, back when it is taken."""

import pytest

from ironburst.controller import deadline_moves
from tests.fakes import document
from tests.fakes.world import World

HOUR = 3600.0


def declared(spare_s: int | None = 300, **burst):
    site = document(zones=["us-east-1a"], **burst)
    return site.model_copy(update={"burst": site.burst.model_copy(update={"deadline_spare_s": spare_s})})


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.document = declared()
    world.fill_home(limit_s=90 * HOUR)
    return world


def submit(world, limit_s=10 * HOUR, spare_s=8 * HOUR, **more):
    """As `sbatch --time --time-min=10 --deadline --comment checkpoint=10m`."""
    deadline_s = world.clock.now() + limit_s + spare_s
    saves = {"time_min_s": 600.0, "saves_s": 600.0, "deadline_s": deadline_s}
    return world.slurm.submit(limit_s=limit_s, **(saves | {"runs_s": limit_s} | more))


def market_of(world, job):
    """Of the node that it runs on; empty: it doesn't."""
    (node,) = world.slurm.jobs[job].job.on or ("",)
    rented = {lease.node: lease.market for lease in world.ledger.leases()}
    return rented.get(node, "") if world.slurm.state(job) == "RUNNING" else ""


def spot(world, there):
    world.cloud.capacity[("us-east-1a", "spot")] = 99 if there else 0


def on_demand_at_last(world, **more):
    """Spot isn't there, and there was little time to wait for it."""
    spot(world, False)
    job = submit(world, spare_s=0.25 * HOUR, **more)
    world.until(lambda: market_of(world, job) == "on-demand", HOUR, 10.0)
    return job


def test_a_job_waits_for_spot_and_goes_there_when_it_comes(world):
    spot(world, False)
    job = submit(world)
    world.pass_by(HOUR, 30.0)
    assert world.slurm.state(job) == "PENDING" and not world.cloud.alive()
    spot(world, True)
    world.until(lambda: market_of(world, job) == "spot", 2 * HOUR, 30.0)


def test_without_the_key_it_is_on_demand_at_once_and_stays(world):
    world.document = declared(spare_s=None)
    spot(world, False)
    job = submit(world)
    world.until(lambda: market_of(world, job) == "on-demand", HOUR, 10.0)
    spot(world, True)
    world.pass_by(2 * HOUR, 60.0)
    assert market_of(world, job) == "on-demand" and world.slurm.jobs[job].job.restarts == 0
    assert world.ledger.noted("deadline_moves") is None


def later_deadline(world, job, spare_s=8 * HOUR):
    """Its user gives it more time: scontrol update."""
    fake = world.slurm.jobs[job]
    world.slurm.change(job, deadline_s=fake.job.deadline_s + spare_s)


def test_a_job_on_demand_goes_back_to_spot_when_its_node_is_ready_and_loses_no_more_than_a_checkpoint(world):
    job = on_demand_at_last(world)
    world.pass_by(HOUR, 30.0)
    spot(world, True)
    later_deadline(world, job)
    world.until(lambda: world.events("moved"), 3 * HOUR, 10.0)
    assert "joined" in world.states()  # its node had passed the gate before it left the other one
    ran_s = world.clock.now() - world.slurm.jobs[job].started[0][0]
    world.until(lambda: market_of(world, job) == "spot", HOUR, 10.0)
    assert world.slurm.jobs[job].job.restarts == 1 and not world.slurm.forced
    (work,) = deadline_moves._read(world.ledger).work.values()
    assert ran_s - 600 - 10 <= work.saved_s <= ran_s
    world.until(lambda: [lease.market for lease in world.ledger.leases()] == ["spot"], HOUR, 10.0)


def test_a_job_whose_spot_node_is_taken_goes_on_and_does_not_flap(world):
    """Spot comes and goes each quarter of an hour: each move costs a boot, so there are few."""
    job = on_demand_at_last(world, limit_s=6 * HOUR, runs_s=6 * HOUR)
    later_deadline(world, job, 4 * HOUR)
    for turn in range(16):
        spot(world, turn % 2 == 0)
        if turn % 2:
            for instance in world.cloud.alive():
                if world.cloud.tokens[instance.token][0].market == "spot":
                    world.cloud.interrupt(instance.id)
        world.pass_by(900, 30.0)
    assert len(world.events("moved")) <= 2
    taken = len(world.events("interrupted"))
    assert 1 <= world.slurm.jobs[job].job.restarts <= taken + 2


def test_what_the_ledger_keeps_goes_with_the_job(world):
    job = on_demand_at_last(world)
    assert str(job) in deadline_moves._read(world.ledger).work
    world.slurm.cancel(job)
    world.tick(2)
    assert deadline_moves._read(world.ledger).work == {}


def test_a_restarted_controller_knows_what_was_saved(world):
    spot(world, True)
    job = submit(world)
    world.until(lambda: market_of(world, job) == "spot", HOUR, 10.0)
    world.pass_by(HOUR, 30.0)
    for instance in world.cloud.alive():
        world.cloud.interrupt(instance.id)
    world.until(lambda: world.slurm.jobs[job].job.restarts == 1, HOUR, 10.0)
    world.ledger.close()
    world.start()
    world.tick()
    *_, (_, snapshot, _) = [(tick.policy, tick.snapshot, tick.decision) for tick in world.rounds()]
    (seen,) = [each for each in snapshot.jobs if each.id == job]
    assert HOUR - 1200 <= seen.saved_s <= HOUR + 600
