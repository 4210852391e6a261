"""Which rented nodes are given back."""

from ironburst.burst import (
    decide,
)
from tests.fakes.snapshots import NOW, POLICY, lease, pool, running, snapshot


def test_idle_nodes_are_kept_for_the_pools_idle_time_then_released():
    assert decide(snapshot([], leases=[lease("p5-1", idle_since_s=NOW - 299)]), POLICY).releases == ()
    (release,) = decide(snapshot([], leases=[lease("p5-1", idle_since_s=NOW - 300)]), POLICY).releases
    assert release.node == "p5-1" and "idle for 5 min" in release.reason


def test_a_node_whose_job_has_gone_is_released_before_it_is_used():
    (release,) = decide(snapshot([], leases=[lease("p5-1", "coming", jobs=(1,), worked=False)]), POLICY).releases
    assert "need it no more" in release.reason


def test_a_busy_node_is_not_released():
    decision = decide(snapshot([running(80, ["p5-1"], 60)], leases=[lease("p5-1", idle_since_s=None)]), POLICY)
    assert decision.releases == ()


def test_an_idle_node_goes_just_before_its_capacity_is_taken_back():
    """AWS ends it otherwise, and it looks as if it had failed."""
    here = {"markets": ("capacity-block",), "usd_per_hour": {"capacity-block": 0.0}, "idle_s": 3600.0}
    idle = lease("p5-1", market="capacity-block", idle_since_s=NOW - 10)
    for left_s, released in ((61.0, False), (60.0, True), (-5.0, True)):
        block = pool(prepaid_markets=("capacity-block",), ends_s=NOW + left_s, **here)
        given_back = decide(snapshot([], pools=[block], leases=[idle]), POLICY).releases
        assert [each.node for each in given_back] == (["p5-1"] if released else []), left_s
    assert "capacity is taken back at" in given_back[0].reason
