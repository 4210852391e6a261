"""What a declaration says of its cluster in EKS. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.config import software
from ironburst.config.models import ClusterConfig
from ironburst.config.node_settings import NodeSettings
from ironburst.config.scheduler_models import Kubernetes
from ironburst.nodes import naming


def version(config: ClusterConfig, declared: Kubernetes) -> str:
    """Of the control plane: `1.36`; empty: it isn't declared."""
    if declared.eks and declared.eks.version:
        return declared.eks.version
    return _minor(software.wish(config, None, None, "kubernetes").kubernetes)


def kubelets(config: ClusterConfig, declared: Kubernetes) -> Iterator[tuple[str, str]]:
    """Each fixed group of the cluster, with the minor version of its kubelets."""
    for group in config.groups:
        if config.scheduler_of(group) is declared:
            yield group.name, _minor(software.wish(config, group.software, None, "kubernetes").kubernetes)


def cluster_of(config: ClusterConfig, nodes: NodeSettings) -> str:
    """What EKS calls the cluster that these nodes join; empty: they join none there."""
    scheduler = config.scheduler_of(nodes)
    return naming.cluster_object(config.name) if isinstance(scheduler, Kubernetes) and scheduler.eks else ""


def _minor(full: str | None) -> str:
    return ".".join((full or "").split(".")[:2])
