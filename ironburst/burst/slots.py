"""Rented nodes with what is free on each, while one decision is made: those of the leases, and those that it rents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

from ironburst.burst.cost import boot_s, on_nodes_s
from ironburst.burst.eligibility import moves
from ironburst.burst.policy import Policy
from ironburst.burst.resources import Resources
from ironburst.burst.snapshot import Job, Lease, Node, Pool, Snapshot


@dataclass
class Room:
    """What is free on a node, and for whom."""

    total: Resources
    free: Resources
    users: set[str] = field(default_factory=set)  # of the jobs on it
    only: str | None = None  # the user of jobs that share it with nobody else's

    @classmethod
    def of(cls, total: Resources, there: Iterable[Job]) -> Room:
        """Of a node, beside these jobs on it."""
        room = cls(total, total)
        for job in there:
            room.take(job)
        return room

    def take(self, job: Job) -> None:
        """The job is on it."""
        self.free = self.free - job.takes(self.total)
        self.users.add(job.user)
        if job.exclusive == "user":
            self.only = job.user

    def fits(self, job: Job) -> bool:
        """Whether a part of the job has room, and nobody there is in its way."""
        if self.only is not None and self.only != job.user:
            return False
        if job.exclusive:
            alone = self.users <= {job.user} if job.exclusive == "user" else not self.users
            return alone and job.each.within(self.free)
        return job.each.within(self.free)


@dataclass
class Slot:
    """A node that is rented, or that this decision rents."""

    node: str
    pool: Pool  # as of its type
    market: str
    zone: str
    room: Room  # beside the jobs on it and those that wait for it
    committed_until_s: float
    usd_per_hour: float
    account: str = ""  # who pays for it
    lease: str = ""  # empty: planned by this decision
    launch: int = -1  # index of the planned launch
    coming: bool = False
    ready_s: float = 0.0  # when it can take a job
    busy_until_s: float = 0.0  # jobs keep it at least so long, as far as is known

    @property
    def free(self) -> Resources:
        """What neither a job on it nor one that waits for it uses."""
        return self.room.free

    def fits(self, job: Job) -> bool:
        """Whether a part of the job may have room on it."""
        return self.node not in job.keeps_off and self.room.fits(job)

    def ends_s(self, job: Job, run_s: float) -> float:
        """When a job that runs so long without interruptions is expected to end there."""
        rate = self.pool.interruptions_per_hour.get(self.market, 0.0)
        took_s, interruptions = on_nodes_s(run_s / self.pool.speed, job.nodes, rate, self.pool.checkpoint_s)
        return self.ready_s + took_s + (interruptions * boot_s(self.pool) if interruptions else 0.0)

    def longer_usd(self, job: Job, run_s: float) -> float:
        """What it costs to keep it for such a job, beyond the time for which other jobs keep it."""
        if self.market in self.pool.prepaid_markets:
            return 0.0
        longer_s = self.ends_s(job, run_s) - max(self.busy_until_s, self.ready_s)
        return self.usd_per_hour * max(0.0, longer_s) / 3600


class Slots:
    """All rented nodes that a job may count on, and those with room by the place that they are in; made when a first
    job asks.
    """

    def __init__(self, snapshot: Snapshot, policy: Policy):
        self._snapshot, self._policy = snapshot, policy
        self.taken = 0  # how often a part of one was given to a job

    @cached_property
    def there(self) -> list[Slot]:
        """Those that are there with a free GPU."""
        return [slot for slot in self._made[0] if not slot.coming]

    @cached_property
    def _groups(self) -> dict[tuple[str, str], dict[tuple[str, str, int], list[Slot]]]:
        """Those with room, by pool and market, then by zone, type and launch."""
        groups: dict[tuple[str, str], dict[tuple[str, str, int], list[Slot]]] = {}
        for slot in self._made[0]:
            _add(slot, groups)
        return groups

    @cached_property
    def _made(self) -> tuple[list[Slot], Callable[[], list[Slot]]]:
        """Of the snapshot's leases; and what makes those that are there without a free GPU."""
        snapshot, policy = self._snapshot, self._policy
        if not snapshot.leases:
            return [], list
        pools, nodes, on = snapshot.pool_of, snapshot.node_of, snapshot.jobs_on
        unstarted = frozenset(snapshot.unstarted)
        promised = {job.id: job for job in snapshot.waiting if job.id not in unstarted}
        if policy.deadline_moves:
            promised |= {job.id: job for job in snapshot.placed if moves(job, policy)}

        def slot(lease: Lease) -> Slot:
            pool, node = pools[lease.pool].of_type(lease.instance_type), nodes.get(lease.node)
            return _slot(lease, pool, node, on.get(lease.node, ()), promised, snapshot.now_s)

        open_ones, full = list[Lease](), list[Lease]()
        for lease in snapshot.leases:
            if (pool := pools.get(lease.pool)) is not None:
                coming = lease.state == "coming"
                jobs = _counting_on(lease, promised) if coming else on.get(lease.node, ())
                # most rented nodes are full: no slot has to be made of them
                if sum([job.each.gpus for job in jobs]) < pool.each.gpus:
                    open_ones.append(lease)
                elif not coming:
                    full.append(lease)
        return (
            [slot(lease) for lease in open_ones if usable(lease, nodes.get(lease.node))],
            cache(lambda: [slot(lease) for lease in full if usable(lease, nodes.get(lease.node))]),
        )

    def add(self, slot: Slot) -> None:
        """Offer its free GPUs."""
        _add(slot, self._groups)

    def take(self, slot: Slot, job: Job) -> None:
        """Give a node's part of the job a place on it."""
        self.taken += 1
        slot.room.take(job)
        if slot.free.gpus <= 0:
            place = self._groups[slot.pool.name, slot.market]
            place[_alike(slot)].remove(slot)
            if not place[_alike(slot)]:
                del place[_alike(slot)]
            if not place:
                del self._groups[slot.pool.name, slot.market]

    def room_now(self, job: Job) -> bool:
        """Whether a node that is there has room for a part of the job."""
        return any(slot.fits(job) for slot in (self.there if job.each.gpus else (*self.there, *self._made[1]())))

    def groups(self, pool: str, market: str) -> Iterable[list[Slot]]:
        """Those with room there, by zone, type and launch."""
        return self._groups.get((pool, market), {}).values()

    def groups_in(self, places: Collection[tuple[str, str]]) -> Iterator[list[Slot]]:
        """Those with room in any of the places (pool, market), by place, zone, type and launch."""
        for place, groups in self._groups.items():
            if place in places:
                yield from groups.values()

    def __bool__(self) -> bool:
        return bool(self._groups)


def _add(slot: Slot, groups: dict[tuple[str, str], dict[tuple[str, str, int], list[Slot]]]) -> None:
    if slot.free.gpus > 0:
        groups.setdefault((slot.pool.name, slot.market), {}).setdefault(_alike(slot), []).append(slot)


def _alike(slot: Slot) -> tuple[str, str, int]:
    """Its zone, type and launch: a job gets nodes that have all three in common."""
    return slot.zone, slot.pool.instance_type, slot.launch


def usable(lease: Lease, node: Node | None) -> bool:
    """Whether a job may count on a lease: it comes, or is there and takes (or is about to take) jobs."""
    if lease.state == "ready":
        return node is not None and node.open
    return lease.state in ("coming", "joined")


def room_of(lease: Lease, pool: Pool, node: Node | None, there: Iterable[Job]) -> Room:
    """On a lease's node beside these jobs. One that is there has what its scheduler says, never more than its type."""
    has = pool.of_type(lease.instance_type).each
    if node is not None and lease.state != "coming" and node.total.gpus:
        has = has.at_most(node.total)
    return Room.of(has, there)


def _counting_on(lease: Lease, promised: Mapping[int, Job]) -> list[Job]:
    """The jobs that it is promised to: what waits, and what goes to spot."""
    jobs = [promised[number] for number in dict.fromkeys(lease.jobs) if number in promised]
    return [job for job in jobs if job.pending or lease.market == "spot"]


def _slot(
    lease: Lease, pool: Pool, node: Node | None, there: Sequence[Job], promised: Mapping[int, Job], now_s: float
) -> Slot:
    """`there`: the jobs on its node."""
    coming = lease.state == "coming"
    began_s = now_s if lease.paid_from_s is None else lease.paid_from_s
    ready_s = max(now_s, began_s + boot_s(pool)) if coming else now_s
    room, busy_until_s = room_of(lease, pool, node, there), 0.0
    for job in there:
        busy_until_s = max(busy_until_s, job.end_s or 0.0)
        if job.pending:
            busy_until_s = max(busy_until_s, ready_s + (job.time_limit_s or 0.0))
    on_it = {job.id for job in there}
    for job in _counting_on(lease, promised):
        if job.id not in on_it:
            room.take(job)
            busy_until_s = max(busy_until_s, ready_s + (job.time_limit_s or 0.0))
    return Slot(
        node=lease.node,
        pool=pool,
        market=lease.market,
        zone=lease.zone,
        room=room,
        committed_until_s=lease.committed_until_s,
        usd_per_hour=lease.usd_per_hour,
        account=lease.account,
        lease=lease.id,
        coming=coming,
        ready_s=ready_s,
        busy_until_s=busy_until_s,
    )
