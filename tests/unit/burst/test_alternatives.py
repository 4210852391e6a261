"""What else could have been done for a job, and by how much it is worse."""

import json
from dataclasses import replace

import pytest

from ironburst.burst import CoolDown, Decision, decide, from_json, to_json
from ironburst.burst.alternatives import BEST
from tests.fakes.snapshots import BUSY, NOW, POLICY, job, lease, pool, running, snapshot

HOUR = 3600.0


def wait_of(decision, id=1):
    return next(each for each in decision.waits if each.job == id)


def rows(wait):
    return [(each.what, each.market, each.usd(wait.run_s), each.in_s, each.why) for each in wait.alternatives]


def test_a_waiting_job_knows_what_renting_would_cost_and_when_it_would_start():
    wait = wait_of(
        decide(snapshot([running(90, ["dgx1", "dgx2"], 1800), job(nodes=2, limit_s=HOUR, requeue=False)]), POLICY)
    )
    assert (wait.code, wait.start_s) == ("home_soon", NOW + 1800)
    # spot is for one node
    assert rows(wait) == [("rent", "on-demand", pytest.approx(2 * 50 * (600 + HOUR) / HOUR), 600.0, "soon")]


def test_a_rented_node_with_room_is_the_first_alternative():
    shot = snapshot([running(90, ["dgx1", "dgx2"], 1800), job(limit_s=HOUR)], leases=[lease("p5-1")])
    wait = wait_of(decide(shot, POLICY))
    first = wait.alternatives[0]
    assert (first.what, first.in_s, first.nodes) == ("share", 0.0, 1)
    assert first.usd(wait.run_s) == pytest.approx(50)  # set aside so far is the idle time after it
    longer = replace(shot, leases=(replace(shot.leases[0], committed_until_s=NOW + 300 + 1800),))
    assert wait_of(decide(longer, POLICY)).alternatives[0].usd(wait.run_s) == pytest.approx(25)


def test_what_is_in_the_way_of_each_offer_is_its_reason():
    closed = tuple(CoolDown("p5", zone, "spot", 1, NOW + 60, "ICE") for zone in "ab")
    wait = wait_of(decide(snapshot([*BUSY, job()], cool_downs=closed, budget=60.0), POLICY))
    assert [(each.market, each.why) for each in wait.alternatives] == [("spot", "cool_down"), ("on-demand", "budget")]
    assert wait.start_s == NOW + 10 * HOUR


def test_a_job_that_is_rented_for_knows_what_waiting_and_the_other_offers_would_have_been():
    shot = snapshot(
        [*BUSY, job(limit_s=HOUR)], pools=[pool(), pool("g6", markets=("on-demand",), usd_per_hour={"on-demand": 30.0})]
    )
    wait = wait_of(decide(shot, POLICY))
    paid = 20 * (600 + HOUR) / HOUR
    assert (wait.code, wait.usd, wait.start_s) == ("renting", pytest.approx(paid), NOW + 600)
    assert rows(wait) == [
        ("home", "", 0.0, 10 * HOUR, "late"),
        ("rent", "on-demand", pytest.approx(30 * (600 + HOUR) / HOUR), 600.0, "dearer"),
        ("rent", "on-demand", pytest.approx(50 * (600 + HOUR) / HOUR), 600.0, "dearer"),
    ]


def test_a_start_is_expected_after_the_boot_that_was_seen_lately():
    known = pool(markets=("on-demand",), usual_boot_s=240.0)
    waiting = wait_of(decide(snapshot([running(90, ["dgx1", "dgx2"], 1800), job()], pools=[known]), POLICY))
    assert [each.in_s for each in waiting.alternatives] == [240.0]
    rented = wait_of(decide(snapshot([*BUSY, job()], pools=[known]), POLICY))
    assert (rented.code, rented.start_s) == ("renting", NOW + 240)


def test_never_more_than_three_and_none_for_what_can_not_be_rented():
    pools = [pool(f"p{n}", usd_per_hour={"spot": 20.0 + n, "on-demand": 50.0 + n}) for n in range(4)]
    decision = decide(snapshot([job(), job(2, limit_s=None)], pools=pools), POLICY)
    assert [each.pool for each in wait_of(decision).alternatives] == ["p0", "p1", "p2"] and BEST == 3
    assert wait_of(decision, 2).alternatives == ()


def test_prepaid_capacity_costs_nothing_more_and_the_minimum_billing_is_seen():
    paid = pool(markets=("on-demand",), prepaid_markets=("on-demand",))
    assert wait_of(decide(snapshot([job()], pools=[paid]), POLICY)).alternatives[0].usd(7200.0) == 0
    short = pool(markets=("on-demand",), min_billing_s=7200.0)
    wait = wait_of(decide(snapshot([job(limit_s=60.0)], pools=[short]), POLICY))
    assert (wait.run_s, wait.alternatives[0].usd(wait.run_s)) == (60.0, 100.0)
    told = wait_of(decide(snapshot([job(limit_s=HOUR, run_s=1200.0)], pools=[pool()]), POLICY))
    assert told.run_s == 1200.0 and told.alternatives[0].usd(told.run_s) == pytest.approx(20 * (600 + 1200) / HOUR)


def test_they_come_through_json_and_a_decision_written_before_them_is_still_read():
    decision = decide(snapshot([*BUSY, job(), job(2)], budget=80.0), POLICY)
    data = json.loads(json.dumps(to_json(decision)))
    assert from_json(Decision, data) == decision and data["waits"][0]["alternatives"]
    for each in data["waits"]:
        del each["start_s"], each["usd"], each["run_s"], each["alternatives"]
    assert [each.text for each in from_json(Decision, data).waits] == [each.text for each in decision.waits]
