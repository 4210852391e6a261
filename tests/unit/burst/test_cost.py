"""What to rent: the expected cost to completion, and what follows from it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ironburst.burst import Budget, Job, Lease, Node, Policy, Pool, Resources, Snapshot, decide
from ironburst.burst.cost import billed_s, on_nodes_s, to_completion_usd

NOW, HOUR = 1_795_262_400.0, 3600.0
OFF = ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN")
POLICY = Policy(home_partition="home", wait_limit_s=HOUR, spot_max_nodes=4)


def pool(name, gpus, usd, size=4, **more):
    told = {"boot_s": 600.0, "idle_s": 600.0, "max_run_s": 1e7} | more
    names = tuple(f"{name}-{n}" for n in range(size))
    return Pool(name, f"burst-{name}", names, name, Resources(gpus), "", tuple(usd), usd, ("a", "b"), **told)


def job(id=1, gpus=1, hours=2.0, nodes=1, **more):
    told = {"state": "PENDING", "submit_s": NOW, "partitions": ("home",), "time_limit_s": hours * HOUR} | more
    return Job(id, "", "u", nodes=nodes, each=Resources(gpus), **told)


def on(lease, gpus, ends_in_h, id=50):
    return job(
        id,
        gpus,
        state="RUNNING",
        partitions=("burst",),
        on=(lease.node,),
        start_s=NOW - 60,
        end_s=NOW + ends_in_h * HOUR,
    )


def lease(pool, n=0, **more):
    market = pool.markets[0]
    told = {"state": "ready", "jobs": (), "idle_since_s": NOW, "worked": True, "paid_from_s": NOW - 2 * HOUR} | more
    price = pool.usd_per_hour[market]
    return Lease(
        f"l{n}", f"l{n}", pool.nodes[n], pool.name, "a", market, usd_per_hour=price, committed_until_s=NOW, **told
    )


def decided(pools, *jobs, leases=(), policy=POLICY):
    up = {each.node for each in leases}
    nodes = [Node("home-1", ("home",), Resources(8), ("IDLE",))]
    nodes += [
        Node(n, (each.partition,), each.each, ("CLOUD", "IDLE") if n in up else OFF)
        for each in pools
        for n in each.nodes
    ]
    full = job(90, 8, state="RUNNING", on=("home-1",), start_s=NOW - 60, end_s=NOW + 100 * HOUR)
    budget = Budget(1e9, 0.0, 0.0, NOW + 86400)
    return decide(Snapshot(NOW, (full, *jobs), tuple(nodes), tuple(pools), tuple(leases), budget=budget), policy)


# ---- the arithmetic


def test_time_on_nodes_without_interruptions_is_the_run_time():
    assert on_nodes_s(5000.0, 4, 0.0, 1800.0) == (5000.0, 0.0)


@pytest.mark.parametrize(("checkpoint_s", "nodes"), [(1800.0, 1), (1800.0, 3), (0.0, 1), (7200.0, 2)])
def test_time_on_nodes_is_what_a_simulation_finds(checkpoint_s, nodes):
    random, per_hour, run_s, simulated_s, times = np.random.default_rng(1), 0.1, 4.4 * HOUR, [], []
    for _ in range(4000):
        left, took, count = run_s, 0.0, 0
        while (ends := random.exponential(HOUR / per_hour / nodes)) < left:
            took, count = took + ends, count + 1
            left -= ends // checkpoint_s * checkpoint_s if checkpoint_s else 0.0
        simulated_s.append(took + left)
        times.append(count)
    took_s, again = on_nodes_s(run_s, nodes, per_hour, checkpoint_s)
    assert took_s == pytest.approx(np.mean(simulated_s), rel=0.03) and again == pytest.approx(np.mean(times), rel=0.08)


def test_a_run_that_never_gets_through_costs_without_end():
    assert on_nodes_s(1e7, 4, 10.0, 0.0) == (math.inf, math.inf)
    assert (
        to_completion_usd(pool("p", 8, {"spot": 1.0}, interruptions_per_hour={"spot": 10.0}), "spot", 4, 1e7)
        == math.inf
    )


def test_cost_by_hand():
    plain = pool("p", 8, {"on-demand": 6.0}, min_billing_s=60.0)
    assert to_completion_usd(plain, "on-demand", 2, HOUR) == pytest.approx(2 * 6.0 * (1 + 1 / 6))
    assert to_completion_usd(plain, "on-demand", 2, HOUR, booted=True) == pytest.approx(12.0)
    hourly = replace(plain, min_billing_s=HOUR, billing_increment_s=HOUR)
    assert to_completion_usd(hourly, "on-demand", 1, 60.0) == pytest.approx(6.0)
    assert billed_s(hourly, HOUR + 1) == 2 * HOUR
    assert to_completion_usd(replace(plain, prepaid_markets=("on-demand",)), "on-demand", 2, HOUR) == 0.0
    seen = replace(plain, usual_boot_s=300.0)
    assert to_completion_usd(seen, "on-demand", 1, HOUR) == pytest.approx(6.0 * (1 + 1 / 12))


# ---- what follows


def test_spot_is_left_where_interruptions_make_it_dearer():
    often = pool("p", 1, {"spot": 0.7, "on-demand": 1.0}, interruptions_per_hour={"spot": 0.2})
    assert decided([often], job(hours=1)).launches[0].market == "spot"
    assert decided([often], job(hours=10)).launches[0].market == "on-demand"  # all of its work is lost each time
    assert decided([replace(often, checkpoint_s=1800.0)], job(hours=10)).launches[0].market == "spot"
    assert (
        decided([replace(often, checkpoint_s=1800.0)], job(hours=10, requeue=False)).launches[0].market == "on-demand"
    )


def test_a_gang_loses_all_with_one_node():
    often = pool("p", 1, {"spot": 0.7, "on-demand": 1.0}, interruptions_per_hour={"spot": 0.03}, size=8)
    assert decided([often], job(hours=8)).launches[0].market == "spot"
    assert decided([often], job(hours=8, nodes=4)).launches[0].market == "on-demand"


def test_the_boot_and_the_minimum_decide_for_short_jobs():
    slow, hourly = pool("slow", 1, {"on-demand": 1.0}, boot_s=3600.0), pool("fast", 1, {"on-demand": 1.3})
    assert [decided([slow, hourly], job(hours=hours)).launches[0].pool for hours in (1.5, 20)] == ["fast", "slow"]


def test_what_is_reserved_costs_nothing_more_and_comes_first_even_where_home_would_do():
    reserved = pool("kept", 8, {"reservation": 30.0}, 1, prepaid_markets=("reservation",))
    spot = pool("spot", 1, {"spot": 0.1})
    soon = replace(POLICY, wait_limit_s=200 * HOUR)  # within the limit at home
    decision = decided([spot, reserved], job(), job(2), policy=soon)
    assert [(launch.pool, launch.jobs) for launch in decision.launches] == [("kept", (1, 2))]
    assert decided([spot], job(), policy=soon).launches == ()


def test_of_equal_costs_prepaid_before_spot_before_on_demand():
    free = (
        pool("od", 1, {"on-demand": 1.0}),
        pool("spot", 1, {"spot": 1.0}),
        pool("kept", 1, {"r": 9.0}, prepaid_markets=("r",)),
    )
    assert decided(free, job()).launches[0].pool == "kept"
    assert decided(free[:2], job()).launches[0].pool == "spot"


def test_a_small_job_shares_a_lease_that_runs_anyway_but_does_not_keep_a_large_one():
    large, small = pool("large", 8, {"on-demand": 8.0}), pool("small", 1, {"on-demand": 1.2})
    mine = lease(large, idle_since_s=None)
    shared = decided([large, small], on(mine, 4, 5.0), job(hours=2), leases=[mine])
    assert shared.launches == () and shared.assigns[0].leases == ("l0",)
    kept = decided([large, small], on(mine, 4, 0.5), job(hours=20), leases=[mine])
    assert kept.assigns == () and kept.launches[0].pool == "small"
    # keeping it longer costs less than a new one
    only = decided([large], on(mine, 4, 0.5), job(hours=20), leases=[mine])
    assert only.launches == () and only.assigns[0].leases == ("l0",)


def test_the_lease_that_is_kept_longer_at_the_least_cost_is_taken():
    large = pool("large", 8, {"on-demand": 8.0})
    short, long = lease(large, 0, idle_since_s=None), lease(large, 1, idle_since_s=None)
    decision = decided([large], on(short, 4, 1.0), on(long, 4, 9.0, 51), job(hours=8), leases=[short, long])
    assert decision.assigns[0].leases == ("l1",)


def test_a_dearer_lease_is_used_where_nothing_new_can_be_had():
    large, small = pool("large", 8, {"on-demand": 8.0}), pool("small", 1, {"on-demand": 1.2}, size=1)
    mine = lease(large)
    taken = lease(small, idle_since_s=None)
    decision = decided([large, small], on(taken, 1, 50.0), job(hours=20), leases=[mine, replace(taken, id="l9")])
    assert decision.assigns[0].leases == ("l0",) and decision.launches == ()
