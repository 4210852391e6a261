"""Recorded ticks decided again: what today's policy, or a candidate,
would have done otherwise, in money and hours. Pure.

Each tick is decided again from its snapshot as it was recorded. So what follows from another decision is not known: a
node that only the replay rents is in no later snapshot, and a job that only the record rented for has its node there.
Hence a launch counts once until its job has started or a lease for it is there, on both sides; and of a job that only
the record rented for nobody can say how long it would have waited at home.

Between two ticks that were written nothing changed but the time. The replay looks there too, at the moments that it
asked for itself, up to `STILL_S` after the tick: after that the controller may have been away. Less than `LEAST_GAP_S`
before the next tick it doesn't look: the controller only looks once a tick either.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from ironburst.burst import Decision, Policy, Snapshot, cost, decide

STILL_S, LEAST_GAP_S = 3600.0, 60.0
LOOKS = 100  # between two ticks, at most
RENT, ASSIGN, WAIT, INFEASIBLE, NOTHING = "rent", "give", "wait", "infeasible", "nothing"  # as the output has them


class Tick(Protocol):
    """What was decided from what, as the controller's recorder reads it."""

    @property
    def at_s(self) -> float:
        """The moment, in seconds since 1970."""

    @property
    def snapshot(self) -> Snapshot:
        """What was seen."""

    @property
    def decision(self) -> Decision:
        """What was decided."""

    @property
    def policy(self) -> Policy:
        """By which policy."""


@dataclass(frozen=True)
class Act:
    """What one decision does about one job.
    `what` says more of it for programs (nodes, pool and market; leases; a code).
    """

    kind: str
    what: str = ""
    text: str = ""
    usd: float = 0.0  # that it commits: price x (boot + limit + longest idle); 0 for a job that shares another's nodes

    def __str__(self) -> str:
        return f"{self.kind} {self.what}".strip()


@dataclass(frozen=True)
class Difference:
    """A job that a tick decides otherwise. `between`: at a moment between two ticks that were written."""

    at_s: float
    job: int
    recorded: Act
    replayed: Act
    between: bool = False


@dataclass
class Side:
    """What one side did over all ticks. A launch or an assignment counts once until its job has started or has its
    lease; `waits` and `infeasible` count once a job and tick.
    """

    rents: int = 0
    assigns: int = 0
    waits: int = 0
    infeasible: int = 0
    releases: int = 0
    usd: float = 0.0
    first_rent_s: dict[int, float] = field(default_factory=dict)  # by job
    course: list[tuple[float, float]] = field(default_factory=list)  # (moment, `usd` from then on)
    _open: set[tuple[str, int]] = field(default_factory=set)
    _released: set[str] = field(default_factory=set)

    def saw(self, at_s: float, snapshot: Snapshot, acts: Mapping[int, Act], decision: Decision) -> None:
        """Count what was decided at this moment; `acts`: by job."""
        with_lease = {job for lease in snapshot.leases for job in lease.jobs}
        pending = {job.id for job in snapshot.jobs if job.pending}
        self._open = {(kind, job) for kind, job in self._open if job in pending and job not in with_lease}
        for job, act in acts.items():
            if act.kind in (RENT, ASSIGN) and (act.kind, job) not in self._open:
                self._open.add((act.kind, job))
                self.usd += act.usd
                self.course.append((at_s, self.usd))
                self.rents += act.kind == RENT
                self.assigns += act.kind == ASSIGN
                if act.kind == RENT:
                    self.first_rent_s.setdefault(job, at_s)
        kinds = Counter(act.kind for act in acts.values())
        self.waits += kinds[WAIT]
        self.infeasible += kinds[INFEASIBLE]
        new = {release.lease for release in decision.releases} - self._released
        self.releases += len(new)
        self._released |= new


@dataclass(frozen=True)
class Hours:
    """Hours over the jobs. `sooner`, `later`: both rented for it, the replay this much before or after. `saved`: only
    the replay rented, this much before the job really started (less a boot); `unknown`: jobs of which a snapshot can't
    show it: only the record rented for them, or they were never seen to start.
    """

    sooner_h: float = 0.0
    later_h: float = 0.0
    saved_h: float = 0.0
    unknown: int = 0


@dataclass(frozen=True)
class Comparison:
    """What a replay found. `ticks` were recorded, `looks` were added between them; `differ`: in how many something is
    otherwise; `clock_back`: how often a tick is older than the one before.
    """

    ticks: int
    looks: int
    differ: int
    from_s: float | None
    to_s: float | None
    clock_back: int
    first: Difference | None
    jobs: tuple[Difference, ...]  # the first difference of each job
    recorded: Side
    replayed: Side
    hours: Hours


def acts_of(decision: Decision) -> dict[int, Act]:
    """What a decision does about each job, by job."""
    acts = {item.job: Act(INFEASIBLE, item.code, item.text) for item in decision.infeasible}
    acts |= {wait.job: Act(WAIT, wait.code, wait.text) for wait in decision.waits}
    for assign in decision.assigns:
        acts[assign.job] = Act(ASSIGN, " ".join(assign.leases), assign.reason, assign.committed_usd)
    for launch in decision.launches:
        what = f"{len(launch.nodes)} x {launch.pool} {launch.market}"
        for number, job in enumerate(launch.jobs):
            acts[job] = Act(RENT, what, launch.reason, 0.0 if number else launch.committed_usd)
    return acts


def differ(recorded: Act, replayed: Act) -> bool:
    """Whether something else is done. The reason why a job waits may read otherwise: that is no difference."""
    return recorded.kind != replayed.kind or (recorded.kind != WAIT and recorded.what != replayed.what)


def compare(ticks: Iterable[Tick], policy: Policy | None = None) -> Comparison:
    """Decide every tick again, with its own policy or with `policy`."""
    comparing = _Comparing(policy)
    for tick, following in _pairs(ticks):
        comparing.add(tick, following)
    return comparing.result()


class _Comparing:
    """What is known after some ticks."""

    def __init__(self, policy: Policy | None):
        self.policy, self.recorded, self.replayed = policy, Side(), Side()
        self.ticks = self.looks = self.differ = self.clock_back = 0
        self.from_s: float | None = None
        self.to_s: float | None = None
        self.firsts: dict[int, Difference] = {}  # by job
        self.started_s: dict[int, float] = {}  # by job
        self.boot_s: dict[str, float] = {}  # by pool

    def add(self, tick: Tick, following: Tick | None) -> None:
        self._note(tick)
        was = acts_of(tick.decision)
        self.recorded.saw(tick.at_s, tick.snapshot, was, tick.decision)
        releases = {release.lease for release in tick.decision.releases}
        for number, (at_s, decision) in enumerate(_again(tick, following, self.policy or tick.policy)):
            between, now = number > 0, acts_of(decision)
            self.replayed.saw(at_s, tick.snapshot, now, decision)
            self.looks += between
            differences = _differences(at_s, was, now, between)
            others_released = not between and releases != {release.lease for release in decision.releases}
            self.differ += bool(differences) or others_released
            for difference in differences:
                self.firsts.setdefault(difference.job, difference)

    def _note(self, tick: Tick) -> None:
        """What the record says beside its decision."""
        self.ticks += 1
        self.clock_back += self.to_s is not None and tick.at_s < self.to_s
        self.from_s = tick.at_s if self.from_s is None else min(self.from_s, tick.at_s)
        self.to_s = tick.at_s
        for job in tick.snapshot.jobs:
            if job.on:
                self.started_s.setdefault(job.id, tick.at_s if job.start_s is None else job.start_s)
        self.boot_s |= {pool.name: cost.boot_s(pool) for pool in tick.snapshot.pools}

    def result(self) -> Comparison:
        jobs = tuple(sorted(self.firsts.values(), key=lambda first: (first.at_s, first.job)))
        boot_s = {first.job: self.boot_s.get(_pool(first.replayed), 0.0) for first in jobs}
        return Comparison(
            ticks=self.ticks,
            looks=self.looks,
            differ=self.differ,
            from_s=self.from_s,
            to_s=self.to_s,
            clock_back=self.clock_back,
            first=jobs[0] if jobs else None,
            jobs=jobs,
            recorded=self.recorded,
            replayed=self.replayed,
            hours=_hours(self.recorded, self.replayed, self.started_s, boot_s),
        )


def _differences(at_s: float, was: Mapping[int, Act], now: Mapping[int, Act], between: bool) -> list[Difference]:
    differences = []
    for job in sorted(was.keys() | now.keys()):
        before, after = was.get(job, Act(NOTHING)), now.get(job, Act(NOTHING))
        done = between and before.kind in (RENT, ASSIGN)  # a moment ago
        if differ(before, after) and not done:
            differences.append(Difference(at_s, job, before, after, between))
    return differences


def _pairs(ticks: Iterable[Tick]) -> Iterator[tuple[Tick, Tick | None]]:
    """Each tick, and the one after it."""
    before: Tick | None = None
    for tick in ticks:
        if before is not None:
            yield before, tick
        before = tick
    if before is not None:
        yield before, None


def _again(tick: Tick, following: Tick | None, policy: Policy) -> Iterator[tuple[float, Decision]]:
    """(moment, decision): the tick's own, then those at the moments that the decisions ask for,
    while nothing else changed.
    """
    at_s, snapshot = tick.at_s, tick.snapshot
    decision = decide(snapshot, policy)
    yield at_s, decision
    until_s = at_s if following is None else min(following.at_s - LEAST_GAP_S, at_s + STILL_S)
    for _ in range(LOOKS):
        rented = {job for launch in decision.launches for job in launch.jobs}
        asked_s = [wait.look_again_s for wait in decision.waits if wait.job not in rented]
        to_come_s = [moment for moment in asked_s if moment is not None and moment >= at_s]
        at_s = 1.0 + min(to_come_s, default=math.inf)  # a limit ends after its moment
        if at_s >= until_s:
            return
        decision = decide(replace(snapshot, now_s=at_s), policy)
        yield at_s, decision


def _pool(act: Act) -> str:
    return act.what.split()[2] if act.kind == RENT else ""


def _hours(recorded: Side, replayed: Side, started_s: Mapping[int, float], boot_s: Mapping[int, float]) -> Hours:
    ours, theirs = replayed.first_rent_s, recorded.first_rent_s
    sooner_s = [theirs[job] - ours[job] for job in ours.keys() & theirs.keys()]
    only_ours = ours.keys() - theirs.keys()
    saved_s = [max(0.0, started_s[job] - ours[job] - boot_s.get(job, 0.0)) for job in only_ours if job in started_s]
    return Hours(
        sooner_h=sum(max(0.0, by_s) for by_s in sooner_s) / 3600,
        later_h=sum(max(0.0, -by_s) for by_s in sooner_s) / 3600,
        saved_h=sum(saved_s) / 3600,
        unknown=len(theirs.keys() - ours.keys()) + len(only_ours - started_s.keys()),
    )
