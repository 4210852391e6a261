"""What becomes of a lease: one table of facts -> next state, act, why. Pure.

`launching` and `leases` look at the facts and carry out the acts. Other moves begin elsewhere: with a decision, a
budget, a notice, a person, and in `going` and `rebuild`. `lease_states.MOVES` has all that are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from ironburst.controller.lease_states import State
from ironburst.nodes import states as node_states
from ironburst.ports import Node

OfLaunch = Literal["", "ask", "look", "adopt"]
"""ask: the cloud; look: for instances of an intent that is not repeated; adopt: the instances that the cloud shows"""
OfLease = Literal["", "join", "fail", "suspect", "give_up", "use", "idle", "interrupt", "take_back", "end_again", "pay"]
"""fail: its place is closed for a while; suspect: and its image may be the cause. Both, and give_up, take those leases
of its launch along that are not handed over yet
"""


class LeaseRule(NamedTuple):
    """One row: where all facts of `when` hold, the lease goes to the state `to` with `act` (empty: only that). `why` is
    for people; what is in braces is filled in by whoever acts.
    """

    when: str
    to: State
    act: OfLaunch | OfLease
    why: str


_OTHERS = "a job runs on its node: another instance has it, and nothing is ended under that"
_UNWANTED = (
    LeaseRule("unneeded", State.LEAVING, "", "{unneeded}"),
    LeaseRule("unknown", State.LEAVING, "", "the scheduler doesn't know its nodes"),
)
# Of the rows of its state the first that holds counts; the last one always holds.
RULES: Mapping[State, tuple[LeaseRule, ...]] = MappingProxyType(
    {
        # until there are instances, the leases of a launch have their facts in common
        State.INTENDED: (
            LeaseRule("works", State.INTENDED, "", _OTHERS),
            *_UNWANTED,
            LeaseRule("", State.INTENDED, "", "the scheduler is asked once for all launches"),
        ),
        State.POWERING: (
            LeaseRule("works", State.POWERING, "", _OTHERS),
            *_UNWANTED,
            LeaseRule("powering_up", State.REQUESTED, "ask", "the scheduler powers its nodes up"),
            LeaseRule("overdue", State.LEAVING, "", "the scheduler never powered its nodes up"),
            LeaseRule("", State.POWERING, "", "the scheduler has its permits"),
        ),
        State.REQUESTED: (
            LeaseRule("shown unneeded jobs", State.LAUNCHED, "adopt", "its instances exist, and jobs are there"),
            LeaseRule("shown unneeded", State.LEAVING, "adopt", "{unneeded}"),
            LeaseRule("shown", State.LAUNCHED, "adopt", "its instances exist"),
            LeaseRule("not_yet", State.REQUESTED, "", "the cloud gave no answer, and is asked again soon"),
            LeaseRule("unneeded", State.REQUESTED, "look", "the cloud gave no answer, and is not asked again"),
            LeaseRule("", State.REQUESTED, "ask", "the cloud gave no answer, and is asked the same again"),
        ),
        State.LAUNCHED: (
            LeaseRule("jobs", State.READY, "", "it was handed over, and this ledger is older than that"),
            LeaseRule("gone by_cloud", State.LEAVING, "fail", "{gone}"),
            LeaseRule("gone", State.LEAVING, "suspect", "{gone}"),
            LeaseRule("unknown", State.LEAVING, "fail", "the scheduler doesn't know its node any more"),
            LeaseRule(
                "registered", State.JOINED, "join", "registered {lasts_s:.0f} s after its launch, so its gate passed"
            ),
            LeaseRule("given_up", State.LEAVING, "suspect", "the scheduler gave its node up ({states})"),
            LeaseRule(
                "overdue",
                State.LEAVING,
                "suspect",
                "it did not join within {boot_s:.0f} s: it never booted, or its gate failed",
            ),
            LeaseRule("", State.LAUNCHED, "", "it boots"),
        ),
        State.JOINED: (
            LeaseRule("jobs", State.READY, "", "it was handed over, and we died before we wrote it down"),
            LeaseRule("gone", State.LEAVING, "fail", "{gone}"),
            LeaseRule("going_down", State.LEAVING, "fail", "the scheduler took its node away before it was used"),
            LeaseRule("held", State.LEAVING, "give_up", "a person drained it ({reason}), and only a person lifts that"),
            LeaseRule("drained", State.LEAVING, "fail", "it was drained before it was used ({verdict})"),
            LeaseRule("", State.JOINED, "", "it waits behind its drain"),
        ),
        State.READY: (
            LeaseRule("gone by_cloud spot", State.INTERRUPTED, "take_back", "{gone}"),
            LeaseRule("gone", State.INTERRUPTED, "interrupt", "{gone}"),
            LeaseRule("lost", State.INTERRUPTED, "interrupt", "the scheduler lost its node (DOWN{because})"),
            # a person's doing, or Slurm's own SuspendTime
            LeaseRule("going_down", State.RELEASING, "", "the scheduler powers it down"),
            LeaseRule("drained", State.RELEASING, "", "drained: {verdict}"),
            LeaseRule("jobs", State.READY, "use", "a job is on it"),
            LeaseRule("", State.READY, "idle", "no job is on it"),
        ),
        State.RELEASING: (
            LeaseRule("off", State.LEAVING, "", "the scheduler powers it down, so its jobs have ended"),
            LeaseRule("gone", State.LEAVING, "", "{gone}"),
            LeaseRule("", State.RELEASING, "", "its jobs may end"),
        ),
        State.INTERRUPTED: (
            LeaseRule("gone", State.LEAVING, "", "{gone}"),
            LeaseRule("down", State.LEAVING, "", "its node is down"),
            LeaseRule("overdue", State.LEAVING, "", "its jobs had their time to leave"),
            LeaseRule("jobs", State.INTERRUPTED, "", "its jobs go back to the queue"),
            LeaseRule("", State.LEAVING, "", "no job is on it"),
        ),
        State.LEAVING: (LeaseRule("", State.LEAVING, "", "its instance is ended with all others"),),
        State.TERMINATED: (
            LeaseRule("gone", State.ENDED, "", "its instance has ended"),
            LeaseRule("overdue", State.TERMINATED, "end_again", "its instance lives, though the call was accepted"),
            LeaseRule("", State.TERMINATED, "pay", "it is paid for until its instance is gone"),
        ),
        State.ENDED: (LeaseRule("", State.ENDED, "", "it is over"),),
    }
)


def rule(state: State, facts: frozenset[str]) -> LeaseRule:
    """The row that holds. There is one for every combination of facts (a test asks all of them)."""
    return next(row for row in RULES[state] if facts.issuperset(row.when.split()))


def those(**holds: bool) -> frozenset[str]:
    """The facts that hold. Of any lease: overdue (it is in its state for longer than it may), jobs (are on its node),
    unknown (the scheduler doesn't know its node). Of one that isn't launched, together with all of its launch:
    powering_up, works (one of the nodes: it answers, with jobs), unneeded (no job that waits needs them, or a person
    halts the renting), shown (the cloud shows all instances with the token of their intent), not_yet (the intent is to
    be repeated later).
    """
    return frozenset(name for name, held in holds.items() if held)


def facts(node: Node | None, **others: bool) -> frozenset[str]:
    """The facts of a launched lease; `others`: overdue, jobs, spot, gone (its instance, proven by `sightings.gone`),
    by_cloud (gone, and neither by its own nor by a person's doing).
    """
    if node is None:
        return those(unknown=True, lost=True, going_down=True, off=True, **others)
    down, off, going_down = node.has("DOWN"), node.has("POWERED_DOWN"), node_states.going_down(node.states)
    coming = node_states.powering_up(node.states) or node.has("NOT_RESPONDING")
    return those(
        registered=node.has("IDLE", "DRAIN") and not coming and not going_down,  # and waits behind its drain
        down=down,
        lost=down and not off,
        off=off or node.has("POWERING_DOWN"),
        going_down=going_down,
        given_up=going_down and not node.has("POWER_UP"),
        held=node.held_by_person,
        drained=bool(node.verdict),
        **others,
    )
