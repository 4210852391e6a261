"""A pool or a zone that the document has no more, while nodes of it are rented: what runs may end, and all is given
back.
"""

import pytest

from tests.fakes.world import World


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, markets=["on-demand"])


def rented(world, **job):
    """A rented node on which a job runs; its lease."""
    world.fill_home(limit_s=20000.0)
    world.job = world.slurm.submit(limit_s=3600.0, **job)
    world.until(lambda: world.slurm.jobs[world.job].job.on, 600)
    return world.ledger.leases()[0]


def remove_pool(world):
    world.document = world.document.model_copy(update={"pools": [], "serial": 2})


def test_what_runs_there_ends_by_itself_then_the_node_goes(world):
    lease = rented(world, runs_s=600)
    remove_pool(world)
    world.tick(20)
    assert world.slurm.jobs[world.job].job.on and world.ledger.leases()[0].id == lease.id
    world.until(lambda: not world.cloud.alive(), 1200)
    world.until(lambda: not world.ledger.leases(), 60)
    assert "pool p5 is not declared any more" in " ".join(world.events("release"))
    assert world.slurm.jobs[world.job].job.state != "CANCELLED"
    assert world.events("trouble") == []


def test_a_node_without_work_goes_at_once(world):
    rented(world, runs_s=30)
    world.until(lambda: not world.slurm.jobs[world.job].job.on, 120)
    remove_pool(world)
    world.tick(20)
    assert world.cloud.alive() == []


def test_a_job_without_end_ends_with_the_money(tmp_path):
    world = World(tmp_path, markets=["on-demand"], usd_per_month=100.0)
    rented(world, runs_s=10**6)
    remove_pool(world)
    world.until(lambda: not world.cloud.alive(), 6 * 3600)
    assert world.clock.now() - next(iter(world.cloud.all.values())).instance.launched_s <= 100.0 / 55.04 * 3600


def test_a_launch_on_its_way_is_given_up(world):
    world.cloud.boot_s = 60.0
    world.fill_home(limit_s=20000.0)
    world.slurm.submit(limit_s=3600.0)
    world.until(lambda: world.states() == ["launched"], 600)
    remove_pool(world)
    world.until(lambda: not world.ledger.leases() and not world.cloud.alive(), 300)
    assert len(world.cloud.all) == 1


def test_a_node_that_slurm_knows_no_more_either_is_ended(world):
    """The next converge takes the pool's lines out of slurm.conf."""
    rented(world, runs_s=30)
    world.until(lambda: not world.slurm.jobs[world.job].job.on, 120)
    remove_pool(world)
    del world.slurm.nodes["p5-1"]
    world.until(lambda: not world.cloud.alive(), 60)
    world.until(lambda: not world.ledger.leases(), 60)
    assert len(world.cloud.all) == 1 and world.slurm.forced == []


def test_the_node_of_a_removed_pool_ends_drained_and_powered_down(world):
    rented(world, runs_s=30)
    remove_pool(world)
    world.until(lambda: not world.ledger.leases(), 600)
    world.tick(100)
    node = world.slurm.nodes["p5-1"]
    assert "POWERED_DOWN" in node.states and "DRAIN" in node.states, node


def test_the_pending_job_of_a_removed_pool_waits_at_home(world):
    world.fill_home(limit_s=20000.0)
    world.slurm.submit(limit_s=3600.0, runs_s=100)
    second = world.slurm.submit(limit_s=3600.0, runs_s=100)
    world.until(lambda: len(world.cloud.alive()) == 2, 600)
    remove_pool(world)
    world.tick(200)
    assert world.slurm.jobs[second].job.state in ("PENDING", "COMPLETED")
    assert world.cloud.alive() == []


def test_the_zone_of_a_lease_may_go(world):
    lease = rented(world, runs_s=300)
    pool = world.document.pools[0]
    left = [zone for zone in pool.zones if zone.zone != lease.zone]
    world.document = world.document.model_copy(update={"pools": [pool.model_copy(update={"zones": left})], "serial": 2})
    world.until(lambda: not world.cloud.alive(), 1200)
    assert world.events("trouble") == [] and world.events("needs_a_person") == []
