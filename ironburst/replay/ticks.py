"""Recorded rounds decided again: what today's policy, or a candidate, would have done otherwise, in money and hours.
Pure.

Each round is decided anew from its snapshot as it was recorded. So what follows from another decision is not known: a
node that only the replay rents is in no later snapshot, and a job that only the record rented for has its node there.
Hence a launch counts once until its job has started or a lease for it is there, on both sides; and of a job that only
the record rented for nobody can say how long it would have waited at home.

Between two rounds that were written nothing changed but the time. The replay looks there too, at the moments that it
asked for itself, up to `STILL_S` after the round: after that the controller may have been away. Less than `TICK_S`
before the next round it doesn't look: the controller only looks once a tick either.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from ironburst.burst import Decision, Policy, Snapshot, cost, decide

STILL_S, TICK_S = 3600.0, 60.0
LOOKS = 100  # between two rounds, at most
RENT, GIVE, WAIT, INFEASIBLE, NOTHING = "rent", "give", "wait", "infeasible", "nothing"


class Round(Protocol):
    """What was decided from what, as the controller's recorder reads it."""

    at_s: float
    snapshot: Snapshot
    decision: Decision
    policy: Policy


@dataclass(frozen=True)
class Act:
    """What one decision does about one job. `what` says more of it for programs (nodes, pool and market; leases; a
    code).
    """

    kind: str
    what: str = ""
    text: str = ""
    usd: float = 0.0  # that it commits: price x (boot + limit + longest idle); 0 for a job that shares another's nodes

    def __str__(self) -> str:
        return f"{self.kind} {self.what}".strip()


@dataclass(frozen=True)
class Difference:
    """A job that a round decides otherwise. `between`: at a moment between two rounds that were written."""

    at_s: float
    job: int
    recorded: Act
    replayed: Act
    between: bool = False


@dataclass
class Side:
    """What one side did over all rounds. A launch or an assignment counts once until its job has started or has its
    lease.
    """

    rents: int = 0
    gives: int = 0
    waits: int = 0
    infeasible: int = 0
    releases: int = 0
    usd: float = 0.0
    first_rent_s: dict[int, float] = field(default_factory=dict)  # by job
    _open: set[tuple[str, int]] = field(default_factory=set)
    _released: set[str] = field(default_factory=set)

    def saw(self, at_s: float, snapshot: Snapshot, acts: dict[int, Act], decision: Decision) -> None:
        with_lease = {job for lease in snapshot.leases for job in lease.jobs}
        pending = {job.id for job in snapshot.jobs if job.pending}
        self._open = {(kind, job) for kind, job in self._open if job in pending and job not in with_lease}
        for job, act in acts.items():
            if act.kind in (RENT, GIVE) and (act.kind, job) not in self._open:
                self._open.add((act.kind, job))
                self.usd += act.usd
                self.rents += act.kind == RENT
                self.gives += act.kind == GIVE
                if act.kind == RENT:
                    self.first_rent_s.setdefault(job, at_s)
        kinds = Counter(act.kind for act in acts.values())
        self.waits += kinds[WAIT]
        self.infeasible += kinds[INFEASIBLE]
        new = {release.lease for release in decision.releases} - self._released
        self.releases += len(new)
        self._released |= new


@dataclass(frozen=True)
class Comparison:
    """What a replay found. `rounds` were recorded, `looks` were added between them; `differ`: in how many something is
    otherwise.
    """

    rounds: int
    looks: int
    differ: int
    from_s: float | None
    to_s: float | None
    clock_back: int  # how often a round is older than the one before
    first: Difference | None
    jobs: tuple[Difference, ...]  # the first difference of each job
    recorded: Side
    replayed: Side
    hours: Hours


@dataclass(frozen=True)
class Hours:
    """Hours over the jobs. `sooner`, `later`: both rented for it, the replay so much before or after. `saved`: only the
    replay rented, so much before the job really started (less a boot); `unknown`: jobs of which a snapshot can't tell
    it: only the record rented for them, or they were never seen to start.
    """

    sooner_h: float = 0.0
    later_h: float = 0.0
    saved_h: float = 0.0
    unknown: int = 0


def acts(decision: Decision) -> dict[int, Act]:
    """What a decision does about each job, by job."""
    found = {item.job: Act(INFEASIBLE, item.code, item.text) for item in decision.infeasible}
    found |= {wait.job: Act(WAIT, wait.code, wait.text) for wait in decision.waits}
    found |= {one.job: Act(GIVE, " ".join(one.leases), one.reason, one.committed_usd) for one in decision.assigns}
    for launch in decision.launches:
        what = f"{len(launch.nodes)} x {launch.pool} {launch.market}"
        for number, job in enumerate(launch.jobs):
            found[job] = Act(RENT, what, launch.reason, 0.0 if number else launch.committed_usd)
    return found


def differ(recorded: Act, replayed: Act) -> bool:
    """Whether something else is done. Why a job waits may be told otherwise: that is no difference."""
    return recorded.kind != replayed.kind or (recorded.kind != WAIT and recorded.what != replayed.what)


def compare(rounds: Iterable[Round], policy: Policy | None = None) -> Comparison:
    """Decide every round again, with its own policy or with `policy`."""
    recorded, replayed = Side(), Side()
    count = looks = different = back = 0
    began: float | None = None
    last: float | None = None
    firsts: dict[int, Difference] = {}
    started: dict[int, float] = {}
    boots: dict[str, float] = {}
    for each, following in _pairs(rounds):
        count += 1
        back += last is not None and each.at_s < last
        began, last = each.at_s if began is None else min(began, each.at_s), each.at_s
        for job in each.snapshot.jobs:
            if job.on:
                started.setdefault(job.id, each.at_s if job.start_s is None else job.start_s)
        boots |= {pool.name: cost.boot_s(pool) for pool in each.snapshot.pools}
        was = acts(each.decision)
        recorded.saw(each.at_s, each.snapshot, was, each.decision)
        for number, (at_s, decision) in enumerate(_again(each, following, policy or each.policy)):
            now = acts(decision)
            replayed.saw(at_s, each.snapshot, now, decision)
            looks += number > 0
            found = [
                Difference(at_s, job, before, after, number > 0)
                for job in sorted(was.keys() | now.keys())
                if differ(before := was.get(job, Act(NOTHING)), after := now.get(job, Act(NOTHING)))
                and not (number and before.kind in (RENT, GIVE))  # it was done a moment ago
            ]
            releases = {one.lease for one in each.decision.releases} != {one.lease for one in decision.releases}
            different += bool(found) or (releases and not number)
            for one in found:
                firsts.setdefault(one.job, one)
    ordered = tuple(sorted(firsts.values(), key=lambda one: (one.at_s, one.job)))
    hours = _hours(recorded, replayed, started, {one.job: boots.get(_pool(one.replayed), 0.0) for one in ordered})
    return Comparison(
        count, looks, different, began, last, back, ordered[0] if ordered else None, ordered, recorded, replayed, hours
    )


def _pairs(rounds: Iterable[Round]) -> Iterator[tuple[Round, Round | None]]:
    before: Round | None = None
    for each in rounds:
        if before is not None:
            yield before, each
        before = each
    if before is not None:
        yield before, None


def _again(each: Round, following: Round | None, policy: Policy) -> Iterator[tuple[float, Decision]]:
    """(moment, decision): the round's own, then those at the moments that the decisions ask for, while nothing else
    changed.
    """
    at_s, snapshot = each.at_s, each.snapshot
    decision = decide(snapshot, policy)
    yield at_s, decision
    until = at_s if following is None else min(following.at_s - TICK_S, at_s + STILL_S)
    for _ in range(LOOKS):
        rented = {job for launch in decision.launches for job in launch.jobs}
        moments = [
            wait.look_again_s for wait in decision.waits if wait.look_again_s is not None and wait.job not in rented
        ]
        at_s = 1.0 + min(
            (moment for moment in moments if moment >= at_s), default=math.inf
        )  # a limit ends after its moment
        if at_s >= until:
            return
        decision = decide(replace(snapshot, now_s=at_s), policy)
        yield at_s, decision


def _pool(act: Act) -> str:
    return act.what.split()[2] if act.kind == RENT else ""


def _hours(recorded: Side, replayed: Side, started: dict[int, float], boot_s: dict[int, float]) -> Hours:
    ours, theirs = replayed.first_rent_s, recorded.first_rent_s
    both = [theirs[job] - ours[job] for job in ours.keys() & theirs.keys()]
    only_ours = ours.keys() - theirs.keys()
    saved = sum(max(0.0, started[job] - ours[job] - boot_s.get(job, 0.0)) for job in only_ours if job in started)
    return Hours(
        sooner_h=sum(max(0.0, each) for each in both) / 3600,
        later_h=sum(max(0.0, -each) for each in both) / 3600,
        saved_h=saved / 3600,
        unknown=len(theirs.keys() - ours.keys()) + len(only_ours - started.keys()),
    )
