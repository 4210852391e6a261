"""What the cloud refuses frees its names at once, also beside a Slurm that takes 300 s to power a node down."""

import pytest

from ironburst.burst import to_json
from tests.fakes.world import World

ZONES = "us-east-1a", "us-east-1b"
SUSPEND_S = 300.0  # the role's own


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.slurm.suspend_s = SUSPEND_S
    world.fill_home()
    return world


def sold_out(world, market, left=0):
    for zone in ZONES:
        world.cloud.capacity[zone, market] = left


def powered(world):
    """Burst nodes that Slurm powers up, or down."""
    moving = ("POWER_UP", "POWERING_UP", "POWERING_DOWN")
    return {name for name, node in world.slurm.nodes.items() if node.states & set(moving)}


def test_a_refused_node_is_asked_for_in_the_next_market_at_once(world):
    sold_out(world, "spot")
    world.document = world.document.model_copy(
        update={"pools": [world.document.pools[0].model_copy(update={"nodes": ["p5-1"]})]}
    )
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.tick(3)
    assert [(request.market, request.zone) for request in world.cloud.requests] == [
        ("spot", ZONES[0]),
        ("spot", ZONES[1]),
        ("on-demand", ZONES[0]),
    ]
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 120)
    assert world.slurm.jobs[job].started[0][1] == ("p5-1",)
    world.until(lambda: not world.ledger.leases() and not world.cloud.alive(), 600)


def test_the_names_of_a_gang_that_is_too_large_go_to_a_smaller_job_at_once(world):
    sold_out(world, "on-demand", left=2)
    gang = world.slurm.submit(nodes=3, limit_s=600, runs_s=60)
    world.tick()
    assert [request.count for request in world.cloud.requests] == [3, 3] and not world.cloud.alive()
    small = world.slurm.submit(nodes=2, limit_s=600, runs_s=60)
    world.until(lambda: world.slurm.state(small) == "RUNNING", 60)
    assert world.slurm.jobs[gang].job.partitions == ("home",)
    # what nobody took is powered down, and no permit stays behind
    assert world.slurm.permits == {"p5-1", "p5-2"} and "POWERING_DOWN" in world.slurm.nodes["p5-3"].states


def test_of_an_array_the_task_that_is_refused_keeps_no_name_from_the_others(world):
    world.cloud.capacity = {(zone, "spot"): 1 for zone in ZONES}
    tasks = [world.slurm.submit(limit_s=600, runs_s=60, called=f"8_{n}") for n in (1, 2, 3)]
    world.tick(3)
    assert "on-demand" in {request.market for request in world.cloud.requests}
    assert len(world.cloud.alive()) == 3
    world.until(lambda: all(world.slurm.state(task) == "COMPLETED" for task in tasks), 200)


def test_what_keeps_the_names_is_explained(world):
    sold_out(world, "spot")
    sold_out(world, "on-demand")
    gang = world.slurm.submit(nodes=3, limit_s=600)
    world.tick(4)
    assert not world.ledger.leases() and powered(world) == {"p5-1", "p5-2", "p5-3"} and not world.slurm.permits
    world.cloud.capacity.clear()
    world.clock.at += world.document.burst.cool_down_s
    world.tick()
    said = world.ledger.decisions(gang)[-1]
    assert said.code == "max_nodes"
    refused = "3 refused by the cloud at 2026-11-21 12:00:01Z and being powered down by the scheduler"
    assert f"pool p5 has 0 of its 3 nodes free to rent, it needs 3 ({refused})" in said.text
    world.until(lambda: world.slurm.state(gang) == "RUNNING", SUSPEND_S + 60)


def test_a_node_that_was_given_back_was_not_refused(world):
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.slurm.state(job) == "COMPLETED" and not world.ledger.leases(), 600)
    later = world.slurm.submit(nodes=3, limit_s=600)
    world.tick()
    assert "(1 given back and being powered down by the scheduler)" in world.ledger.decisions(later)[-1].text


def test_a_controller_that_dies_over_it_leaves_nothing_behind(world):
    sold_out(world, "spot")
    sold_out(world, "on-demand")
    world.slurm.submit(limit_s=600)
    world.tick()
    assert world.slurm.permits == {"p5-1"}
    world.ledger.close()
    world.start()
    world.tick(2)
    assert not world.slurm.permits and "POWERING_DOWN" in world.slurm.nodes["p5-1"].states


def test_a_person_who_drains_it_meanwhile_keeps_it(world):
    sold_out(world, "spot")
    world.slurm.submit(limit_s=600)
    world.tick()
    node = world.slurm.nodes["p5-1"]
    node.reason, node.reason_by = "bad card", "ann"
    world.cloud.capacity.clear()
    world.tick(3)
    assert [lease.node for lease in world.ledger.leases()] == ["p5-2"] and "bad card" in node.reason


def test_snapshots_without_refusals_are_written_as_before(world):
    world.slurm.submit(limit_s=600)
    world.tick()
    assert not {"spare", "refused_s"} & set(to_json(world.rounds()[0].snapshot))
