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
from ironburst.adapters.kubernetes.site import HOSTNAME_KEY, KubernetesPool, KubernetesSite
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

    @property
    def whole(self) -> Resources:
        """That are offered to jobs: whole CPUs and MiB."""
        return Resources(self.gpus, self.milli // 1000, self.memory // _MIB)

    def within(self, room: _Amount) -> bool:
        return all(mine <= its for mine, its in zip(self, room, strict=True))


class _Filled(NamedTuple):
    """A node with what is on it. `kin`: pods there of which a node takes only so many."""

    has: _Amount = _Amount()
    kin: int = 0

    def with_(self, pod: PodView, room: _Amount) -> _Filled | None:
        """None: it doesn't fit."""
        has = self.has.plus(pod)
        if not has.within(room) or 0 < pod.most_per_node <= self.kin:
            return None
        return _Filled(has, self.kin + bool(pod.most_per_node))


class Shape(NamedTuple):
    """Of a gang. `each`: of a node, in whole CPUs and MiB; `exact`: the same before it was rounded up."""

    nodes: int
    each: Resources
    exact: _Amount


def shape_of(gang: Gang, bound: Sequence[PodView], objects: Objects, site: KubernetesSite) -> Shape:
    """Nodes, and what it asks of each. On nodes: what it has there on average. Pending: packed onto nodes of the pool
    that takes the fewest; what the fullest has is asked of each, for a job has one shape to the policy.
    """
    if bound:
        count = len({pod.node for pod in bound})
        return Shape(count, _mean(bound, count), _Amount())
    workers = gang.unbound_workers
    largest = max(workers, key=lambda pod: (pod.gpus, pod.milli_cpus, pod.memory))
    pods = [*workers, *[largest] * max(0, gang.size - len(gang.pods))]
    pods += [
        pod for pod in gang.launchers if not pod.node and not pod.deleting and goes_along(pod, gang, objects, site)
    ]
    pods.sort(key=lambda pod: (-pod.gpus, -pod.milli_cpus, -pod.memory))
    rooms = list(_rooms(gang, objects, site).values())
    if largest.together == HOSTNAME_KEY:
        filled = [_Filled(_sum(pods))]
    elif rooms:
        filled = min((_packed(pods, room) for room in rooms), key=len)
    else:
        filled = [_Filled(_Amount().plus(pod)) for pod in pods]
    most = _Amount(*(max(of) for of in zip(*(node.has for node in filled), strict=True)))
    each = Resources(most.gpus, math.ceil(most.milli / 1000), math.ceil(most.memory / _MIB))
    if fitting := [room for room in rooms if most.within(room)]:
        each = each.at_most(max(fitting).whole)  # what takes all of 95.5 CPUs takes all of the 95 that are offered
    return Shape(len(filled), each, most)


def too_large(shape: Shape, gang: Gang, objects: Objects, site: KubernetesSite) -> str:
    """What of a node it asks for that fits into the pools as declared, and not beside what kubelet and DaemonSets take;
    empty: it fits, or is too large anyway.
    """
    rooms, each = _rooms(gang, objects, site), shape.each
    declared = {pool.partition: pool.each for pool in site.pools}
    fits = any(shape.exact.within(room) for room in rooms.values())
    if fits or not any(each.within(declared[name]) for name in rooms):
        return ""
    left = [f"{name}: {room.milli / 1000:g} CPUs, {room.memory >> 20} MiB" for name, room in sorted(rooms.items())]
    asks = f"{shape.exact.milli / 1000:g} CPUs and {each.memory_mb} MiB of a node"
    return f"{asks}, of which kubelet and DaemonSets leave less ({'; '.join(left)})"


def for_jobs(objects: Objects, site: KubernetesSite) -> dict[str, Resources]:
    """What a new node of each partition has for jobs."""
    return {pool.partition: _room(pool, objects, site).whole for pool in site.pools}


def _rooms(gang: Gang, objects: Objects, site: KubernetesSite) -> dict[str, _Amount]:
    """What nodes of each partition that it may go to have for pods."""
    where = allowed(gang, objects, site)
    return {pool.partition: _room(pool, objects, site) for pool in site.pools if pool.partition in where}


def _room(pool: KubernetesPool, objects: Objects, site: KubernetesSite) -> _Amount:
    """What kubelet and the DaemonSets leave of a node: by the pool's nodes that are there, else as it will be."""
    there = [view for name in pool.nodes if (view := objects.nodes.get(name)) and view.milli_cpus]
    milli = min((view.milli_cpus for view in there), default=pool.each.cpus * 1000 - _reserved(pool, site))
    memory = min((view.memory for view in there), default=pool.each.memory_mb * _MIB)
    for pod in objects.daemons.values():
        if pool.partition in pod.pools and pod.tolerates_all:
            milli, memory = milli - pod.milli_cpus, memory - pod.memory
    return _Amount(pool.each.gpus, max(milli, 0), max(memory, 0))


def _reserved(pool: KubernetesPool, site: KubernetesSite) -> int:
    """Thousandths of CPUs that kubelet keeps: none by default; on EKS 6 % of the first core, 1 % of the second, 0.5 %
    of the next two and 0.25 % of all others (nodeadm, awslabs/amazon-eks-ami). The memory that is declared of a pool is
    less than a machine has by more than kubelet keeps.
    """
    if not site.by_instance:
        return 0
    parts = [60.0, 10.0, 5.0, 5.0, *[2.5] * max(0, pool.each.cpus - 4)]
    return math.ceil(sum(parts[: pool.each.cpus]))


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
            few.append(_Filled(_Amount().plus(pod), int(bool(pod.most_per_node))))
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
