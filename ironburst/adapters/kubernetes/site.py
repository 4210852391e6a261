"""What the adapter knows of a site: its burst pools, and what its pods and nodes are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ironburst.nodes import naming
from ironburst.ports import Resources

GPU = "nvidia.com/gpu"
SITE_KEY = naming.SITE_LABEL
HOSTNAME_KEY = "kubernetes.io/hostname"
RENTED = naming.RENTED_TAINT  # of a rented node; its value is another one for each lease
NOT_READY = naming.NOT_READY_TAINT  # of a rented node when it registers; it goes when the gate has passed
GATE = naming.GATE_CONDITION
DRAIN = "ironburst.io/drain"  # annotation: why we cordoned a node
BEAT = "ironburst.io/beat"  # annotation: the controller's heartbeat
TIME_LIMIT = naming.TIME_LIMIT


@dataclass(frozen=True)
class KubernetesPool:
    """A burst pool, as it registers with Kubernetes."""

    partition: str
    nodes: tuple[str, ...]  # names of its Node objects
    each: Resources  # of a node, as declared
    gpu_type: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)  # that each of its nodes has once it is in service
    # extended resources of a node beside its GPUs, with their number: vpc.amazonaws.com/efa
    resources: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class KubernetesSite:
    """One cluster. `name` is in the names of what the controller keeps there."""

    name: str
    pools: tuple[KubernetesPool, ...] = ()
    namespace: str = "ironburst-system"  # of the record and the claim
    queue: str = "pods"  # whose it is: kube-scheduler's (pods), or kueue
    boot_s: float = 1800.0  # the longest time from a launch until its node has joined
    home_partition: str = "home"
    by_instance: bool = False  # rented nodes join by themselves, under their instances' ids
    # where Node objects have other names than ours, as on EKS: theirs -> ours
    ours: Mapping[str, str] = field(default_factory=dict)
    schedulers: frozenset[str] = frozenset(("default-scheduler",))  # of whose pods we take care
    account_label: str = ""  # of a pod, naming who pays; empty: its namespace does
    user_label: str = ""  # of a pod, naming who asked; empty: its namespace
    home_registries: tuple[str, ...] = ()  # hosts of images that rented nodes don't reach
    # hostPath volumes that a rented node has as well, by their beginnings
    host_paths: tuple[str, ...] = ("/dev/", "/sys/", "/proc/", "/etc/localtime", "/usr/share/zoneinfo")
    # topology keys that keep pods on one side: all at home, or all in one place where nodes are rented
    site_keys: tuple[str, ...] = (SITE_KEY, "topology.kubernetes.io/zone", "topology.kubernetes.io/region")

    @cached_property
    def pool_of(self) -> dict[str, KubernetesPool]:
        """By the name of a node."""
        return {name: pool for pool in self.pools for name in pool.nodes}

    @cached_property
    def _theirs(self) -> dict[str, str]:
        return {our: their for their, our in self.ours.items()}

    def object_of(self, node: str) -> str:
        """What a node's own object is called."""
        return self._theirs.get(node, node)

    @cached_property
    def record_path(self) -> str:
        """The collection of ConfigMaps that the record is in."""
        return f"/api/v1/namespaces/{self.namespace}/configmaps"

    @cached_property
    def claim_path(self) -> str:
        """The collection of Leases that the claim is in."""
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    @cached_property
    def object_name(self) -> str:
        """Of the record and of the claim."""
        return naming.cluster_object(self.name)
