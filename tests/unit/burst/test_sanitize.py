"""Damage in a snapshot never raises, and never costs money."""

import math
from dataclasses import replace

import pytest

from ironburst.burst import (
    Resources,
    decide,
)
from ironburst.burst.memory import Experience, IdleHistory
from ironburst.burst.sanitize import sound
from tests.fakes.snapshots import BUSY, NOW, POLICY, code_of, job, lease, pool, running, snapshot, text_of

HOUR = 3600.0
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
    overlapping = replace(pool("p6"), nodes=("p5-1", "p5-2", "p6-3"))
    decision = decide(snapshot([*BUSY, *(job(n) for n in range(1, 7))], pools=[pool(), overlapping]), POLICY)
    assert sorted(node for launch in decision.launches for node in launch.nodes) == ["p5-1", "p5-2", "p5-3", "p6-3"]
    leased = snapshot([*BUSY, job(1, nodes=2)], leases=[lease("p5-1")])
    assert decide(replace(leased, leases=leased.leases * 2), POLICY).assigns == ()


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
