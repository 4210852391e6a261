"""Two schedulers as one: what goes where, and what is told where that isn't plain."""

from dataclasses import replace

import pytest

from ironburst.adapters.both import Both
from ironburst.ports import Node, Observation, Resources, SchedulerError
from tests.fakes import FakeClock, FakeSlurm
from tests.fakes.both import FIRST_POD, Switched

NODES = {"p5-1": "slurm", "g5-1": "kubernetes"}


class Side:
    """Notes what it is asked."""

    def __init__(self, *nodes):
        self.nodes, self.calls, self.refuses = nodes, [], ()

    def observe(self):
        return Observation((), tuple(Node(name, (), Resources(8), ("IDLE",)) for name in self.nodes))

    def __getattr__(self, method):
        def call(*given, **more):
            if method in self.refuses:
                raise SchedulerError(f"no {method}")
            self.calls.append((method, *given))
            return {} if method == "requeue" else ()

        return call


@pytest.fixture
def sides():
    return {"slurm": Side("p5-1", "dgx01"), "kubernetes": Side("g5-1", "kube1")}


@pytest.fixture
def both(sides):
    return Both(sides, NODES, {})


@pytest.mark.parametrize("method", ["put_permit", "remove_permit", "power_up", "resume", "release", "heal"])
def test_each_scheduler_is_told_of_its_own_nodes(both, sides, method):
    getattr(both, method)(["g5-1", "p5-1"])
    assert sides["slurm"].calls == [(method, ["p5-1"])] and sides["kubernetes"].calls == [(method, ["g5-1"])]


def test_what_one_alone_knows_of_its_jobs_is_there(both, sides):
    seen = sides["slurm"].observe()
    sides["slurm"].observe = lambda: replace(seen, numbers={-5: 307}, comments={-5: "c"}, together={-5: "1_[2]"})
    found = both.observe()
    assert (found.numbers, found.comments, found.together) == ({-5: 307}, {-5: "c"}, {-5: "1_[2]"})


def test_what_is_said_with_it_goes_along(both, sides):
    both.drain(["g5-1"], "why")
    both.abandon(["p5-1"], "why")
    both.beat({"p5-1": 60, "g5-1": 120}, 1.0)
    both.place(7, ("home",), ())
    both.place(FIRST_POD, ("pods",), ())
    both.requeue(7, FIRST_POD)
    assert sides["slurm"].calls == [
        ("abandon", ["p5-1"], "why"),
        ("beat", {"p5-1": 60}, 1.0),
        ("place", 7, ("home",), ()),
        ("requeue", 7),
    ]
    assert sides["kubernetes"].calls == [
        ("drain", ["g5-1"], "why"),
        ("beat", {"g5-1": 120}, 1.0),
        ("place", FIRST_POD, ("pods",), ()),
        ("requeue", FIRST_POD),
    ]


def test_one_that_refuses_keeps_the_other_not(both, sides):
    sides["slurm"].refuses = ("release", "requeue")
    with pytest.raises(SchedulerError, match="no release"):
        both.release(["p5-1", "g5-1"])
    with pytest.raises(SchedulerError, match="no requeue"):
        both.requeue(7, FIRST_POD)
    assert sides["kubernetes"].calls == [("release", ["g5-1"]), ("requeue", FIRST_POD)]


def test_a_node_that_was_seen_is_known_and_another_is_said(both, sides):
    both.observe()
    both.drain(["kube1"], "why")
    assert sides["kubernetes"].calls == [("drain", ["kube1"], "why")]
    with pytest.raises(SchedulerError, match="no scheduler of the site has the nodes p4d-1"):
        both.drain(["p4d-1", "dgx01"], "why")
    assert sides["slurm"].calls == [("drain", ["dgx01"], "why")]
    both.remove_permit(["p4d-1"])  # of a pool that was declared once: wherever it may be
    assert [side.calls[-1] for side in sides.values()] == [("remove_permit", ["p4d-1"])] * 2


def test_a_node_of_both_counts_as_the_declared_ones_and_is_told(sides):
    sides["slurm"].nodes = ("p5-1", "dgx01", "g5-1", "kube1")
    seen = Both(sides, NODES, {}).observe()
    assert sorted(node.name for node in seen.nodes) == ["dgx01", "g5-1", "kube1", "p5-1"]
    declared, undeclared = seen.unreadable
    assert "node g5-1 is in Slurm, too, and counts as Kubernetes's alone" in declared
    assert "node kube1 is in Kubernetes, too, and counts as Slurm's alone" in undeclared


def test_what_is_silent_is_said_and_what_is_known_of_the_other_counts(sides):
    both = Both({"slurm": sides["slurm"]}, NODES, {"kubernetes": "there is no kubeconfig"})
    seen = both.observe()
    assert (
        seen.silent == ("kubernetes",) and "Kubernetes gives no answer (there is no kubeconfig)" in seen.unreadable[0]
    )
    assert [seen.unseen(name) for name in ("p5-1", "dgx01", "g5-1", "p4d-1")] == [False, False, True, True]
    assert (seen.unseen_job(7), seen.unseen_job(FIRST_POD)) == (False, True)
    with pytest.raises(SchedulerError, match="Kubernetes gives no answer: there is no kubeconfig"):
        both.release(["g5-1"])


def test_a_lost_claim_is_looked_at_before_it_is_made_again():
    """One of the two schedulers was taken over while we were away: ours isn't renewed at the other."""
    clock = FakeClock()
    real = {"slurm": FakeSlurm(clock), "kubernetes": FakeSlurm(clock)}
    both = Both({kind: Switched(side, kind) for kind, side in real.items()}, NODES, {})
    assert both.claim("me", "words", 600.0).owner == "" and both.claim("me", "more", 600.0).said == "words"
    real["kubernetes"].claimed = ("stranger", clock.now(), "")
    assert both.claim("me", "words", 600.0).owner == "stranger"
    clock.at += 300.0
    real["kubernetes"].claimed = ("stranger", clock.now(), "")
    assert both.claim("me", "words", 600.0).owner == "stranger"
    assert real["slurm"].claimed[1] == clock.now() - 300.0  # ours ages
    assert both.claim("me", "", -1.0).owner == "stranger"  # taken over by force: at both
    assert {side.claimed[0] for side in real.values()} == {"me"}


def test_a_side_that_lets_nobody_in_keeps_no_node_of_the_other(both, sides):
    sides["slurm"].refuses = ("admit",)
    with pytest.raises(SchedulerError, match="no admit"):
        both.admit()
    assert ("admit",) in sides["kubernetes"].calls
