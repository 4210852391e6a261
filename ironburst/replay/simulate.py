"""A trace of jobs played through `burst.decide` on a declared cluster: the policy that the controller runs, and no
other.

The home scheduler is a plain one: jobs in the order of `order_s`, each as soon as its nodes have room, on the nodes
whose last job ends soonest after its own; the first few large ones keep nodes free for their earliest start.
ironburst.replay.rented has the rented side.

A trace that knows the users' time limits (`limit_s`) is played without knowing run times: the scheduler and the policy
see limits, and what was learned of them from the jobs that have ended. One that doesn't is played as if each limit were
the run time.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ironburst.burst import Budget, Job, Node, Policy, Resources, Snapshot, decide, runtimes
from ironburst.burst.snapshot import Experience
from ironburst.replay.provider import Cloud
from ironburst.replay.rented import AtOnce, Bill, Fates, Rented
from ironburst.replay.traces import Trace

HOME = "home"
UNLIMITED_S = (
    10 * 365 * 86400.0
)  # so long home takes a job without a time limit to run; the policy is told that it has none
LEAST_S = 1.0  # the time limit of a job that ran for no time, or past its limit
Progress = Callable[[int, int], None]


def step_back(gpu_hours: float) -> float:
    """Large jobs let smaller ones of up to a day later go first: as a scheduler's priority by size and age does it."""
    return 3600 * min(0.026 * gpu_hours, 25.0)


@dataclass(frozen=True)
class Home:
    """Owned nodes, and how their scheduler works. Times in seconds.

    `step_back_s`: by how much a job of so many GPU-hours steps back in the queue; `reserved`: how many waiting jobs of
    whole nodes and at least `reserve_gpu_hours` keep nodes free; `room_s`: what a free GPU counts when a node is chosen
    (fuller nodes first); `round_s`: the policy is asked once in such a time at most, as the controller does it.
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
    """What became of each job of the trace (arrays, one value a job, on its clock) and of the leases.

    `start_s`: the first time that it started; `end_s`: when it was done; `rented`: it ran on rented nodes (at last), in
    the pool `pool` (empty: at home); `usd`: its share of what the leases cost while jobs were on them; `interruptions`:
    how often it lost its nodes.
    `bills`: the leases, in the order of their end; `prepaid_usd`: for prepaid pools, used or not. `decisions`: how
    often the policy was asked; `refusals`: how often the provider had no capacity.
    """

    start_s: np.ndarray
    rented: np.ndarray
    decisions: int
    end_s: np.ndarray
    pool: tuple[str, ...]
    usd: np.ndarray
    interruptions: np.ndarray
    bills: tuple[Bill, ...] = ()
    prepaid_usd: float = 0.0
    refusals: int = 0

    @property
    def total_usd(self) -> float:
        """All that is paid."""
        return self.prepaid_usd + sum(bill.usd for bill in self.bills if not bill.prepaid)

    @property
    def idle_usd(self) -> float:
        """Of that: leases without a job on them after their boot, and prepaid nodes that nothing uses."""
        unused = self.prepaid_usd - sum(bill.usd - bill.boot_usd - bill.idle_usd for bill in self.bills if bill.prepaid)
        return unused + sum(bill.idle_usd for bill in self.bills if not bill.prepaid)

    @property
    def boot_usd(self) -> float:
        """Of that: leases that boot."""
        return sum(bill.boot_usd for bill in self.bills if not bill.prepaid)


class _Nodes:
    """Free GPUs of each node and the moment of its last end."""

    def __init__(self, home: Home):
        self.home, self.free = home, np.full(home.nodes, home.gpus)
        self.last_end = np.zeros(home.nodes)
        self.reserved_from = np.full(home.nodes, math.inf)
        self.on: list[list[float]] = [[] for _ in range(home.nodes)]  # ends

    def fit(self, gpus: int, now: float, end: float) -> list[tuple[int, int]] | None:
        """(node, GPUs) where a job could begin now; None: nowhere. Large ones take whole nodes, and a part of one for
        the rest.
        """
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


class _Play:
    def __init__(self, trace: Trace, home: Home, policy: Policy, cloud: Cloud | None, progress: Progress | None):
        self.trace, self.home, self.policy, self.progress = trace, home, policy, progress
        self.now, self.decisions = 0.0, 0
        self.queue: list[tuple[float, int]] = []  # (order, job)
        self.looks: list[tuple[float, int]] = []  # (when, at which job): what the last decision asked for
        self.came_s = math.inf  # when a job came that had to wait, since the last decision
        self.fates = fates = Fates.of(trace.duration_s)
        self.nodes = _Nodes(home)
        self.parts: dict[
            int, tuple[list[tuple[int, int]], float]
        ] = {}  # of a running job, and the end that it is expected to have
        self.pending: dict[int, Job] = {}
        self.running: dict[int, tuple[Job, ...]] = {}
        self.names = [f"home-{n}" for n in range(home.nodes)]
        self.resources = {gpus: Resources(gpus) for gpus in range(home.gpus + 1)}  # shared: looked up by identity
        self.declared = tuple(Node(name, (HOME,), self.resources[home.gpus], ("IDLE",)) for name in self.names)
        began_s = float(trace.submit_s[0]) if len(trace) else 0.0
        self.rented = Rented(fates, cloud, began_s, home.round_s) if cloud else AtOnce(fates, home.gpus)
        limit_s = trace.duration_s if trace.limit_s is None else trace.limit_s
        limit_s = np.where(limit_s < UNLIMITED_S, limit_s, UNLIMITED_S)  # NaN: none
        limit_s[limit_s <= 0] = LEAST_S
        self.learns = trace.limit_s is not None
        self.experience = Experience()
        self.on_leases: dict[int, Job] = {}
        # plain numbers: one of an array takes longer to look up
        self.gpus, self.durations, self.limits = trace.gpus.tolist(), trace.duration_s.tolist(), limit_s.tolist()
        self.gpu_hours = [gpus * limit_s / 3600 for gpus, limit_s in zip(self.gpus, self.limits, strict=True)]
        self.submit, self.most_gpus = trace.submit_s.tolist(), max(trace.gpus.tolist(), default=0)

    def run(self) -> Played:
        submit, ends, coming, count, rented = self.submit, [], 0, len(self.trace), self.rented
        while coming < count or self.queue or rented.open:
            now = min(
                submit[coming] if coming < count else math.inf,
                ends[0][0] if ends else math.inf,
                self._asks_s(),
                rented.next_s,
            )
            if math.isinf(now):
                most = max((self.gpus[number] for _, number in self.queue), default=0)
                few = f"{len(self.queue)} jobs of the trace never start, the largest of {most} GPUs"
                raise ValueError(f"{few}: neither the home nodes nor the policy takes them")
            self.now, freed, new = now, False, []
            while ends and ends[0][0] <= now:
                _, job = heapq.heappop(ends)
                self.nodes.end(*self.parts.pop(job))
                self._learn(job, self.running.pop(job)[0])
                freed = True
            for job in rented.advance(now):  # it lost its nodes
                self.limits[job] = max(LEAST_S, self.limits[job] - (self.durations[job] - self.fates.left_s[job]))
                self.durations[job] = float(self.fates.left_s[job])
                self._queue(job, eligible_s=now)
                new.append(job)
            while coming < count and submit[coming] <= now:
                self._queue(coming)
                new.append(coming)
                coming += 1
                if self.progress:
                    self.progress(coming, count)
            if freed or new:
                self._start(ends)
                if any(job in self.pending for job in new):
                    self.came_s = min(self.came_s, now)
            if rented.asks(now) or (self.queue and now >= self._asks_s()):
                if self._decide() and self.home.reserved:
                    self._start(ends)
        return self._played()

    def _asks_s(self) -> float:
        """When the policy is asked next: in the round after a job came that waits, or when it wants to look at one that
        still waits.
        """
        while self.looks and self.looks[0][1] not in self.pending:
            heapq.heappop(self.looks)
        if not self.queue:
            self.came_s = math.inf
        moment = min(self.came_s, self.looks[0][0] if self.looks else math.inf)
        return moment if math.isinf(moment) else math.ceil(moment / self.home.round_s) * self.home.round_s

    def _played(self) -> Played:
        fates, rented = self.fates, self.rented
        if len(self.trace):
            rented.close(self.submit[0], float(fates.end_s.max()))
        return Played(
            fates.start_s,
            fates.rented,
            self.decisions,
            fates.end_s,
            tuple(fates.pool),
            fates.usd,
            fates.interruptions,
            tuple(rented.bills),
            rented.prepaid_usd,
            rented.refusals,
        )

    def _queue(self, number: int, eligible_s: float | None = None) -> None:
        """Into the queue, in the scheduler's order."""
        job = self.pending[number] = self._job(number, eligible_s)
        if expected := self.learns and runtimes.expected_s(self.experience, [job], self.now):
            self.gpu_hours[number] = self.gpus[number] * expected[number] / 3600
        insort(self.queue, (self.submit[number] + self.home.step_back_s(self.gpu_hours[number]), number))

    def _learn(self, number: int, job: Job) -> None:
        if self.learns and not self.fates.interruptions[number]:
            self.experience = runtimes.learn(self.experience, job, self.durations[number])

    def _job(self, number: int, eligible_s: float | None) -> Job:
        gpus, width, requeue = self.gpus[number], self.home.gpus, self.trace.requeue
        nodes = max(1, -(-gpus // width))
        return Job(
            number,
            "",
            self._named(self.trace.user, number),
            "PENDING",
            self.submit[number],
            nodes,
            self.resources[-(-gpus // nodes)],
            self.limits[number] if self.limits[number] < UNLIMITED_S else None,
            (HOME,),
            priority=0,
            requeue=requeue is None or bool(requeue[number]),
            account=self._named(self.trace.queue, number),
            eligible_s=eligible_s,
        )

    @staticmethod
    def _named(names: tuple[str, ...] | None, number: int) -> str:
        return names[number] if names else ""

    def _start(self, ends: list[tuple[float, int]]) -> None:
        """Begin what the nodes have room for, in order."""
        nodes, home, kept, started = self.nodes, self.home, 0, set()
        gpus_of, limit_of, hours_of, fates = self.gpus, self.limits, self.gpu_hours, self.fates
        nodes.reserved_from[:] = math.inf
        # nodes only fill up in here: what asks for as many GPUs, or more, for as long as one that found no room finds
        # none, too
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
            end, until = self.now + self.durations[number], self.now + limit_s
            heapq.heappush(ends, (end, number))
            nodes.begin(parts, until)
            job = self.pending.pop(number)
            self.parts[number] = parts, until
            fates.begins(number, self.now, "")
            fates.end_s[number] = end
            alike: dict[int, list[str]] = {}
            for node, used in parts:
                alike.setdefault(used, []).append(self.names[node])
            self.running[number] = tuple(
                Job(
                    job.id,
                    "",
                    job.user,
                    "RUNNING",
                    job.submit_s,
                    len(on),
                    self.resources[used],
                    job.time_limit_s,
                    (HOME,),
                    on=tuple(on),
                    start_s=self.now,
                    end_s=until,
                    account=job.account,
                )
                for used, on in alike.items()
            )
            started.add(number)
        if started:
            self.queue = [entry for entry in self.queue if entry[1] not in started]
            self.rented.left_queue(started, self.now)

    def _decide(self) -> bool:
        """Ask the policy; what it rents for leaves the queue now. Whether any does."""
        for number in self.rented.ended(self.now):
            self._learn(number, self.on_leases.pop(number))
        seen = self.rented.seen(self.now)
        jobs = [part for parts in self.running.values() for part in parts]
        jobs += seen.jobs
        # the order of the queue is the scheduler's: the policy is told it by priorities
        jobs += [_with_priority(self.pending[number], -place) for place, (_, number) in enumerate(self.queue)]
        budget = Budget(math.inf, 0.0, 0.0, self.now + 30 * 86400)
        snapshot = Snapshot(
            self.now,
            tuple(jobs),
            self.declared + seen.nodes,
            seen.pools,
            seen.leases,
            seen.cool_downs,
            budget,
            self.experience,
        )
        decision = decide(snapshot, self.policy)
        self.decisions += 1
        rented = set(self.rented.apply(decision, self.pending, self.now))
        for number in rented:
            self.on_leases[number] = self.pending.pop(number)
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


def play(
    trace: Trace, home: Home, policy: Policy, cloud: Cloud | None = None, progress: Progress | None = None
) -> Played:
    """Play a trace on owned nodes and what the policy rents.

    `cloud`: the pools that may be rented, and how their provider behaves (ironburst.replay.provider); then all is
    counted in USD. None: renting starts at once and has no limit, and what is counted is GPU-hours. `progress`: called
    now and then with the jobs that have started and all jobs. Equal arguments give equal results. Raises ValueError if
    some job can neither run at home nor be rented for.
    """
    return _Play(trace, home, policy, cloud, progress).run()
