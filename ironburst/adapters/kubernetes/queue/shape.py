"""How many nodes a gang takes, and what of each. Pure.

A pod counts by its own requests. What a gang has beside its pods with GPUs (launchers, heads, drivers) goes onto the
room that these leave on their nodes, and is no reason for a node of its own unless it doesn't fit there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ironburst.adapters.kubernetes.gangs import Gang
from ironburst.adapters.kubernetes.queue.demands import allowed, goes_along
from ironburst.adapters.kubernetes.queue.seen import Objects
from ironburst.adapters.kubernetes.site import HOSTNAME_KEY, Site
from ironburst.adapters.kubernetes.views import PodView
from ironburst.ports import Resources

_MIB = 1 << 20


class _Amount(NamedTuple):
    """GPUs, thousandths of CPUs, bytes."""

    gpus: int = 0
    milli: int = 0
    memory: int = 0

    def plus(self, pod: PodView) -> _Amount:
        return _Amount(self.gpus + pod.gpus, self.milli + pod.milli_cpus, self.memory + pod.memory)

    def within(self, room: _Amount) -> bool:
        return all(mine <= its for mine, its in zip(self, room, strict=True))


class _Filled(NamedTuple):
    """A node with what is on it. `taken`: a pod is there that shares it with no other of its kind."""

    has: _Amount = _Amount()
    taken: bool = False

    def with_(self, pod: PodView, room: _Amount) -> _Filled | None:
        """None: it doesn't fit."""
        has = self.has.plus(pod)
        return (
            None
            if (self.taken and pod.one_per_node) or not has.within(room)
            else _Filled(has, self.taken or pod.one_per_node)
        )


def shape_of(gang: Gang, bound: Sequence[PodView], objects: Objects, site: Site) -> tuple[int, Resources]:
    """Nodes, and what it asks of each. On nodes: what it has there on average. Pending: packed onto nodes of the pool
    that takes the fewest; what the fullest has is asked of each, for a job has one shape to the policy.
    """
    if bound:
        count = len({pod.node for pod in bound})
        return count, _mean(bound, count)
    workers = gang.unbound_workers
    largest = max(workers, key=lambda pod: (pod.gpus, pod.milli_cpus, pod.memory))
    pods = [*workers, *[largest] * max(0, gang.size - len(gang.pods))]
    pods += [
        pod for pod in gang.launchers if not pod.node and not pod.deleting and goes_along(pod, gang, objects, site)
    ]
    pods.sort(key=lambda pod: (-pod.gpus, -pod.milli_cpus, -pod.memory))
    where = allowed(gang, objects, site)
    rooms = [
        _Amount(pool.each.gpus, pool.each.cpus * 1000, pool.each.memory_mb * _MIB)
        for pool in site.pools
        if pool.partition in where
    ]
    if largest.together == HOSTNAME_KEY:
        filled = [_Filled(_sum(pods))]
    elif rooms:
        filled = min((_packed(pods, room) for room in rooms), key=len)
    else:
        filled = [_Filled(_Amount().plus(pod)) for pod in pods]
    most = _Amount(*(max(of) for of in zip(*(node.has for node in filled), strict=True)))
    return len(filled), Resources(most.gpus, math.ceil(most.milli / 1000), math.ceil(most.memory / _MIB))


def _packed(pods: Sequence[PodView], room: _Amount) -> list[_Filled]:
    """The largest first, onto as few nodes as that takes; then evenly onto so many. A pod that is larger than a node
    has one of its own.
    """
    few: list[_Filled] = []
    for pod in pods:
        for n, node in enumerate(few):
            if found := node.with_(pod, room):
                few[n] = found
                break
        else:
            few.append(_Filled(_Amount().plus(pod), pod.one_per_node))
    even = [_Filled()] * len(few)
    for pod in pods:
        fits = [(found, n) for n, node in enumerate(even) if (found := node.with_(pod, room))]
        if not fits:
            return few
        found, n = min(fits, key=lambda each: (each[0].has, each[1]))
        even[n] = found
    return even


def _sum(pods: Iterable[PodView]) -> _Amount:
    total = _Amount()
    for pod in pods:
        total = total.plus(pod)
    return total


def _mean(pods: Iterable[PodView], nodes: int) -> Resources:
    gpus, milli, memory = _sum(pods)
    return Resources(*map(math.ceil, (gpus / nodes, milli / nodes / 1000, memory / nodes / _MIB)))
