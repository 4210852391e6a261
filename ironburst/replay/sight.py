"""What the policy sees of the leases of a play and of the jobs on them: looked at again where something has changed.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import NamedTuple

from ironburst.burst import Job, Lease, Node, Pool
from ironburst.replay.leases import LiveLease
from ironburst.replay.view import OFF, JobsOn


class Shown(NamedTuple):
    """One and the same objects while nothing changes. `names`: of the nodes, by pool; `launchable`: of those that
    nobody rents.
    """

    nodes: dict[str, Node]
    names: dict[str, tuple[str, ...]]
    launchable: frozenset[str]
    leases: tuple[Lease, ...]
    jobs: tuple[Job, ...]


class _PoolSeen(NamedTuple):
    nodes: dict[str, Node]
    names: tuple[str, ...]
    free: tuple[str, ...]  # those that nobody rents


class Sight:
    """Leases and nodes in the order of their launch, and then the nodes of each pool that nobody rents: `most` at most,
    as many as one decision may need. `jobs_on`: by node.
    """

    def __init__(self, pools: Sequence[Pool], most: int):
        self.jobs_on = JobsOn()
        self._most = most
        self._off = {name: Node(name, (pool.partition,), pool.each, OFF) for pool in pools for name in pool.nodes}
        self._unrented = {pool.name: dict.fromkeys(pool.nodes[::-1]) for pool in pools}  # the next one last
        self._changed: dict[str, LiveLease] = {}  # since they were seen, by node
        # as they were seen last
        self._leases: dict[str, Lease] = {}
        self._nodes: dict[str, dict[str, Node]] = {pool.name: {} for pool in pools}
        self._jobs: dict[int, Job] = {}
        self._of_pool: dict[str, _PoolSeen] = {}  # those whose nodes are as they were seen last
        self._of_nodes: tuple[dict[str, Node], dict[str, tuple[str, ...]], frozenset[str]] = {}, {}, frozenset()
        self._seen: Shown | None = None  # None: something has changed since

    def launched(self, lease: LiveLease) -> None:
        """It is rented."""
        del self._unrented[lease.pool.name][lease.node]
        self.changed(lease)

    def changed(self, lease: LiveLease) -> None:
        """Something of it is another."""
        self._changed[lease.node], self._seen = lease, None

    def ended(self, lease: LiveLease) -> None:
        """Nobody rents it any more."""
        name, node = lease.pool.name, lease.node
        for known in (self._changed, self._leases, self._nodes[name]):
            known.pop(node, None)
        self._unrented[name][node] = None
        self._of_pool.pop(name, None)
        self._seen = None

    def begins(self, job: Job) -> None:
        """It runs on leases."""
        self._jobs[job.id], self._seen = job, None
        self.jobs_on.begin([job])

    def ends(self, job: Job) -> None:
        """It doesn't any more."""
        del self._jobs[job.id]
        self._seen = None
        self.jobs_on.end([job])

    def now(self) -> Shown:
        """As it is."""
        if self._seen is None:
            self._look()
            if len(self._of_pool) < len(self._nodes):
                self._look_at_pools()
            self._seen = Shown(*self._of_nodes, tuple(self._leases.values()), tuple(self._jobs.values()))
        return self._seen

    def _look(self) -> None:
        for name, lease in self._changed.items():
            self._leases[name], node = lease.seen(), lease.seen_node()
            if self._nodes[lease.pool.name].get(name) is not node:
                self._nodes[lease.pool.name][name] = node
                self._of_pool.pop(lease.pool.name, None)
        self._changed.clear()

    def _look_at_pools(self) -> None:
        for pool, rented in self._nodes.items():
            if pool not in self._of_pool:
                free = tuple(islice(reversed(self._unrented[pool]), self._most))
                of_it = rented | {name: self._off[name] for name in free}
                self._of_pool[pool] = _PoolSeen(of_it, tuple(of_it), free)
        nodes = dict[str, Node]()
        for pool in self._nodes:
            nodes.update(self._of_pool[pool].nodes)
        names = {pool: of_it.names for pool, of_it in self._of_pool.items()}
        self._of_nodes = nodes, names, frozenset(chain.from_iterable([of_it.free for of_it in self._of_pool.values()]))
