"""What the cloud refuses frees its names at once, also beside a Slurm that takes 300 s to power a node down."""

from itertools import pairwise

import pytest

from ironburst.adapters.aws.errors import by_code
from ironburst.burst import to_json
from ironburst.ports import QuotaReached, Refused
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


DAY_S, HOUR_S = 86400.0, 3600.0
# what AWS may say for a while: until when at the latest the same place is asked again at first, and later
FOR_A_WHILE = {
    "RequestLimitExceeded": (2.0, 60.0),
    "InternalError": (2.0, 60.0),
    "InsufficientInstanceCapacity": (300.0, HOUR_S),
    "VcpuLimitExceeded": (HOUR_S, HOUR_S),
    "UnauthorizedOperation": (60.0, HOUR_S),
    "ExpiredToken": (60.0, HOUR_S),
    "RequestExpired": (60.0, HOUR_S),
    "PendingVerification": (60.0, HOUR_S),
    "InvalidAMIID.NotFound": (60.0, HOUR_S),
    "NobodyHasEverSeenThis": (60.0, HOUR_S),
}


@pytest.mark.parametrize("code", FOR_A_WHILE)
def test_what_time_cures_is_asked_again_however_long_it_takes_and_told_if_it_stays(tmp_path, code):
    world = World(tmp_path, markets=["on-demand"], usd_per_month=1e6, tick_s=10)
    world.fill_home(9e5)
    asked = dict[str, list[float]]()

    def refuse(request):
        asked.setdefault(request.zone, []).append(world.clock.now())
        raise by_code(code, 400, f"RunInstances: {code}")

    launch, world.cloud.launch = world.cloud.launch, refuse
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.pass_by(3 * HOUR_S, 60.0)
    first_s, later_s = FOR_A_WHILE[code]
    for moments in asked.values():
        gaps = [after - before for before, after in pairwise(moments)]
        assert gaps[0] <= first_s + 60 and max(gaps) <= later_s + 60
    if issubclass(type(by_code(code, 400, "")), Refused | QuotaReached):
        assert len(world.events("needs_a_person")) == 1 and code in world.events("needs_a_person")[0]
    world.cloud.launch = launch
    world.until(lambda: world.slurm.state(job) in ("RUNNING", "COMPLETED"), later_s + 180, 20.0)


@pytest.mark.parametrize("code", ["InvalidParameterCombination", "MissingParameter", "InvalidAMIID.Malformed"])
def test_what_no_time_cures_is_asked_once(world, code):
    world.cloud.errors = [by_code(code, 400, code)] * 9
    world.slurm.submit(limit_s=600, requeue=False)
    world.pass_by(DAY_S, 60.0)
    assert len(world.cloud.requests) == 1 and len(world.events("needs_a_person")) == 1


def test_one_zone_that_is_refused_leaves_the_other_one(world):
    world.cloud.errors = [by_code("InvalidSubnetID.NotFound", 400, "no subnet")]
    job = world.slurm.submit(limit_s=600, requeue=False)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 60)
    assert [request.zone for request in world.cloud.requests] == list(ZONES)
    assert world.events("needs_a_person") == []


def test_a_token_whose_instance_has_ended_is_given_up_at_once_for_a_new_one(world):
    """The answer was lost, and somebody ended the instance before it was asked for again."""
    world.cloud.lost_answers = 1
    job = world.slurm.submit(limit_s=600, requeue=False)
    world.until(lambda: world.cloud.all, 60)
    world.cloud.hidden.add("i-1")
    world.cloud.die("i-1", "Client.UserInitiatedShutdown")
    world.cloud.errors = [by_code("IdempotentInstanceTerminated", 400, "the instance of this token has ended")]
    world.tick()
    world.cloud.hidden.clear()
    world.until(lambda: world.slurm.state(job) == "RUNNING", 120)
    assert len({request.token for request in world.cloud.requests}) == 2 and len(world.cloud.alive()) == 1
