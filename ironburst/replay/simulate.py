"""A trace of jobs played through `burst.decide` on a declared cluster: the policy that the controller runs, and no other.

The home scheduler is a plain one: jobs in the order of `order_s`, each as soon as its nodes have room, on the nodes whose last job ends
soonest after its own; the first few large ones keep nodes free for their earliest start. Renting starts at once and has no limit.

A trace that knows the users' time limits (`limit_s`) is played without knowing run times: the scheduler and the policy see limits, and what
was learned of them from the jobs that have ended. One that doesn't is played as if each limit were the run time.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ironburst.burst import Budget, Job, Node, Policy, Pool, Resources, Snapshot, decide, runtimes
from ironburst.burst.snapshot import Experience
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
    least `reserve_gpu_hours` keep nodes free; `room_s`: what a free GPU counts when a node is chosen (fuller nodes
    first); `round_s`: the policy is asked once in such a time at most, as the controller does it.
    """

    nodes: int
    gpus: int = 8
    step_back_s: Callable[[float], float] = step_back
    reserved: int = 4
    reserve_gpu_hours: float = 310.0
    room_s: float = 15.0
    round_s: float = 10.0


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
    looks: list[tuple[float, int]] = field(default_factory=list)  # (when, at which job): what the last decision asked for
    came_s: float = math.inf  # when a job came that had to wait, since the last decision
    decisions: int = 0

    def __post_init__(self) -> None:
        count, home = len(self.trace), self.home
        self.start_s, self.rented = np.full(count, math.nan), np.zeros(count, dtype=bool)
        self.nodes = _Nodes(home)
        self.parts: dict[int, tuple[list[tuple[int, int]], float]] = {}  # of a running job, and the end that it is expected to have
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
        self.most_gpus = int(self.trace.gpus.max(initial=0))
        self.learns = self.trace.limit_s is not None
        self.experience = Experience()
        self.rented_ends: list[tuple[float, int, Job]] = []
        # plain numbers: one of an array takes longer to look up
        self.gpus, self.durations, self.limits = self.trace.gpus.tolist(), self.trace.duration_s.tolist(), self.limit_s.tolist()
        self.gpu_hours = [gpus * limit_s / 3600 for gpus, limit_s in zip(self.gpus, self.limits, strict=True)]
        self.resources = {gpus: Resources(gpus) for gpus in range(home.gpus + 1)}  # shared: looked up by identity
        self.submit = self.trace.submit_s.tolist()

    def run(self) -> Played:
        submit, ends, coming, count = self.submit, [], 0, len(self.trace)
        while coming < count or self.queue:
            now = min(
                submit[coming] if coming < count else math.inf,
                ends[0][0] if ends else math.inf,
                self._asks_s(),
            )
            if math.isinf(now):
                raise ValueError(f"{len(self.queue)} jobs of the trace never start: neither the home nodes nor the policy takes them")
            self.now, freed = now, False
            while ends and ends[0][0] <= now:
                _, job = heapq.heappop(ends)
                self.nodes.end(*self.parts.pop(job))
                self._learn(job, self.running.pop(job)[0])
                freed = True
            arrived = coming
            while coming < count and submit[coming] <= now:
                job = self.pending[coming] = self._job(coming)
                if expected := self.learns and runtimes.expected_s(self.experience, [job], now):
                    self.gpu_hours[coming] = self.gpus[coming] * expected[coming] / 3600
                insort(self.queue, (submit[coming] + self.home.step_back_s(self.gpu_hours[coming]), coming))
                coming += 1
            if freed or arrived < coming:
                self._start(ends)
                if any(job in self.pending for job in range(arrived, coming)):
                    self.came_s = min(self.came_s, now)
            if self.queue and now >= self._asks_s() and self._decide() and self.home.reserved:
                self._start(ends)
        return Played(self.start_s, self.rented, self.decisions)

    def _asks_s(self) -> float:
        """When the policy is asked next: in the round after a job came that waits, or when it wants to look at one that still waits."""
        while self.looks and self.looks[0][1] not in self.pending:
            heapq.heappop(self.looks)
        if not self.queue:
            self.came_s = math.inf
        moment = min(self.came_s, self.looks[0][0] if self.looks else math.inf)
        return moment if math.isinf(moment) else math.ceil(moment / self.home.round_s) * self.home.round_s

    def _learn(self, number: int, job: Job) -> None:
        if self.learns:
            self.experience = runtimes.learn(self.experience, job, self.durations[number])

    def _job(self, number: int) -> Job:
        gpus, width = self.gpus[number], self.home.gpus
        nodes = max(1, -(-gpus // width))
        return Job(
            number, "", self._named(self.trace.user, number), "PENDING", self.submit[number], nodes,
            self.resources[-(-gpus // nodes)], self.limits[number], (HOME,), priority=0,
            account=self._named(self.trace.queue, number),
        )  # fmt: skip

    @staticmethod
    def _named(names: tuple[str, ...] | None, number: int) -> str:
        return names[number] if names else ""

    def _start(self, ends: list[tuple[float, int]]) -> None:
        """Begin what the nodes have room for, in order."""
        nodes, home, kept, started = self.nodes, self.home, 0, set()
        gpus_of, limit_of, hours_of = self.gpus, self.limits, self.gpu_hours
        nodes.reserved_from[:] = math.inf
        # nodes only fill up in here: what asks for as many GPUs, or more, for as long as one that found no room finds none, too
        no_room = [math.inf] * (self.most_gpus + 1)
        for _, number in self.queue:
            gpus, limit_s = gpus_of[number], limit_of[number]
            large = kept < home.reserved and gpus >= home.gpus and hours_of[number] >= home.reserve_gpu_hours
            if limit_s >= no_room[gpus] and not large:
                continue
            parts = nodes.fit(gpus, self.now, self.now + limit_s) if limit_s < no_room[gpus] else None
            if parts is None:
                for more in range(gpus, len(no_room)):
                    no_room[more] = min(no_room[more], limit_s if kept else 0.0)
                if large:
                    nodes.reserve(-(-gpus // home.gpus), self.now)
                    kept += 1
                continue
            heapq.heappush(ends, (self.now + self.durations[number], number))
            until = self.now + limit_s
            nodes.begin(parts, until)
            job = self.pending.pop(number)
            self.parts[number], self.start_s[number] = (parts, until), self.now
            alike: dict[int, list[str]] = {}
            for node, used in parts:
                alike.setdefault(used, []).append(self.names[node])
            self.running[number] = tuple(
                Job(job.id, "", job.user, "RUNNING", job.submit_s, len(on), self.resources[used], job.time_limit_s, (HOME,), on=tuple(on),
                    start_s=self.now, end_s=until, account=job.account)
                for used, on in alike.items()
            )  # fmt: skip
            started.add(number)
        if started:
            self.queue = [entry for entry in self.queue if entry[1] not in started]

    def _decide(self) -> bool:
        """Ask the policy; what it rents for leaves the queue now. Whether it rents for any."""
        while self.rented_ends and self.rented_ends[0][0] <= self.now:
            self._learn(*heapq.heappop(self.rented_ends)[1:])
        jobs = [part for parts in self.running.values() for part in parts]
        # the order of the queue is the scheduler's: the policy is told it by priorities
        jobs += [_with_priority(self.pending[number], -place) for place, (_, number) in enumerate(self.queue)]
        budget = Budget(math.inf, 0.0, 0.0, self.now + 30 * 86400)
        snapshot = Snapshot(self.now, tuple(jobs), self.declared, self.pools, budget=budget, experience=self.experience)
        decision = decide(snapshot, self.policy)
        self.decisions += 1
        rented = {number for launch in decision.launches for number in launch.jobs}
        for number in rented:
            self.start_s[number], self.rented[number] = self.now, True
            heapq.heappush(self.rented_ends, (self.now + self.durations[number], number, self.pending.pop(number)))
        if rented:
            self.queue = [entry for entry in self.queue if entry[1] not in rented]
        moments = [(wait.look_again_s, wait.job) for wait in decision.waits if wait.look_again_s is not None]
        self.came_s = math.inf
        self.looks = [look for look in moments if look[0] > self.now and look[1] in self.pending]
        heapq.heapify(self.looks)
        return bool(rented)


def _with_priority(job: Job, priority: int) -> Job:
    if job.priority != priority:
        object.__setattr__(job, "priority", priority)  # this play's own objects; a copy each would be half of its time
    return job


def play(trace: Trace, home: Home, policy: Policy) -> Played:
    """Raises ValueError if some job can neither run at home nor be rented for."""
    return _Play(trace, home, policy).run()
