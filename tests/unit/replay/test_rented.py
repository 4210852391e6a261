"""A trace played in money: what leases cost, to the cent where a hand can compute it; what an interruption loses; what
is prepaid.
"""

from dataclasses import replace

import numpy as np
import pytest

from ironburst.burst import Decision, Job, Launch, Node, Policy, Pool, Resources, Widen, decide
from ironburst.burst.cost import billed_s
from ironburst.burst.limits import REFERENCE, Limits
from ironburst.burst.memory import IdleHistory
from ironburst.burst.offers import AlikeOffers
from ironburst.burst.snapshot import jobs_on
from ironburst.replay.home import Home
from ironburst.replay.outcome import Fates
from ironburst.replay.provider import Capacity, Shortage, SimulatedCloud
from ironburst.replay.rented import SHOWN, Rented
from ironburst.replay.simulate import play
from ironburst.replay.traces import Trace
from ironburst.replay.view import OFF

HOUR = 3600.0
SPOT, ON_DEMAND = "spot", "on-demand"


def pool(name="x8", gpus=8, usd=None, nodes=4, **others):
    usd = usd or {ON_DEMAND: 8.0}
    names = tuple(f"{name}-{n}" for n in range(nodes))
    told = {"boot_s": 600.0, "idle_s": HOUR, "max_run_s": 1e9, "min_billing_s": 60.0, **others}
    return Pool(name, f"burst-{name}", names, name, Resources(gpus), "", tuple(usd), usd, ("a", "b"), **told)


def trace(*jobs, requeue=None):
    """Jobs as (submit h, hours, GPUs)."""
    submit, hours, gpus = zip(*jobs, strict=True)
    return Trace(np.array(submit) * HOUR, np.array(hours) * HOUR, np.array(gpus), requeue=requeue)


def fixed(wait_h=1.0, **others):
    return Policy(home_partition="home", wait_limit_s=wait_h * HOUR, **others)


def test_a_lease_costs_its_boot_its_run_and_the_time_until_it_is_given_back():
    """The second job is rented for at once: 10 min of boot, 2 h of work, then break-even (another boot's worth) of idle
    time.
    """
    played = play(trace((0, 10, 8), (1, 2, 8)), Home(1), fixed(), SimulatedCloud((pool(),)))
    assert played.rented.tolist() == [False, True] and played.pool == ("", "x8")
    assert played.start_s[1] == HOUR + 600 and played.end_s[1] == 3 * HOUR + 600
    (bill,) = played.bills
    assert (bill.from_s, bill.to_s, bill.jobs, bill.interrupted) == (HOUR, 3 * HOUR + 1200, 1, False)
    assert bill.usd == pytest.approx(8 * (2 + 1 / 3)) == pytest.approx(played.total_usd)
    assert bill.boot_usd == pytest.approx(8 / 6) and bill.idle_usd == pytest.approx(8 / 6)
    assert played.usd[1] == pytest.approx(16)
    assert played.idle_usd == pytest.approx(8 / 6) and played.boot_usd == pytest.approx(8 / 6)


def test_a_job_that_comes_while_the_lease_idles_takes_it_without_a_boot():
    played = play(trace((0, 10, 8), (1, 2, 8), (3.2, 1, 8)), Home(1), fixed(), SimulatedCloud((pool(),)))
    assert len(played.bills) == 1 and played.bills[0].jobs == 2
    assert played.start_s[2] == pytest.approx(3.2 * HOUR, abs=10) and played.end_s[2] == played.start_s[2] + HOUR


def test_two_small_jobs_share_one_lease_and_its_price():
    played = play(trace((0, 10, 8), (1, 2, 4), (1, 1, 4)), Home(1), fixed(), SimulatedCloud((pool(),)))
    assert len(played.bills) == 1 and played.rented.tolist() == [False, True, True]
    assert played.usd[1] == pytest.approx(2 * played.usd[2]) and played.usd.sum() == pytest.approx(16)


def test_no_capacity_in_any_zone_is_tried_again_and_the_job_gets_there(seed=3):
    cloud = SimulatedCloud((pool(),), seed, {ON_DEMAND: Shortage(0.9, 2 * HOUR)})
    played = play(trace((0, 50, 8), (1, 2, 8)), Home(1), fixed(), cloud)
    assert played.refusals > 0 and played.rented[1] and played.start_s[1] > HOUR + 600
    assert len(played.bills) == 1  # what is refused costs nothing
    again = play(trace((0, 50, 8), (1, 2, 8)), Home(1), fixed(), cloud)
    assert again.refusals == played.refusals and again.start_s[1] == played.start_s[1]


def test_capacity_is_short_for_its_part_of_the_time():
    cloud = SimulatedCloud((), 1, {SPOT: Shortage(0.25, HOUR)})
    capacity, moments = Capacity(cloud), np.arange(0, 4000 * HOUR, 300.0)
    has = [capacity.has("x", "a", SPOT, moment) for moment in moments]
    assert 0.70 < np.mean(has) < 0.80
    turns = np.count_nonzero(np.diff(np.array(has, int)))
    assert 0.8 * HOUR < 300 * has.count(False) / (turns / 2) < 1.3 * HOUR
    assert all(Capacity(cloud).has("x", "a", ON_DEMAND, moment) for moment in moments[:100])


def test_an_interruption_loses_the_work_since_the_last_checkpoint():
    """Whatever the moment: the job runs again for what it hadn't saved, and all of it is paid for."""
    spot = pool(usd={SPOT: 3.0}, interruptions_per_hour={SPOT: 0.2}, checkpoint_s=1800.0)
    jobs = trace((0, 100, 8), (1, 20, 8))
    interruptions = 0
    for seed in range(6):
        played = play(jobs, Home(1), fixed(), SimulatedCloud((spot,), seed))
        taken = [bill for bill in played.bills if bill.interrupted]
        assert played.interruptions[1] == sum(bill.jobs for bill in taken) and played.interruptions[0] == 0
        left, ran = 20 * HOUR, 0.0
        for bill in taken:
            if bill.jobs:
                took = bill.to_s - bill.from_s - 600
                left -= took // 1800 * 1800
                ran += took
        assert played.usd[1] == pytest.approx(3 * (ran + left) / HOUR)
        assert played.end_s[1] >= HOUR + ran + left + 600 * (1 + played.interruptions[1]) - 1
        interruptions += len(taken)
    assert interruptions > 6


def test_without_a_checkpoint_all_of_it_is_lost():
    spot = pool(usd={SPOT: 3.0}, interruptions_per_hour={SPOT: 0.5})
    played = play(trace((0, 100, 8), (1, 4, 8)), Home(1), fixed(), SimulatedCloud((spot,), 2))
    last = played.bills[-1]
    assert played.interruptions[1] > 0 and played.end_s[1] - (last.from_s + 600) == pytest.approx(4 * HOUR)


def test_prepaid_nodes_cost_the_same_used_or_not():
    reserved = pool("reserved", usd={"reservation": 3.0}, nodes=2, prepaid_markets=("reservation",))
    idle = play(trace((0, 10, 8)), Home(1), fixed(), SimulatedCloud((reserved,)))
    used = play(trace((0, 10, 8), (1, 4, 8)), Home(1), fixed(), SimulatedCloud((reserved,)))
    assert idle.total_usd == used.total_usd == pytest.approx(2 * 3.0 * 10)
    assert not idle.rented.any() and used.rented[1]
    assert idle.idle_usd == pytest.approx(60)
    assert used.idle_usd == pytest.approx(60 - 4 * 3 - used.bills[0].boot_usd, abs=0.5)


def test_minimum_billing_and_steps():
    assert billed_s(pool(), 10) == 60 and billed_s(pool(), 61.5) == 61.5
    hourly = pool(min_billing_s=HOUR, billing_increment_s=HOUR)
    assert [billed_s(hourly, at) for at in (1, HOUR, HOUR + 1)] == [HOUR, HOUR, 2 * HOUR]


def full_cloud(seed, count=80):
    """Jobs and a cloud in which all happens: shortages, interruptions, shared and prepaid nodes."""
    random = np.random.default_rng(seed)
    jobs = Trace(
        np.sort(random.uniform(0, 40 * HOUR, count)),
        random.exponential(3 * HOUR, count),
        random.choice([1, 1, 2, 4, 8, 16], count),
        requeue=random.random(count) < 0.7,
    )
    pools = tuple(
        pool(
            f"x{gpus}",
            gpus,
            {SPOT: 0.4 * gpus, ON_DEMAND: float(gpus)},
            40,
            interruptions_per_hour={SPOT: 0.05},
            checkpoint_s=1800.0,
        )
        for gpus in (1, 4, 8)
    )
    shortages = {SPOT: Shortage(0.2, HOUR), ON_DEMAND: Shortage(0.3, HOUR)}
    cloud = SimulatedCloud(
        (*pools, pool("kept", 8, {"reservation": 3.0}, 1, prepaid_markets=("reservation",))), seed, shortages
    )
    return jobs, cloud


@pytest.mark.parametrize("seed", range(2))
def test_the_books_add_up(seed):
    """Never more paid than clock x price; every job ran once, whole; what jobs are charged is what their leases were
    busy.
    """
    jobs, cloud = full_cloud(seed)
    count = len(jobs)
    played = play(jobs, Home(2), fixed(0.5), cloud)
    assert np.isfinite(played.end_s).all() and (played.start_s >= jobs.submit_s).all()
    assert (played.end_s - played.start_s >= jobs.duration_s - 1e-6).all()
    kinds = {each.name: each for each in cloud.pools}
    for bill in played.bills:
        each, hours = kinds[bill.pool], (bill.to_s - bill.from_s) / HOUR
        assert bill.usd == pytest.approx(each.usd_per_hour[bill.market] * max(hours, 0 if bill.prepaid else 1 / 60))
        assert bill.boot_usd + bill.idle_usd <= bill.usd + 1e-9 and bill.boot_usd >= 0 and bill.idle_usd >= 0
        assert bill.market != SPOT or not bill.prepaid
    worked = sum(bill.usd - bill.boot_usd - bill.idle_usd for bill in played.bills)
    assert played.usd.sum() == pytest.approx(worked)
    assert (played.usd[~played.rented & (played.interruptions == 0)] == 0).all()
    assert played.prepaid_usd == pytest.approx(3.0 * (played.end_s.max() - jobs.submit_s[0]) / HOUR)
    on_spot = {number for number in range(count) if played.interruptions[number]}
    assert all(jobs.requeue[number] for number in on_spot)
    busy = played.total_usd - played.idle_usd - played.boot_usd
    assert 0 < busy <= played.total_usd
    again = play(jobs, Home(2), fixed(0.5), cloud)
    assert again.total_usd == played.total_usd and np.array_equal(again.end_s, played.end_s)
    reseeded = play(jobs, Home(2), fixed(0.5), replace(cloud, seed=seed + 100))
    assert not np.array_equal(reseeded.start_s, played.start_s)


def looked_at_anew(rented):
    """What the policy would see, were it looked at for the first time."""
    pools, leases, nodes = rented.cloud.pools, [], {}
    for lease in rented._leases.values():
        fresh = replace(lease, _seen=None, _seen_node=None)
        leases.append(fresh.seen())
        nodes.setdefault(lease.pool.name, {})[lease.node] = fresh.seen_node()
    for each in pools:
        free = list(reversed(rented._sight._unrented[each.name]))[:SHOWN]
        assert {*free}.isdisjoint(rented._leases)
        off = {name: Node(name, (each.partition,), each.each, OFF) for name in free}
        nodes[each.name] = nodes.get(each.name, {}) | off
    of_all = [pair for each in pools for pair in nodes[each.name].items()]
    names = [tuple(nodes[each.name]) for each in pools]
    launchable = {name for name, node in of_all if node.launchable}
    return of_all, names, launchable, tuple(leases), tuple(run.seen for run in rented._runs.values())


def test_what_the_policy_sees_is_as_it_is_also_where_it_was_kept(monkeypatch):
    view, kept = Rented.view, []

    def seen(rented):
        kept.append(rented._sight._seen is not None)
        shown = view(rented)
        of_it = [*shown.nodes.items()], [pool.nodes for pool in shown.pools], shown.launchable, shown.leases, shown.jobs
        assert of_it == looked_at_anew(rented)
        assert shown.jobs_on == jobs_on(shown.jobs)
        assert {lease.node for lease in rented._unused} == {lease.node for lease in shown.leases} - set(shown.jobs_on)
        return shown

    monkeypatch.setattr(Rented, "view", seen)
    jobs, cloud = full_cloud(5, count=400)
    play(jobs, Home(2), fixed(0.5), cloud)
    assert 0 < sum(kept) < len(kept)


def test_a_job_of_more_nodes_than_a_snapshot_shows_otherwise_is_rented_for():
    """As by a controller, which sees all nodes of a pool."""
    many = SHOWN + 6
    played = play(trace((0, 10, 8), (1, 2, 8 * many)), Home(1), fixed(), SimulatedCloud((pool(nodes=many + 2),)))
    assert played.rented.tolist() == [False, True] and len(played.bills) == many


def test_a_decision_is_asked_for_again_at_one_moment_only_where_it_may_do_something(monkeypatch):
    """Where a lease is kept for a job though its time is over, and something was done: what a pool learns of idle times
    that end may give more leases back at once. The outcome is as if the policy were asked again each time.
    """
    random, count = np.random.default_rng(5), 1200
    jobs = Trace(
        np.cumsum(random.exponential(120, count)), random.lognormal(7, 1.2, count), np.ones(count, dtype=np.int64)
    )
    cloud = SimulatedCloud((pool("x1", 1, {ON_DEMAND: 1.0}, 60),))

    def outcome(*says):
        monkeypatch.setattr(Rented, "_plan_looks", lambda rented, changed: looks(rented, *says or [changed]))
        return play(jobs, Home(1), Policy("home", 0.0, Limits(REFERENCE)), cloud)

    looks = Rented._plan_looks
    played, always, never = outcome(), outcome(True), outcome(False)
    assert played.bills == always.bills and np.array_equal(played.end_s, always.end_s)
    assert played.decisions < 0.9 * always.decisions
    assert never.bills != always.bills


def test_it_is_asked_for_again_where_names_were_given_back_that_a_job_lacked():
    """Two of a pool's six nodes for a gang, one of them idle and given back in that very decision."""
    random, count = np.random.default_rng(3), 250
    gpus = random.choice([1, 1, 1, 2, 4, 8, 16], count)
    submit_s = np.cumsum(random.exponential(random.choice([100, 200, 400]), count))
    jobs = Trace(submit_s, random.lognormal(7.3, 1.2, count), gpus, requeue=random.random(count) < 0.8)
    pools = tuple(
        pool(
            f"x{gpus}",
            gpus,
            {SPOT: 0.4 * gpus, ON_DEMAND: float(gpus)},
            6,
            interruptions_per_hour={SPOT: rate},
            checkpoint_s=600.0,
        )
        for gpus, rate in ((1, 1.0), (4, 0.2), (8, 1.0))
    )
    cloud = SimulatedCloud(pools, 3, {SPOT: Shortage(0.3, HOUR), ON_DEMAND: Shortage(0.3, HOUR)})
    policy = Policy("home", 0.0, Limits(REFERENCE), spot_max_nodes=4)
    played = play(jobs, Home(1), policy, cloud)
    looks = Rented._plan_looks
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Rented, "_plan_looks", lambda rented, changed: looks(rented, True))
        always = play(jobs, Home(1), policy, cloud)
    assert played.bills == always.bills and played.decisions < always.decisions


def test_it_is_asked_for_again_where_a_job_starts_on_leases():
    """While another is kept though its time is over."""
    x8 = pool()
    rented = Rented(Fates.of(np.array([60.0, HOUR])), SimulatedCloud((x8,)), 0.0, 10.0, 1)
    jobs = {number: Job(number, "", "ann", "PENDING", 0.0, 1, Resources(8), HOUR, ("home",)) for number in (0, 1)}

    def decided(now_s, **what):
        rented.advance(now_s)
        rented.wants_decision(), rented.view()
        rented.apply(Decision(**what), jobs)
        return rented.wants_decision()

    def launch(node):
        return Launch("x8", ("a",), ON_DEMAND, (x8.nodes[node],), (node,), 8.0, 9 * HOUR, 80.0, "")

    def widen(node):
        return Widen(node, ("home", "burst-x8"), (), (x8.nodes[node],), "")

    decided(0.0, launches=(launch(0), launch(1)))
    assert not decided(600.0, widen=(widen(0),)), "none is idle"
    assert decided(1270.0, widen=(widen(1),)), "node 0 is"
    assert not decided(1280.0)


def test_it_is_asked_for_again_where_jobs_begin_at_home_right_after_it():
    """On nodes that were kept free for a job that is rented for now: others wait for longer than was predicted."""
    x8 = pool()
    rented = Rented(Fates.of(np.array([60.0, HOUR])), SimulatedCloud((x8,)), 0.0, 10.0, 1)
    job = Job(0, "", "ann", "PENDING", 0.0, 1, Resources(8), HOUR, ("home",))
    launch = Launch("x8", ("a",), ON_DEMAND, x8.nodes[:1], (0,), 8.0, 9 * HOUR, 80.0, "")
    widen = Widen(0, ("home", "burst-x8"), (), x8.nodes[:1], "")
    asked = []
    for now_s, said in ((0.0, {"launches": (launch,)}), (600.0, {"widen": (widen,)}), (1270.0, {}), (1280.0, {})):
        rented.advance(now_s)
        rented.wants_decision(), rented.view()
        rented.apply(Decision(**said), {0: job})
        asked.append(rented.wants_decision())
        rented.started_at_home([7])
        asked.append(rented.wants_decision())
    assert asked == [False] * 4 + [False, True] + [False] * 2, "where a lease is kept though its time is over"


def as_offered(pool):
    return replace(pool, nodes=(), idle_history=IdleHistory())


@pytest.mark.parametrize("learns", [False, True])
def test_what_a_play_knows_of_its_snapshots_is_what_would_be_found(learns):
    jobs, cloud = full_cloud(5, count=300)
    jobs = replace(jobs, limit_s=3 * jobs.duration_s) if learns else jobs
    policy, kept = fixed(0.5), []

    def shown(snapshot):
        fresh = replace(snapshot)  # knows nothing
        for name in ("waiting", "placed", "jobs_on", "node_of", "owned", "launchable"):
            assert vars(snapshot)[name] == getattr(fresh, name)
        assert [as_offered(each) for each in snapshot.offered] == [as_offered(each) for each in fresh.offered]
        kept.append(len(snapshot.kept))
        assert decide(snapshot, policy) == decide(fresh, policy)
        return snapshot

    play(jobs, Home(2), policy, cloud, shown=shown)
    assert kept[0] == 0 and all(kept[1:])


def test_offers_are_made_once_in_a_play_for_jobs_that_are_alike(monkeypatch):
    """Leases come and go, and idle times are learned from: offers look at neither."""
    made, of = [], AlikeOffers.of

    def noted(job, *more):
        made.append((job.each, job.nodes, job.requeue))
        return of(job, *more)

    monkeypatch.setattr(AlikeOffers, "of", noted)
    jobs, cloud = full_cloud(5, count=300)
    assert len(play(jobs, Home(2), fixed(0.5), cloud).bills) > 50
    assert len(made) == len(set(made)) > 5
