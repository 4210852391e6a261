"""Where a job that is worth renting for can go: what is expected to cost least to bring it to its end, on nodes that
are rented already (only what they are kept longer for it counts) or on new ones. Keeps count while one decision is
made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from ironburst.burst import explain
from ironburst.burst.cost import boot_s, on_nodes_s, to_completion_usd
from ironburst.burst.decision import Assign, Launch
from ironburst.burst.eligibility import in_time, not_in_pool, not_in_time, not_on_market
from ironburst.burst.headroom import Charge, Headroom, charges, named
from ironburst.burst.policy import Policy
from ironburst.burst.snapshot import CoolDown, Job, Lease, Node, Pool, Resources, Snapshot

TOLD = 3  # offers of which a waiting job's reason says what is in the way
Offer = tuple[float, Pool, str]  # USD per node-hour, pool, market


@dataclass
class Slot:
    """A node that is rented, or that this decision rents."""

    node: str
    pool: Pool
    market: str
    zone: str
    free: Resources  # what neither a job on it nor one that waits for it uses
    committed_until_s: float
    usd_per_hour: float
    account: str = ""  # who pays for it
    lease: str = ""  # empty: planned by this decision
    launch: int = -1  # index of the planned launch
    coming: bool = False
    ready_s: float = 0.0  # when it can take a job
    busy_until_s: float = 0.0  # jobs keep it at least so long, as far as is known


@dataclass(frozen=True)
class Obstacle:
    """Why an offer is closed for now."""

    code: str
    text: str
    look_again_s: float | None = None


@dataclass(frozen=True)
class Refusal:
    """What is in the way of the cheapest offers, in their order. Thousands of jobs share one."""

    obstacles: tuple[Obstacle, ...]

    @cached_property
    def codes(self) -> tuple[str, ...]:
        return tuple(each.code for each in self.obstacles)

    @cached_property
    def text(self) -> str:
        return "; ".join(each.text for each in self.obstacles)

    @cached_property
    def look_again_s(self) -> float | None:
        return min((each.look_again_s for each in self.obstacles if each.look_again_s is not None), default=None)


@dataclass
class _Ranked:
    """Offers for jobs that run about as long: what is expected to cost least to their end first."""

    all: list[Offer]
    open: list[Offer]  # those whose pools had names enough when last looked at
    # after so many launches, what was in the way of one of these jobs, and is so of all of them, whatever their limits
    refused: tuple[int, Refusal] | None = None


@dataclass
class _Offers:
    """Offers for jobs that are alike in all that an offer looks at, but the time."""

    all: list[Offer]  # the cheapest hour first
    longest_s: float  # time limit up to which all of them take a job
    boots: list[tuple[float, float]]  # (boot, longest run), soonest first
    nodes: int
    alike: bool  # the cheapest hour is the cheapest to the end, however long the job
    allowed: frozenset[tuple[str, str]]  # (pool, market) of them
    ranked: dict[int, _Ranked] = field(default_factory=dict)  # by the magnitude of the run time

    @classmethod
    def of(cls, job: Job, snapshot: Snapshot, policy: Policy) -> _Offers:
        found = [
            (pool.usd_per_hour[market] or 0.0, pool, market)
            for pool in snapshot.pools
            if not not_in_pool(job, pool, however_long=True)
            for market in pool.markets
            if not not_on_market(job, pool, market, policy)
        ]
        found.sort(key=lambda offer: (0.0 if offer[2] in offer[1].prepaid_markets else offer[0], _rank(offer)))
        longest_s = min((pool.max_run_s for _, pool, _ in found), default=0.0)
        boots = sorted((pool.boot_s, pool.max_run_s) for _, pool, _ in found)
        terms = {
            (
                boot_s(pool),
                pool.min_billing_s,
                pool.billing_increment_s,
                pool.checkpoint_s,
                pool.interruptions_per_hour.get(market, 0.0),
            )
            for _, pool, market in found
            if market not in pool.prepaid_markets
        }
        allowed = frozenset((pool.name, market) for _, pool, market in found)
        return cls(found, longest_s, boots, job.nodes, len(terms) <= 1, allowed)

    def by_cost(self, run_s: float) -> _Ranked:
        """For run times of this magnitude (a power of two): costs are compared at its middle."""
        magnitude = 0 if self.alike else math.frexp(run_s)[1] if math.isfinite(run_s) else 64
        if magnitude not in self.ranked:
            offers = self.all
            if not self.alike:
                middle_s = 0.75 * 2.0**magnitude
                costs = {
                    (pool.name, market): to_completion_usd(pool, market, self.nodes, middle_s)
                    for _, pool, market in self.all
                }
                offers = sorted(self.all, key=lambda offer: (costs[offer[1].name, offer[2]], _rank(offer)))
            self.ranked[magnitude] = _Ranked(offers, offers)
        return self.ranked[magnitude]


@dataclass
class Renting:
    """The rentable side of a snapshot while one decision is made: slots, free node names, money left, what is decided
    so far.
    """

    snapshot: Snapshot
    policy: Policy
    funds: Headroom
    slots: list[Slot]
    names: dict[str, list[str]]  # by pool: nodes that can be launched
    on: Mapping[str, Sequence[Job]] = field(default_factory=dict)  # the jobs on each node
    expected_s: Mapping[int, float] = field(
        default_factory=dict
    )  # run times by job id, where more is known than the limit
    launches: list[Launch] = field(default_factory=list)
    _shapes: dict[tuple[object, ...], _Offers] = field(default_factory=dict)  # of jobs that are alike
    _asked: tuple[Job, _Offers, _Ranked, list[Offer]] | None = (
        None  # the last answer: a job's offers are asked for again and again
    )
    _full: dict[tuple[str, int, int], Obstacle] = field(default_factory=dict)
    # slots with room, by pool and market, then by zone and launch
    _groups: dict[tuple[str, str], dict[tuple[str, int], list[Slot]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.taken = 0  # how often a slot was given to a job
        self.most = max(map(len, self.names.values()), default=0)  # free to rent in one pool
        self.there = [slot for slot in self.slots if not slot.coming]
        self.prepaid = [pool for pool in self.snapshot.pools if pool.prepaid_markets]
        for slot in self.slots:
            self._group(slot)

    @classmethod
    def of(cls, snapshot: Snapshot, policy: Policy, run_s: Mapping[int, float] | None = None) -> Renting:
        pools = {pool.name: pool for pool in snapshot.pools}
        nodes = {node.name: node for node in snapshot.nodes}
        pending = {job.id: job for job in snapshot.jobs if job.pending} if snapshot.leases else {}
        on = jobs_on(snapshot.jobs) if snapshot.leases else {}
        slots = []
        for lease in snapshot.leases:
            if lease.pool in pools and usable(lease, nodes.get(lease.node)):
                slots.append(_slot(lease, pools[lease.pool], on, pending, snapshot.now_s))
        leased = {lease.node for lease in snapshot.leases}
        launchable = {node.name for node in snapshot.nodes if node.launchable}
        names = {pool.name: [n for n in pool.nodes if n in launchable and n not in leased] for pool in snapshot.pools}
        return cls(snapshot, policy, Headroom(snapshot.budget), slots, names, on, run_s or {})

    def infeasible(self, job: Job) -> list[tuple[str, str]]:
        """Why no pool and market can ever take it, one reason a pool; empty if one can."""
        if (offers := self.options(job)) and not self.funds.never(
            job.account, job.nodes * offers[0][0], self._seconds(job, offers[0][1])
        ):
            return []
        if job.deadline_s is not None and any(len(group) >= job.nodes for group in self._with_room(job)):
            return []
        reasons = []
        for pool in self.snapshot.pools:
            if reason := not_in_pool(job, pool) or not_in_time(job, pool, self.snapshot.now_s):
                reasons.append(reason)
                continue
            markets = [not_on_market(job, pool, market, self.policy) for market in pool.markets]
            if not all(markets):
                if (over := self.funds.never(job.account, *self._least_cost(job, pool))) is None:
                    return []
                ceiling, least = over
                reasons.append(
                    (
                        "over_budget",
                        f"renting for it in pool {pool.name} costs at least {explain.usd(least)} a {ceiling.kind}, "
                        f"more than the whole of {named(ceiling)}",
                    )
                )
                continue
            reasons.append(next(reason for reason in markets if reason))
        return reasons or [("no_pool", "no burst pool is declared")]

    def options(self, job: Job) -> list[Offer]:
        """(USD per hour, pool, market) that may take it: what is expected to cost least to its end first. Of equal ones
        prepaid before spot before on demand, then in the declared order.
        """
        return self._offers(job)[2]

    def allowed(self, job: Job) -> frozenset[tuple[str, str]]:
        """(pool, market) of `options`; one and the same set for jobs that are alike."""
        alike, ranked, offers = self._offers(job)
        return alike.allowed if offers is ranked.all else frozenset((pool.name, market) for _, pool, market in offers)

    def least_usd(self, job: Job) -> float:
        """What renting for it is expected to cost to its end, at the best offer; infinite without any."""
        for _, pool, market in self.options(job):
            if market not in pool.prepaid_markets or len(self.names[pool.name]) >= job.nodes:
                return to_completion_usd(pool, market, job.nodes, self._run_s(job))
        return math.inf

    def costs_nothing_more(self, job: Job, start_s: float) -> bool:
        """Whether a prepaid node could take it now, or will have booted before `start_s`."""
        if not self.prepaid:
            return False
        now, reserved = self.snapshot.now_s, {pool.name for pool in self.prepaid}
        for _, pool, market in self.options(job):
            if pool.name in reserved and market in pool.prepaid_markets:
                if len(self.names[pool.name]) >= job.nodes and now + boot_s(pool) < start_s:
                    return True
                groups = self._groups.get((pool.name, market), {}).values()
                if any(
                    sum(job.each.within(slot.free) and slot.ready_s < start_s for slot in group) >= job.nodes
                    for group in groups
                ):
                    return True
        return False

    def _run_s(self, job: Job) -> float:
        """How long it is expected to run: its limit, where nothing better is known."""
        limit_s = math.inf if job.time_limit_s is None else job.time_limit_s
        return self.expected_s.get(job.id, limit_s)

    def soonest_s(self, job: Job) -> float:
        """Declared (so longest) boot time of the offer that is there first; 0 without any."""
        limit = job.time_limit_s or 0.0
        return next((boot for boot, most in self._offers(job)[0].boots if limit <= most), 0.0)

    def _offers(self, job: Job) -> tuple[_Offers, _Ranked, list[Offer]]:
        """Those of jobs like it, in the order for its run time, and of these the ones that may take it."""
        if self._asked is None or self._asked[0] is not job:
            shape = (job.gpu_type, job.each, job.nodes, job.batch, job.requeue, job.data, job.licences, job.fabric)
            alike = self._shapes.get(shape)
            if alike is None:
                alike = self._shapes[shape] = _Offers.of(job, self.snapshot, self.policy)
            limit = job.time_limit_s or 0.0
            ranked = alike.by_cost(self._run_s(job))
            offers = (
                ranked.all
                if limit <= alike.longest_s
                else [offer for offer in ranked.all if limit <= offer[1].max_run_s]
            )
            if job.deadline_s is not None:
                offers = [offer for offer in offers if in_time(job, offer[1], self.snapshot.now_s)]
            self._asked = job, alike, ranked, offers
        return self._asked[1:]

    def reuse(self, job: Job, dearer: bool = False) -> tuple[list[Slot], Assign | None] | Obstacle | None:
        """Slots with room for all of the job's nodes, in one pool, zone and market: those that are kept longer for it
        at the least cost. None: there are none, or (unless `dearer`) new nodes are expected to cost less.
        """
        payer = self._payer(
            job
        )  # a node is shared by jobs of one payer only; who takes an unused one over pays from then on
        found = []
        for group in self._with_room(job):
            mine = [slot for slot in group if slot.account == payer or slot.free == slot.pool.each]
            if len(mine) >= job.nodes:
                chosen = sorted(
                    mine, key=lambda slot: (self._longer_usd(slot, job), slot.coming, slot.free.gpus, slot.node)
                )[: job.nodes]
                usd = sum(self._longer_usd(slot, job) for slot in chosen)
                found.append((usd, chosen[-1].coming, chosen[0].launch, chosen[0].usd_per_hour, chosen))
        short: Obstacle | None = None
        for longer_usd, _, _, _, chosen in sorted(found, key=lambda each: each[:4]):
            if not dearer and longer_usd > self._new_usd(job):
                break
            until = self._until(job, chosen[0].pool, boot=any(slot.coming for slot in chosen))
            longer = [self._charges(job, slot.usd_per_hour, until, slot) for slot in chosen]
            usd, asked = sum(added.usd for added, *_ in longer), list(chain.from_iterable(longer))
            if obstacle := self._too_expensive(asked, "keeping the rented nodes longer for it"):
                short = obstacle
                continue
            self.funds.take(asked)
            for slot in chosen:
                slot.busy_until_s = max(slot.busy_until_s, self._ends_s(slot, job))
                slot.account, slot.committed_until_s = payer, max(slot.committed_until_s, until)
                self._take(slot, job)
            if chosen[0].launch >= 0:
                self._share(chosen[0].launch, job, until, usd)
                return chosen, None
            reason = f"rented already, with room for it: {explain.listed(slot.node for slot in chosen)}"
            return chosen, Assign(job.id, tuple(slot.lease for slot in chosen), until, usd, reason, payer)
        return short

    def _ends_s(self, slot: Slot, job: Job) -> float:
        """When the job is expected to end there."""
        pool = slot.pool
        took_s, again = on_nodes_s(
            self._run_s(job), job.nodes, pool.interruptions_per_hour.get(slot.market, 0.0), pool.checkpoint_s
        )
        return slot.ready_s + took_s + (again * boot_s(pool) if again else 0.0)

    def _longer_usd(self, slot: Slot, job: Job) -> float:
        """What it costs that the slot is kept for the job, beyond the time for which other jobs keep it."""
        if slot.market in slot.pool.prepaid_markets:
            return 0.0
        longer_s = self._ends_s(slot, job) - max(slot.busy_until_s, slot.ready_s)
        return slot.usd_per_hour * max(0.0, longer_s) / 3600

    def _new_usd(self, job: Job) -> float:
        """What it is expected to cost on new nodes, at the best offer that is open now; infinite if there is none."""
        for _, pool, market in self.options(job):
            if len(self.names[pool.name]) >= job.nodes and any(
                not self._cool_down(pool.name, z, market, job.nodes) for z in pool.zones
            ):
                return to_completion_usd(pool, market, job.nodes, self._run_s(job))
        return math.inf

    def _with_room(self, job: Job) -> Iterator[list[Slot]]:
        """Slots that can take a part of the job, by pool, market, zone and launch."""
        if not self._groups:
            return
        now, limit, alike = self.snapshot.now_s, job.time_limit_s or 0.0, self._offers(job)[0]
        allowed = alike.allowed
        if limit > alike.longest_s:
            allowed = {(pool.name, market) for _, pool, market in alike.all if limit <= pool.max_run_s}
        for offer, groups in self._groups.items():
            if offer in allowed:
                for group in groups.values():
                    if fitting := [
                        slot
                        for slot in group
                        if job.each.within(slot.free) and in_time(job, slot.pool, now, slot.coming)
                    ]:
                        yield fitting

    def _group(self, slot: Slot) -> None:
        if slot.free.gpus > 0:
            self._groups.setdefault((slot.pool.name, slot.market), {}).setdefault((slot.zone, slot.launch), []).append(
                slot
            )

    def _take(self, slot: Slot, job: Job) -> None:
        self.taken += 1
        slot.free = slot.free - job.each
        if slot.free.gpus <= 0:
            groups = self._groups[slot.pool.name, slot.market]
            groups[slot.zone, slot.launch].remove(slot)
            if not groups[slot.zone, slot.launch]:
                del groups[slot.zone, slot.launch]
            if not groups:
                del self._groups[slot.pool.name, slot.market]

    def launch(self, job: Job, why: str) -> Launch | Refusal:
        """Rent nodes for it, the cheapest open offer; or what is in the way."""
        obstacles: list[Obstacle] = []
        _, ranked, offers = self._offers(job)
        if ranked.refused and ranked.refused[0] == len(self.launches) and offers is ranked.all:
            return ranked.refused[1]
        for usd_per_hour, pool, market in chain(offers[:TOLD], self._still_open(job, offers)):
            planned = self._plan(job, pool, market, usd_per_hour, why)
            if isinstance(planned, Launch):
                return planned
            obstacles.append(planned)
        for_all = offers is ranked.all and all(each.code in ("max_nodes", "cool_down") for each in obstacles)
        if more := len(offers) - TOLD if len(offers) > TOLD else 0:
            again = Refusal(tuple(obstacles[TOLD:])).look_again_s
            obstacles[TOLD:] = [
                Obstacle("closed", f"{explain.plural(more, 'dearer offer')} beside them: closed, too", again)
            ]
        refusal = Refusal(tuple(obstacles))
        if for_all:
            ranked.refused = len(self.launches), refusal
        return refusal

    def _still_open(self, job: Job, offers: list[Offer]) -> Iterator[Offer]:
        """Of the dearer offers those whose pools have names enough: names only ever become fewer while one decision is
        made.
        """
        if self.most < job.nodes or len(offers) <= TOLD:
            return
        ranked, limit, told = self._offers(job)[1], job.time_limit_s or 0.0, offers[:TOLD]
        ranked.open = [offer for offer in ranked.open if len(self.names[offer[1].name]) >= job.nodes]
        yield from [
            offer
            for offer in ranked.open
            if limit <= offer[1].max_run_s
            and in_time(job, offer[1], self.snapshot.now_s)
            and not any(offer is other for other in told)
        ]

    def _plan(self, job: Job, pool: Pool, market: str, usd_per_hour: float, why: str) -> Launch | Obstacle:
        names = self.names[pool.name]
        if len(names) < job.nodes:
            return self._too_few(pool, len(names), job.nodes)
        open_zones, closed = [], []
        for zone in pool.zones:
            cool_down = self._cool_down(pool.name, zone, market, job.nodes)
            closed.append(cool_down) if cool_down else open_zones.append(zone)
        if not open_zones:
            ends = [each.until_s for each in closed if each.until_s is not None]
            where = explain.listed(_closed(each) for each in closed) or "every zone: none is declared"
            return Obstacle("cool_down", f"pool {pool.name} ({market}) is closed in {where}", min(ends, default=None))
        until = self._until(job, pool, boot=True)
        asked = self._charges(job, job.nodes * usd_per_hour, until)
        if obstacle := self._too_expensive(
            asked, f"{explain.plural(job.nodes, 'node')} of pool {pool.name} ({market})"
        ):
            return obstacle
        self.funds.take(asked)
        chosen, self.names[pool.name] = tuple(names[: job.nodes]), names[job.nodes :]
        self.most = max(map(len, self.names.values()), default=0)
        payer = self._payer(job)
        launch = Launch(
            pool.name, tuple(open_zones), market, chosen, (job.id,), usd_per_hour, until, asked[0].usd, why, payer
        )
        for node in chosen:
            free, launch_index = pool.each - job.each, len(self.launches)
            slot = Slot(node, pool, market, "", free, until, usd_per_hour, payer, launch=launch_index, coming=True)
            slot.ready_s = self.snapshot.now_s + boot_s(pool)
            slot.busy_until_s = self._ends_s(slot, job)
            self.slots.append(slot)
            self._group(slot)
        self.launches.append(launch)
        return launch

    def _too_few(self, pool: Pool, free: int, needs: int) -> Obstacle:
        if (key := (pool.name, free, needs)) not in self._full:  # said of thousands of jobs
            text = f"{free} of its {explain.plural(len(pool.nodes), 'node')} free to rent, it needs {needs}"
            self._full[key] = Obstacle("max_nodes", f"pool {pool.name} has {text}")
        return self._full[key]

    def _share(self, index: int, job: Job, until: float, usd: float) -> None:
        launch = self.launches[index]
        self.launches[index] = replace(
            launch,
            jobs=(*launch.jobs, job.id),
            committed_until_s=max(launch.committed_until_s, until),
            committed_usd=launch.committed_usd + usd,
        )

    def _until(self, job: Job, pool: Pool, boot: bool) -> float:
        return (
            self.snapshot.now_s
            + (pool.boot_s if boot else 0.0)
            + (job.time_limit_s or 0.0)
            + pool.idle_s
            + pool.ending_s
        )

    def _least_cost(self, job: Job, pool: Pool) -> tuple[float, float]:
        """USD per hour of all its nodes, and the seconds that have to be paid."""
        prices = [usd for usd, candidate, _ in self.options(job) if candidate is pool]
        return job.nodes * min(prices), self._seconds(job, pool)

    def _seconds(self, job: Job, pool: Pool) -> float:
        """For how long money is set aside for it on new nodes of the pool."""
        return self._until(job, pool, boot=True) - self.snapshot.now_s

    def _payer(self, job: Job) -> str:
        return self.snapshot.budget.payer(job.account) if self.snapshot.budget else ""

    def _charges(self, job: Job, usd_per_hour: float, until_s: float, slot: Slot | None = None) -> list[Charge]:
        held = (slot.account, slot.committed_until_s) if slot else None
        return charges(self.snapshot.budget, job.account, usd_per_hour, self.snapshot.now_s, until_s, held)

    def _cool_down(self, pool: str, zone: str, market: str, nodes: int) -> CoolDown | None:
        now = self.snapshot.now_s
        hits = [
            c
            for c in self.snapshot.cool_downs
            if (c.pool, c.zone, c.market) == (pool, zone, market)
            and c.nodes <= nodes
            and (c.until_s is None or c.until_s > now)
        ]
        return max(hits, key=lambda c: float("inf") if c.until_s is None else c.until_s, default=None)

    def _too_expensive(self, asked: list[Charge], what: str) -> Obstacle | None:
        """The ceiling that is in the way, and until when. None: none is."""
        if self.snapshot.budget is None:
            return Obstacle("no_budget", "no budget is declared, so nothing is rented")
        if (found := self.funds.short(asked)) is None:
            return None
        ceiling, needed, left = found
        spent, aside = ceiling.spent_usd, ceiling.usd - ceiling.spent_usd - left
        text = (
            f"{what} would set aside {explain.usd(needed)}, and {explain.usd(max(left, 0.0))} of {named(ceiling)} is left "
            f"({explain.usd(spent)} spent, {explain.usd(aside)} set aside) until {explain.at(ceiling.to_s)}"
        )
        return Obstacle("budget", text, ceiling.to_s)


def usable(lease: Lease, node: Node | None) -> bool:
    """Whether a job may count on a lease: it comes, or is there and takes (or is about to take) jobs."""
    if lease.state == "ready":
        return node is not None and node.open
    return lease.state in ("coming", "joined")


def _closed(cool_down: CoolDown) -> str:
    until = "a person reopens it" if cool_down.until_s is None else explain.at(cool_down.until_s)
    return f"{cool_down.zone} until {until} ({cool_down.reason})"


def jobs_on(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """The jobs on each node, by its name."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        for node in job.on:
            found.setdefault(node, []).append(job)
    return found


def _rank(offer: Offer) -> int:
    """Of offers that cost the same: prepaid, then spot, then the others."""
    return 0 if offer[2] in offer[1].prepaid_markets else 1 if offer[2] == "spot" else 2


def _slot(lease: Lease, pool: Pool, on: Mapping[str, Sequence[Job]], pending: Mapping[int, Job], now_s: float) -> Slot:
    there = on.get(lease.node, ())
    free = pool.each
    coming = lease.state == "coming"
    began_s = now_s if lease.paid_from_s is None else lease.paid_from_s
    ready_s = max(now_s, began_s + boot_s(pool)) if coming else now_s
    busy_s = 0.0
    for job in there:
        free, busy_s = free - job.each, max(busy_s, job.end_s or 0.0)
        if job.pending:
            busy_s = max(busy_s, ready_s + (job.time_limit_s or 0.0))
    if lease.jobs:
        ids = {job.id for job in there}
        for number in dict.fromkeys(lease.jobs):
            if number in pending and number not in ids:
                free, busy_s = free - pending[number].each, max(busy_s, ready_s + (pending[number].time_limit_s or 0.0))
    until, usd_per_hour = lease.committed_until_s, lease.usd_per_hour
    return Slot(
        lease.node,
        pool,
        lease.market,
        lease.zone,
        free,
        until,
        usd_per_hour,
        lease.account,
        lease.id,
        coming=coming,
        ready_s=ready_s,
        busy_until_s=busy_s,
    )
