"""The rented side of a played trace: what `burst.decide` says is done here, and paid for. Pure.

`AtOnce`: renting starts at once and has no limit; what counts is GPU-hours. `Rented`: whole instances of a declared
Cloud. A launch may be refused (then the place cools down, as in the controller); it boots; an instance is paid for from
its launch to its end, for the minimum billing at least; one that the provider takes back loses its jobs' work since
their last checkpoint, and they go back into the queue; leases idle, are used again and are given back as the decisions
say, which are made once a round.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ironburst.burst import (
    Assign,
    CoolDown,
    Decision,
    Job,
    Launch,
    Lease,
    Node,
    Pool,
    Release,
    Resources,
    Widen,
    backoff,
    idle,
    release,
)
from ironburst.burst import idle_log as accounts
from ironburst.burst.cost import billed_s
from ironburst.replay.provider import Capacity, Cloud, taken_back_after_s

OFF, COMING = ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN"), ("CLOUD", "POWERING_UP")
JOINED, READY = ("CLOUD", "DRAIN", "IDLE"), ("CLOUD", "IDLE")
KEPT_S = 60.0  # a lease that was kept though its time was over is looked at again after this
AT_ONCE = 16  # of each size: where they aren't enough for one decision, larger ones are
SHOWN = 24  # free nodes of a pool in one snapshot: what one decision rents at most


@dataclass
class Fates:
    """What becomes of each job, while it is played: an array with one value a job."""

    start_s: np.ndarray  # the first time; NaN: not yet
    end_s: np.ndarray
    left_s: np.ndarray  # run time that is left, without what was saved
    rented: np.ndarray  # it ran on rented nodes, at last
    usd: np.ndarray
    pool: list[str]  # where it ran at last; empty: at home
    interruptions: np.ndarray

    @classmethod
    def of(cls, duration_s: np.ndarray) -> Fates:
        count, never = len(duration_s), np.full(len(duration_s), math.nan)
        return cls(
            never,
            never.copy(),
            duration_s.copy(),
            np.zeros(count, bool),
            np.zeros(count),
            [""] * count,
            np.zeros(count, np.int64),
        )

    def begins(self, number: int, now_s: float, pool: str) -> None:
        if math.isnan(self.start_s[number]):
            self.start_s[number] = now_s
        self.rented[number], self.pool[number] = bool(pool), pool


@dataclass(frozen=True)
class Bill:
    """One lease from its launch to its end. `usd` = `boot_usd` + `idle_usd` + what its jobs are charged.

    Of a prepaid lease these are shares of what its pool costs anyway.
    """

    lease: str
    pool: str
    zone: str
    market: str
    from_s: float
    to_s: float
    usd: float
    boot_usd: float
    idle_usd: float
    jobs: int
    interrupted: bool
    prepaid: bool


class Seen(NamedTuple):
    """The rented side as the policy sees it."""

    pools: tuple[Pool, ...]
    nodes: tuple[Node, ...]
    leases: tuple[Lease, ...] = ()
    cool_downs: tuple[CoolDown, ...] = ()
    jobs: tuple[Job, ...] = ()  # that run on leases


class AtOnce:
    """Any job that is rented for starts at once. `gpus`: of a node."""

    open, next_s = False, math.inf
    bills, prepaid_usd, refusals = (), 0.0, 0

    def __init__(self, fates: Fates, gpus: int):
        self.fates = fates
        self._ends: list[tuple[float, int]] = []
        pools, nodes = [], []
        for count in range(1, gpus + 1):  # an instance of any size, at the same price a GPU
            name, each = f"burst-{count}", Resources(count)
            names = tuple(f"{name}-{n}" for n in range(AT_ONCE))
            pools.append(
                Pool(
                    name,
                    name,
                    names,
                    name,
                    each,
                    "",
                    ("on-demand",),
                    {"on-demand": float(count)},
                    ("a",),
                    0.0,
                    0.0,
                    math.inf,
                )
            )
            nodes += [Node(each_name, (name,), each, OFF) for each_name in names]
        self._seen = Seen(tuple(pools), tuple(nodes))

    def advance(self, now_s: float) -> list[int]:
        return []

    def asks(self, now_s: float) -> bool:
        return False

    def seen(self, now_s: float) -> Seen:
        return self._seen

    def ended(self, now_s: float) -> list[int]:
        found = []
        while self._ends and self._ends[0][0] <= now_s:
            found.append(heapq.heappop(self._ends)[1])
        return found

    def left_queue(self, jobs: Iterable[int], now_s: float) -> None:
        pass

    def apply(self, decision: Decision, pending: dict[int, Job], now_s: float) -> list[int]:
        jobs = [number for launch in decision.launches for number in launch.jobs]
        for number in jobs:
            self.fates.begins(number, now_s, "burst")
            self.fates.end_s[number] = now_s + self.fates.left_s[number]
            heapq.heappush(self._ends, (float(self.fates.end_s[number]), number))
        return jobs

    def close(self, began_s: float, ended_s: float) -> None:
        pass


@dataclass(eq=False)
class _Lease:
    """A lease while it lives."""

    id: str
    launch: str
    node: str
    pool: Pool
    zone: str
    market: str
    usd_per_hour: float
    from_s: float
    committed_until_s: float
    waiting: list[int]  # jobs that count on it
    state: str = "coming"
    on: dict[int, int] = field(default_factory=dict)  # job: GPUs
    worked: bool = False
    idle_since_s: float | None = None
    busy_s: float = 0.0
    busy_from_s: float = 0.0
    joined_s: float = math.inf
    gpu_s: dict[int, float] = field(default_factory=dict)  # GPU-seconds used, by job
    look_s: float = math.inf
    _seen: Lease | None = None
    _told: tuple[object, ...] = ()  # what may change of it

    @property
    def prepaid(self) -> bool:
        return self.market in self.pool.prepaid_markets

    @property
    def free(self) -> int:
        return self.pool.each.gpus - sum(self.on.values())

    def seen(self) -> Lease:
        """One and the same object while nothing changes: much is remembered by identity."""
        told = self.state, tuple(self.waiting), self.committed_until_s, self.idle_since_s, self.worked
        if self._seen is None or told != self._told:
            self._told = told
            self._seen = Lease(
                self.id,
                self.launch,
                self.node,
                self.pool.name,
                self.zone,
                self.market,
                self.state,
                tuple(self.waiting),
                self.usd_per_hour,
                self.committed_until_s,
                self.idle_since_s,
                self.worked,
                self.from_s,
            )
        return self._seen


@dataclass(eq=False)
class _Run:
    """A job on leases."""

    number: int
    leases: list[_Lease]
    start_s: float
    end_s: float
    seen: Job


class Rented:
    """The leases of a Cloud while a trace is played. `bills`: of the leases that have ended; `refusals`: how many there
    were.
    """

    def __init__(self, fates: Fates, cloud: Cloud, begins_s: float, round_s: float):
        self.fates, self.cloud, self.round_s = fates, cloud, round_s
        self.capacity = Capacity(cloud, begins_s)
        self.declared = {pool.name: pool for pool in cloud.pools}
        self.accounts = {pool.name: accounts.IdleLog() for pool in cloud.pools}
        self.free = {pool.name: list(reversed(pool.nodes)) for pool in cloud.pools}  # the next one last
        self.leases: dict[str, _Lease] = {}  # by node, in the order of their launch
        self.runs: dict[int, _Run] = {}
        self.bills: list[Bill] = []
        self.refusals = self.launched = self._count = 0
        self.prepaid_usd = 0.0
        self._events: list[tuple[float, int, str, str]] = []  # (moment, number, what, lease or job)
        self._cool_downs: dict[
            tuple[str, str, str, int], tuple[CoolDown, int, float]
        ] = {}  # with strikes and since when
        self._ask_s, self._done = math.inf, list[int]()
        self._pools: dict[str, Pool] = {}  # as seen last
        self._nodes: dict[tuple[str, str], Node] = {}  # by name and state of its lease
        self._off = {name: Node(name, (pool.partition,), pool.each, OFF) for pool in cloud.pools for name in pool.nodes}

    # ---- what the loop asks
    @property
    def open(self) -> bool:
        """Something is still to come: jobs run, or leases that are paid for by the hour live."""
        return bool(self.runs) or any(not lease.prepaid for lease in self.leases.values())

    @property
    def next_s(self) -> float:
        """The next moment at which something happens here, or a decision is wanted."""
        return min(self._events[0][0] if self._events else math.inf, self._ask_s)

    def asks(self, now_s: float) -> bool:
        """Whether a decision was wanted by now; it is told once."""
        if now_s < self._ask_s:
            return False
        self._ask_s = math.inf
        return True

    def seen(self, now_s: float) -> Seen:
        pools, nodes = [], []
        mine: dict[str, list[_Lease]] = {pool.name: [] for pool in self.cloud.pools}
        for lease in self.leases.values():
            mine[lease.pool.name].append(lease)
        for pool in self.cloud.pools:
            account, leases = self.accounts[pool.name], mine[pool.name]
            if account.idle or account.away:
                account = accounts.tidied(account, {lease.id for lease in leases if lease.state == "ready"}, now_s)
                self.accounts[pool.name] = account
            free = self.free[pool.name][: -SHOWN - 1 : -1]
            names, known = (*[lease.node for lease in leases], *free), self._pools.get(pool.name)
            if known is None or known.nodes != names or known.idle_history is not account.history:
                known = self._pools[pool.name] = replace(pool, nodes=names, idle_history=account.history)
            pools.append(known)
            nodes += [self._node(lease) for lease in leases]
            nodes += [self._off[name] for name in free]
        leases = tuple([lease.seen() for lease in self.leases.values()])
        return Seen(
            tuple(pools), tuple(nodes), leases, self.cool_downs(now_s), tuple([run.seen for run in self.runs.values()])
        )

    def _node(self, lease: _Lease) -> Node:
        key = lease.node, lease.state
        if key not in self._nodes:
            states = {"coming": COMING, "joined": JOINED, "ready": READY}[lease.state]
            self._nodes[key] = Node(lease.node, (lease.pool.partition,), lease.pool.each, states)
        return self._nodes[key]

    def cool_downs(self, now_s: float) -> tuple[CoolDown, ...]:
        for place, (each, _, since_s) in list(self._cool_downs.items()):
            if each.until_s + backoff.FORGIVEN_AFTER * (each.until_s - since_s) < now_s:
                del self._cool_downs[place]
        return tuple(each for each, _, _ in self._cool_downs.values() if each.until_s > now_s)

    def advance(self, now_s: float) -> list[int]:
        """All that happens up to now. Returns the jobs that lost their nodes: they are to go back into the queue."""
        back: list[int] = []
        while self._events and self._events[0][0] <= now_s:
            at_s, _, what, name = heapq.heappop(self._events)
            if what == "end":
                if (run := self.runs.get(int(name))) and run.end_s == at_s:
                    self.fates.end_s[run.number], self.fates.left_s[run.number] = at_s, 0.0
                    self._leaves(run, at_s)
                    self._done.append(run.number)
                continue
            lease = self.leases.get(name.partition("/")[2])
            if lease is None or lease.id != name:
                continue
            if what == "joins":
                lease.state, lease.joined_s = "joined", at_s
                self._ask(at_s)
            elif what == "taken":
                back += self._taken(lease, at_s)
        return back

    def ended(self, now_s: float) -> list[int]:
        """The jobs whose work on leases was done since this was asked last."""
        found, self._done = self._done, []
        return found

    def left_queue(self, jobs: Iterable[int], now_s: float) -> None:
        """These jobs started at home: nothing rented waits for them any more."""
        jobs = set(jobs)
        for lease in self.leases.values():
            if not jobs.isdisjoint(lease.waiting):
                lease.waiting = [number for number in lease.waiting if number not in jobs]
                self._ask(now_s)

    def apply(self, decision: Decision, pending: dict[int, Job], now_s: float) -> list[int]:
        """Do what the decision says. Returns the jobs that start on leases now."""
        for assign in decision.assigns:
            self._assign(assign)
        for launch in decision.launches:
            self._launch(launch, now_s)
        started = [
            each.job for each in decision.widen if each.job in pending and self._start(each, pending[each.job], now_s)
        ]
        for back in decision.releases:
            self._release(back, now_s)
        self._look(now_s)
        return started

    def close(self, began_s: float, ended_s: float) -> None:
        """The play is over: what is prepaid ends, and is paid."""
        for lease in list(self.leases.values()):
            self._ended(lease, ended_s, interrupted=False)
        for pool in self.cloud.pools:
            prices = [pool.usd_per_hour[market] or 0.0 for market in pool.prepaid_markets if market in pool.markets]
            self.prepaid_usd += sum(prices[:1]) * len(pool.nodes) * (ended_s - began_s) / 3600

    # ---- what happens
    def _ask(self, at_s: float) -> None:
        """A decision is wanted, in the next round."""
        self._ask_s = min(self._ask_s, self.round_s * math.ceil(at_s / self.round_s - 1e-9))

    def _event(self, at_s: float, what: str, name: str) -> None:
        if math.isfinite(at_s):
            self._count += 1
            heapq.heappush(self._events, (at_s, self._count, what, name))

    def _assign(self, assign: Assign) -> None:
        for lease in self.leases.values():
            if lease.id in assign.leases:
                lease.committed_until_s = max(lease.committed_until_s, assign.committed_until_s)
                if assign.job not in lease.waiting:
                    lease.waiting.append(assign.job)

    def _launch(self, launch: Launch, now_s: float) -> None:
        pool = self.declared[launch.pool]
        zone = next((zone for zone in launch.zones if self._granted(pool, zone, launch, now_s)), None)
        if zone is None:
            self._ask(now_s + self.round_s)
            return
        self.launched += 1
        self.accounts[pool.name] = accounts.launched(self.accounts[pool.name], len(launch.nodes), now_s)
        for n, node in enumerate(launch.nodes):
            self.free[pool.name].remove(node)
            id = f"{self.launched}/{node}"
            self.leases[node] = _Lease(
                id,
                str(self.launched),
                node,
                pool,
                zone,
                launch.market,
                launch.usd_per_hour,
                now_s,
                launch.committed_until_s,
                list(launch.jobs),
            )
            self._event(now_s + pool.boot_s, "joins", id)
            self._event(
                now_s + taken_back_after_s(self.cloud, pool, launch.market, (self.launched << 8) + n), "taken", id
            )

    def _granted(self, pool: Pool, zone: str, launch: Launch, now_s: float) -> bool:
        place = pool.name, zone, launch.market
        if launch.market in pool.prepaid_markets or self.capacity.has(pool.instance_type, zone, launch.market, now_s):
            self._cool_downs = {each: value for each, value in self._cool_downs.items() if each[:3] != place}
            return True
        self.refusals += 1
        key = (*place, len(launch.nodes))
        strikes = self._cool_downs[key][1] + 1 if key in self._cool_downs else 1
        until_s = now_s + backoff.lasts_s(self.cloud.cool_down_s, strikes)
        self._cool_downs[key] = CoolDown(*key, until_s, "InsufficientInstanceCapacity"), strikes, now_s
        return False

    def _start(self, widen: Widen, job: Job, now_s: float) -> bool:
        there = [lease for node in widen.nodes if (lease := self.leases.get(node)) and lease.state != "coming"]
        mine = [lease for lease in there if lease.free >= job.each.gpus]
        if len(mine) < job.nodes:
            return False
        mine, number = mine[: job.nodes], job.id
        for lease in self.leases.values():
            if number in lease.waiting:
                lease.waiting.remove(number)
        for lease in mine:
            if not lease.on:
                self._used(lease, now_s)
            lease.state, lease.worked, lease.idle_since_s, lease.look_s = "ready", True, None, math.inf
            lease.on[number] = job.each.gpus
        end_s = now_s + float(self.fates.left_s[number])
        limit_s = job.time_limit_s or 0.0
        seen = Job(
            number,
            "",
            job.user,
            "RUNNING",
            job.submit_s,
            job.nodes,
            job.each,
            limit_s,
            (mine[0].pool.partition,),
            requeue=job.requeue,
            account=job.account,
            on=tuple(lease.node for lease in mine),
            start_s=now_s,
            end_s=now_s + limit_s,
        )
        self.runs[number] = _Run(number, mine, now_s, end_s, seen)
        self._event(end_s, "end", str(number))
        self.fates.begins(number, now_s, mine[0].pool.name)
        return True

    def _used(self, lease: _Lease, now_s: float) -> None:
        """Its first job of several comes."""
        lease.busy_from_s = now_s
        account = self.accounts[lease.pool.name]
        if lease.id in account.idle:
            self.accounts[lease.pool.name] = accounts.used(
                account, lease.id, self._terms(lease, now_s), lease.usd_per_hour, now_s
            )

    def _leaves(self, run: _Run, now_s: float) -> None:
        del self.runs[run.number]
        for lease in run.leases:
            gpus = lease.on.pop(run.number)
            lease.gpu_s[run.number] = lease.gpu_s.get(run.number, 0.0) + gpus * (now_s - run.start_s)
            if not lease.on:
                lease.busy_s += now_s - lease.busy_from_s
                lease.idle_since_s = now_s
                if not lease.prepaid:
                    pool = lease.pool.name
                    self.accounts[pool] = accounts.began(self.accounts[pool], lease.id, now_s)
                self._look_at(lease, now_s)

    def _taken(self, lease: _Lease, now_s: float) -> list[int]:
        """The provider takes it back. Its jobs lose what they did since their last checkpoint."""
        jobs = list(lease.on)
        every = lease.pool.checkpoint_s
        for number in jobs:
            run = self.runs[number]
            saved_s = every * math.floor((now_s - run.start_s) / every + 1e-9) if every else 0.0
            self.fates.left_s[number] -= saved_s
            self.fates.interruptions[number] += 1
            self._leaves(run, now_s)
        lost = set(lease.waiting)
        gang = [
            each
            for each in self.leases.values()
            if each.launch == lease.launch and each is not lease and lease.state == "coming"
        ]
        self._ended(lease, now_s, interrupted=True)
        for other in gang:  # a launch comes whole or not at all
            self._ended(other, now_s, interrupted=False)
        if lost:
            self._ask(now_s)
        return jobs

    def _release(self, release: Release, now_s: float) -> None:
        lease = self.leases.get(release.node)
        if lease is None or lease.id != release.lease or lease.on:
            return
        account = self.accounts[lease.pool.name]
        if lease.id in account.idle:
            terms = self._terms(lease, now_s)
            self.accounts[lease.pool.name] = accounts.given_back(account, lease.id, terms, lease.usd_per_hour, now_s)
        self._ended(lease, now_s, interrupted=False)

    def _ended(self, lease: _Lease, now_s: float, interrupted: bool) -> None:
        del self.leases[lease.node]
        self.free[lease.pool.name].append(lease.node)
        used_s, price = now_s - lease.from_s, lease.usd_per_hour / 3600
        usd = price * (used_s if lease.prepaid else billed_s(lease.pool, used_s))
        boot_usd = price * (min(lease.joined_s, now_s) - lease.from_s)
        gpu_s = sum(lease.gpu_s.values())
        for number, part in lease.gpu_s.items():
            self.fates.usd[number] += price * lease.busy_s * part / gpu_s if gpu_s else 0.0
        idle_usd = max(0.0, usd - boot_usd - price * lease.busy_s)
        self.bills.append(
            Bill(
                lease.id,
                lease.pool.name,
                lease.zone,
                lease.market,
                lease.from_s,
                now_s,
                usd,
                boot_usd,
                idle_usd,
                len(lease.gpu_s),
                interrupted,
                lease.prepaid,
            )
        )

    # ---- idle leases
    def _terms(self, lease: _Lease, now_s: float) -> idle.Terms:
        since_s = self.accounts[lease.pool.name].idle[lease.id]
        return idle.terms(lease.pool, lease.seen(), self.cool_downs(now_s), since_s, now_s)

    def _look_at(self, lease: _Lease, now_s: float) -> None:
        """When it is worth giving back; jobs in the queue may want one that costs nothing more at once."""
        history = self.accounts[lease.pool.name].history
        lease.look_s = release.look_again_s(lease.pool, lease.seen(), self.cool_downs(now_s), history)
        self._ask(now_s if lease.prepaid else max(now_s, lease.look_s))

    def _look(self, now_s: float) -> None:
        """After a decision: when the next one is wanted for the leases that idle."""
        for lease in self.leases.values():
            if lease.idle_since_s is not None and not lease.prepaid and lease.state == "ready":
                if lease.look_s <= now_s:
                    self._look_at(lease, now_s)
                    if lease.look_s <= now_s:  # kept for a job that is due
                        lease.look_s = now_s + KEPT_S
                self._ask(max(now_s + self.round_s, lease.look_s))
            elif not lease.worked and not lease.waiting:  # kept for a job that is due
                self._ask(now_s + KEPT_S)
