"""The document's scheduler, as the verbs of the controller reach it: Slurm behind a prefix, or a Kubernetes cluster."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ironburst import naming, secrets
from ironburst.adapters.slurm import Slurm
from ironburst.cli.site_options import BadInput
from ironburst.document import ClusterDocument, PoolDocument
from ironburst.ports import Resources, Scheduler, SchedulerError
from ironburst.service import NodeService

if TYPE_CHECKING:  # it loads what only a cluster needs
    from ironburst.adapters import kubernetes


def connect(arguments: argparse.Namespace, document: ClusterDocument) -> Scheduler:
    """Raises BadInput, or SchedulerError where a cluster's credentials can't be used."""
    if document.scheduler.kind == "slurm":
        if arguments.kubeconfig is not None:
            raise BadInput(f"--kubeconfig {arguments.kubeconfig}: the scheduler of {document.cluster} is Slurm")
        return _slurm(arguments)
    if document.scheduler.kind != "kubernetes":
        known = "this ironburst knows slurm and kubernetes"
        raise BadInput(f"the scheduler of {document.cluster} is {document.scheduler.kind!r}, and {known}")
    if arguments.slurm_prefix is not None:
        raise BadInput(f"--slurm-prefix: the scheduler of {document.cluster} is Kubernetes; give --kubeconfig")
    return _kubernetes(arguments, document)


def _slurm(arguments: argparse.Namespace) -> Slurm:
    given = arguments.slurm_prefix
    text = given if given is not None else os.environ.get("IRONBURST_SLURM_PREFIX", "")
    try:
        return Slurm(shlex.split(text))
    except ValueError as error:
        raise BadInput(f"--slurm-prefix {text!r} can't be split into words: {error}") from None


def _kubernetes(arguments: argparse.Namespace, document: ClusterDocument) -> Scheduler:
    from ironburst.adapters import kubernetes

    access = _access(document, arguments.kubeconfig)
    return kubernetes.connect(access, site_of(document), lambda text: _deliver(document, text))


def nodes_of(document: ClusterDocument) -> NodeService:
    """The nodes of a cluster, for a converge. Raises SchedulerError."""
    from ironburst.adapters import kubernetes

    site, access = site_of(document), _access(document, None)
    return kubernetes.Nodes(kubernetes.Kubernetes(kubernetes.Client(access), site), site)


def _access(document: ClusterDocument, given: Path | None) -> kubernetes.Access:
    from ironburst.adapters import kubernetes

    reference = document.scheduler.kubeconfig
    path = given or os.environ.get("IRONBURST_KUBECONFIG")

    def read() -> str:
        return _resolved(reference, document)

    if path or reference.startswith("file:"):
        return kubernetes.Access(Path(path or reference.removeprefix("file:")).expanduser())
    return kubernetes.Access(None, read=read, said=reference)


def _resolved(reference: str, document: ClusterDocument) -> str:
    try:
        return secrets.resolve(reference, region=document.region)
    except secrets.SecretError as error:
        raise SchedulerError(str(error)) from None


def _deliver(document: ClusterDocument, text: str) -> None:
    try:
        secrets.store(document.scheduler.join_token, text, region=document.region)
    except secrets.SecretError as error:
        raise SchedulerError(str(error)) from None


def site_of(document: ClusterDocument) -> kubernetes.Site:
    """What the adapter is told of a cluster. Pure."""
    from ironburst.adapters import kubernetes

    declared = document.scheduler
    return kubernetes.Site(
        name=document.cluster,
        pools=tuple(_pool(document, pool) for pool in document.pools),
        namespace=declared.namespace,
        home_partition=declared.home_partition,
        account_label=declared.account_label,
        queue=declared.queue or "pods",
        boot_s=max((float(pool.boot_s) for pool in document.pools), default=0.0),
    )


def _pool(document: ClusterDocument, pool: PoolDocument) -> kubernetes.Pool:
    from ironburst.adapters import kubernetes

    types = [pool.instance_type, *(other.instance_type for other in pool.other_types)]
    return kubernetes.Pool(
        partition=pool.partition,
        nodes=tuple(pool.nodes),
        each=Resources(pool.gpu.count, pool.slurm.cpus, pool.slurm.memory_mb),
        gpu_type=pool.gpu.model,
        labels=naming.node_labels(pool.partition, document.region, pool.zone_names, types, pool.labels),
    )
