"""Where a job may start at home: types of GPUs, partitions, exclusions, and whom it shares a node with."""

from dataclasses import replace

import pytest

from ironburst.burst import Node, Resources, decide
from ironburst.burst.packing import Plan
from ironburst.burst.slots import Room
from ironburst.burst.snapshot import jobs_on
from tests.fakes.snapshots import FULL, NOW, POLICY, code_of, home, job, lease, pool, running, snapshot, text_of

ONE = Resources(1, 0, 100)
H100, A100 = (Node(name, ("home",), FULL, ("IDLE",), gpu_types={name[:4]: 8}) for name in ("h100", "a100"))
BUSY = running(90, ["h100"], 10 * 3600)


def plan_of(nodes, running, *more, **named):
    """With these jobs on them."""
    return Plan(NOW, nodes, jobs_on(running), *more, **named)


@pytest.mark.parametrize(
    ("asks", "rented"),
    [
        ({"gpu_type": "h100"}, True),
        ({"gpu_type": "a100"}, False),
        ({}, False),
        ({"gpu_type": "h100", "gpu_by_place": True}, False),  # it asks for none itself
        ({"excluded": ("a100",)}, True),
        ({"excluded": ("h100",)}, False),
        ({"passed_over": ("a100",)}, True),
    ],
)
def test_an_idle_node_that_it_may_not_have_is_no_room(asks, rented):
    decision = decide(snapshot([BUSY, job(**asks)], nodes=[H100, A100]), POLICY)
    assert bool(decision.launches) == rented


def test_a_node_with_two_types_has_of_each_its_own_number():
    mixed = Node("mixed", ("home",), FULL, ("IDLE",), gpu_types={"h100": 4, "a100": 4})
    plan = plan_of([mixed], [])
    assert plan.earliest(job(each=Resources(4, 1, 100), gpu_type="h100")).start == NOW
    assert plan.earliest(job(each=Resources(5, 1, 100), gpu_type="h100")) is None


def test_what_is_never_at_home_for_its_type_is_late_at_once():
    never = decide(snapshot([job(gpu_type="h100")], nodes=[A100]), POLICY)
    assert never.launches and "it asks for GPUs of type h100, home has none" in text_of(never)
    gang = decide(snapshot([job(gpu_type="h100", nodes=2)], nodes=[H100, A100]), POLICY)
    assert gang.launches and "it needs 2 nodes of 8 GPUs of type h100, home has 1" in text_of(gang)


def test_all_owned_partitions_that_it_named_count():
    h200 = Node("h200-1", ("h200",), FULL, ("IDLE",))
    named = job(partitions=("home", "h200"))
    busy = running(90, ["dgx1", "dgx2"], 10 * 3600)
    assert decide(snapshot([busy, named], nodes=[*home(), h200]), POLICY).launches == ()
    assert decide(snapshot([busy, job()], nodes=[*home(), h200]), POLICY).launches
    ahead = job(7, partitions=("h200",), limit_s=9 * 3600.0, priority=9)  # stands before it there
    assert [w.job for w in decide(snapshot([busy, ahead, named], nodes=[*home(), h200]), POLICY).waits] == [1]
    assert decide(snapshot([busy, ahead, named], nodes=[*home(), h200]), POLICY).launches


def test_rented_nodes_in_a_common_partition_are_not_home():
    everywhere = [Node(n, ("all",), FULL, ("IDLE",)) for n in ("p5-1", "p5-2", "p5-3")]
    busy = running(90, ["dgx1", "dgx2"], 10 * 3600)
    decision = decide(replace(snapshot([busy, job(partitions=("home", "all"))]), nodes=(*home(), *everywhere)), POLICY)
    assert code_of(decision, 1) != "home_soon"


@pytest.mark.parametrize("kind", ["node", "user"])
def test_an_exclusive_job_has_no_room_beside_others_and_leaves_none(kind):
    alone = job(each=ONE, exclusive=kind)
    assert plan_of(home(1), [running(9, ["dgx1"], 300, each=ONE)]).earliest(alone).start == NOW + 300
    assert plan_of(home(1), [running(9, ["dgx1"], 300, each=ONE, exclusive=kind)]).earliest(job(each=ONE)).start > NOW
    plan = plan_of(home(1), [])
    plan.place(alone, plan.earliest(alone))
    assert plan.earliest(job(2, each=ONE)).start == NOW + 7200


def test_exclusive_jobs_are_rented_a_node_each_and_those_of_one_user_share_one():
    busy = running(90, ["dgx1", "dgx2"], 10 * 3600)

    def nodes(*users, kind):
        jobs = [job(n, each=ONE, user=user, exclusive=kind) for n, user in enumerate(users, 1)]
        return sum(len(launch.nodes) for launch in decide(snapshot([busy, *jobs]), POLICY).launches)

    assert nodes("a", "a", "b", kind="node") == 3
    assert nodes("a", "a", "b", kind="user") == 2
    assert nodes("a", "a", "b", kind="") == 1


def test_a_rented_node_that_somebody_is_on_serves_no_exclusive_job():
    busy, there = running(90, ["dgx1", "dgx2"], 10 * 3600), running(80, ["p5-1"], 3600, each=ONE, user="bob")
    leases = [lease("p5-1", jobs=(1, 80), idle_since_s=None)]
    decision = decide(snapshot([busy, there, job(each=ONE, exclusive="node")], leases=leases), POLICY)
    assert [launch.nodes for launch in decision.launches] == [("p5-2",)]


def test_room_is_for_those_who_may_share_it():
    room = Room.of(FULL, [job(each=ONE, user="a", exclusive="user")])
    assert room.fits(job(each=ONE, user="a")) and not room.fits(job(each=ONE, user="b"))
    assert not room.fits(job(each=ONE, user="a", exclusive="node"))
    assert not Room.of(FULL, [job(each=ONE, user="a", exclusive="node")]).fits(job(each=ONE, user="a"))


def test_a_limit_that_may_be_cut_is_no_reason_not_to_rent():
    busy = running(90, ["dgx1", "dgx2"], 10 * 3600)
    short = pool(max_run_s=3600.0)
    asked = {"limit_s": 7200.0, "pools": [short]}
    for least_s, rented in ((None, False), (3600.0, True), (3601.0, False)):
        decision = decide(snapshot([busy, job(limit_s=7200.0, time_min_s=least_s)], pools=asked["pools"]), POLICY)
        assert bool(decision.launches) == rented
    (launch,) = decide(snapshot([busy, job(limit_s=7200.0, time_min_s=60.0)], pools=[short]), POLICY).launches
    assert launch.committed_until_s == NOW + short.boot_s + 3600.0 + short.idle_s + short.ending_s
