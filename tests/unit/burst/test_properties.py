"""What holds for every snapshot, searched for counterexamples with hypothesis. Always the same examples; `slow` tries
many more.
"""

import json
import math
from collections import Counter
from dataclasses import fields, is_dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ironburst.burst import (
    Decision,
    Halt,
    Lease,
    Policy,
    Snapshot,
    UserLimit,
    decide,
    from_json,
    to_json,
)
from ironburst.burst.codec import DataError
from ironburst.burst.limits import Limits, WaitTarget
from tests.fakes.random_sites import NOW, OFF, made

QUICK = settings(
    max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
MANY = settings(QUICK, max_examples=10_000)
POLICIES = st.sampled_from(
    [
        Policy("home", 3600.0),
        Policy("home", 3600.0, settle_s=120.0),
        Policy("home", 0.0),
        Policy("home", 0.0, Limits(WaitTarget.of_mean(0.3))),
    ]
)


def each_way(test):
    """The property as a quick test and as a slow one with many examples."""
    return pytest.mark.parametrize(
        "profile", [pytest.param(QUICK, id="quick"), pytest.param(MANY, id="many", marks=pytest.mark.slow)]
    )(test)


def check(profile, property, **strategies):
    profile(given(**strategies)(property))()


def sites():
    return st.builds(made, st.integers(0, 2**32), st.integers(0, 8))


# ---- what holds


def decided(site, policy):
    """The decision, and the site's jobs, pools and leases by id and name."""
    jobs, pools = {job.id: job for job in site.jobs}, {pool.name: pool for pool in site.pools}
    return decide(site, policy), jobs, pools, {lease.id: lease for lease in site.leases}


def told(decision):
    return Counter(each.job for each in (*decision.waits, *decision.infeasible))


@each_way
def test_equal_snapshots_give_equal_decisions_that_survive_json(profile):
    def holds(site, policy):
        decision = decide(site, policy)
        assert decide(from_json(Snapshot, json.loads(json.dumps(to_json(site)))), policy) == decision
        assert from_json(Decision, json.loads(json.dumps(to_json(decision), allow_nan=False))) == decision
        assert told(decision) == Counter(job.id for job in site.jobs if job.pending)

    check(profile, holds, site=sites(), policy=POLICIES)


@each_way
def test_a_gang_never_spans_home_and_cloud_nor_two_places_in_it(profile):
    def holds(site, policy):
        decision, jobs, pool_of, rented = decided(site, policy)
        for launch in decision.launches:
            assert all(jobs[id].nodes <= len(set(launch.nodes)) for id in launch.jobs)
            assert set(launch.nodes) <= set(pool_of[launch.pool].nodes)
            assert launch.market in pool_of[launch.pool].markets
        for assign in decision.assigns:
            places = {(rented[id].pool, rented[id].zone, rented[id].market) for id in assign.leases}
            assert len(places) == 1 and len(set(assign.leases)) == jobs[assign.job].nodes
        for widen in decision.widen:
            (pool,) = [pool for pool in site.pools if pool.partition in widen.partitions]
            assert widen.partitions == ("home", pool.partition)  # Slurm starts a job in one partition
            assert set(pool.nodes) - set(widen.excluded) == set(widen.nodes)
            assert len(widen.nodes) >= jobs[widen.job].nodes
        served = Counter(
            [id for launch in decision.launches for id in launch.jobs] + [assign.job for assign in decision.assigns]
        )
        assert max(served.values(), default=1) == 1  # by one of them only

    check(profile, holds, site=sites(), policy=POLICIES)


@each_way
def test_nobody_is_placed_where_it_may_not_go(profile):
    def holds(site, policy):
        decision, jobs, pool_of, rented = decided(site, policy)
        placed = [
            (id, launch.pool, launch.market, pool_of[launch.pool].boot_s)
            for launch in decision.launches
            for id in launch.jobs
        ]
        placed += [
            (each.job, rented[each.leases[0]].pool, rented[each.leases[0]].market, 0.0) for each in decision.assigns
        ]
        for id, pool, market, boot_s in placed:
            job, pool = jobs[id], pool_of[pool]
            ends_s = NOW + boot_s + job.time_limit_s
            assert ends_s <= min(pool.ends_s or math.inf, job.deadline_s or math.inf)
            assert job.time_limit_s <= pool.max_run_s
            assert set(job.data) <= set(pool.data) and set(job.licences) <= set(pool.licences)
            assert job.fabric in ("", pool.fabric) and job.gpu_type in ("", pool.gpu_type)
            assert job.each.within(pool.each) and not pool.obstacle and job.reason not in ("QOSGrpGRES", "Licenses")
            assert market == "on-demand" or (job.batch and job.requeue and job.nodes == 1)
            assert NOW - job.since_s >= policy.settle_s

    check(profile, holds, site=sites(), policy=POLICIES)


def spent(decision):
    return sum(each.committed_usd for each in (*decision.launches, *decision.assigns))


@each_way
def test_more_money_never_rents_for_less_and_never_beyond_the_budget(profile):
    """The first job of the queue that more money changes is one that it lets rent. (Later ones may lose to it: the
    money is spent.)
    """

    def holds(site, policy, more):
        if site.budget is None:
            assert spent(decide(site, policy)) == 0 and not decide(site, policy).launches
            return
        richer = replace(site, budget=replace(site.budget, usd_per_month=site.budget.usd_per_month + more))
        poor, rich = decide(site, policy), decide(richer, policy)
        assert spent(poor) <= max(site.budget.left_usd, 0) + 1e-6
        assert spent(rich) <= max(richer.budget.left_usd, 0) + 1e-6
        assert spent(poor) <= spent(rich) + 1e-6
        if policy.limits is None:
            queue = sorted(
                (job for job in site.jobs if job.pending), key=lambda job: (-job.priority, job.submit_s, job.id)
            )
            served = [
                {id for launch in each.launches for id in launch.jobs} | {assign.job for assign in each.assigns}
                for each in (poor, rich)
            ]
            first = next((job.id for job in queue if (job.id in served[0]) != (job.id in served[1])), None)
            assert first is None or first in served[1]

    check(profile, holds, site=sites(), policy=POLICIES, more=st.integers(1, 3000).map(float))


def applied(site, decision):
    """The snapshot after the decision is carried out, in the same second."""
    jobs = {job.id: job for job in site.jobs}
    for each in (*decision.widen, *decision.narrow):
        jobs[each.job] = replace(jobs[each.job], partitions=each.partitions, excluded=each.excluded)
    leases, nodes = {lease.id: lease for lease in site.leases}, {node.name: node for node in site.nodes}
    for assign in decision.assigns:
        for id in assign.leases:
            until_s = max(leases[id].committed_until_s, assign.committed_until_s)
            leases[id] = replace(leases[id], jobs=(*leases[id].jobs, assign.job), committed_until_s=until_s)
    for widen in decision.widen:
        for name in widen.nodes:
            nodes[name] = replace(nodes[name], states=("CLOUD", "IDLE"))
    leases |= {
        id: replace(lease, state="ready", worked=True)
        for id, lease in leases.items()
        if lease.state == "joined" and any(lease.node in widen.nodes for widen in decision.widen)
    }
    for number, launch in enumerate(decision.launches):
        for node in launch.nodes:
            nodes[node] = replace(nodes[node], states=(*OFF[:3], "POWERING_UP"))
            leases[node] = Lease(
                id=node,
                launch=f"new{number}",
                node=node,
                pool=launch.pool,
                zone=launch.zones[0],
                market=launch.market,
                state="coming",
                jobs=launch.jobs,
                usd_per_hour=launch.usd_per_hour,
                committed_until_s=launch.committed_until_s,
            )
    for release in decision.releases:
        leases[release.lease] = replace(leases[release.lease], state="leaving")
    budget = site.budget and replace(site.budget, committed_usd=site.budget.committed_usd + spent(decision))
    return replace(
        site, jobs=tuple(jobs.values()), nodes=tuple(nodes.values()), leases=tuple(leases.values()), budget=budget
    )


@each_way
def test_a_decision_that_is_carried_out_is_not_taken_again(profile):
    def holds(site, policy):
        decision = decide(site, policy)
        served = {id for launch in decision.launches for id in launch.jobs} | {
            assign.job for assign in decision.assigns
        }
        again = decide(applied(site, decision), policy)
        twice = {id for launch in again.launches for id in launch.jobs} | {assign.job for assign in again.assigns}
        assert not served & twice
        assert not {each.job for each in decision.widen} & {each.job for each in again.widen}
        assert not {each.job for each in decision.narrow} & {each.job for each in again.narrow}
        assert not {each.lease for each in decision.releases} & {each.lease for each in again.releases}
        kept = {node for launch in decision.launches for node in launch.nodes} | {
            id for assign in decision.assigns for id in assign.leases
        }
        assert not kept & {each.lease for each in again.releases}  # nor taken back

    check(profile, holds, site=sites(), policy=POLICIES)


# ---- damage

numbers = st.sampled_from([math.nan, math.inf, -math.inf, -1.0, 0.0, 1e-300, 1e18, 1e300, NOW + 10**9])
counts = st.sampled_from([-(10**9), -1, 0, 1, 7, 10**6, 10**12])


def spoiled(draw, value, kind=""):
    """The value with some of its numbers, names and lists changed into what can't be right."""
    if is_dataclass(value):
        chosen = draw(st.sets(st.sampled_from([field.name for field in fields(value)]), max_size=2))
        return replace(value, **{name: spoiled(draw, getattr(value, name)) for name in sorted(chosen)})
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return draw(numbers)
    if isinstance(value, int):
        return draw(counts)
    if isinstance(value, dict):
        return {key: spoiled(draw, each) for key, each in value.items()}
    if isinstance(value, tuple) and value:
        items = list(value)
        place = draw(st.integers(0, len(items) - 1))
        how = draw(st.sampled_from(["spoil", "spoil", "twice", "gone"]))
        damages = {"spoil": [spoiled(draw, items[place])], "twice": [items[place]] * 2, "gone": []}
        items[place : place + 1] = damages[how]
        return tuple(items)
    return value


@st.composite
def damaged_sites(draw):
    site = draw(sites())
    for _ in range(draw(st.integers(1, 4))):
        site = spoiled(draw, site)
    return site


@each_way
def test_no_damage_raises_passes_the_budget_or_leaves_a_job_without_a_word(profile):
    def holds(site, policy):
        decision = decide(site, policy)
        assert set(told(decision)) == {job.id for job in site.jobs if job.pending and "home" in job.partitions}
        assert decide(site, policy) == decision
        names = [node for launch in decision.launches for node in launch.nodes]
        assert len(names) == len(set(names)) and not set(names) & {lease.node for lease in site.leases}
        assert math.isfinite(spent(decision))
        if decision.launches:
            assert site.budget is not None and spent(decision) <= site.budget.left_usd * (1 + 1e-9) + 1e-6
        json.dumps(to_json(decision), allow_nan=False)

    check(profile, holds, site=damaged_sites(), policy=POLICIES)


@each_way
def test_a_file_of_anything_is_read_or_refused_in_one_sentence(profile):
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["jobs", "now_s", "id", "each", "x"]), inner, max_size=3)
        ),
        max_leaves=12,
    )

    def holds(site, data, at):
        said = to_json(site)
        there = said.get(at)  # some are written only where they aren't empty
        if there and isinstance(there, list) and isinstance(there[0], dict):
            there[0] |= dict.fromkeys(list(there[0])[:3], data)
        else:
            said[at] = data
        try:
            decide(from_json(Snapshot, said), Policy("home", 60.0))
        except DataError as error:
            assert str(error).startswith("Snapshot") and "\n" not in str(error)

    names = st.sampled_from([field.name for field in fields(Snapshot)])
    check(profile, holds, site=sites(), data=anything, at=names)


@each_way
def test_halted_nothing_is_launched_and_stopped_nothing_is_handed_over_or_kept(profile):
    def property(site, policy, stops):
        decision = decide(replace(site, halt=Halt("ann", "night", NOW, None, stops)), policy)
        assert decision.launches == ()
        if stops:
            assert decision.assigns == decision.widen == ()
            busy = {name for job in site.jobs for name in job.on}
            unused = {lease.id for lease in site.leases if lease.state != "leaving" and lease.node not in busy}
            assert {release.lease for release in decision.releases} == unused

    check(profile, property, site=sites(), policy=POLICIES, stops=st.booleans())


@each_way
def test_a_users_jobs_never_get_more_rented_gpus_than_his_limit(profile):
    def property(site, policy, gpus):
        if site.budget is None:
            return
        limited = replace(site, budget=replace(site.budget, users=(UserLimit("u", "by ann", gpus),)))
        decision = decide(limited, policy)
        jobs = {job.id: job for job in site.jobs}
        given = {id for launch in decision.launches for id in launch.jobs} | {each.job for each in decision.assigns}
        rented = {lease.node for lease in site.leases}
        meant = {id for lease in site.leases if lease.state != "leaving" for id in lease.jobs}
        had = {id for id, job in jobs.items() if (id in meant if job.pending else rented & set(job.on))}
        if given:  # what they have already goes on, however much it is
            assert sum(jobs[id].nodes * jobs[id].each.gpus for id in given | had if id in jobs) <= gpus

    check(profile, property, site=sites(), policy=POLICIES, gpus=st.integers(0, 64))


def test_a_damaged_halt_holds():
    site = made(1, 6)
    for halt in (Halt("ann", "", math.nan), Halt("ann", "", NOW, math.inf), Halt("ann", "", -math.inf, math.nan)):
        assert decide(replace(site, halt=halt), Policy("home", 0.0)).launches == ()
