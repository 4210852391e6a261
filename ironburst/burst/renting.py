"""Where a job that is worth renting for can go: rented nodes with room first, else a launch. Keeps count while one decision is made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ironburst.burst import explain
from ironburst.burst.decision import Assign, Launch
from ironburst.burst.eligibility import not_in_pool, not_on_market
from ironburst.burst.policy import Policy
from ironburst.burst.snapshot import CoolDown, Job, Lease, Node, Pool, Resources, Snapshot


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
    lease: str = ""  # empty: planned by this decision
    launch: int = -1  # index of the planned launch
    coming: bool = False


@dataclass(frozen=True)
class Obstacle:
    """Why an option is closed for now."""

    code: str
    text: str
    look_again_s: float | None = None


@dataclass
class Renting:
    """The rentable side of a snapshot while one decision is made: slots, free node names, money left, what is decided so far."""

    snapshot: Snapshot
    policy: Policy
    left_usd: float
    slots: list[Slot]
    names: dict[str, list[str]]  # by pool: nodes that can be launched
    launches: list[Launch] = field(default_factory=list)

    @classmethod
    def of(cls, snapshot: Snapshot, policy: Policy) -> Renting:
        pools = {pool.name: pool for pool in snapshot.pools}
        nodes = {node.name: node for node in snapshot.nodes}
        pending = {job.id: job for job in snapshot.jobs if job.pending}
        slots = []
        for lease in snapshot.leases:
            if lease.pool in pools and usable(lease, nodes.get(lease.node)):
                slots.append(_slot(lease, pools[lease.pool], snapshot, pending))
        leased = {lease.node for lease in snapshot.leases}
        launchable = {node.name for node in snapshot.nodes if node.launchable}
        names = {pool.name: [n for n in pool.nodes if n in launchable and n not in leased] for pool in snapshot.pools}
        return cls(snapshot, policy, snapshot.budget.left_usd if snapshot.budget else 0.0, slots, names)

    def infeasible(self, job: Job) -> list[tuple[str, str]]:
        """Why no pool and market can ever take it, one reason a pool; empty if one can."""
        reasons = []
        for pool in self.snapshot.pools:
            if reason := not_in_pool(job, pool):
                reasons.append(reason)
                continue
            markets = [not_on_market(job, pool, market, self.policy) for market in pool.markets]
            if not all(markets):
                if (least := self._least_cost(job, pool)) <= self._month_usd():
                    return []
                reasons.append(("over_budget", f"renting for it in pool {pool.name} costs at least {explain.usd(least)}, "
                                f"more than the month's whole budget of {explain.usd(self._month_usd())}"))  # fmt: skip
                continue
            reasons.append(next(reason for reason in markets if reason))
        return reasons or [("no_pool", "no burst pool is declared")]

    def options(self, job: Job) -> list[tuple[float, Pool, str]]:
        """(USD per hour, pool, market) that may take it, the cheapest first; equal ones in the declared order."""
        found = [
            (pool.usd_per_hour[market] or 0.0, pool, market)
            for pool in self.snapshot.pools
            if not not_in_pool(job, pool)
            for market in pool.markets
            if not not_on_market(job, pool, market, self.policy)
        ]
        return sorted(found, key=lambda option: option[0])

    def reuse(self, job: Job) -> tuple[list[Slot], Assign | None] | Obstacle | None:
        """Slots with room for all of the job's nodes, in one pool, zone and market. None: there are none."""
        allowed = {(pool.name, market) for _, pool, market in self.options(job)}
        groups: dict[tuple[str, str, str, int], list[Slot]] = {}
        for slot in self.slots:
            if (slot.pool.name, slot.market) in allowed and job.each.within(slot.free):
                groups.setdefault((slot.pool.name, slot.zone, slot.market, slot.launch), []).append(slot)
        short: Obstacle | None = None
        for group in sorted(groups.values(), key=lambda slots: (slots[0].coming, slots[0].launch, slots[0].usd_per_hour)):
            if len(group) < job.nodes:
                continue
            chosen = sorted(group, key=lambda slot: (slot.coming, slot.free.gpus, slot.node))[: job.nodes]
            until = self._until(job, chosen[0].pool, boot=any(slot.coming for slot in chosen))
            usd = sum(slot.usd_per_hour * max(0.0, until - slot.committed_until_s) / 3600 for slot in chosen)
            if usd > self.left_usd:
                short = self._too_expensive(usd, "keeping the rented nodes longer for it")
                continue
            self.left_usd -= usd
            for slot in chosen:
                slot.free, slot.committed_until_s = slot.free - job.each, max(slot.committed_until_s, until)
            if chosen[0].launch >= 0:
                self._share(chosen[0].launch, job, until, usd)
                return chosen, None
            reason = f"rented already, with room for it: {explain.listed(slot.node for slot in chosen)}"
            return chosen, Assign(job.id, tuple(slot.lease for slot in chosen), until, usd, reason)
        return short

    def launch(self, job: Job, why: str) -> Launch | list[Obstacle]:
        """Rent nodes for it, the cheapest open option; or everything that is in the way."""
        obstacles = []
        for usd_per_hour, pool, market in self.options(job):
            planned = self._plan(job, pool, market, usd_per_hour, why)
            if isinstance(planned, Launch):
                return planned
            obstacles.append(planned)
        return obstacles

    def _plan(self, job: Job, pool: Pool, market: str, usd_per_hour: float, why: str) -> Launch | Obstacle:
        names = self.names[pool.name]
        if len(names) < job.nodes:
            free = f"{len(names)} of its {explain.plural(len(pool.nodes), 'node')} free to rent"
            return Obstacle("max_nodes", f"pool {pool.name} has {free}, it needs {job.nodes}")
        open_zones, closed = [], []
        for zone in pool.zones:
            cool_down = self._cool_down(pool.name, zone, market, job.nodes)
            closed.append(cool_down) if cool_down else open_zones.append(zone)
        if not open_zones:
            ends = [each.until_s for each in closed if each.until_s is not None]
            where = explain.listed(_closed(each) for each in closed) or "every zone: none is declared"
            return Obstacle("cool_down", f"pool {pool.name} ({market}) is closed in {where}", min(ends, default=None))
        until = self._until(job, pool, boot=True)
        usd = job.nodes * usd_per_hour * (until - self.snapshot.now_s) / 3600
        if usd > self.left_usd:
            return self._too_expensive(usd, f"{explain.plural(job.nodes, 'node')} of pool {pool.name} ({market})")
        self.left_usd -= usd
        chosen, self.names[pool.name] = tuple(names[: job.nodes]), names[job.nodes :]
        launch = Launch(pool.name, tuple(open_zones), market, chosen, (job.id,), usd_per_hour, until, usd, why)
        for node in chosen:
            slot = Slot(node, pool, market, "", pool.each - job.each, until, usd_per_hour, launch=len(self.launches), coming=True)
            self.slots.append(slot)
        self.launches.append(launch)
        return launch

    def _share(self, index: int, job: Job, until: float, usd: float) -> None:
        launch = self.launches[index]
        self.launches[index] = replace(
            launch, jobs=(*launch.jobs, job.id), committed_until_s=max(launch.committed_until_s, until),
            committed_usd=launch.committed_usd + usd,
        )  # fmt: skip

    def _until(self, job: Job, pool: Pool, boot: bool) -> float:
        return self.snapshot.now_s + (pool.boot_s if boot else 0.0) + (job.time_limit_s or 0.0) + pool.idle_s

    def _least_cost(self, job: Job, pool: Pool) -> float:
        prices = [usd for usd, candidate, _ in self.options(job) if candidate is pool]
        return job.nodes * min(prices) * (self._until(job, pool, boot=True) - self.snapshot.now_s) / 3600

    def _month_usd(self) -> float:
        return self.snapshot.budget.usd_per_month if self.snapshot.budget else 0.0

    def _cool_down(self, pool: str, zone: str, market: str, nodes: int) -> CoolDown | None:
        now = self.snapshot.now_s
        hits = [
            c for c in self.snapshot.cool_downs
            if (c.pool, c.zone, c.market) == (pool, zone, market) and c.nodes <= nodes and (c.until_s is None or c.until_s > now)
        ]  # fmt: skip
        return max(hits, key=lambda c: float("inf") if c.until_s is None else c.until_s, default=None)

    def _too_expensive(self, usd: float, what: str) -> Obstacle:
        budget = self.snapshot.budget
        if budget is None:
            return Obstacle("no_budget", "no budget is declared, so nothing is rented")
        left, month, spent = max(self.left_usd, 0.0), budget.usd_per_month, budget.spent_usd
        text = (
            f"{what} would set aside {explain.usd(usd)}, and {explain.usd(left)} of the month's {explain.usd(month)} is left "
            f"({explain.usd(spent)} spent, {explain.usd(month - spent - self.left_usd)} set aside)"
        )
        return Obstacle("budget", text, budget.month_ends_s)


def usable(lease: Lease, node: Node | None) -> bool:
    """Whether a job may count on a lease: it comes, or is there and takes (or is about to take) jobs."""
    if lease.state == "ready":
        return node is not None and node.open
    return lease.state in ("coming", "joined")


def _closed(cool_down: CoolDown) -> str:
    until = "a person reopens it" if cool_down.until_s is None else explain.at(cool_down.until_s)
    return f"{cool_down.zone} until {until} ({cool_down.reason})"


def _slot(lease: Lease, pool: Pool, snapshot: Snapshot, pending: dict[int, Job]) -> Slot:
    free = pool.each
    for job in snapshot.jobs:
        if lease.node in job.on or (job.id in lease.jobs and job.id in pending):
            free = free - job.each
    coming = lease.state == "coming"
    return Slot(lease.node, pool, lease.market, lease.zone, free, lease.committed_until_s, lease.usd_per_hour, lease.id, coming=coming)
