"""The burst policy: who is worth renting for, where, within which limits, and what is said of the rest."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ironburst.burst import (
    CoolDown,
    Decision,
    Node,
    Resources,
    Snapshot,
    decide,
    from_json,
    to_json,
)
from ironburst.burst.packing import Plan
from tests.fakes.snapshots import (
    BUSY,
    FULL,
    NOW,
    POLICY,
    code_of,
    home,
    job,
    lease,
    pool,
    running,
    snapshot,
)

# ---- worth it or not


def test_a_job_that_starts_at_home_within_the_limit_waits_with_a_reason_and_a_time():
    decision = decide(snapshot([running(90, ["dgx1", "dgx2"], 1800), job()]), POLICY)
    assert decision.launches == () and decision.waits[0].code == "home_soon"
    assert decision.waits[0].look_again_s == NOW + 1800 and "within the wait limit of 1 h" in decision.waits[0].text


def test_a_late_job_is_rented_for_at_once_not_when_the_limit_is_over():
    decision = decide(snapshot([*BUSY, job()]), POLICY)
    (launch,) = decision.launches
    assert (launch.pool, launch.market, launch.nodes, launch.zones, launch.jobs) == (
        "p5",
        "spot",
        ("p5-1",),
        ("a", "b"),
        (1,),
    )
    assert launch.committed_usd == pytest.approx(20.0 * (600 + 7200 + 300) / 3600)
    assert "over the wait limit of 1 h" in launch.reason


def test_renting_never_comes_later_than_home():
    decision = decide(snapshot([running(90, ["dgx1", "dgx2"], 500), job(submit_s=NOW - 3900)]), POLICY)
    assert decision.launches == () and code_of(decision, 1) == "home_sooner"


def test_the_queue_is_planned_in_order_and_only_what_is_late_is_rented():
    jobs = [running(90, ["dgx1", "dgx2"], 1800), *(job(n, limit_s=3600.0) for n in (1, 2, 3))]
    decision = decide(snapshot(jobs), POLICY)
    assert [code_of(decision, n) for n in (1, 2)] == ["home_soon"] * 2  # one node each
    assert [launch.jobs for launch in decision.launches] == [(3,)]  # behind them: 30 min + 1 h


def test_priority_comes_before_age():
    jobs = [running(90, ["dgx1", "dgx2"], 1800), *(job(n, limit_s=3600.0, priority=n) for n in (1, 2, 3))]
    assert [launch.jobs for launch in decide(snapshot(jobs), POLICY).launches] == [(1,)]


def test_a_job_larger_than_home_is_rented_for_right_away():
    decision = decide(snapshot([job(nodes=3)]), POLICY)
    assert (
        decision.launches[0].nodes == ("p5-1", "p5-2", "p5-3") and "never start at home" in decision.launches[0].reason
    )


def test_home_being_drained_for_a_while_is_no_reason_to_rent_before_the_limit():
    down = home(states=("DRAIN", "IDLE"))
    assert code_of(decide(snapshot([job()], down), POLICY), 1) == "home_down"
    assert decide(snapshot([job(submit_s=NOW - 3601)], down), POLICY).launches


def test_jobs_of_other_partitions_are_left_alone():
    decision = decide(snapshot([*BUSY, job(partitions=("burst-p5",)), job(2, partitions=("fixed",))]), POLICY)
    assert decision == Decision(releases=())


# ---- eligibility


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"held": True}, "held"),
        ({"dependency": "afterok:7(unfulfilled)"}, "dependency"),
        ({"eligible_s": NOW + 60}, "begin"),
        ({"limit_s": None}, "no_time_limit"),
        ({"array_tasks": "1-10"}, "array"),
        ({"demands": "the nodes dgx1"}, "demands"),
        ({"each": Resources(0, 1, 100)}, "no_gpu"),
        ({"each": Resources(16, 1, 1000)}, "too_large"),
        ({"each": Resources(8, 1, 2000)}, "too_large"),
        ({"nodes": 4}, "too_many_nodes"),
        ({"limit_s": 90000.0}, "too_long"),
        ({"gpu_type": "b200"}, "gpu_type"),
    ],
)
def test_what_makes_a_job_unrentable_is_said(change, code):
    decision = decide(snapshot([*BUSY, job(**change)]), POLICY)
    assert decision.launches == () and code_of(decision, 1) == code


@pytest.mark.parametrize(
    ("change", "market"),
    [({}, "spot"), ({"batch": False}, "on-demand"), ({"requeue": False}, "on-demand"), ({"nodes": 2}, "on-demand")],
)
def test_spot_is_for_single_node_batch_jobs_that_may_be_requeued(change, market):
    assert [each.market for each in decide(snapshot([*BUSY, job(**change)]), POLICY).launches] == [market]


def test_a_spot_only_pool_can_not_take_the_others():
    decision = decide(snapshot([*BUSY, job(batch=False)], pools=[pool(markets=("spot",))]), POLICY)
    assert decision.infeasible[0].code == "spot_interactive"


def test_a_market_without_a_price_is_not_rented():
    unknown = pool(markets=("on-demand",), usd_per_hour={"on-demand": None})
    assert decide(snapshot([*BUSY, job()], pools=[unknown]), POLICY).infeasible[0].code == "no_price"


def test_a_pool_without_image_is_infeasible():
    decision = decide(snapshot([*BUSY, job()], pools=[pool(obstacle="no image: bake one")]), POLICY)
    assert decision.infeasible[0].code == "pool" and "no image" in decision.infeasible[0].text


# ---- money, limits, cool-downs


def test_without_a_budget_nothing_is_rented():
    assert decide(snapshot([*BUSY, job()], budget=None), POLICY).infeasible[0].code == "no_budget"


def test_a_job_over_the_whole_months_budget_is_infeasible_one_over_the_rest_waits():
    assert decide(snapshot([*BUSY, job()], budget=10.0), POLICY).infeasible[0].code == "over_budget"
    decision = decide(snapshot([*BUSY, job(), job(2)], budget=80.0), POLICY)
    assert len(decision.launches) == 1 and code_of(decision, 2) == "budget"
    assert next(w for w in decision.waits if w.job == 2).look_again_s == NOW + 86400 * 9


def test_a_gang_is_in_one_launch_or_in_none():
    assert len(decide(snapshot([*BUSY, job(nodes=3)]), POLICY).launches[0].nodes) == 3
    decision = decide(snapshot([*BUSY, job(), job(2, nodes=3)]), POLICY)
    assert [launch.jobs for launch in decision.launches] == [(1,)] and code_of(decision, 2) == "max_nodes"


def test_a_closed_zone_is_skipped_and_all_closed_is_a_wait_with_a_time():
    closed = CoolDown("p5", "a", "spot", 1, NOW + 60, "InsufficientInstanceCapacity")
    assert decide(snapshot([*BUSY, job()], cool_downs=(closed,)), POLICY).launches[0].zones == ("b",)
    everywhere = tuple(CoolDown("p5", z, m, 1, NOW + 60, "ICE") for z in "ab" for m in ("spot", "on-demand"))
    decision = decide(snapshot([*BUSY, job()], cool_downs=everywhere), POLICY)
    assert decision.launches == () and (decision.waits[0].code, decision.waits[0].look_again_s) == (
        "cool_down",
        NOW + 60,
    )


def test_a_refused_gang_does_not_close_the_place_for_single_nodes():
    closed = tuple(CoolDown("p5", z, m, 2, NOW + 60, "ICE") for z in "ab" for m in ("spot", "on-demand"))
    assert decide(snapshot([*BUSY, job()], cool_downs=closed), POLICY).launches
    assert not decide(snapshot([*BUSY, job(nodes=2)], cool_downs=closed), POLICY).launches


def test_a_closed_spot_market_falls_back_to_on_demand():
    closed = tuple(CoolDown("p5", z, "spot", 1, NOW + 60, "ICE") for z in "ab")
    assert decide(snapshot([*BUSY, job()], cool_downs=closed), POLICY).launches[0].market == "on-demand"


def test_small_jobs_share_one_new_node():
    small = Resources(2, 1, 100)
    decision = decide(snapshot([*BUSY, job(each=small), job(2, each=small), job(3, each=small)]), POLICY)
    assert [launch.jobs for launch in decision.launches] == [(1, 2), (3,)]  # a node has 2 CPUs


# ---- rented nodes


def test_an_idle_rented_node_is_used_before_a_launch():
    decision = decide(snapshot([*BUSY, job()], leases=[lease("p5-2")], pools=[pool(markets=("on-demand",))]), POLICY)
    assert decision.launches == () and decision.assigns[0].leases == ("l1/p5-2",)
    (widen,) = decision.widen
    assert widen.partitions == ("home", "burst-p5") and widen.excluded == ("p5-1", "p5-3")
    assert decision.releases == ()


def test_keeping_a_node_whose_time_is_over_costs_from_now_on():
    idle = replace(lease("p5-2"), committed_until_s=NOW - 1e9)
    decision = decide(snapshot([*BUSY, job()], leases=[idle], pools=[pool(markets=("on-demand",))]), POLICY)
    (assign,) = decision.assigns
    assert assign.committed_usd == pytest.approx(idle.usd_per_hour * (assign.committed_until_s - NOW) / 3600)


def test_a_gang_reuses_only_nodes_of_one_zone_and_market():
    mixed = [lease("p5-1", zone="a"), lease("p5-2", zone="b", launch="l2")]
    decision = decide(snapshot([*BUSY, job(nodes=2)], leases=mixed, pools=[pool(size=4)]), POLICY)
    assert decision.assigns == () and decision.launches[0].nodes == ("p5-3", "p5-4")


def test_nothing_is_widened_before_the_whole_gang_has_joined():
    coming = [lease("p5-1", "joined", jobs=(1,), worked=False), lease("p5-2", "coming", jobs=(1,), worked=False)]
    decision = decide(snapshot([*BUSY, job(nodes=2)], leases=coming), POLICY)
    assert (
        decision.widen == ()
        and code_of(decision, 1) == "coming"
        and decision.launches == ()
        and decision.releases == ()
    )
    joined = [lease(n, "joined", jobs=(1,), worked=False) for n in ("p5-1", "p5-2")]
    assert decide(snapshot([*BUSY, job(nodes=2)], leases=joined), POLICY).widen[0].nodes == ("p5-1", "p5-2")


def test_a_widened_job_is_left_in_peace():
    wide = job(partitions=("home", "burst-p5"), excluded=("p5-2", "p5-3"))
    decision = decide(snapshot([*BUSY, wide], leases=[lease("p5-1", jobs=(1,))]), POLICY)
    assert decision.widen == decision.narrow == decision.releases == decision.launches == ()


def test_a_job_whose_node_another_one_took_is_decided_anew():
    thief = running(80, ["p5-1"], 3600, partitions=("burst-p5",))
    wide = job(partitions=("home", "burst-p5"), excluded=("p5-2", "p5-3"))
    assert decide(snapshot([*BUSY, thief, wide], leases=[lease("p5-1", jobs=(1,))]), POLICY).launches


def test_a_requeued_job_without_lease_goes_back_to_home_and_keeps_its_own_exclusions():
    back = job(partitions=("home", "burst-p5"), excluded=("dgx1", "p5-2"), eligible_s=NOW + 120, restarts=1)
    (narrow,) = decide(snapshot([*BUSY, back]), POLICY).narrow
    assert (narrow.partitions, narrow.excluded, narrow.begin_now) == (("home",), ("dgx1",), True)


def test_idle_nodes_are_kept_for_the_pools_idle_time_then_released():
    assert decide(snapshot([], leases=[lease("p5-1", idle_since_s=NOW - 299)]), POLICY).releases == ()
    (release,) = decide(snapshot([], leases=[lease("p5-1", idle_since_s=NOW - 300)]), POLICY).releases
    assert release.node == "p5-1" and "idle for 5 min" in release.reason


def test_a_node_whose_job_has_gone_is_released_before_it_is_used():
    (release,) = decide(snapshot([], leases=[lease("p5-1", "coming", jobs=(1,), worked=False)]), POLICY).releases
    assert "need it no more" in release.reason


def test_a_busy_node_is_not_released():
    decision = decide(snapshot([running(80, ["p5-1"], 60)], leases=[lease("p5-1", idle_since_s=None)]), POLICY)
    assert decision.releases == ()


# ---- packing


def test_the_prediction_respects_gangs_and_cpus_and_memory():
    nodes = home(3)
    profile = Plan(NOW, nodes, [running(9, ["dgx1"], 100), running(8, ["dgx2"], 300)])
    assert profile.earliest(job()).start == NOW
    assert profile.earliest(job(nodes=2)).start == NOW + 100
    assert profile.earliest(job(nodes=3)).start == NOW + 300
    assert profile.earliest(job(nodes=4)) is None
    assert profile.earliest(job(each=Resources(1, 3, 1))) is None
    half = Plan(NOW, home(1), [running(9, ["dgx1"], 100, each=Resources(4, 1, 500))])
    assert half.earliest(job(each=Resources(4, 1, 510))).start == NOW  # little over the share of four GPUs
    assert half.earliest(job(each=Resources(4, 1, 520))).start == NOW + 100
    assert half.earliest(job(each=Resources(0, 0, 0))).start == NOW


def test_a_later_job_fills_a_gap_but_moves_nobody():
    profile = Plan(NOW, home(2), [running(9, ["dgx1"], 100)])
    gang = job(nodes=2)
    profile.place(gang, profile.earliest(gang))  # at 100, on both
    assert profile.earliest(job(limit_s=100.0)).start == NOW  # fits before
    assert profile.earliest(job(limit_s=101.0)).start == NOW + 100 + 7200


@pytest.mark.parametrize("seed", range(40))
def test_what_is_planned_never_overlaps(seed):
    """Nodes of two kinds: at no moment more GPUs of a node are planned than it has, and no job before its turn could
    start sooner alone.
    """
    rng = np.random.default_rng(seed)
    nodes = [Node(f"a{n}", ("home",), Resources(8, 64, 800), ("IDLE",)) for n in range(3)]
    nodes += [Node(f"b{n}", ("home",), Resources(4, 32, 400), ("IDLE",)) for n in range(2)]
    ends = {name: float(rng.integers(1, 500)) for name in ("a0", "a2", "b1")}
    each = {"a0": Resources(5, 1, 1), "a2": Resources(8, 1, 1), "b1": Resources(2, 1, 1)}
    busy = [running(900 + n, [name], ends[name], each=each[name]) for n, name in enumerate(ends)]
    plan = Plan(NOW, nodes, busy)
    empty = Plan(NOW, nodes, busy)
    used = [(NOW, NOW + ends[name], name, each[name].gpus) for name in ends]
    for n in range(30):
        one = job(
            n,
            nodes=int(rng.choice([1, 1, 1, 2, 3])),
            each=Resources(int(rng.integers(1, 9)), 1, 1),
            limit_s=float(rng.integers(1, 400)),
        )
        placement = plan.earliest(one)
        if placement is None:
            assert sum(one.each.within(node.total) for node in nodes) < one.nodes
            continue
        assert placement.start >= empty.earliest(one).start
        chosen = [("ab"[kind] + str(row)) for kind, rows in placement.rows for row in rows]
        assert len(set(chosen)) == one.nodes
        used += [(placement.start, placement.start + one.time_limit_s, name, one.each.gpus) for name in chosen]
        plan.place(one, placement)
    for moment in {start for start, *_ in used}:
        for node in nodes:
            taken = sum(gpus for start, end, name, gpus in used if name == node.name and start <= moment < end)
            assert taken <= node.total.gpus, (node.name, moment - NOW, taken)


def test_an_overdue_job_ends_soon():
    assert Plan(NOW, home(1), [running(9, ["dgx1"], -50)], 30).earliest(job()).start == NOW + 30


# ---- properties


def random_snapshot(seed):
    rng = np.random.default_rng(seed)
    pools = [
        pool("p5", int(rng.integers(1, 5))),
        pool("g6", int(rng.integers(1, 4)), markets=("on-demand",), usd_per_hour={"on-demand": 30.0}),
    ]
    jobs = [running(900, ["dgx1"], float(rng.integers(10, 20000)))] if rng.random() < 0.8 else []
    for n in range(int(rng.integers(0, 15))):
        each = Resources(int(rng.integers(1, 9)), 1, int(rng.integers(1, 1001)))
        submitted = NOW - float(rng.integers(0, 9999))
        jobs.append(
            job(
                n + 1,
                nodes=int(rng.integers(1, 5)),
                each=each,
                limit_s=float(rng.integers(60, 50000)),
                submit_s=submitted,
                requeue=bool(rng.random() < 0.5),
                batch=bool(rng.random() < 0.8),
                priority=int(rng.integers(0, 3)),
            )
        )
    leases = []
    for n in range(1, int(rng.integers(0, len(pools[0].nodes) + 1)) + 1):
        state = str(rng.choice(["coming", "joined", "ready", "leaving"]))
        zone, market = str(rng.choice(["a", "b"])), str(rng.choice(["spot", "on-demand"]))
        leases.append(
            lease(
                f"p5-{n}",
                state,
                (int(rng.integers(1, 9)),),
                zone,
                market,
                NOW - float(rng.integers(0, 900)),
                bool(rng.random() < 0.5),
                f"l{n}",
            )
        )
    return snapshot(jobs, pools=pools, leases=leases, budget=float(rng.integers(50, 4000)))


@pytest.mark.parametrize("seed", range(150))
def test_whatever_the_site_the_limits_hold(seed):
    shot = random_snapshot(seed)
    decision = decide(shot, POLICY)
    pools, jobs = {p.name: p for p in shot.pools}, {j.id: j for j in shot.jobs}
    asked = [node for launch in decision.launches for node in launch.nodes]
    assert len(asked) == len(set(asked)) and not set(asked) & {each.node for each in shot.leases}
    spent = sum(each.committed_usd for each in (*decision.launches, *decision.assigns))
    assert spent <= shot.budget.left_usd + 1e-6
    for launch in decision.launches:
        first = jobs[launch.jobs[0]]
        assert len(launch.nodes) == first.nodes <= len(pools[launch.pool].nodes) and set(launch.nodes) <= set(
            pools[launch.pool].nodes
        )
        for each in (jobs[id] for id in launch.jobs):
            assert each.each.within(FULL) and each.time_limit_s <= pools[launch.pool].max_run_s
            assert launch.market == "on-demand" or (each.requeue and each.batch and each.nodes == 1)
        if len(launch.jobs) > 1 and len(launch.nodes) == 1:
            assert (
                sum(jobs[id].each.gpus for id in launch.jobs) <= 8
                and sum(jobs[id].each.memory_mb for id in launch.jobs) <= 1000
            )
    by_id = {each.id: each for each in shot.leases}
    for assign in decision.assigns:
        used = [by_id[id] for id in assign.leases]
        assert len(used) == jobs[assign.job].nodes and len({(u.zone, u.market) for u in used}) == 1
        assert not {u.id for u in used} & {release.lease for release in decision.releases}
    told = [each.job for each in (*decision.waits, *decision.infeasible)]
    assert sorted(told) == sorted(j.id for j in shot.jobs if j.pending)  # each exactly once
    assert decide(shot, POLICY) == decision  # a function of its arguments
    again = json.loads(json.dumps(to_json(shot)))
    assert (
        from_json(Snapshot, again) == shot
        and from_json(Decision, json.loads(json.dumps(to_json(decision)))) == decision
    )


def test_a_damaged_snapshot_says_where():
    data = to_json(snapshot([job()]))
    data["jobs"][0]["nodes"] = "two"
    with pytest.raises(ValueError, match=r"Snapshot\.jobs\[0\]\.nodes: int is needed"):
        from_json(Snapshot, data)
