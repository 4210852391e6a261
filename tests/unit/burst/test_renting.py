"""What is rented: budget, cool-downs, gangs, deadlines, and small jobs that share a node."""

from dataclasses import replace

import pytest

from ironburst.burst import (
    CoolDown,
    Resources,
    decide,
)
from tests.fakes.snapshots import BUSY, NOW, POLICY, code_of, job, lease, pool, running, snapshot, text_of


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
    assert decision.launches == ()
    assert (decision.waits[0].code, decision.waits[0].look_again_s) == ("cool_down", NOW + 60)


def test_a_refused_gang_does_not_close_the_place_for_single_nodes():
    closed = tuple(CoolDown("p5", z, m, 2, NOW + 60, "ICE") for z in "ab" for m in ("spot", "on-demand"))
    assert decide(snapshot([*BUSY, job()], cool_downs=closed), POLICY).launches
    assert not decide(snapshot([*BUSY, job(nodes=2)], cool_downs=closed), POLICY).launches


def test_a_closed_spot_market_falls_back_to_on_demand():
    closed = tuple(CoolDown("p5", z, "spot", 1, NOW + 60, "ICE") for z in "ab")
    assert decide(snapshot([*BUSY, job()], cool_downs=closed), POLICY).launches[0].market == "on-demand"


def test_only_a_place_that_is_soon_enough_is_rented_for_a_deadline():
    slow, quick = pool(), pool("near", boot_s=60.0, usd_per_hour={"spot": 40.0, "on-demand": 90.0})
    must = job(deadline_s=NOW + 100 + 7200)
    decision = decide(snapshot([*BUSY, must], pools=[slow, quick]), POLICY)
    assert [launch.pool for launch in decision.launches] == ["near"]
    decision = decide(snapshot([*BUSY, must], pools=[slow], leases=[lease("p5-1")]), POLICY)
    assert decision.assigns and decision.launches == ()  # a rented node that is there needs no boot
    coming = decide(snapshot([*BUSY, must], pools=[slow], leases=[lease("p5-1", "coming", worked=False)]), POLICY)
    assert coming.assigns == () and code_of(coming, 1) == "deadline"


def test_small_jobs_share_one_new_node():
    small = Resources(2, 1, 100)
    decision = decide(snapshot([*BUSY, job(each=small), job(2, each=small), job(3, each=small)]), POLICY)
    assert [launch.jobs for launch in decision.launches] == [(1, 2), (3,)]  # a node has 2 CPUs


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


def test_room_on_another_payers_node_is_none_for_a_job_that_no_new_node_serves_in_time():
    tight = job(deadline_s=NOW + 7300, account="nlp", each=Resources(4))
    theirs = running(50, ["p5-1"], 100, each=Resources(1), partitions=("burst-p5",))
    site = snapshot([BUSY[0], theirs, tight], leases=[replace(lease("p5-1"), account="vision")])
    site = replace(site, budget=replace(site.budget, accounts={"vision": 900.0}))
    assert code_of(decide(site, POLICY), 1) == "deadline"  # it was a crash


def test_what_is_prepaid_and_closed_rents_nothing_dearer_for_a_job_that_could_wait():
    """It may wait at home: only a node that costs nothing more is a reason to rent for it before it is late."""
    reserved = pool("kept", markets=("r",), usd_per_hour={"r": 9.0}, zones=("a",), prepaid_markets=("r",))
    soon = [running(90, ["dgx1", "dgx2"], 1800)]
    shot = snapshot([*soon, job()], pools=[reserved, pool()])
    assert [launch.pool for launch in decide(shot, POLICY).launches] == ["kept"]
    closed = replace(shot, cool_downs=(CoolDown("kept", "a", "r", 1, NOW + 600, "ReservationCapacityExceeded"),))
    assert decide(closed, POLICY).launches == () and code_of(decide(closed, POLICY), 1) == "home_soon"


def test_names_that_are_not_free_are_explained_also_where_nothing_is_rented():
    """After a refusal by the cloud Slurm powers the nodes down: until then nobody can rent them."""
    refused = snapshot([*BUSY, job()])
    going = ("CLOUD", "DRAIN", "IDLE", "POWERING_DOWN")
    off = [node for node in refused.nodes if not node.name.startswith("p5")]
    burst = [replace(node, states=going) for node in refused.nodes if node.name in ("p5-1", "p5-2")]
    decision = decide(replace(refused, nodes=(*off, *burst)), POLICY)
    assert code_of(decision, 1) == "max_nodes"
    said = text_of(decision)
    assert "pool p5 has 0 of its 3 nodes free to rent, it needs 1" in said
    assert "2 given back and being powered down by the scheduler" in said
    assert "1 that the scheduler doesn't know" in said


def test_names_that_others_take_are_explained():
    decision = decide(snapshot([*BUSY, job(), job(2, nodes=3)], leases=[lease("p5-3", jobs=(7,))]), POLICY)
    assert "(1 being rented for jobs before it; 1 rented)" in text_of(decision, 2)


def test_a_job_that_was_sent_to_a_pool_is_told_so():
    decision = decide(snapshot([*BUSY, job(partitions=("burst-p5",)), job(2, partitions=("other",))]), POLICY)
    assert decision.launches == () and [each.job for each in decision.infeasible] == [1]
    assert text_of(decision) == (
        "it was submitted to burst-p5, where only the controller sends jobs: submit it to home"
    )
