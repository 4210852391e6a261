"""Pools with several interchangeable instance types: each is an offer of its own, at its own price."""

from dataclasses import replace

import pytest

from ironburst.burst import CoolDown, OtherType, decide, to_json
from ironburst.burst.idle import terms
from tests.fakes.snapshots import BUSY, NOW, POLICY, answer, job, lease, pool, snapshot, text_of

SMALL, BIG = "p5.48xlarge", "p5en.48xlarge"
ON_DEMAND = {"on-demand": 50.0}


def typed(other_usd=60.0, **more):
    other = OtherType(BIG, {"on-demand": other_usd})
    return pool(markets=("on-demand",), usd_per_hour=ON_DEMAND, other_types=(other,), **more)


def decided(jobs, here, **more):
    return decide(snapshot([*BUSY, *jobs], pools=[here], **more), POLICY)


def closed(instance_type, zone, **more):
    values = {"nodes": 1, "until_s": NOW + 60, "reason": "ICE"} | more
    return CoolDown("p5", zone, "on-demand", instance_type=instance_type, **values)


@pytest.mark.parametrize(("other_usd", "first"), [(60.0, SMALL), (40.0, BIG), (None, SMALL)])
def test_the_cheapest_type_whose_price_is_known_comes_first(other_usd, first):
    (launch,) = decided([job()], typed(other_usd)).launches
    assert (launch.instance_type, launch.usd_per_hour) == (first, min(50.0, other_usd or 50.0))


def test_the_declared_order_comes_before_the_price_where_that_is_preferred():
    (launch,) = decided([job()], typed(40.0, in_order=True)).launches
    assert (launch.instance_type, launch.usd_per_hour) == (SMALL, 50.0)
    refused = tuple(closed(SMALL, zone) for zone in "ab")
    (launch,) = decided([job()], typed(40.0, in_order=True), cool_downs=refused).launches
    assert (launch.instance_type, launch.usd_per_hour) == (BIG, 40.0)


def test_a_type_that_is_preferred_comes_first_however_long_the_job():
    spot = {"spot": 20.0, "on-demand": 50.0}
    other = OtherType(BIG, {"spot": 10.0, "on-demand": 40.0}, {"spot": 0.1})
    here = pool(usd_per_hour=spot, interruptions_per_hour={"spot": 0.3}, other_types=(other,), in_order=True)
    for hours in (0.1, 1.0, 20.0):
        (launch,) = decided([job(limit_s=hours * 3600)], here).launches
        assert launch.instance_type == SMALL


def test_a_place_that_refused_is_closed_for_its_type_alone():
    (launch,) = decided([job()], typed(), cool_downs=(closed(SMALL, "a"),)).launches
    assert (launch.instance_type, launch.zones) == (SMALL, ("b",))
    both = closed(SMALL, "a"), closed(SMALL, "b")
    (launch,) = decided([job()], typed(), cool_downs=both).launches
    assert (launch.instance_type, launch.zones, launch.usd_per_hour) == (BIG, ("a", "b"), 60.0)
    everything = decided([job()], typed(), cool_downs=(*both, closed(BIG, "a"), closed(BIG, "b")))
    assert not everything.launches
    assert "pool p5 (on-demand, p5en.48xlarge) is closed in a until" in text_of(everything)


def test_what_closes_a_pool_closes_all_its_types():
    decision = decided([job()], typed(), cool_downs=tuple(closed("", zone, until_s=None) for zone in "ab"))
    assert not decision.launches and answer(decision, 1).code == "cool_down"


def test_nothing_is_set_aside_for_a_type_that_the_ceiling_cannot_pay():
    (launch,) = decided([job()], typed()).launches
    enough = launch.committed_usd + 1.0
    refused = tuple(closed(SMALL, zone) for zone in "ab")
    assert decided([job()], typed(), budget=enough).launches
    decision = decided([job()], typed(), budget=enough, cool_downs=refused)
    assert not decision.launches and "1 node of pool p5 (on-demand, p5en.48xlarge) would set aside" in text_of(decision)


def test_one_type_alone_changes_no_word_of_a_decision():
    (launch,) = decided([job()], pool()).launches
    assert launch.instance_type == "" and "instance_type" not in to_json(launch)
    (launch,) = decided([job()], typed()).launches
    assert to_json(launch)["instance_type"] == SMALL


@pytest.mark.parametrize(("types", "given"), [((BIG, BIG), True), ((SMALL, BIG), False), ((BIG, ""), False)])
def test_a_gang_gets_rented_nodes_of_one_type(types, given):
    rented = [replace(lease(f"p5-{n}", launch=f"l{n}"), instance_type=kind) for n, kind in enumerate(types, 1)]
    here = typed(size=2)
    assigned = decided([job(nodes=2)], here, leases=rented).assigns
    assert bool(assigned) is given


def test_an_idle_node_is_worth_more_while_only_a_dearer_type_can_be_had():
    idle = replace(lease("p5-1"), instance_type=SMALL)
    small = [closed(SMALL, zone) for zone in "ab"]
    free, dearer = (terms(typed(100.0), idle, cool_downs, NOW, NOW) for cool_downs in ([], small))
    assert dearer.buy_s > 2 * free.buy_s
    other = [closed(BIG, zone) for zone in "ab"]
    assert terms(typed(100.0), idle, other, NOW, NOW) == free


def test_alternatives_name_the_type():
    refused = tuple(closed(SMALL, zone) for zone in "ab")
    (launch,) = decided([job()], typed()).launches
    wait = answer(decided([job()], typed(), budget=launch.committed_usd + 1.0, cool_downs=refused), 1)
    assert [(each.instance_type, each.why) for each in wait.alternatives] == [(SMALL, "cool_down"), (BIG, "budget")]


def test_a_damaged_price_of_another_type_is_unknown():
    (launch,) = decided([job()], typed(float("nan"))).launches
    assert launch.instance_type == SMALL
    refused = tuple(closed(SMALL, zone) for zone in "ab")
    assert not decided([job()], typed(-3.0), cool_downs=refused).launches


# ---- what emissions weigh


def weighed(own, other, other_usd=55.0, **more):
    types = (OtherType(BIG, {"on-demand": other_usd}, carbon_usd_per_hour=other),)
    return pool(markets=("on-demand",), usd_per_hour=ON_DEMAND, other_types=types, carbon_usd_per_hour=own, **more)


@pytest.mark.parametrize(("own", "other", "first"), [(0.0, 0.0, SMALL), (4.0, 0.0, SMALL), (7.0, 1.0, BIG)])
def test_a_price_of_carbon_weighs_beside_the_price_and_is_no_money(own, other, first):
    (launch,) = decided([job()], weighed(own, other)).launches
    assert (launch.instance_type, launch.usd_per_hour) == (first, {SMALL: 50.0, BIG: 55.0}[first])


def test_it_weighs_however_the_types_are_interrupted():
    """Their cost to the end isn't in the order of their hours then."""
    spot = {"spot": 20.0}
    other = OtherType(BIG, {"spot": 21.0}, {"spot": 0.1}, carbon_usd_per_hour=1.0)
    here = pool(markets=("spot",), usd_per_hour=spot, interruptions_per_hour={"spot": 0.1}, other_types=(other,))
    light, heavy = here, replace(here, carbon_usd_per_hour=9.0)
    for each, first in ((light, SMALL), (heavy, BIG)):
        (launch,) = decided([job()], each).launches
        assert launch.instance_type == first


def test_without_a_price_nothing_of_it_is_written_down_and_what_can_not_be_is_none():
    said = to_json(weighed(0.0, 0.0))
    assert "carbon_usd_per_hour" not in said and "carbon_usd_per_hour" not in said["other_types"][0]
    assert to_json(weighed(4.0, 1.0))["other_types"][0]["carbon_usd_per_hour"] == 1.0
    for wrong in (-1.0, float("nan"), float("inf")):
        assert to_json(decided([job()], weighed(wrong, 0.0))) == to_json(decided([job()], weighed(0.0, 0.0)))
