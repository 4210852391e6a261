"""Handing rented nodes over to jobs: the nodes that a job counts on, its way to them, and its way back home.

A job waits in the home partition, and in other partitions that its user named. When all its rented nodes have passed
the gate it is widened to their partition too, with every other node there excluded, and starts where the scheduler
finds room first. Without such nodes it is narrowed again, to what its user wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

from ironburst.burst import explain
from ironburst.burst.decision import Assign, Move, Narrow, Widen
from ironburst.burst.slots import Slot, room_of, usable
from ironburst.burst.snapshot import Job, Lease, Snapshot
from ironburst.nodes import naming

# Slurm's delay of a requeued job: cred_expiration's 120 s, and one; counted from its new submit time or a second later.
# Another moment is its user's, or its site's (requeue_delay).
REQUEUE_DELAY_S = 120.0, 122.0


class Handover:
    """What one decision hands over. `used`: ids of the leases that a pending job counts on."""

    def __init__(self, snapshot: Snapshot):
        self.assigns: list[Assign] = []
        self.widen: list[Widen] = []
        self.narrow: list[Narrow] = []
        self.moves: list[Move] = []
        self.used: set[str] = set()
        self._snapshot = snapshot
        self._nodes = snapshot.node_of
        self._pools = snapshot.pool_of
        self._partitions = {pool.partition for pool in snapshot.pools}
        self.leases_of: dict[int, list[Lease]] = {}  # that were rented for a job, or given to it, by its id
        for lease in snapshot.leases:
            for number in set(lease.jobs) if lease.jobs else ():
                self.leases_of.setdefault(number, []).append(lease)

    def serving(self, job: Job) -> list[Lease]:
        """The leases that the job counts on: enough of them, alive, with room. Else none (and it is decided again)."""
        if (leases := self.leases_of.get(job.id)) is None:
            return []
        by_pool: dict[str, list[Lease]] = {}  # it spans one at most
        for lease in leases:
            if lease.node in job.keeps_off or not usable(lease, self._nodes.get(lease.node)):
                continue
            if lease.state == "coming" or self._has_room(lease, job):
                by_pool.setdefault(lease.pool, []).append(lease)
        mine = next((mine for mine in by_pool.values() if len(mine) >= job.nodes), [])
        if job.saves_s is not None and len(of_spot := [each for each in mine if each.market == "spot"]) >= job.nodes:
            return of_spot  # and not back to what it has just left
        return mine

    def serve(self, job: Job, leases: Sequence[Lease]) -> None:
        """Keep its leases for it, and let it on them when all of them are there."""
        self.used.update([lease.id for lease in leases])
        if "coming" not in [lease.state for lease in leases]:
            self._widen(job, leases[0].pool, [lease.node for lease in leases])
        elif job.larger_than_home:
            self.back_home(job)

    def assign(self, job: Job, assign: Assign, slots: Sequence[Slot], coming: bool) -> None:
        """Give it leases that nobody counts on; `coming`: some of them have to boot first."""
        self.assigns.append(assign)
        self.used.update(assign.leases)
        if not coming:
            self._widen(job, slots[0].pool.name, [slot.node for slot in slots])

    def keep(self, assign: Assign) -> None:
        """Leases that nobody counts on are for a running job, which goes to them later."""
        self.assigns.append(assign)
        self.used.update(assign.leases)

    def move(self, job: Job, leases: Sequence[Lease]) -> None:
        """Keep these for a running job, and let it go to them when all of them are there."""
        self.used.update(lease.id for lease in leases)
        if all(lease.state != "coming" for lease in leases):
            nodes = tuple(lease.node for lease in leases)
            reason = f"it goes on on spot, which it can still lose: {explain.listed(nodes)}"
            self.moves.append(Move(job.id, job.start_s or 0.0, nodes, reason))

    def back_home(self, job: Job) -> None:
        """A pending job without rented nodes is in the home partition only."""
        if not job.excluded and self._partitions.isdisjoint(job.partitions):
            return
        rented, own = [name for name in job.partitions if name in self._partitions], self._own_exclusions(job)
        if rented or len(own) < len(job.excluded):  # its user may have narrowed it, which leaves the exclusions
            partitions = tuple(name for name in job.partitions if name not in self._partitions)
            # a gang may get some of its nodes again, so it keeps the delay
            delayed = job.nodes == 1 and job.since_s > self._snapshot.now_s and _by_requeue(job)
            reason = f"no rented node is left for it{' in ' + explain.listed(rented) if rented else ''}"
            self.narrow.append(Narrow(job.id, partitions, own, reason, begin_now=delayed))

    def _widen(self, job: Job, pool: str, nodes: Sequence[str]) -> None:
        """Open the pool's partition to the job, but only the nodes that are its own."""
        rented = self._pools[pool]
        own = [name for name in job.partitions if name not in self._partitions]
        # of one that is larger than home, which Slurm would hold in home alone; looked at last
        waiting = [name for name in own if name == naming.WAITING_PARTITION]
        partitions = (*(name for name in own if name not in waiting), rented.partition, *waiting)
        excluded = tuple([name for name in _sorted(rented.nodes) if name not in nodes])
        if own_exclusions := self._own_exclusions(job):
            excluded = tuple(sorted({*own_exclusions, *excluded}))
        drained = any(node.has("DRAIN") for name in nodes if (node := self._nodes.get(name)))
        if set(job.partitions) != set(partitions) or set(job.excluded) != set(excluded) or drained:
            reason = f"rented {'node' if len(nodes) == 1 else 'nodes'} {explain.listed(nodes)} passed the gate"
            self.widen.append(Widen(job.id, partitions, excluded, tuple(nodes), reason))

    def _has_room(self, lease: Lease, job: Job) -> bool:
        if (pool := self._pools.get(lease.pool)) is None:
            return False
        return room_of(lease, pool, self._nodes.get(lease.node), self._snapshot.jobs_on.get(lease.node, ())).fits(job)

    def _own_exclusions(self, job: Job) -> tuple[str, ...]:
        """The nodes that its user excludes, not we for it."""
        return tuple(name for name in job.excluded if name not in self._rentable or name in job.keeps_off)

    @cached_property
    def _rentable(self) -> set[str]:
        return {name for pool in self._snapshot.pools for name in pool.nodes}


@lru_cache(maxsize=1024)  # of a pool they are the same for all of its jobs, and mostly in the next decision
def _sorted(names: tuple[str, ...]) -> list[str]:
    return sorted(set(names))


def _by_requeue(job: Job) -> bool:
    """Whether it is the scheduler that puts it off, not its user."""
    least_s, most_s = REQUEUE_DELAY_S
    return job.restarts > 0 and least_s <= job.since_s - job.submit_s <= most_s
