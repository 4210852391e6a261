"""Jobs that save their work and have a deadline: spot, on demand, or waiting for spot, by what they have to spare."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironburst.burst import CoolDown, decide, from_json, spot, to_json
from ironburst.burst.decision import Decision
from ironburst.burst.memory import SpotMarket
from ironburst.burst.policy import DeadlineMoves
from ironburst.burst.snapshot import Snapshot
from tests.fakes.snapshots import BUSY, NOW, POLICY, code_of, job, lease, pool, running, snapshot, text_of

HOUR = 3600.0
MOVES = replace(POLICY, deadline_moves=DeadlineMoves(600.0))
POOL = pool(usd_per_hour={"spot": 15.9, "on-demand": 50.0})  # of a p3.2xlarge in 2022: 0.973 and 3.06
GONE = tuple(CoolDown("p5", zone, "spot", 1, NOW + 300, "InsufficientInstanceCapacity") for zone in "ab")
# as `sbatch --time=10:00:00 --time-min=10 --deadline=now+... --comment checkpoint=10m` gives them
SAVES = {"limit_s": 10 * HOUR, "time_min_s": 600.0, "saves_s": 600.0, "submit_s": NOW - 2 * HOUR}


def site(*jobs, cool_downs=(), **more):
    return snapshot([*BUSY, *jobs], pools=[POOL], cool_downs=cool_downs, **more)


def waiting(spare_h, **more):
    """One that would end that many hours before its deadline, began it now."""
    return job(**(SAVES | {"deadline_s": NOW + (10 + spare_h) * HOUR} | more))


def on_demand(spare_h, ran_h=1.0, **more):
    """One that runs on a rented node, and would go on to end so many hours before its deadline."""
    return replace(
        running(1, ["p5-1"], 10 * HOUR, **(SAVES | {"deadline_s": NOW + (10 - ran_h + spare_h) * HOUR} | more)),
        start_s=NOW - ran_h * HOUR,
        partitions=("burst-p5",),
    )


ON_DEMAND = lease("p5-1", jobs=(1,), idle_since_s=None)


def markets(decision):
    return [launch.market for launch in decision.launches]


def test_spot_that_is_there_is_taken_while_it_can_be_lost():
    assert markets(decide(site(waiting(3)), MOVES)) == ["spot"]


def test_a_job_waits_for_spot_while_it_can_and_is_told_so():
    decision = decide(site(waiting(8), cool_downs=GONE), MOVES)
    assert decision.launches == () and code_of(decision, 1) == "spot"
    assert "it waits for spot, which isn't to be had, and can do so for 7 h 30 min" in text_of(decision)


@pytest.mark.parametrize("there", [True, False])
def test_without_time_to_spare_it_is_on_demand(there):
    decision = decide(site(waiting(0.5), cool_downs=() if there else GONE), MOVES)
    assert markets(decision) == ["on-demand"]
    assert "it has no time left to lose for its deadline, so it is on demand" in text_of(decision)


def test_where_on_demand_is_refused_spot_is_better_than_nothing():
    closed = tuple(replace(each, market="on-demand") for each in GONE)
    assert markets(decide(site(waiting(0.5), cool_downs=closed), MOVES)) == ["spot"]


def test_what_home_ends_in_time_stays_there():
    soon = replace(BUSY[0], end_s=NOW + HOUR)
    decision = decide(snapshot([soon, waiting(3, submit_s=NOW)], pools=[POOL]), MOVES)
    assert decision.launches == () and code_of(decision, 1) == "home_soon"


def test_what_is_saved_needs_no_time():
    """It has run for nine hours, so one is left, and spot may be lost."""
    late = waiting(-8, saved_s=9 * HOUR, restarts=1)
    assert markets(decide(site(late), MOVES)) == ["spot"]
    assert decide(site(waiting(-8)), MOVES).launches == ()


def test_a_limit_that_slurm_does_not_cut_is_needed_whole():
    """sbatch(1): a job is removed when it can't end before its deadline, by --time-min if there is one."""
    uncut = waiting(-0.5, saved_s=5 * HOUR, time_min_s=10 * HOUR)
    assert "spot" not in markets(decide(site(uncut), MOVES))


NEVER = {
    "it doesn't save": {"saves_s": None},
    "no deadline": {"deadline_s": None},
    "not to be requeued": {"requeue": False},
    "not a batch job": {"batch": False},
}


@pytest.mark.parametrize("of", [pytest.param(of, id=name) for name, of in NEVER.items()])
def test_others_are_decided_as_before(of):
    for where in (site(waiting(8, **of), cool_downs=GONE), site(on_demand(8, **of), leases=[ON_DEMAND])):
        assert decide(where, MOVES) == decide(where, POLICY)


def test_without_the_key_nobody_moves():
    where = site(on_demand(8), leases=[ON_DEMAND])
    decision = decide(where, POLICY)
    assert decision.launches == decision.moves == ()
    assert code_of(decide(site(waiting(8), cool_downs=GONE), POLICY), 1) != "spot"


# ---- back to spot


def test_a_job_on_demand_goes_to_spot_when_its_node_is_there():
    where = site(on_demand(8), leases=[ON_DEMAND])
    asked = decide(where, MOVES)
    assert markets(asked) == ["spot"] and asked.launches[0].running and asked.moves == ()
    assert asked.launches[0].jobs == (1,)

    coming = lease("p5-2", "coming", jobs=(1,), market="spot", worked=False, idle_since_s=None, launch="l2")
    waits = decide(site(on_demand(8), leases=[ON_DEMAND, coming]), MOVES)
    assert waits.launches == waits.moves == waits.releases == ()

    there = replace(coming, state="joined")
    moves = decide(site(on_demand(8), leases=[ON_DEMAND, there]), MOVES)
    assert [(move.job, move.start_s, move.nodes) for move in moves.moves] == [(1, NOW - HOUR, ("p5-2",))]
    assert moves.launches == moves.releases == ()

    # Slurm puts a requeued job off by two minutes; its node waits for it
    put_off = waiting(8, eligible_s=NOW + 121, restarts=1)
    delayed = decide(site(put_off, leases=[there]), MOVES)
    assert delayed.releases == delayed.widen == ()
    again = decide(site(replace(put_off, eligible_s=NOW - 1), leases=[there]), MOVES)
    assert [(widen.job, widen.nodes) for widen in again.widen] == [(1, ("p5-2",))]


@pytest.mark.parametrize(
    ("why", "of"),
    [("nothing to spare", {"spare_h": 0.2}), ("little work left", {"spare_h": 8, "ran_h": 9.95})],
)
def test_a_job_stays_on_demand(why, of):
    decision = decide(site(on_demand(**of), leases=[ON_DEMAND]), MOVES)
    assert decision.launches == decision.moves == (), why


def test_a_job_stays_on_demand_while_spot_is_refused():
    decision = decide(site(on_demand(8), leases=[ON_DEMAND], cool_downs=GONE), MOVES)
    assert decision.launches == decision.moves == ()


def test_a_node_of_spot_whose_job_may_not_move_any_more_is_given_back():
    there = lease("p5-2", "joined", jobs=(1,), market="spot", worked=False, idle_since_s=None, launch="l2")
    decision = decide(site(on_demand(0.2), leases=[ON_DEMAND, there]), MOVES)
    assert decision.moves == () and [release.node for release in decision.releases] == ["p5-2"]


def test_nobody_else_is_given_the_node_that_it_waits_for():
    there = lease("p5-2", "joined", jobs=(1,), market="spot", worked=False, idle_since_s=None, launch="l2")
    other = job(2, submit_s=NOW - 2 * HOUR)
    decision = decide(site(on_demand(8), other, leases=[ON_DEMAND, there]), MOVES)
    assert not any(assign.job == 2 for assign in decision.assigns)


def test_a_job_in_a_prepaid_node_stays():
    bought = replace(POOL, prepaid_markets=("on-demand",))
    where = snapshot([*BUSY, on_demand(8)], pools=[bought], leases=[ON_DEMAND])
    assert decide(where, MOVES).launches == ()


def test_a_decision_with_a_move_is_read_again():
    there = lease("p5-2", "joined", jobs=(1,), market="spot", worked=False, idle_since_s=None, launch="l2")
    where = site(on_demand(8), leases=[ON_DEMAND, there], spot=(SpotMarket("p5", there=True, since_s=NOW - 60),))
    decision = decide(where, MOVES)
    assert from_json(Decision, to_json(decision)) == decision
    assert from_json(Snapshot, to_json(where)) == where


# ---- what was seen of spot


def test_spells_are_counted_by_what_others_did():
    market = SpotMarket("p5")
    for minute, there in ((0, True), (10, True), (20, False), (30, True)):
        market = spot.learn(market, there, NOW + 60 * minute)
    away, stays = spot.PRIOR
    assert market.ended == (1, 1)
    assert market.expected == (pytest.approx(away[0]), pytest.approx(stays[0] + stays[1]))
    assert market.since_s == NOW + 1800


def test_what_nobody_looked_at_for_long_is_no_spell():
    market = spot.learn(SpotMarket("p5"), True, NOW)
    later = spot.learn(market, False, NOW + 5 * HOUR)
    assert later.ended == (0, 0) and (later.there, later.since_s) == (False, NOW + 5 * HOUR)


def test_only_what_proves_something_is_seen():
    known = spot.seen((), site())
    assert [(each.pool, each.there) for each in known] == [("p5", None)]
    there = site(leases=[lease("p5-1", market="spot")])
    assert [each.there for each in spot.seen((), there)] == [True]
    assert [each.there for each in spot.seen((), site(cool_downs=GONE))] == [False]
    assert [each.there for each in spot.seen((), site(cool_downs=GONE[:1]))] == [None]


@settings(deadline=None, max_examples=60)
@given(
    work=st.floats(1, 20 * 86400),
    spare=st.floats(-HOUR, 20 * 86400),
    launch=st.floats(0, 1800),
    lost=st.floats(0, HOUR),
    usd=st.floats(0.01, 60),
    on=st.sampled_from(("wait", "spot", "on-demand")),
    there=st.booleans(),
    since=st.floats(0, 86400),
)
def test_nothing_is_chosen_that_could_end_late(work, spare, launch, lost, usd, on, there, since):
    """The worst that may come until the next look: no spot, and what it ran since its last checkpoint is lost."""
    way = spot.Way(work, work + spare, launch, lost, usd, 50.0, launch, 60.0, spare_s=300.0)
    choice = spot.choose(way, on, SpotMarket("p5", there=there, since_s=NOW - since, seen_s=NOW), there, NOW)
    needs = work + launch + lost + 300
    if choice.do == "wait":
        assert way.left_s - 60 >= needs
    if choice.do == "spot":
        assert way.left_s >= needs and math.isfinite(choice.spare_s)
