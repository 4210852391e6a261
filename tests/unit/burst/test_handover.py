"""Rented nodes on their way to a job, and the job's way back home."""

from ironburst.burst import (
    decide,
)
from tests.fakes.snapshots import BUSY, NOW, POLICY, code_of, job, lease, running, snapshot


def test_nothing_is_widened_before_the_whole_gang_has_joined():
    coming = [lease("p5-1", "joined", jobs=(1,), worked=False), lease("p5-2", "coming", jobs=(1,), worked=False)]
    decision = decide(snapshot([*BUSY, job(nodes=2)], leases=coming), POLICY)
    assert decision.widen == () and code_of(decision, 1) == "coming" and decision.launches == ()
    assert decision.releases == ()
    joined = [lease(n, "joined", jobs=(1,), worked=False) for n in ("p5-1", "p5-2")]
    assert decide(snapshot([*BUSY, job(nodes=2)], leases=joined), POLICY).widen[0].nodes == ("p5-1", "p5-2")


def test_a_widened_job_is_left_in_peace():
    wide = job(partitions=("home", "burst-p5"), excluded=("p5-2", "p5-3"))
    decision = decide(snapshot([*BUSY, wide], leases=[lease("p5-1", jobs=(1,))]), POLICY)
    assert decision.widen == decision.narrow == decision.releases == decision.launches == ()


def test_a_job_whose_node_another_one_took_is_decided_anew():
    thief = running(80, ["p5-1"], 3600, partitions=("burst-p5",))
    wide = job(partitions=("home", "burst-p5"), excluded=("p5-2", "p5-3"))
    assert decide(snapshot([*BUSY, thief, wide], leases=[lease("p5-1", jobs=(1,))]), POLICY).launches


def test_a_requeued_job_without_lease_goes_back_to_home_and_keeps_its_own_exclusions():
    back = job(partitions=("home", "burst-p5"), excluded=("dgx1", "p5-2"), eligible_s=NOW + 120, restarts=1)
    (narrow,) = decide(snapshot([*BUSY, back]), POLICY).narrow
    assert (narrow.partitions, narrow.excluded, narrow.begin_now) == (("home",), ("dgx1",), True)
