"""A trace of jobs played through `burst.decide` on a declared cluster: the policy that the controller runs, and no other.

The home scheduler is a plain one: jobs in the order of `order_s`, each as soon as its nodes have room, on the nodes whose last job ends
soonest after its own; the first few large ones keep nodes free for their earliest start. Renting starts at once and has no limit.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ironburst.burst import Budget, Job, Node, Policy, Pool, Resources, Snapshot, decide
from ironburst.replay.traces import Trace

HOME, BURST = "home", "burst"
OFF = ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN")


def step_back(gpu_hours: float) -> float:
    """Large jobs let smaller ones of up to a day later go first: as a scheduler's priority by size and age does it."""
    return 3600 * min(0.026 * gpu_hours, 25.0)


@dataclass(frozen=True)
class Home:
    """Owned nodes, and how their scheduler works. Times in seconds.

    `step_back_s`: by how much a job of so many GPU-hours steps back in the queue; `reserved`: how many waiting jobs of whole nodes and at
    least `reserve_gpu_hours` keep nodes free; `room_s`: what a free GPU counts when a node is chosen (fuller nodes first).
    """

    nodes: int
    gpus: int = 8
    step_back_s: Callable[[float], float] = step_back
    reserved: int = 4
    reserve_gpu_hours: float = 310.0
    room_s: float = 15.0


@dataclass(frozen=True)
class Played:
    """When each job of the trace started (on its clock), whether rented; how often the policy was asked."""

    start_s: np.ndarray
    rented: np.ndarray
    decisions: int


class _Nodes:
    """Free GPUs of each node and the moment of its last end."""

    def __init__(self, home: Home):
        self.home, self.free = home, np.full(home.nodes, home.gpus)
        self.last_end = np.zeros(home.nodes)
        self.reserved_from = np.full(home.nodes, math.inf)
        self.on: list[list[float]] = [[] for _ in range(home.nodes)]  # ends

    def fit(self, gpus: int, now: float, end: float) -> list[tuple[int, int]] | None:
        """(node, GPUs) where a job could begin now; None: nowhere. Large ones take whole nodes, and a part of one for the rest."""
        whole, rest = divmod(gpus, self.home.gpus)
        usable = self.reserved_from >= end
        chosen: list[tuple[int, int]] = []
        if whole:
            empty = np.flatnonzero((self.free == self.home.gpus) & usable)
            if len(empty) < whole + (rest > 0):
                return None
            chosen = [(int(node), self.home.gpus) for node in empty[:whole]]
        if rest:
            usable &= self.free >= rest
            for node, _ in chosen:
                usable[node] = False
            candidates = np.flatnonzero(usable)
            if not len(candidates):
                return None
            longer = np.maximum(end - np.maximum(self.last_end[candidates], now), 0.0)
            chosen.append((int(candidates[(longer + self.home.room_s * self.free[candidates]).argmin()]), rest))
        return chosen

    def begin(self, parts: list[tuple[int, int]], end: float) -> None:
        for node, gpus in parts:
            self.free[node] -= gpus
            self.on[node].append(end)
            self.last_end[node] = max(self.last_end[node], end)

    def end(self, parts: list[tuple[int, int]], end: float) -> None:
        for node, gpus in parts:
            self.free[node] += gpus
            self.on[node].remove(end)
            self.last_end[node] = max(self.on[node], default=0.0)

    def reserve(self, nodes: int, now: float) -> None:
        """Keep so many nodes free from the moment on at which they are all empty, at the soonest."""
        ends = np.where(np.isinf(self.reserved_from), np.maximum(self.last_end, now), math.inf)
        chosen = np.argpartition(ends, nodes - 1)[:nodes] if nodes < len(ends) else np.arange(len(ends))
        if nodes <= len(ends) and math.isfinite(start := float(ends[chosen].max())):
            self.reserved_from[chosen] = start


@dataclass
class _Play:
    trace: Trace
    home: Home
    policy: Policy
    now: float = 0.0
    queue: list[tuple[float, int]] = field(default_factory=list)  # (order, job)
    decisions: int = 0

    def __post_init__(self) -> None:
        count, home = len(self.trace), self.home
        self.start_s, self.rented = np.full(count, math.nan), np.zeros(count, dtype=bool)
        self.nodes = _Nodes(home)
        self.parts: dict[int, list[tuple[int, int]]] = {}
        self.pending: dict[int, Job] = {}
        self.running: dict[int, tuple[Job, ...]] = {}
        each = Resources(home.gpus)
        self.names = [f"home-{n}" for n in range(home.nodes)]
        rentable = tuple(f"{BURST}-{n}" for n in range(64))
        self.declared = (
            *(Node(name, (HOME,), each, ("IDLE",)) for name in self.names),
            *(Node(name, (BURST,), each, OFF) for name in rentable),
        )
        price = {"on-demand": 1.0}
        self.pools = (Pool(BURST, BURST, rentable, BURST, each, "", ("on-demand",), price, ("a",), 0.0, 0.0, math.inf),)
        self.limit_s = self.trace.duration_s if self.trace.limit_s is None else self.trace.limit_s
        self.hours = self.limit_s * self.trace.gpus / 3600
        self.order = self.trace.submit_s + np.array([home.step_back_s(one) for one in self.hours])

    def run(self) -> Played:
        trace, ends, asked, coming = self.trace, [], [], 0
        while coming < len(trace) or self.queue:
            now = min(
                trace.submit_s[coming] if coming < len(trace) else math.inf,
                ends[0][0] if ends else math.inf,
                asked[0] if asked and self.queue else math.inf,
            )
            if math.isinf(now):
                raise ValueError(f"{len(self.queue)} jobs of the trace never start: neither the home nodes nor the policy takes them")
            self.now, freed, ask = float(now), False, False
            while ends and ends[0][0] <= now:
                end, job = heapq.heappop(ends)
                self.nodes.end(self.parts.pop(job), end)
                del self.running[job]
                freed = True
            while asked and asked[0] <= now:
                heapq.heappop(asked)
                ask = True
            arrived = coming
            while coming < len(trace) and trace.submit_s[coming] <= now:
                insort(self.queue, (self.order[coming], coming))
                self.pending[coming] = self._job(coming)
                coming += 1
            if freed or arrived < coming:
                self._start(ends)
                ask |= any(job in self.pending for job in range(arrived, coming))
            if ask and self.queue:
                again = self._decide()
                if again is not None:
                    heapq.heappush(asked, again)
                if self.home.reserved:
                    self._start(ends)
        return Played(self.start_s, self.rented, self.decisions)

    def _job(self, number: int) -> Job:
        gpus, width = int(self.trace.gpus[number]), self.home.gpus
        nodes = max(1, -(-gpus // width))
        return Job(
            number, "", self.trace.user[number] if self.trace.user else "", "PENDING", float(self.trace.submit_s[number]), nodes,
            Resources(-(-gpus // nodes)), float(self.limit_s[number]), (HOME,), priority=0,
        )  # fmt: skip

    def _start(self, ends: list[tuple[float, int]]) -> None:
        """Begin what the nodes have room for, in order."""
        nodes, home, blocked, kept, started = self.nodes, self.home, set(), 0, set()
        nodes.reserved_from[:] = math.inf
        for _, number in self.queue:
            gpus = int(self.trace.gpus[number])
            if gpus in blocked and not kept and (gpus < home.gpus or self.hours[number] < home.reserve_gpu_hours):
                continue
            parts = nodes.fit(gpus, self.now, self.now + float(self.limit_s[number]))
            if parts is None:
                if not kept:
                    blocked.add(gpus)
                if kept < home.reserved and gpus >= home.gpus and self.hours[number] >= home.reserve_gpu_hours:
                    nodes.reserve(-(-gpus // home.gpus), self.now)
                    kept += 1
                continue
            end = self.now + float(self.trace.duration_s[number])
            nodes.begin(parts, end)
            heapq.heappush(ends, (end, number))
            job = self.pending.pop(number)
            self.parts[number], self.start_s[number] = parts, self.now
            until = self.now + float(self.limit_s[number])
            self.running[number] = tuple(
                Job(job.id, "", job.user, "RUNNING", job.submit_s, 1, Resources(used), job.time_limit_s, (HOME,), on=(self.names[node],),
                    start_s=self.now, end_s=until)
                for node, used in parts
            )  # fmt: skip
            started.add(number)
        if started:
            self.queue = [entry for entry in self.queue if entry[1] not in started]

    def _decide(self) -> float | None:
        """Ask the policy; what it rents for leaves the queue now. Returns when it wants to be asked again."""
        jobs = [part for parts in self.running.values() for part in parts]
        # the order of the queue is the scheduler's: the policy is told it by priorities
        jobs += [_with_priority(self.pending[number], -place) for place, (_, number) in enumerate(self.queue)]
        budget = Budget(math.inf, 0.0, 0.0, self.now + 30 * 86400)
        decision = decide(Snapshot(self.now, tuple(jobs), self.declared, self.pools, budget=budget), self.policy)
        self.decisions += 1
        rented = {number for launch in decision.launches for number in launch.jobs}
        for number in rented:
            self.start_s[number], self.rented[number] = self.now, True
            del self.pending[number]
        if rented:
            self.queue = [entry for entry in self.queue if entry[1] not in rented]
        moments = [wait.look_again_s for wait in decision.waits if wait.look_again_s and wait.job not in rented]
        return min((moment for moment in moments if moment > self.now), default=None)


def _with_priority(job: Job, priority: int) -> Job:
    if job.priority != priority:
        object.__setattr__(job, "priority", priority)  # this play's own objects; a copy each would be half of its time
    return job


def play(trace: Trace, home: Home, policy: Policy) -> Played:
    """Raises ValueError if some job can neither run at home nor be rented for."""
    return _Play(trace, home, policy).run()
