"""Which rented nodes are given back."""

from ironburst.burst import (
    decide,
)
from tests.fakes.snapshots import NOW, POLICY, lease, running, snapshot


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
