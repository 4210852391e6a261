"""Home nodes of a cluster as a converge takes them out of service and gives them back (ports.service).

A pod with GPUs is waited for, never evicted. One without, which its controller makes again elsewhere, is evicted as
soon as its disruption budget allows that; what is refused is waited for, too. DaemonSets' and static pods stay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

from ironburst.adapters.kubernetes import nodes
from ironburst.adapters.kubernetes.gangs import Gang
from ironburst.adapters.kubernetes.queue import Objects
from ironburst.adapters.kubernetes.scheduler import Kubernetes
from ironburst.adapters.kubernetes.site import KubernetesSite
from ironburst.adapters.kubernetes.views import JobView, PodView
from ironburst.ports.service import Occupancy


class KubernetesNodes:
    """A NodeService. Close it in the end."""

    def __init__(self, cluster: Kubernetes, site: KubernetesSite):
        self._cluster, self._site = cluster, site
        self._drained: set[str] = set()  # by us

    def close(self) -> None:
        """End the watches."""
        self._cluster.close()

    def occupancy(self) -> dict[str, Occupancy]:
        """All Node objects, and the pods of workloads that are on them. What a budget refused to let go from the nodes
        that we drained is asked for again with each look: it lets the next one go when the last one runs elsewhere.
        """
        self._move()
        return occupancy_of(self._cluster.objects(), self._site, self._cluster.now())

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Cordon, and evict the pods without GPUs that are made again."""
        self._cluster.drain(nodes, reason)
        self._drained.update(nodes)
        self._move()

    def resume(self, nodes: Sequence[str]) -> None:
        """Lift the cordon."""
        self._drained.difference_update(nodes)
        self._cluster.resume(nodes)

    def _move(self) -> None:
        if self._drained:
            gangs = [gang for gang in self._cluster.objects().gangs[0] if _movable(gang, self._drained)]
            self._cluster.requeue(*(gang.id for gang in gangs))  # what is refused is seen as busy


def _movable(gang: Gang, names: Set[str]) -> bool:
    there = any(pod.node in names and not pod.deleting for pod in gang.pods)
    return gang.remade and there and not any(pod.gpus for pod in gang.pods)


def occupancy_of(seen: Objects, site: KubernetesSite, now_s: float) -> dict[str, Occupancy]:
    """Nodes and what is on them. Pure."""
    on: dict[str, list[PodView]] = {}
    for pod in seen.pods.values():
        if pod.node and pod.workload:
            on.setdefault(pod.node, []).append(pod)
    bound = [pod for pods in on.values() for pod in pods]
    found = nodes.nodes_of(seen.nodes, bound, nodes.NodesRecord(), site, now_s)
    return {
        node.name: Occupancy(
            name=node.name,
            partitions=node.partitions,
            states=frozenset(node.states),
            reason=node.reason,
            jobs=tuple(sorted({pod.key for pod in on.get(node.name, ())})),
            address=node.address,
            end_s=max((_end_s(pod, seen.jobs_by_uid) for pod in on.get(node.name, ())), default=0.0),
        )
        for node in found
        if node.name in seen.nodes
    }


def _end_s(pod: PodView, jobs: Mapping[str, JobView]) -> float:
    """When it ends by its own limit or its Job's; infinite: it has none, or hasn't begun."""
    job = jobs.get(pod.owner.uid) if pod.owner else None
    limits = ((pod.started_s, pod.limit_s), (job.started_s, job.limit_s) if job else (None, None))
    return min((began_s + limit_s for began_s, limit_s in limits if began_s is not None and limit_s), default=math.inf)
