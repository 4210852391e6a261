"""Jobs that home can never run: admitted to wait for rented nodes (docs/adr/0080), or over a limit of home's partition.
What Slurm says of them was seen on 24.11.5: PartitionDown in `home,burst-any`, and Resources for moments.
"""

from dataclasses import replace

import pytest

from ironburst.burst import Resources, decide
from tests.fakes.snapshots import NOW, POLICY, code_of, home, job, lease, pool, snapshot, text_of

WAITS = ("home", "burst-any")
SETTLES = replace(POLICY, settle_s=30.0)
OTHER = replace(pool(), gpu_type="h200")


def larger(**more):
    return job(**{"submit_s": NOW - 60, "partitions": WAITS, "reason": "PartitionDown", "nodes": 3} | more)


@pytest.mark.parametrize("reason", ["PartitionDown", "Resources", "BadConstraints", "Priority"])
def test_it_is_rented_for_as_soon_as_it_has_settled(reason):
    decision = decide(snapshot([larger(reason=reason)]), SETTLES)
    assert [launch.jobs for launch in decision.launches] == [(1,)] and len(decision.launches[0].nodes) == 3
    assert "it can never start at home: it needs 3 nodes of 8 GPUs, home has 2" in text_of(decision)
    new = decide(snapshot([larger(submit_s=NOW)]), SETTLES)
    assert code_of(new, 1) == "settling" and new.launches == ()


def test_a_gpu_type_that_only_a_pool_has_is_rented_for_though_home_is_idle():
    asked = larger(nodes=1, gpu_type="h200")
    decision = decide(snapshot([asked], pools=[OTHER]), POLICY)
    assert [launch.pool for launch in decision.launches] == [OTHER.name]
    assert "it can never start at home: it asks for GPUs of type h200, home has none" in text_of(decision)


@pytest.mark.parametrize(
    ("each", "said"),
    [
        (Resources(9, 1, 1), "it needs 9 GPUs per node, home's have 8 at most"),
        (Resources(8, 10_000, 1), "it needs 10000 CPUs per node, home's have 192 at most"),
        (Resources(8, 1, 10**9), "it needs 1000000000 MiB of memory per node, home's have 2000000 at most"),
    ],
)
def test_it_is_said_what_home_lacks(each, said):
    nodes = [replace(node, total=Resources(8, 192, 2_000_000)) for node in home()]
    large = replace(pool(), each=Resources(16, 20_000, 2 * 10**9))
    assert said in text_of(decide(snapshot([larger(nodes=1, each=each)], nodes=nodes, pools=[large]), POLICY))


@pytest.mark.parametrize(
    ("reason", "said"), [("PartitionTimeLimit", "its time limit"), ("PartitionNodeLimit", "its number of nodes")]
)
def test_over_a_limit_of_homes_partition_is_never_at_home_too(reason, said):
    """Slurm takes such a job without EnforcePartLimits, its default, and lets it wait for ever."""
    decision = decide(snapshot([larger(nodes=1, partitions=("home",), reason=reason)]), POLICY)
    assert decision.launches and f"it can never start at home: {said} is over what partition home allows" in text_of(
        decision
    )
    other = decide(snapshot([larger(nodes=1, partitions=("home", "debug"), reason=reason)]), POLICY)
    assert other.launches == ()  # the reason may be debug's


def test_it_takes_no_room_of_those_behind_it():
    """Home's two nodes are free: who can start there does, whatever stands before him."""
    decision = decide(snapshot([larger(nodes=1, gpu_type="x", priority=9), job(2)]), POLICY)
    assert code_of(decision, 2) == "home_soon"


def test_it_keeps_the_partition_that_it_waits_in():
    joined = [lease(name, "joined", jobs=(1,), worked=False) for name in ("p5-1", "p5-2", "p5-3")]
    (widen,) = decide(snapshot([larger()], leases=joined), POLICY).widen
    assert widen.partitions == ("home", "burst-p5", "burst-any")
    wide = larger(partitions=widen.partitions, excluded=widen.excluded)
    ready = [replace(each, state="ready", worked=True) for each in joined]
    assert decide(snapshot([wide], leases=ready), POLICY).widen == ()
    lost = larger(partitions=("burst-p5", "home", "burst-any"), excluded=("p5-2",), submit_s=NOW)  # Slurm's order
    (narrow,) = decide(snapshot([lost]), SETTLES).narrow
    assert (narrow.partitions, narrow.excluded) == (WAITS, ())


@pytest.mark.parametrize("leases", [(), [lease("p5-2", "coming", jobs=(1,), worked=False)]], ids=["launched", "coming"])
def test_until_its_next_nodes_are_there_it_takes_none_of_anothers(leases):
    """Put back into the queue it is open to the names of its lost nodes, which may be another's by now."""
    lost = larger(nodes=1, partitions=("burst-p5", "home", "burst-any"), excluded=("p5-2", "p5-3"), restarts=1)
    decision = decide(snapshot([lost], leases=leases), POLICY)
    assert bool(decision.launches) != bool(leases) and decision.widen == ()
    assert [(each.job, each.partitions) for each in decision.narrow] == [(1, WAITS)]


def test_a_partition_that_is_down_is_no_reason_elsewhere():
    decision = decide(snapshot([job(submit_s=NOW - 60, reason="PartitionDown", nodes=3)]), POLICY)
    assert code_of(decision, 1) == "refused" and decision.launches == ()
