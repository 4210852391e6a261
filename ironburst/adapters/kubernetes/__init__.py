"""Kubernetes as the scheduler (ironburst.ports.Scheduler): docs/adr/0033, and 0038 where Kueue is the queue.

- client, cache: requests, and a copy of a cluster's objects; objects, pods, views: what is kept of them;
  devices: GPUs of a DRA driver; quantities: units
- site, taints, affinity: burst pools, and which pods may run there; gangs, queue: pods as jobs; nodes: Node objects;
  evictions: a job's pods, all or none
- scheduler: the port for kube-scheduler; kueue: for Kueue, with kueue_views, workloads, check_states, quota_room
  and blockers
- joining, instances: how rented nodes join, and on EKS; record: what the controller keeps in the cluster
- quotas: the teams' quotas; karpenter: NodePools and NodeClaims; bridged: beside slurm-bridge
- service: home nodes out of service, for a converge
"""

from __future__ import annotations

from ironburst.adapters.kubernetes.bridged import BridgedNodes
from ironburst.adapters.kubernetes.client import Access, Client
from ironburst.adapters.kubernetes.joining import Deliver
from ironburst.adapters.kubernetes.karpenter import Karpenter
from ironburst.adapters.kubernetes.kueue import Kueue
from ironburst.adapters.kubernetes.scheduler import Kubernetes
from ironburst.adapters.kubernetes.service import KubernetesNodes
from ironburst.adapters.kubernetes.site import KubernetesPool, KubernetesSite

__all__ = [
    "Access",
    "BridgedNodes",
    "Client",
    "Karpenter",
    "Kubernetes",
    "KubernetesNodes",
    "KubernetesPool",
    "KubernetesSite",
    "Kueue",
    "connect",
]


def connect(access: Access, site: KubernetesSite, deliver: Deliver) -> Kubernetes:
    """A cluster. `deliver` puts the token that rented nodes join with where they read it.

    Raises SchedulerError where the cluster can't be reached or the credentials are refused at all; what it knows is
    asked for by the first `observe`.
    """
    kind = Kueue if site.queue == "kueue" else Kubernetes
    return kind(Client(access), site, deliver=deliver)
