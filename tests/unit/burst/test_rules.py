"""Rules that a decision keeps: where a job may go, deadlines, patience, shares, and damage that never raises."""

import math
from dataclasses import replace

import pytest

from ironburst.burst import Budget, Resources, Snapshot, decide, from_json, lateness, to_json
from ironburst.burst.codec import DataError
from ironburst.burst.sanitize import sound
from ironburst.burst.snapshot import Experience, IdleHistory
from tests.fakes.snapshots import BUSY, FULL, NOW, POLICY, code_of, home, job, lease, pool, running, snapshot

HOUR, DAY = 3600.0, 86400.0


def text_of(decision, id=1):
    return next(each.text for each in (*decision.waits, *decision.infeasible) if each.job == id)


# ---- where it may go


@pytest.mark.parametrize(
    ("needs", "reaches", "code", "said"),
    [
        (
            {"data": ("imagenet", "c4")},
            {"data": ("imagenet",)},
            "data",
            "needs the data set c4, which pool p5 doesn't reach",
        ),
        (
            {"licences": ("matlab",)},
            {"data": ("matlab",)},
            "licences",
            "needs the licence matlab, which pool p5 doesn't reach",
        ),
        ({"fabric": "infiniband"}, {"fabric": "efa"}, "fabric", "must be on the fabric infiniband, pool p5 is on efa"),
    ],
)
def test_a_job_goes_only_where_its_data_licences_and_fabric_are(needs, reaches, code, said):
    decision = decide(snapshot([*BUSY, job(**needs)], pools=[pool(**reaches)]), POLICY)
    assert decision.launches == () and code_of(decision, 1) == code and said in text_of(decision)
    there = {"data": ("c4", "imagenet"), "licences": ("matlab",), "fabric": "infiniband"}
    decision = decide(snapshot([*BUSY, job(**needs)], pools=[pool(**reaches), pool("far", **there)]), POLICY)
    assert [launch.pool for launch in decision.launches] == ["far"]


def test_jobs_that_are_alike_but_for_what_they_need_do_not_share_their_offers():
    jobs = [job(1), job(2, data=("c4",)), job(3, licences=("matlab",)), job(4, fabric="infiniband")]
    decision = decide(snapshot([*BUSY, *jobs], pools=[pool(size=5)]), POLICY)
    assert [launch.jobs for launch in decision.launches] == [(1,)]
    assert [code_of(decision, n) for n in (2, 3, 4)] == ["data", "licences", "fabric"]


def test_nothing_is_placed_that_would_outlive_a_capacity_block():
    for left, rented in ((600 + 7200, True), (600 + 7199, False)):
        decision = decide(snapshot([*BUSY, job()], pools=[pool(ends_s=NOW + left)]), POLICY)
        assert bool(decision.launches) == rented
    assert code_of(decision, 1) == "outlives"
    assert "would outlive pool p5's capacity, which ends at 2026-11-21 14:09:59Z" in text_of(decision)
    ready = [lease("p5-1")]  # a node that is there doesn't outlive it either
    assert decide(snapshot([*BUSY, job()], pools=[pool(ends_s=NOW + 7199)], leases=ready), POLICY).assigns == ()
    far = decide(snapshot([*BUSY, job(limit_s=2 * DAY)], pools=[pool(ends_s=NOW + 30 * DAY)]), POLICY)
    assert code_of(far, 1) == "too_long"


# ---- deadlines


def test_a_deadline_that_home_keeps_changes_nothing():
    shot = snapshot([running(90, ["dgx1", "dgx2"], 1800), job(deadline_s=NOW + 1800 + 7200)])
    assert code_of(decide(shot, POLICY), 1) == "home_soon"


def test_a_job_that_home_would_end_too_late_is_rented_for_two_boots_before_it_must_start():
    """Home is within the wait limit, so without its deadline it would wait."""
    for slack, code in ((1201, "deadline"), (1200, "renting"), (600, "renting"), (599, "deadline")):
        decision = decide(snapshot([running(90, ["dgx1", "dgx2"], 1800), job(deadline_s=NOW + slack + 7200)]), POLICY)
        assert code_of(decision, 1) == code, slack
        assert bool(decision.launches) == (code == "renting")
        if slack == 1201:
            assert decision.waits[0].look_again_s == decision.waits[0].rent_s == NOW + 1
    (missed,) = decision.infeasible
    assert (
        "is too late to end by its deadline" in missed.text
        and "in pool p5 it would end at 2026-11-21 14:10:00Z, after" in missed.text
    )


def test_only_a_place_that_is_soon_enough_is_rented_for_a_deadline():
    slow, quick = pool(), pool("near", boot_s=60.0, usd_per_hour={"spot": 40.0, "on-demand": 90.0})
    must = job(deadline_s=NOW + 100 + 7200)
    decision = decide(snapshot([*BUSY, must], pools=[slow, quick]), POLICY)
    assert [launch.pool for launch in decision.launches] == ["near"]
    decision = decide(snapshot([*BUSY, must], pools=[slow], leases=[lease("p5-1")]), POLICY)
    assert decision.assigns and decision.launches == ()  # a rented node that is there needs no boot
    coming = decide(snapshot([*BUSY, must], pools=[slow], leases=[lease("p5-1", "coming", worked=False)]), POLICY)
    assert coming.assigns == () and code_of(coming, 1) == "deadline"


# ---- patience


def test_a_job_settles_before_it_is_rented_for():
    patient = replace(POLICY, settle_s=30.0)
    decision = decide(snapshot([*BUSY, job(submit_s=NOW - 29)]), patient)
    assert decision.launches == () and code_of(decision, 1) == "settling"
    assert (decision.waits[0].look_again_s, decision.waits[0].rent_s, decision.waits[0].start_s) == (
        NOW + 1,
        NOW + 1,
        NOW + 10 * HOUR,
    )
    assert decide(snapshot([*BUSY, job(submit_s=NOW - 30)]), patient).launches
    assert decide(snapshot([job(submit_s=NOW - 29)]), patient).waits[0].code == "home_soon"


@pytest.mark.parametrize("reason", ["AssocGrpGRES", "QOSMaxGRESPerUser", "AssocMaxJobsLimit"])
def test_a_job_whose_team_has_its_share_in_use_is_not_rented_for_and_holds_no_node_at_home(reason):
    full = [running(90, ["dgx1"], 10 * HOUR), running(91, ["dgx2"], 1800)]
    decision = decide(snapshot([*full, job(reason=reason, priority=9, submit_s=NOW - DAY), job(2)]), POLICY)
    assert code_of(decision, 1) == "share" and reason in text_of(decision) and decision.launches == ()
    assert decision.waits[1].start_s == NOW + 1800  # the first one isn't in its way


def test_a_job_that_waits_for_a_licence_is_not_rented_for():
    decision = decide(snapshot([*BUSY, job(reason="Licenses", submit_s=NOW - DAY)]), POLICY)
    assert decision.launches == () and code_of(decision, 1) == "licences_taken"


def test_a_start_at_home_that_never_comes_is_believed_for_a_boot_only():
    near = [running(90, ["dgx1", "dgx2"], 500)]
    assert code_of(decide(snapshot([*near, job(submit_s=NOW - HOUR - 600)]), POLICY), 1) == "home_sooner"
    assert decide(snapshot([*near, job(submit_s=NOW - HOUR - 601)]), POLICY).launches


def adversary(boot_s, tick_s=60.0, most_s=6 * HOUR):
    """Seconds from a job's submission to its node, if somebody of higher priority comes whenever home is about to be
    free.
    """
    victim, id, free_s, now = job(1, limit_s=1200.0, submit_s=NOW), 100, NOW + 300, NOW
    while now < NOW + most_s:
        if now >= free_s:  # the scheduler starts the one with the highest priority
            id, free_s = id + 1, now + 300
        on_it = replace(running(id, ["dgx1"], 0, limit_s=300.0), end_s=free_s)
        if decide(replace(snapshot([on_it, victim], home(1), [pool(boot_s=boot_s)]), now_s=now), POLICY).launches:
            return now + boot_s - NOW
        now += tick_s
    return math.inf


def test_no_job_waits_for_ever_behind_a_prediction_that_is_always_near(monkeypatch):
    """The bound that docs/policy.md states: wait limit + doubt (a boot, at least 10 min) + tick + boot."""
    for boot_s in (120.0, 600.0, 1200.0):
        bound = POLICY.wait_limit_s + max(boot_s, lateness.DOUBT_S) + 60.0 + boot_s
        assert POLICY.wait_limit_s < adversary(boot_s) <= bound
    monkeypatch.setattr(lateness, "DOUBT_S", math.inf)
    assert adversary(600.0) == math.inf  # the adversary is one: without the end of belief the job waits for ever


# ---- damage

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"submit_s": NAN}, "its submit time is nan"),
        ({"submit_s": -5.0}, "its submit time is -5.0"),
        ({"submit_s": INF}, "its submit time is inf"),
        ({"eligible_s": NAN}, "its earliest start is nan"),
        ({"deadline_s": -1.0}, "its deadline is -1.0"),
        ({"limit_s": -60.0}, "its time limit is -60.0"),
        ({"limit_s": 0.0}, "its time limit is 0.0"),
        ({"limit_s": NAN}, "its time limit is nan"),
        ({"run_s": NAN}, "its run time is nan"),
        ({"nodes": 0}, "it asks for 0 nodes"),
        ({"each": Resources(-1, 1, 1)}, "it asks for -1 GPUs"),
        ({"each": Resources(8, 1, 10**400)}, "MiB of memory"),
    ],
)
def test_a_damaged_job_is_infeasible_with_its_reason_and_the_rest_is_decided(change, said):
    decision = decide(snapshot([*BUSY, job(**change), job(2)]), POLICY)
    (damaged,) = decision.infeasible
    assert (damaged.job, damaged.code) == (1, "damaged") and said in damaged.text
    assert [launch.jobs for launch in decision.launches] == [(2,)]


def test_an_endless_limit_is_none_and_a_clock_that_went_back_is_a_wait_that_has_not_begun():
    assert code_of(decide(snapshot([*BUSY, job(limit_s=INF)]), POLICY), 1) == "no_time_limit"
    decision = decide(snapshot([running(90, ["dgx1", "dgx2"], 1800), job(submit_s=NOW + 5 * HOUR)]), POLICY)
    assert code_of(decision, 1) == "home_soon" and decision.launches == ()


def test_a_running_job_with_more_than_its_node_is_said_to_have_holds_all_of_it():
    """A node comes back with less memory than it had when the job began."""
    decision = decide(snapshot([running(90, ["dgx1", "dgx2"], 1800, each=Resources(1, 1, 2000)), job()]), POLICY)
    assert decision.waits[0].start_s == NOW + 1800


def test_two_jobs_of_one_id_are_one_and_a_reason():
    decision = decide(snapshot([*BUSY, job(), job()]), POLICY)
    assert [launch.jobs for launch in decision.launches] == [(1,)]
    assert [each.text for each in decision.infeasible] == ["another pending job of the snapshot has the same id"]


@pytest.mark.parametrize("now", [NAN, INF, -1.0, 1e300])
def test_without_a_time_nothing_is_done(now):
    decision = decide(replace(snapshot([*BUSY, job()], leases=[lease("p5-1", idle_since_s=0.0)]), now_s=now), POLICY)
    assert [(each.job, each.code) for each in decision.infeasible] == [(1, "damaged")]
    assert decision.launches == decision.releases == decision.waits == ()


def test_a_running_job_whose_end_nobody_knows_holds_its_nodes():
    for broken in ({"end_s": NAN}, {"end_s": INF}, {"limit_s": NAN, "end_s": NAN, "start_s": NAN}):
        on = {
            "limit_s": 7200.0,
            "state": "RUNNING",
            "nodes": 2,
            "on": ("dgx1", "dgx2"),
            "start_s": NOW,
            "end_s": NOW,
        } | broken
        assert code_of(decide(snapshot([job(90, **on), job()]), POLICY), 1) == "home_down"
        assert decide(snapshot([job(90, **on), job(submit_s=NOW - HOUR - 1)]), POLICY).launches


@pytest.mark.parametrize("usd", [0.0, -3.0, NAN, INF])
def test_a_price_that_is_none_is_not_rented_at(usd):
    prices = {"spot": usd, "on-demand": 50.0}
    decision = decide(snapshot([*BUSY, job()], pools=[pool(usd_per_hour=prices)]), POLICY)
    assert [launch.market for launch in decision.launches] == ["on-demand"]
    only = pool(markets=("spot",), usd_per_hour=prices)
    assert code_of(decide(snapshot([*BUSY, job()], pools=[only]), POLICY), 1) == "no_price"
    free = pool(markets=("on-demand",), usd_per_hour={"on-demand": 0.0}, prepaid_markets=("on-demand",))
    assert decide(snapshot([*BUSY, job()], pools=[free]), POLICY).launches


@pytest.mark.parametrize(
    "change", [{"boot_s": NAN}, {"idle_s": -1.0}, {"max_run_s": NAN}, {"min_billing_s": INF}, {"ends_s": NAN}]
)
def test_a_damaged_pool_rents_nothing_and_says_why(change):
    decision = decide(snapshot([*BUSY, job()], pools=[pool(**change)]), POLICY)
    assert decision.launches == () and "the snapshot is damaged: " + next(iter(change)) in text_of(decision)


@pytest.mark.parametrize("change", [{"spent_usd": NAN}, {"committed_usd": -1.0}, {"usd_per_month": NAN}])
def test_a_budget_that_can_not_be_right_rents_nothing(change):
    shot = snapshot([*BUSY, job(), job(2)], leases=[lease("p5-1")])
    decision = decide(replace(shot, budget=replace(shot.budget, **change)), POLICY)
    assert decision.launches == decision.assigns == () and f"budget.{next(iter(change))} is" in text_of(decision)


def test_twins_are_one():
    """Nodes, pools and leases that stand in the snapshot twice give no more room than one."""
    shot = snapshot([*BUSY, job(1, nodes=3), job(2)])
    assert (
        code_of(decide(replace(shot, nodes=(*shot.nodes, *shot.nodes), pools=shot.pools * 2), POLICY), 2) == "max_nodes"
    )
    other = replace(pool("p6"), nodes=("p5-1", "p5-2", "p6-3"))
    decision = decide(snapshot([*BUSY, *(job(n) for n in range(1, 7))], pools=[pool(), other]), POLICY)
    assert sorted(node for launch in decision.launches for node in launch.nodes) == ["p5-1", "p5-2", "p5-3", "p6-3"]
    one = snapshot([*BUSY, job(1, nodes=2)], leases=[lease("p5-1")])
    assert decide(replace(one, leases=one.leases * 2), POLICY).assigns == ()


@pytest.mark.parametrize("rate", [NAN, -1.0, float("inf")])
def test_spot_with_a_rate_of_interruptions_that_cannot_be_is_not_rented(rate):
    (launch,) = decide(
        snapshot([*BUSY, job()], pools=[pool(interruptions_per_hour={"spot": rate}, checkpoint_s=NAN)]), POLICY
    ).launches
    assert launch.market == "on-demand"


def test_other_damage_is_left_out():
    damaged = pool(markets=("on-demand",), idle_history=IdleHistory((NAN,), NAN))
    shot = snapshot([*BUSY, job()], leases=[lease("p5-1", idle_since_s=NAN)], pools=[damaged])
    giant = replace(shot.nodes[0], name="x", total=Resources(10**9))
    shot = replace(shot, experience=Experience({"all": (NAN,)}), nodes=(*shot.nodes, giant))
    assert decide(shot, POLICY).assigns


def test_a_snapshot_without_damage_is_left_as_it_is():
    shot = snapshot([*BUSY, job()], leases=[lease("p5-1")])
    assert sound(shot)[0] is shot and sound(shot)[1] == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("now_s",), NAN, "Snapshot.now_s: float is needed, not nan"),
        (("jobs",), 5, "Snapshot.jobs: a list is needed, not 5"),
        (("jobs",), "abc", "Snapshot.jobs: a list is needed, not 'abc'"),
        (("jobs", 0, "nodes"), True, "Snapshot.jobs[0].nodes: int is needed, not True"),
        (("jobs", 0, "nodes"), 10**30, "Snapshot.jobs[0].nodes: 1000000000000000000000000000000 is larger"),
        (("jobs", 0, "submit_s"), 10**400, "is larger than any number here may be"),
        (("jobs", 0, "each"), [8], "Snapshot.jobs[0].each: a mapping is needed, not [8]"),
        (("jobs", 0, "time_limit_s"), "soon", "Snapshot.jobs[0].time_limit_s: float is needed, not 'soon'"),
        (("pools", 0, "usd_per_hour"), ["spot"], "Snapshot.pools[0].usd_per_hour: a mapping is needed"),
        (("budget",), {"usd_per_month": 1.0}, "Snapshot.budget: "),
    ],
)
def test_a_damaged_file_is_one_sentence_with_the_path(path, value, said):
    data = to_json(snapshot([job()]))
    at = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(DataError) as error:
        from_json(Snapshot, data)
    assert said in str(error.value) and "\n" not in str(error.value) and len(str(error.value)) < 250


def test_a_job_larger_than_everything_and_a_site_without_nodes():
    giant = job(nodes=10_000, each=Resources(512, 9999, 10**9))
    assert code_of(decide(snapshot([giant]), POLICY), 1) == "too_large"
    assert code_of(decide(snapshot([job(nodes=1000)]), POLICY), 1) == "too_many_nodes"
    bare = Snapshot(NOW, (job(), job(2, limit_s=None)), (), (), budget=Budget(1.0, 0.0, 0.0, NOW))
    assert [each.code for each in decide(bare, POLICY).infeasible] == ["no_pool", "no_time_limit"]
    assert FULL.gpus == 8


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
