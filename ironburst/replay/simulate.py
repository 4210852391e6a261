"""A trace of jobs played through `burst.decide` on a declared cluster:
the policy that the controller runs, and no other.

The home scheduler is a plain one: jobs in the order of `step_back_s`, each as soon as its nodes have room, on the nodes
whose last job ends soonest after its own; the first few large ones keep nodes free for their earliest start.
ironburst.replay.rented has the rented side.

A trace that knows the users' time limits (`limit_s`) is played without knowing run times:
the scheduler and the policy see limits, and what was learned of them from the jobs that have ended. One that doesn't
is played as if each limit were the run time. Where the policy moves jobs by their deadlines, the trace's deadlines
count, and what its jobs save; else neither does.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import replace

from ironburst.burst import Budget, Decision, Job, Node, Policy, Snapshot, decide, refusals, sanitize, spot
from ironburst.burst.memory import SpotMarket
from ironburst.replay.at_once import AtOnce
from ironburst.replay.home import HOME, Home, HomeNodes, Parts
from ironburst.replay.jobs import Jobs
from ironburst.replay.known import Known
from ironburst.replay.outcome import Fates, Played
from ironburst.replay.provider import SimulatedCloud
from ironburst.replay.rented import Rented
from ironburst.replay.traces import Trace

Progress = Callable[[int, int], None]
Shown = Callable[[Snapshot], Snapshot]
ENDLESS = Budget(math.inf, 0.0, 0.0, 30 * 86400)
AT_ONCE = 10_000  # jobs that are looked at together


def play(
    trace: Trace,
    home: Home,
    policy: Policy | None,
    cloud: SimulatedCloud | None = None,
    progress: Progress | None = None,
    shown: Shown | None = None,
) -> Played:
    """Play a trace on owned nodes and what the policy rents (None: nothing).

    `cloud`: the pools that may be rented, and how their provider behaves (ironburst.replay.provider); then all is
    counted in USD. None: renting starts at once and has no limit, and what is counted is GPU-hours. `progress`: called
    now and then with the jobs that have come and all jobs. `shown`: what the policy sees of the site instead of the
    site itself, as a scheduler's adapter reads it. Equal arguments give equal results. Raises ValueError if
    some job can neither run at home nor be rented for.
    """
    return _Play(trace, home, policy, cloud, progress, shown).run()


class _Play:
    """A trace under way. Jobs are numbers: their places in the trace."""

    def __init__(
        self,
        trace: Trace,
        home: Home,
        policy: Policy | None,
        cloud: SimulatedCloud | None,
        progress: Progress | None,
        shown: Shown | None,
    ):
        self.home, self.policy, self.progress, self.shown = home, policy, progress, shown
        deadlines = policy is not None and policy.deadline_moves is not None
        self.jobs, self.nodes = Jobs(trace, home.gpus, deadlines), HomeNodes(home)
        self.fates = Fates.of(trace.duration_s)
        self.count = len(trace)
        began_s = self.jobs.submit_s[0] if self.count else 0.0
        self.most_gpus = max(self.jobs.gpus, default=0)
        most_nodes = -(-self.most_gpus // home.gpus)
        self.rented = (
            Rented(self.fates, cloud, began_s, home.tick_s, most_nodes) if cloud else AtOnce(self.fates, home.gpus)
        )
        self.now_s, self.submitted, self.decisions = 0.0, 0, 0
        self.queue: list[tuple[float, int]] = []  # (order, job)
        self.pending: dict[int, Job] = {}  # those in the queue, by number
        self.ends: list[tuple[float, int]] = []  # (moment, job) at home
        self.parts: dict[int, tuple[Parts, float]] = {}  # of a job at home, and the end that it is expected to have
        self.on_leases: dict[int, Job] = {}
        self.came_s = math.inf  # when a job came that had to wait, since the last decision
        self.not_rented: dict[int, str] = {}  # why, of late jobs, as it was said last
        self.looks: list[tuple[float, int]] = []  # (moment, at which job): what the last decision asked for
        self.names = [f"home-{n}" for n in range(home.nodes)]
        whole_node = self.jobs.resources[home.gpus]
        kinds = home.kinds or (None,)
        self.declared = tuple(
            Node(name, (HOME,), whole_node, ("IDLE",), gpu=kinds[n % len(kinds)]) for n, name in enumerate(self.names)
        )
        self.known = Known(self.declared)
        self.spot: tuple[SpotMarket, ...] = ()  # what was seen of it
        self.least_gpus = min(min(self.jobs.gpus, default=0), home.gpus)  # that any job needs on some node
        self.sound = shown is None and self._is_sound()

    def run(self) -> Played:
        """From moment to moment, until nothing is left to come."""
        while self.submitted < self.count or self.queue or self.rented.open:
            self.now_s = self._next_s()
            freed = self._end_runs()
            new = [*self._advance_rented(), *self._submit_due()]
            if freed or new:
                self._start_at_home()
                if any(number in self.pending for number in new):
                    self.came_s = min(self.came_s, self.now_s)
            if self._decision_is_due() and self._decide() and self.home.reserved:
                self._start_at_home()  # nodes that were kept free for a job that is rented for now
        return self._played()

    # ---- what happens, in the order in which it does at one moment

    def _next_s(self) -> float:
        """The next moment at which anything does. Raises ValueError if there is none."""
        moment = min(
            self.jobs.submit_s[self.submitted] if self.submitted < self.count else math.inf,
            self.ends[0][0] if self.ends else math.inf,
            self._asks_s(),
            self.rented.next_s,
        )
        if math.isinf(moment):
            most = max((self.jobs.gpus[number] for _, number in self.queue), default=0)
            few = f"{len(self.queue)} jobs of the trace never start, the largest of {most} GPUs"
            raise ValueError(f"{few}: neither the home nodes nor the policy takes them")
        return moment

    def _end_runs(self) -> bool:
        """Jobs at home that are done leave their nodes. Whether any did."""
        freed = False
        while self.ends and self.ends[0][0] <= self.now_s:
            _, number = heapq.heappop(self.ends)
            self.nodes.end(*self.parts.pop(number))
            self._learn(self.known.ends(number))
            freed = True
        return freed

    def _advance_rented(self) -> list[int]:
        """Leases and the jobs on them get to this moment. Returns the jobs that lost their nodes: they queue again."""
        lost = self.rented.advance(self.now_s)
        self._queue_again(lost)
        return lost

    def _queue_again(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.jobs.lose_nodes(number, float(self.fates.left_s[number]))
            self._enqueue(number, eligible_s=self.now_s)

    def _submit_due(self) -> list[int]:
        """Jobs that are submitted by now go into the queue. Returns them."""
        submit_s, count, first = self.jobs.submit_s, self.count, self.submitted
        while self.submitted < count and submit_s[self.submitted] <= self.now_s:
            self._enqueue(self.submitted)
            self.submitted += 1
            if self.progress:
                self.progress(self.submitted, count)
        return list(range(first, self.submitted))

    def _enqueue(self, number: int, eligible_s: float | None = None) -> None:
        """Into the queue, in the scheduler's order."""
        self.pending[number] = self.jobs.pending(number, self.now_s, eligible_s)
        order_s = self.jobs.submit_s[number] + self.home.step_back_s(self.jobs.gpu_hours[number])
        insort(self.queue, (order_s, number))

    def _learn(self, job: Job) -> None:
        if not self.fates.interruptions[job.id]:
            self.jobs.learn(job)

    # ---- the home scheduler

    def _start_at_home(self) -> None:
        """Begin what the nodes have room for, in order; the first large jobs without room keep nodes free."""
        nodes, home, now_s, kept, started = self.nodes, self.home, self.now_s, 0, set[int]()
        gpus_of, limit_of, hours_of = self.jobs.gpus, self.jobs.limit_s, self.jobs.gpu_hours
        if nodes.most_free < self.least_gpus:
            return
        nodes.reserve_none()
        # nodes only fill up in here: what asks for as many GPUs, or more,
        # for as long as one that found no room finds none, too
        no_room_s = [math.inf] * (self.most_gpus + 1)
        for _, number in self.queue:
            gpus, limit_s = gpus_of[number], limit_of[number]
            may_fit = limit_s < no_room_s[gpus]
            large = kept < home.reserved and gpus >= home.gpus and hours_of[number] >= home.reserve_gpu_hours
            if not (may_fit or large):
                continue
            parts = nodes.fit(gpus, now_s, now_s + limit_s) if may_fit else None
            if parts is not None:
                self._begin(number, parts)
                started.add(number)
                continue
            for more in range(gpus, len(no_room_s)):
                no_room_s[more] = min(no_room_s[more], limit_s if kept else 0.0)
            if large:
                nodes.reserve(-(-gpus // home.gpus), now_s)
                kept += 1
        if started:
            self.queue = [entry for entry in self.queue if entry[1] not in started]
            self.rented.started_at_home(started)

    def _begin(self, number: int, parts: Parts) -> None:
        """Start a job at home, on these nodes."""
        now_s, jobs = self.now_s, self.jobs
        end_s, expected_end_s = now_s + jobs.left_s[number], now_s + jobs.limit_s[number]
        heapq.heappush(self.ends, (end_s, number))
        self.nodes.begin(parts, expected_end_s)
        self.parts[number] = parts, expected_end_s
        self.fates.begins(number, now_s, "")
        self.fates.end_s[number] = end_s
        by_gpus: dict[int, list[str]] = {}
        for node, gpus in parts:
            by_gpus.setdefault(gpus, []).append(self.names[node])
        self.known.begins(number, jobs.running(self.pending.pop(number), by_gpus, now_s, expected_end_s))

    # ---- the policy

    def _asks_s(self) -> float:
        """When the policy is asked next: in the tick after a job came that waits,
        or when it wants to look at one that still waits.
        """
        while self.looks and self.looks[0][1] not in self.pending:
            heapq.heappop(self.looks)
        if not self.queue or self.policy is None:
            self.came_s = math.inf
        moment = min(self.came_s, self.looks[0][0] if self.looks else math.inf)
        return moment if math.isinf(moment) else math.ceil(moment / self.home.tick_s) * self.home.tick_s

    def _decision_is_due(self) -> bool:
        wants = self.rented.wants_decision() or (bool(self.queue) and self.now_s >= self._asks_s())
        return wants and self.policy is not None

    def _decide(self) -> bool:
        """Ask the policy; what it rents for leaves the queue now. Whether any does."""
        for number in self.rented.take_done():
            self._learn(self.on_leases.pop(number))
        assert self.policy is not None
        snapshot = self._snapshot()
        shown = self.shown(snapshot) if self.shown else snapshot
        decision = decide(shown, self.policy, explained=False, sound=self.sound)
        self.decisions += 1
        self.not_rented |= {each.job: each.code for each in decision.infeasible}
        self.not_rented |= {wait.job: wait.code for wait in decision.waits if wait.code in refusals.CODES}
        rented = set(self.rented.apply(decision, self.pending))
        self._queue_again(self.rented.take_moved())
        for number in rented:
            self.on_leases[number] = self.pending.pop(number)
        if rented:
            self.queue = [entry for entry in self.queue if entry[1] not in rented]
        self.came_s, self.looks = math.inf, self._looks_of(decision)
        return bool(rented)

    def _snapshot(self) -> Snapshot:
        view, known = self.rented.view(), self.known
        # the order of the queue is the scheduler's: the policy is told it by priorities
        waiting = tuple([self.pending[number] for _, number in self.queue])
        for place, job in enumerate(waiting):
            if job.priority != -place:
                object.__setattr__(job, "priority", -place)  # the play's own objects; copies would be half of its time
        placed = known.at_home + view.jobs
        snapshot = Snapshot(
            now_s=self.now_s,
            jobs=placed + waiting,
            nodes=known.nodes(view),
            pools=view.pools,
            leases=view.leases,
            cool_downs=view.cool_downs,
            budget=Budget(math.inf, 0.0, 0.0, month_ends_s=self.now_s + 30 * 86400),
            experience=self.jobs.experience,
        )
        if self.policy and self.policy.deadline_moves:
            self.spot = spot.seen(self.spot, snapshot)
            snapshot = replace(snapshot, spot=self.spot)
        return snapshot.knowing(waiting=waiting, placed=placed, **known.of(view))

    def _is_sound(self) -> bool:
        """Whether no snapshot of this play can have anything damaged: all that they are made of is looked at once."""
        view, count = self.rented.view(), self.count
        for first in range(0, max(count, 1), AT_ONCE):
            jobs = tuple(self.jobs.pending(number, 0.0) for number in range(first, min(first + AT_ONCE, count)))
            whole = Snapshot(0.0, jobs, (*self.declared, *view.nodes.values()), view.pools, budget=ENDLESS)
            if sanitize.sound(whole) != (whole, []):
                return False
        return True

    def _looks_of(self, decision: Decision) -> list[tuple[float, int]]:
        moments = [(wait.look_again_s, wait.job) for wait in decision.waits if wait.look_again_s is not None]
        looks = [look for look in moments if look[0] > self.now_s and look[1] in self.pending]
        heapq.heapify(looks)
        return looks

    def _played(self) -> Played:
        fates, rented = self.fates, self.rented
        if self.count:
            rented.close(self.jobs.submit_s[0], float(fates.end_s.max()))
        return Played(
            start_s=fates.start_s,
            rented=fates.rented,
            decisions=self.decisions,
            end_s=fates.end_s,
            pool=tuple(fates.pool),
            usd=fates.usd,
            interruptions=fates.interruptions,
            bills=tuple(rented.bills),
            prepaid_usd=rented.prepaid_usd,
            refusals=rented.refusals,
            not_rented={job: code for job, code in sorted(self.not_rented.items()) if not fates.rented[job]},
        )
