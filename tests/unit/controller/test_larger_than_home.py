"""A job that home can never run, through the whole controller: rented for, run, taken back, and rented for again."""

import pytest

from tests.fakes.world import World


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_it_runs_on_rented_nodes_and_waits_again_when_they_are_lost(world):
    """Home has two nodes, both idle."""
    job = world.slurm.submit(nodes=3, limit_s=1800, runs_s=900, partitions=("home", "burst-any"))
    assert world.slurm.jobs[job].job.reason == "PartitionDown"
    world.until(lambda: world.slurm.state(job) == "RUNNING", 120)
    running = world.slurm.jobs[job].job
    assert len(running.on) == 3 and all(name.startswith("p5-") for name in running.on)
    assert not any(event.kind == "needs_a_person" for event in world.ledger.events())

    spot = world.cloud.alive()[0]
    world.cloud.interrupt(spot.id)
    world.until(lambda: world.slurm.jobs[job].job.restarts == 1, 60)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 240)
    assert "burst-any" in world.slurm.jobs[job].job.partitions


def test_a_node_that_is_rented_for_another_is_not_open_to_it(world):
    """It waits in no partition with nodes: what is open in burst-p5 is somebody else's."""
    world.fill_home()
    other = world.slurm.submit(limit_s=1800, runs_s=900)
    world.until(lambda: world.slurm.state(other) == "RUNNING", 240)
    held = world.slurm.submit(nodes=1, limit_s=1800, partitions=("home", "burst-any"), held=True)
    world.slurm.change(held, held=False)
    world.slurm.schedule()
    assert world.slurm.state(held) == "PENDING"
