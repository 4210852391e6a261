"""Whole decisions: the queue in its order, every job answered, and the limits whatever the site."""

import json

import numpy as np
import pytest

from ironburst.burst import (
    Decision,
    Resources,
    Snapshot,
    decide,
    from_json,
    to_json,
)
from tests.fakes.snapshots import BUSY, FULL, NOW, POLICY, code_of, home, job, lease, pool, running, snapshot


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
    assert decision.launches[0].nodes == ("p5-1", "p5-2", "p5-3")
    assert "never start at home" in decision.launches[0].reason


def test_jobs_of_other_partitions_are_left_alone():
    decision = decide(snapshot([*BUSY, job(2, partitions=("fixed",))]), POLICY)
    assert decision == Decision(releases=())


def random_snapshot(seed):
    rng = np.random.default_rng(seed)
    pools = [
        pool("p5", int(rng.integers(1, 5))),
        pool("g6", int(rng.integers(1, 4)), markets=("on-demand",), usd_per_hour={"on-demand": 30.0}),
    ]
    jobs = [running(900, ["dgx1"], float(rng.integers(10, 20000)))] if rng.random() < 0.8 else []
    for n in range(int(rng.integers(0, 15))):
        resources = Resources(int(rng.integers(1, 9)), 1, int(rng.integers(1, 1001)))
        submitted = NOW - float(rng.integers(0, 9999))
        jobs.append(
            job(
                n + 1,
                nodes=int(rng.integers(1, 5)),
                each=resources,
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
                jobs=(int(rng.integers(1, 9)),),
                zone=zone,
                market=market,
                idle_since_s=NOW - float(rng.integers(0, 900)),
                worked=bool(rng.random() < 0.5),
                launch=f"l{n}",
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
        assert len(launch.nodes) == first.nodes <= len(pools[launch.pool].nodes)
        assert set(launch.nodes) <= set(pools[launch.pool].nodes)
        for each in (jobs[id] for id in launch.jobs):
            assert each.each.within(FULL) and each.time_limit_s <= pools[launch.pool].max_run_s
            assert launch.market == "on-demand" or (each.requeue and each.batch and each.nodes == 1)
        if len(launch.jobs) > 1 and len(launch.nodes) == 1:
            assert sum(jobs[id].each.gpus for id in launch.jobs) <= 8
            assert sum(jobs[id].each.memory_mb for id in launch.jobs) <= 1000
    by_id = {each.id: each for each in shot.leases}
    for assign in decision.assigns:
        used = [by_id[id] for id in assign.leases]
        assert len(used) == jobs[assign.job].nodes and len({(u.zone, u.market) for u in used}) == 1
        assert not {u.id for u in used} & {release.lease for release in decision.releases}
    told = [each.job for each in (*decision.waits, *decision.infeasible)]
    assert sorted(told) == sorted(j.id for j in shot.jobs if j.pending)  # each exactly once
    assert decide(shot, POLICY) == decision  # a function of its arguments
    again = json.loads(json.dumps(to_json(shot)))
    assert from_json(Snapshot, again) == shot
    assert from_json(Decision, json.loads(json.dumps(to_json(decision)))) == decision


@pytest.mark.slow
def test_a_hundred_thousand_jobs_are_each_answered():
    sizes = (Resources(1, 1, 10), Resources(4, 1, 10), Resources(8, 1, 1000), Resources(16, 1, 10))
    queue = [
        job(n, each=sizes[n % 4], limit_s=600.0 + n % 977, submit_s=NOW - n % 9000, priority=n % 7)
        for n in range(100_000)
    ]
    decision = decide(snapshot(queue, home(100), [pool(size=20)], budget=1e6), POLICY)
    assert sorted(each.job for each in (*decision.waits, *decision.infeasible)) == list(range(100_000))
    assert sum(len(launch.nodes) for launch in decision.launches) == 20
