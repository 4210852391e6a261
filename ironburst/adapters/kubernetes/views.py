"""What is kept of Kubernetes' objects: of 5,000 pods a tenth of the memory that their JSON takes.

A view is made when an object arrives; `version` is its resourceVersion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

# controllers whose pods serve or work each for itself, and are made anew when they go
EACH_FOR_ITSELF = ("ReplicaSet", "ReplicationController", "StatefulSet")


class Owner(NamedTuple):
    """The controller that made an object, from its ownerReferences."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod that hasn't ended. `error`: what of it can't be read; then only its names and its node count."""

    key: str  # namespace/name
    uid: str
    version: int
    namespace: str
    name: str
    node: str = ""  # empty: not bound
    error: str = ""
    workload: bool = True  # False: a DaemonSet's, or a static pod: it goes with its node
    deleting: bool = False
    gone_s: float | None = None  # when its grace period is over; None: it isn't being deleted
    created_s: float = 0.0
    started_s: float | None = None  # its kubelet took it
    limit_s: float | None = None  # its own activeDeadlineSeconds
    aside_s: float | None = None  # by its annotation: money is set aside for so long, and then anew
    gpus: int = 0
    claims_devices: bool = False  # and asks for no GPU beside: how many it has, its claims say
    milli_cpus: int = 0
    memory: int = 0  # bytes
    owner: Owner | None = None
    group: str = ""  # its PodGroup's name
    leader_set: tuple[str, str, int] | None = None  # LeaderWorkerSet: name, group index, pods in the group
    jobset: str = ""  # JobSet's name
    jobset_jobs: int = 0  # how many Jobs that JobSet has; 0: it doesn't say
    index: str = ""  # in an Indexed Job
    waits: str = ""  # why nothing is to be done for it though it is pending; empty: it is unschedulable
    reason: str = ""  # the scheduler's words
    begins: str = ""  # bound: what its containers wait for, kubelet's word first; empty: they work
    alike: str = ""  # what decides where it may start: pods.alike
    replica: str = ""  # several pods that its operator adds and takes away as one; empty: it is one by itself
    origin: str = ""  # what its controller's other pods of the same images share; empty: it has none
    priority: int = 0
    account: str = ""
    user: str = ""
    tolerates: frozenset[str] = frozenset()  # values of the taint of rented nodes
    tolerates_all: bool = False  # every rented node, whoever it was rented for
    lists_tolerations: bool = True
    demands: tuple[str, ...] = ()  # what no rented node can promise
    pools: frozenset[str] = frozenset()  # partitions whose nodes its node selector and affinity allow
    chooses_gpu: bool = False  # its node selector or affinity says which GPUs
    together: str = ""  # topology key that it wants to share with its own kind; empty: none
    near: tuple[tuple[str, dict[str, Any]], ...] = ()  # the same, all: topology key, label selector
    most_per_node: int = 0  # so many of its own kind share a node; 0: as many as fit
    spread: tuple[str, ...] = ()  # topology keys that its own kind has to be spread over
    labels: Mapping[str, str] = field(default_factory=dict)  # of what may be a launcher of a gang; of others none
    claims: tuple[str, ...] = ()  # PersistentVolumeClaims, namespace/name
    queued_as: str = ""  # name of its Kueue Workload; empty: it has none, or doesn't say
    share: str = ""  # what it counts in of its team's share, by its priority class: ironburst.shares.model


@dataclass(frozen=True, slots=True)
class NodeView:
    """A Node object."""

    key: str
    uid: str
    version: int
    created_s: float = 0.0
    error: str = ""
    deleting: bool = False
    cordoned: bool = False
    drain: str | None = None  # why we cordoned it; None: we didn't
    taints: tuple[tuple[str, str, str], ...] = ()  # key, value, effect
    ready: str = "Unknown"  # status of its condition Ready
    ready_since_s: float = 0.0
    gate: str = ""  # status of its condition GatePassed; empty: there is none
    gate_said: str = ""
    gate_at_s: float | None = None  # when the node said that last, by its own clock; None: it didn't say
    gpus: int = 0  # allocatable; of shared ones (time-slicing, MPS) the GPUs themselves
    replicas: int = 1  # so many pods share each of them
    milli_cpus: int = 0
    memory: int = 0
    address: str = ""
    says: str = ""  # which declared node it says it is, by a label
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobView:
    """A batch/v1 Job."""

    key: str
    uid: str
    version: int
    name: str
    error: str = ""
    jobset: str = ""
    owner: str = ""  # uid of the controller that made it
    parallelism: int = 1
    completions: int | None = None
    indexed: bool = False
    limit_s: float | None = None  # activeDeadlineSeconds: from started_s on, pending or not
    started_s: float | None = None
    failed: int = 0
    succeeded: int = 0
    spares_disrupted: bool = False  # its podFailurePolicy doesn't count evicted pods as failed
    backoff_limit: int = 6
    template: PodView | None = None  # of a Job that goes on and has no pods now: it makes them anew after a pause

    @property
    def together(self) -> bool:
        """Its pods run at the same time: an Indexed Job that starts all of its indexes."""
        return self.indexed and self.parallelism == self.completions and self.parallelism > 1

    def survives(self, evicted: int) -> bool:
        """Whether it makes that many pods again when they are evicted."""
        return self.spares_disrupted or self.failed + evicted <= self.backoff_limit


@dataclass(frozen=True, slots=True)
class GroupView:
    """A PodGroup of scheduling.k8s.io. `least`: pods that start together; 0: each by itself."""

    key: str
    uid: str
    version: int
    error: str = ""
    least: int = 0
    topology: str = ""  # key of the domain that they share


@dataclass(frozen=True, slots=True)
class DefaultView:
    """What a Namespace, or a LocalQueue of Kueue, says for all of its pods."""

    key: str
    uid: str
    version: int
    error: str = ""
    aside_s: float | None = None  # by its annotation: of those that have no limit of their own


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A PersistentVolumeClaim. `volume`: what it is bound to; empty: nothing yet."""

    key: str
    uid: str
    version: int
    error: str = ""
    volume: str = ""
    storage_class: str = ""


@dataclass(frozen=True, slots=True)
class StorageClassView:
    """A StorageClass. `waits`: its volumes are made where their first pod starts, on nodes of these pools."""

    key: str
    uid: str
    version: int
    error: str = ""
    waits: bool = False
    pools: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class VolumeView:
    """A PersistentVolume. `pools`: partitions whose nodes reach it; None: every node does. `where`: the zone, or the
    like, that it is bound to.
    """

    key: str
    uid: str
    version: int
    error: str = ""
    pools: frozenset[str] | None = None
    where: str = ""


class ObjectView(Protocol):
    """What is kept of any object."""

    @property
    def key(self) -> str:
        """Namespace and name."""

    @property
    def uid(self) -> str:
        """Of the object."""

    @property
    def version(self) -> int:
        """Its resourceVersion."""

    @property
    def error(self) -> str:
        """What of it can't be read."""
