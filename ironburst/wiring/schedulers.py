"""The document's schedulers, as the verbs of the controller reach them: Slurm behind a prefix, a Kubernetes cluster, or
both as one.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ironburst.adapters.both import Both
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.document import Bridge, ClusterDocument, PoolDocument
from ironburst.document import Scheduler as Declared
from ironburst.nodes import naming
from ironburst.ports import Resources, Scheduler, SchedulerError
from ironburst.system import secrets
from ironburst.system.bad_input import BadInput

_OF_A_CLUSTER = ("cryptography", "kubernetes")
"""what the extra `kubernetes` of pyproject.toml brings"""

if TYPE_CHECKING:  # it loads what only a cluster needs
    from ironburst.adapters import kubernetes
    from ironburst.adapters.bridged import Bridged


class Ways(Protocol):
    """What was given of how schedulers are reached, as the verbs' options have it; None: nothing."""

    slurm_prefix: str | None
    kubeconfig: Path | None


def slurm_prefix(given: str | None) -> list[str]:
    """The words before Slurm's commands: what --slurm-prefix gives, else $IRONBURST_SLURM_PREFIX. Raises BadInput."""
    text = given if given is not None else os.environ.get("IRONBURST_SLURM_PREFIX", "")
    try:
        return shlex.split(text)
    except ValueError as error:
        raise BadInput(f"--slurm-prefix {text!r} can't be split into words: {error}") from None


def connect(ways: Ways, document: ClusterDocument, jobs: int = 0) -> Scheduler:
    """`jobs`: how many were in the queue when it was last looked at. Raises BadInput, or SchedulerError where a
    cluster's credentials can't be used.
    """
    return SchedulerConnection(ways, jobs).follow(document)


def slurm(ways: Ways, document: ClusterDocument) -> Slurm:
    """Only the document's Slurm. Raises BadInput where there is none."""
    _fitting(ways, document)
    if document.scheduler_of_kind("slurm") is None:
        raise BadInput(f"the scheduler of {document.cluster} is Kubernetes, which has no sacct: give --jobs")
    return Slurm(slurm_prefix(ways.slurm_prefix))


class SchedulerConnection:
    """What the documents name, connected as long as it stays the same."""

    def __init__(self, ways: Ways, jobs: int = 0):
        self._ways, self._jobs = ways, jobs
        self._slurm: Slurm | None = None
        self._bridged: Bridged | None = None
        self._cluster: kubernetes.Kubernetes | None = None
        self.karpenter: kubernetes.Karpenter | None = None  # of that cluster
        self._connected: tuple[str, str] = ("", "")  # the kubeconfig, and the queue, that it was connected for
        self._document: ClusterDocument | None = None  # the last one
        self._both: Both | None = None

    def follow(self, document: ClusterDocument) -> Scheduler:
        """The schedulers of a document, which may be another one than before. Raises BadInput, or SchedulerError where
        a cluster's credentials can't be used; of two schedulers that is one that gives no answer.
        """
        _fitting(self._ways, document)
        self._document, sides, failed = document, dict[str, Scheduler](), dict[str, str]()
        for declared in document.schedulers:
            try:
                sides[declared.kind] = self._side(document, declared)
            except SchedulerError as error:
                if not document.other_schedulers:
                    raise
                failed[declared.kind] = str(error)
        if not document.other_schedulers:
            return sides[document.scheduler.kind]
        nodes = {node: document.scheduler_of(pool).kind for pool in document.pools for node in pool.nodes}
        if self._both is None:
            self._both = Both(sides, nodes, failed)
        else:
            self._both.declare(sides, nodes, failed)
        return self._both

    def _side(self, document: ClusterDocument, declared: Declared) -> Scheduler:
        if declared.kind == "slurm" and declared.bridge:
            return self._by_bridge(document, declared.bridge)
        if declared.kind == "slurm":
            self._slurm = self._slurm or Slurm(slurm_prefix(self._ways.slurm_prefix), jobs=self._jobs)
            return self._slurm
        from ironburst.adapters import kubernetes

        wanted = declared.kubeconfig, declared.queue
        if self._cluster and self._connected != wanted:
            self._cluster.close()
            self._cluster = self.karpenter = None
        if self._cluster is None:
            access = _access(declared, document.regions, self._ways.kubeconfig)
            self._cluster = kubernetes.connect(access, site_of(document), self._deliver)
            self.karpenter = kubernetes.Karpenter(kubernetes.Client(access))
            self._connected = wanted
        self._cluster.declare(site_of(document))
        return self._cluster

    def _by_bridge(self, document: ClusterDocument, declared: Bridge) -> Scheduler:
        from ironburst.adapters import kubernetes
        from ironburst.adapters.bridged import Bridged, SlurmQueue

        wanted = declared.kubeconfig, "slurm-bridge"
        if self._bridged is None or self._connected != wanted:
            client = kubernetes.Client(_access(declared, document.regions, self._ways.kubeconfig))
            cluster = kubernetes.BridgedNodes(client, site_of(document), self._deliver)
            queue = SlurmQueue(slurm_prefix(self._ways.slurm_prefix))
            self._bridged, self._connected = Bridged(queue, cluster), wanted
        self._bridged.declare(site_of(document))
        return self._bridged

    def _deliver(self, text: str) -> None:
        assert self._document  # it is connected by one
        _deliver(self._document, text)


def _fitting(ways: Ways, document: ClusterDocument) -> None:
    kinds = [each.kind for each in document.schedulers]
    for kind in kinds:
        if kind not in naming.SCHEDULERS:
            known = "this ironburst knows slurm and kubernetes"
            raise BadInput(f"the scheduler of {document.cluster} is {kind!r}, and {known}")
    if ways.kubeconfig is not None and "kubernetes" not in kinds and not document.scheduler.bridge:
        raise BadInput(f"--kubeconfig {ways.kubeconfig}: the scheduler of {document.cluster} is Slurm")
    if ways.slurm_prefix is not None and "slurm" not in kinds:
        raise BadInput(f"--slurm-prefix: the scheduler of {document.cluster} is Kubernetes; give --kubeconfig")
    if ("kubernetes" in kinds or document.scheduler.bridge) and not all(map(find_spec, _OF_A_CLUSTER)):
        what = f"{document.cluster} has a Kubernetes cluster, and this ironburst is installed without what reaches one"
        raise BadInput(f"{what}: pip install 'ironburst[kubernetes]'")


def nodes_of(document: ClusterDocument) -> kubernetes.KubernetesNodes:
    """The nodes of a cluster, for a converge. Raises SchedulerError."""
    return _nodes(site_of(document), _access(_cluster_of(document), document.regions, None))


def home_nodes(cluster: str, declared: Declared, regions: Mapping[str, str]) -> kubernetes.KubernetesNodes:
    """The same by the document's part that names only the cluster, for Ansible: its rented nodes aren't known for
    such. Raises SchedulerError.
    """
    from ironburst.adapters import kubernetes

    site = kubernetes.KubernetesSite(cluster, namespace=declared.namespace, home_partition=declared.home_partition)
    return _nodes(site, _access(declared, regions, None))


def _nodes(site: kubernetes.KubernetesSite, access: kubernetes.Access) -> kubernetes.KubernetesNodes:
    from ironburst.adapters import kubernetes

    return kubernetes.KubernetesNodes(kubernetes.Kubernetes(kubernetes.Client(access), site), site)


def _cluster_of(document: ClusterDocument) -> Declared | Bridge:
    """The one that is a cluster."""
    return document.scheduler_of_kind("kubernetes") or document.scheduler.bridge or document.scheduler


def _access(declared: Declared | Bridge, regions: Mapping[str, str], given: Path | None) -> kubernetes.Access:
    from ironburst.adapters import kubernetes

    reference = declared.kubeconfig
    path = given or os.environ.get("IRONBURST_KUBECONFIG")

    def read() -> str:
        return _resolved(reference, regions)

    if path or reference.startswith("file:"):
        return kubernetes.Access(Path(path).expanduser() if path else _file_of(reference))
    return kubernetes.Access(None, read=read, said=reference)


def _file_of(reference: str) -> Path:
    try:
        return secrets.file_of(reference)
    except secrets.SecretError as error:
        raise SchedulerError(str(error)) from None


def _resolved(reference: str, regions: Mapping[str, str]) -> str:
    try:
        return secrets.resolve_in(reference, regions)
    except secrets.SecretError as error:
        raise SchedulerError(str(error)) from None


def _deliver(document: ClusterDocument, text: str) -> None:
    """Into the store of each cloud that has it."""
    every = [document.of_provider(cloud.provider) for cloud in document.clouds] or [document]
    written = set[str]()
    for its in every:
        reference = _cluster_of(its).join_token
        try:
            if reference not in written:
                secrets.store(reference, text, region=its.region)
        except secrets.SecretError as error:
            raise SchedulerError(str(error)) from None
        written.add(reference)


def site_of(document: ClusterDocument) -> kubernetes.KubernetesSite:
    """What the adapter knows of a cluster. Pure."""
    from ironburst.adapters import kubernetes

    declared = _cluster_of(document)
    if isinstance(declared, Bridge):
        return kubernetes.KubernetesSite(
            name=document.cluster,
            pools=tuple(_pool(document, pool) for pool in document.pools),
            namespace=declared.namespace,
            boot_s=max((float(pool.boot_s) for pool in document.pools), default=0.0),
            schedulers=frozenset((declared.scheduler_name,)),
        )
    pools = [pool for pool in document.pools if document.scheduler_of(pool) is declared]
    return kubernetes.KubernetesSite(
        name=document.cluster,
        pools=tuple(_pool(document, pool) for pool in pools),
        namespace=declared.namespace,
        home_partition=declared.home_partition,
        account_label=declared.account_label,
        queue=declared.queue or "pods",
        by_instance=bool(declared.signs_in),
        ours={host.node_object: host.name for host in document.hosts if host.node_object},
        boot_s=max((float(pool.boot_s) for pool in pools), default=0.0),
    )


def _pool(document: ClusterDocument, pool: PoolDocument) -> kubernetes.KubernetesPool:
    from ironburst import catalog
    from ironburst.adapters import kubernetes

    return kubernetes.KubernetesPool(
        partition=pool.partition,
        nodes=tuple(pool.nodes),
        each=Resources(pool.gpu.count, pool.slurm.cpus, pool.slurm.memory_mb),
        gpu_type=naming.gpu_type(pool.gpu.model),  # as the policy calls it
        labels=_labels(document, pool),
        resources=catalog.pod_resources(pool.fabric, pool.fabric_links),
    )


def _labels(document: ClusterDocument, pool: PoolDocument) -> dict[str, str]:
    """Of a node that isn't there yet: what we, kubelet, feature discovery and the cloud's drivers give it for sure."""
    from ironburst import catalog
    from ironburst.catalog import gpu_labels

    types = [pool.instance_type, *(other.instance_type for other in pool.other_types)]
    ours = naming.node_labels(pool.partition, document.in_cloud(pool).region, pool.zone_names, types, pool.labels)
    discovered = {} if pool.mig else gpu_labels.node_labels(pool.gpu.model, pool.gpu.count)
    return {**discovered, **catalog.zone_labels(ours.get("topology.kubernetes.io/zone", "")), **ours}
