"""Rented nodes on their way to a job, and the job's way back home."""

from dataclasses import replace

import pytest

from ironburst.burst import Resources, decide
from tests.fakes.snapshots import BUSY, NOW, POLICY, code_of, job, lease, pool, running, snapshot, text_of

LATER = NOW + 9e4  # its user puts it off, so nothing is rented for it


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


def test_widening_adds_the_rented_partition_to_those_that_its_user_named_and_narrowing_takes_it_away():
    leases = [lease("p5-1", "joined", jobs=(1,), worked=False)]
    asked = job(partitions=("home", "h200", "a100"))
    (widen,) = decide(snapshot([*BUSY, asked], leases=leases), POLICY).widen
    assert widen.partitions == ("home", "h200", "a100", "burst-p5")
    (narrow,) = decide(
        snapshot([*BUSY, job(partitions=widen.partitions, excluded=widen.excluded, eligible_s=LATER)]), POLICY
    ).narrow
    assert (narrow.partitions, narrow.excluded) == (("home", "h200", "a100"), ())


def test_what_its_user_changes_while_it_is_widened_stays():
    there = [lease("p5-1", jobs=(1,))]
    for changed in (("home", "burst-p5", "h200"), ("h200", "home", "burst-p5")):
        wide = job(partitions=changed, excluded=("p5-2", "p5-3"))
        assert decide(snapshot([*BUSY, wide], leases=there), POLICY).widen == ()
    (back,) = decide(snapshot([*BUSY, job(partitions=("h200", "home", "burst-p5"), eligible_s=LATER)]), POLICY).narrow
    assert back.partitions == ("h200", "home")


def test_rented_nodes_that_its_user_excludes_are_not_rented_for_it_and_stay_excluded():
    asked = job(excluded=("dgx9", "p5-1"), keeps_off=("p5-1",))
    (launch,) = decide(snapshot([*BUSY, asked]), POLICY).launches
    assert launch.nodes == ("p5-2",)
    empty = [lease("p5-1")]
    assert decide(snapshot([*BUSY, asked], leases=empty), POLICY).launches[0].nodes == ("p5-2",)
    joined = [lease("p5-2", "joined", jobs=(1,), worked=False)]
    (widen,) = decide(snapshot([*BUSY, asked], leases=joined), POLICY).widen
    assert widen.excluded == ("dgx9", "p5-1", "p5-3")
    wide = job(partitions=widen.partitions, excluded=widen.excluded, keeps_off=("p5-1",), eligible_s=LATER)
    (narrow,) = decide(snapshot([*BUSY, wide]), POLICY).narrow
    assert narrow.excluded == ("dgx9", "p5-1")
    gang = job(nodes=3, keeps_off=("p5-1",), excluded=("p5-1",))
    assert decide(snapshot([*BUSY, gang]), POLICY).launches == ()


@pytest.mark.parametrize(
    ("submitted_s", "eligible_s", "restarts", "lifted"),
    [
        (NOW, NOW + 121, 1, True),
        (NOW - 100, NOW + 21, 1, True),
        (NOW, NOW + 121, 0, False),  # never requeued: its user's
        (NOW, NOW + 60, 1, False),
        (NOW, NOW + 86400, 2, False),
    ],
)
def test_only_the_delay_of_a_requeue_is_lifted(submitted_s, eligible_s, restarts, lifted):
    back = job(partitions=("home", "burst-p5"), submit_s=submitted_s, eligible_s=eligible_s, restarts=restarts)
    (narrow,) = decide(snapshot([*BUSY, back]), POLICY).narrow
    assert narrow.begin_now == lifted


def test_what_its_user_excludes_of_a_pool_is_said_where_too_few_are_left():
    decision = decide(snapshot([*BUSY, job(nodes=2, excluded=("p5-1", "p5-2"), keeps_off=("p5-1", "p5-2"))]), POLICY)
    assert decision.launches == () and "2 excluded by it (--exclude)" in text_of(decision, 1)


HALF = Resources(4, 95, 500)
LEFT = Resources(8, 189, 1000)  # of 192 CPUs, beside kubelet and DaemonSets


@pytest.mark.parametrize(("has", "kept"), [(Resources(8, 190, 1000), True), (LEFT, False)])
def test_a_node_that_is_there_is_promised_no_more_than_it_has(has, kept):
    """Two jobs of 95 CPUs fit the declared 192."""
    first = running(80, ["p5-1"], 3600, each=HALF, partitions=("burst-p5",))
    pools = [pool(markets=("on-demand",))]
    found = snapshot([*BUSY, first, job(each=HALF)], pools=pools, leases=[lease("p5-1", jobs=(80,))])
    found = replace(
        found,
        pools=tuple(replace(each, each=Resources(8, 192, 1000)) for each in found.pools),
        nodes=tuple(replace(each, total=has) if each.name.startswith("p5-") else each for each in found.nodes),
    )
    decision = decide(found, POLICY)
    assert bool(decision.launches) is not kept
    assert [each.leases for each in decision.assigns] == [("l1/p5-1",)] * kept


def test_who_was_promised_a_node_that_has_less_than_was_thought_is_decided_anew():
    first = running(80, ["p5-1"], 3600, each=HALF, partitions=("burst-p5",))
    wide = job(each=HALF, partitions=("home", "burst-p5"), excluded=("p5-2", "p5-3"))
    found = snapshot([*BUSY, first, wide], leases=[lease("p5-1", jobs=(80, 1))])
    found = replace(
        found,
        pools=tuple(replace(each, each=Resources(8, 192, 1000)) for each in found.pools),
        nodes=tuple(replace(each, total=LEFT) if each.name.startswith("p5-") else each for each in found.nodes),
    )
    assert decide(found, POLICY).launches
