"""The rented side of a played trace in money: what `burst.decide` says is done here, and paid for. Pure.

Whole instances of a SimulatedCloud. A launch may be refused (then the place cools down, as in the controller); it
boots; an instance is paid for from its launch to its end, for the minimum billing at least; one that the provider takes
back loses its jobs' work since their last checkpoint, and they go back into the queue; leases idle, are used again and
are given back as the decisions say, which are made once a tick.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ironburst.burst import Assign, Decision, Job, Launch, Move, Pool, Release, Widen
from ironburst.replay.cool_downs import CoolDowns
from ironburst.replay.idle_logs import IdleLogs
from ironburst.replay.leases import LeasedRun, LiveLease
from ironburst.replay.outcome import Bill, Fates
from ironburst.replay.provider import Capacity, SimulatedCloud, taken_back_after_s
from ironburst.replay.sight import Sight
from ironburst.replay.view import RentedView

KEPT_S = 60.0  # a lease that was kept though its time was over is looked at again after this
LOOK_S = 600.0  # jobs that move are looked at again after this
SHOWN = 24  # free nodes of a pool in one snapshot, or as many as a job needs: what one decision rents at most


class _Event(NamedTuple):
    at_s: float
    number: int  # events of one moment happen in the order in which they were planned
    what: str  # a job "ends"; a lease "joins", or is "taken" back
    subject: str  # the job's number or the lease's id


class Rented:
    """The leases of a SimulatedCloud while a trace is played.

    `bills`: of the leases that have ended; `refusals`: how often there was no capacity;
    `prepaid_usd`: known when the play is over.
    """

    def __init__(self, fates: Fates, cloud: SimulatedCloud, begins_s: float, tick_s: float, most_nodes: int):
        """`most_nodes`: of one job."""
        self.fates, self.cloud, self.tick_s, self.now_s = fates, cloud, tick_s, begins_s
        self.bills: list[Bill] = []
        self.refusals, self.prepaid_usd = 0, 0.0
        self._capacity = Capacity(cloud, begins_s)
        self._cool_downs = CoolDowns(cloud.cool_down_s)
        self._idle_logs = IdleLogs(cloud.pools)
        self._declared = {pool.name: pool for pool in cloud.pools}
        self._leases: dict[str, LiveLease] = {}  # by node, in the order of their launch
        self._unused: set[LiveLease] = set()  # those without a job on them
        self._promised: dict[int, set[str]] = {}  # ids of the leases that wait for a job; some may have ended
        self._runs: dict[int, LeasedRun] = {}
        self._launches = self._planned = 0
        self._events: list[_Event] = []
        self._decision_s = math.inf  # when a decision is wanted
        self._kept_s = -math.inf  # when the last decision was, if it kept a lease whose time was over
        self._done: list[int] = []
        self._saving: set[int] = set()  # those of the jobs that run that save their work
        self._moved: list[int] = []  # jobs that left on demand for spot, and are back in the queue
        self._seen_pools: dict[str, Pool] = {}
        self._sight = Sight(cloud.pools, max(SHOWN, most_nodes))

    # ---- what the play asks

    @property
    def open(self) -> bool:
        """Something is still to come: jobs run, or leases that are paid for by the hour live."""
        return bool(self._runs) or any(not lease.prepaid for lease in self._leases.values())

    @property
    def next_s(self) -> float:
        """The next moment at which something happens here, or a decision is wanted."""
        return min(self._events[0].at_s if self._events else math.inf, self._decision_s)

    def advance(self, now_s: float) -> list[int]:
        """It is this moment: all that was to happen up to it does. Returns the jobs that lost their nodes."""
        self.now_s = now_s
        lost: list[int] = []
        while self._events and self._events[0].at_s <= now_s:
            at_s, _, what, subject = heapq.heappop(self._events)
            if what == "ends":
                self._run_ends(int(subject), at_s)
            elif lease := self._alive(subject):
                if what == "joins":
                    self._joins(lease, at_s)
                else:
                    lost += self._taken_back(lease, at_s)
        return lost

    def wants_decision(self) -> bool:
        """Whether a decision was wanted by now; it is reported once."""
        if self.now_s < self._decision_s:
            return False
        self._decision_s = math.inf
        return True

    def view(self) -> RentedView:
        """As the policy sees it now. What hasn't changed is the same object: much is remembered by identity."""
        seen = self._sight.now()
        self._idle_logs.tidy(self._alive, self.now_s)
        return RentedView(
            pools=tuple([self._seen_pool(pool, seen.names[pool.name]) for pool in self.cloud.pools]),
            offered=self.cloud.pools,
            nodes=seen.nodes,
            launchable=seen.launchable,
            leases=seen.leases,
            cool_downs=self._cool_downs.at(self.now_s),
            jobs=seen.jobs,
            jobs_on=self._sight.jobs_on,
        )

    def _seen_pool(self, pool: Pool, nodes: tuple[str, ...]) -> Pool:
        seen, history = self._seen_pools.get(pool.name), self._idle_logs.history(pool.name)
        if seen is None or seen.nodes is not nodes or seen.idle_history is not history:
            seen = self._seen_pools[pool.name] = replace(pool, nodes=nodes, idle_history=history)
        return seen

    def take_done(self) -> list[int]:
        """The jobs whose work on leases was done since this was asked last."""
        done, self._done = self._done, []
        return done

    def started_at_home(self, jobs: Iterable[int]) -> None:
        """Nothing rented waits for these jobs any more. Those that began right after a decision have what others were
        predicted to begin on.
        """
        if [lease for number in jobs for lease in self._dismiss(number)] or self._kept_s == self.now_s:
            self._want_decision(self.now_s)

    def apply(self, decision: Decision, pending: Mapping[int, Job]) -> list[int]:
        """Do what the decision says. Returns the jobs that start on leases now."""
        for assign in decision.assigns:
            self._assign(assign)
        for launch in decision.launches:
            self._launch(launch)
        started = [
            widen.job for widen in decision.widen if widen.job in pending and self._start(widen, pending[widen.job])
        ]
        for move in decision.moves:
            self._moves(move)
        for release in decision.releases:
            self._release(release)
        self._plan_looks(changed=bool(started or decision.launches or decision.releases))
        return started

    def take_moved(self) -> list[int]:
        """The jobs that were put back into the queue since this was asked last."""
        moved, self._moved = self._moved, []
        return moved

    def close(self, began_s: float, ended_s: float) -> None:
        """The play is over: what is prepaid ends, and is paid."""
        for lease in list(self._leases.values()):
            self._end(lease, ended_s, interrupted=False)
        for pool in self.cloud.pools:
            prices = [pool.usd_per_hour[market] or 0.0 for market in pool.prepaid_markets if market in pool.markets]
            self.prepaid_usd += sum(prices[:1]) * len(pool.nodes) * (ended_s - began_s) / 3600

    # ---- what is to come

    def _want_decision(self, at_s: float) -> None:
        """A decision is wanted, in the next tick."""
        self._decision_s = min(self._decision_s, self.tick_s * math.ceil(at_s / self.tick_s - 1e-9))

    def _plan(self, at_s: float, what: str, subject: str) -> None:
        if math.isfinite(at_s):
            self._planned += 1
            heapq.heappush(self._events, _Event(at_s, self._planned, what, subject))

    # ---- what the decision says

    def _assign(self, assign: Assign) -> None:
        for id in assign.leases:
            if lease := self._alive(id):
                lease.assign(assign.job, assign.committed_until_s)
                self._sight.changed(lease)
                self._promised.setdefault(assign.job, set()).add(id)

    def _launch(self, launch: Launch) -> None:
        pool, now_s = self._declared[launch.pool], self.now_s
        zone = next((zone for zone in launch.zones if self._granted(pool, zone, launch)), None)
        if zone is None:
            self._want_decision(now_s + self.tick_s)
            return
        self._launches += 1
        self._idle_logs.launched(pool.name, len(launch.nodes), now_s)
        for n, node in enumerate(launch.nodes):
            lease = self._leases[node] = LiveLease(
                id=f"{self._launches}/{node}",
                launch=str(self._launches),
                node=node,
                pool=pool,
                zone=zone,
                market=launch.market,
                usd_per_hour=launch.usd_per_hour,
                from_s=now_s,
                committed_until_s=launch.committed_until_s,
                waiting=list(launch.jobs),
                instance_type=launch.instance_type,
            )
            self._unused.add(lease)
            self._sight.launched(lease)
            for number in launch.jobs:
                self._promised.setdefault(number, set()).add(lease.id)
            if trace := self.cloud.spot_of(launch.market, zone):
                left_s = trace.goes_s(now_s) - now_s
            else:
                left_s = taken_back_after_s(
                    self.cloud, pool.of_type(launch.instance_type), launch.market, (self._launches << 8) + n
                )
            self._plan(now_s + pool.boot_s, "joins", lease.id)
            self._plan(now_s + left_s, "taken", lease.id)

    def _granted(self, pool: Pool, zone: str, launch: Launch) -> bool:
        market, place = launch.market, (pool.name, launch.instance_type, zone, launch.market)
        kind = launch.instance_type or pool.instance_type
        if market in pool.prepaid_markets or self._capacity.has(kind, zone, market, self.now_s):
            self._cool_downs.forget(place)
            return True
        self.refusals += 1
        self._cool_downs.refuse(place, len(launch.nodes), self.now_s)
        return False

    def _start(self, widen: Widen, job: Job) -> bool:
        """Start the job on its leases, if enough of them are there and have room."""
        now_s = self.now_s
        there = [lease for node in widen.nodes if (lease := self._leases.get(node)) and lease.state != "coming"]
        leases = [lease for lease in there if lease.free_gpus >= job.each.gpus][: job.nodes]
        if len(leases) < job.nodes:
            return False
        self._dismiss(job.id)
        for lease in leases:
            if not lease.on:
                self._unused.remove(lease)
                self._idle_logs.used(lease, self._cool_downs.at(now_s), now_s)
                self._sight.changed(lease)
            lease.begin(job.id, job.each.gpus, now_s)
        end_s = now_s + float(self.fates.left_s[job.id]) / leases[0].pool.speed
        run = self._runs[job.id] = LeasedRun.of(job, leases, now_s, end_s)
        self._sight.begins(run.seen)
        if job.saves_s is not None:
            self._saving.add(job.id)
        self._plan(end_s, "ends", str(job.id))
        self.fates.begins(job.id, now_s, leases[0].pool.name)
        return True

    def _dismiss(self, number: int) -> list[LiveLease]:
        """Nothing rented waits for this job any more. Returns the leases that did."""
        waiting = [lease for id in self._promised.pop(number, ()) if (lease := self._alive(id))]
        for lease in waiting:
            lease.dismiss(number)
            self._sight.changed(lease)
        return waiting

    def _moves(self, move: Move) -> None:
        """The job loses what it did since its last checkpoint: nothing says that it saves when it is told to."""
        if (run := self._runs.get(move.job)) and run.start_s == move.start_s:
            self._stopped(run, self.now_s)
            self._moved.append(move.job)
            self._want_decision(self.now_s + self.tick_s)

    def _release(self, release: Release) -> None:
        lease = self._alive(release.lease)
        if lease and not lease.on:
            self._idle_logs.released(lease, self._cool_downs.at(self.now_s), self.now_s)
            self._end(lease, self.now_s, interrupted=False)

    # ---- what happens

    def _alive(self, id: str) -> LiveLease | None:
        lease = self._leases.get(id.partition("/")[2])
        return lease if lease and lease.id == id else None

    def _joins(self, lease: LiveLease, at_s: float) -> None:
        lease.joins(at_s)
        self._sight.changed(lease)
        self._want_decision(at_s)

    def _run_ends(self, number: int, at_s: float) -> None:
        run = self._runs.get(number)
        if run and run.end_s == at_s:  # else it lost its nodes before
            self.fates.end_s[number], self.fates.left_s[number] = at_s, 0.0
            self._leaves(run, at_s)
            self._done.append(number)

    def _stopped(self, run: LeasedRun, at_s: float) -> None:
        """It has to be started again."""
        pool = run.leases[0].pool
        every_s = pool.checkpoint_s if run.seen.saves_s is None else run.seen.saves_s
        self.fates.left_s[run.number] -= run.saved_s(at_s, every_s) * pool.speed
        self._leaves(run, at_s)

    def _leaves(self, run: LeasedRun, at_s: float) -> None:
        del self._runs[run.number]
        self._sight.ends(run.seen)
        self._saving.discard(run.number)
        for lease in run.leases:
            lease.end(run.number, run.start_s, at_s)
            if not lease.on:
                self._unused.add(lease)
                self._sight.changed(lease)
                if not lease.prepaid:
                    self._idle_logs.began(lease, at_s)
                self._plan_look(lease, at_s)

    def _taken_back(self, lease: LiveLease, at_s: float) -> list[int]:
        """The provider ends it. Returns its jobs: they lose what they did since their last checkpoint."""
        jobs, waited_for = list(lease.on), bool(lease.waiting)
        for number in jobs:
            self.fates.interruptions[number] += 1
            self._stopped(self._runs[number], at_s)
        gang = [
            mate
            for mate in self._leases.values()
            if mate.launch == lease.launch and mate is not lease and lease.state == "coming"
        ]
        self._end(lease, at_s, interrupted=True)
        for mate in gang:  # a launch comes whole or not at all
            self._end(mate, at_s, interrupted=False)
        if waited_for:
            self._want_decision(at_s)
        return jobs

    def _end(self, lease: LiveLease, at_s: float, interrupted: bool) -> None:
        del self._leases[lease.node]
        self._unused.discard(lease)
        self._sight.ended(lease)
        for number, usd in lease.charges().items():
            self.fates.usd[number] += usd
        self.bills.append(lease.bill(at_s, interrupted))

    # ---- idle leases

    def _plan_look(self, lease: LiveLease, at_s: float) -> None:
        """When it is worth giving back; jobs in the queue may want one that costs nothing more at once."""
        lease.look_s = self._idle_logs.look_again_s(lease, self._cool_downs.at(at_s))
        self._want_decision(at_s if lease.prepaid else max(at_s, lease.look_s))

    def _plan_looks(self, changed: bool) -> None:
        """After a decision: when the next is wanted for leases that idle. `changed`: it launched (which may have been
        refused), gave leases back (whose names are free now), or started jobs (which leave what waited for them).
        """
        now_s, kept, wanted_s = self.now_s, False, math.inf
        for lease in self._unused:
            if lease.idle_since_s is not None and not lease.prepaid and lease.state == "ready":
                if lease.look_s <= now_s:
                    lease.look_s = self._idle_logs.look_again_s(lease, self._cool_downs.at(now_s))
                    if lease.look_s <= now_s:  # kept for a job that is due
                        lease.look_s, kept = now_s + KEPT_S, True
                wanted_s = min(wanted_s, max(now_s + self.tick_s, lease.look_s))
            elif not lease.worked and not lease.waiting:  # kept for a job that is due
                wanted_s = min(wanted_s, now_s + KEPT_S)
        if wanted_s < math.inf:
            self._want_decision(wanted_s)
        self._kept_s = now_s if kept else -math.inf
        if kept and changed:
            self._want_decision(now_s)
        if self._saving:  # they may move
            self._want_decision(now_s + LOOK_S)
