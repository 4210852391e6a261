"""What the checks read: the declaration, the published document where there is one, and the project."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ironburst.config.google.models import GoogleCloud, GoogleGroup, GooglePool
from ironburst.config.models import ClusterConfig
from ironburst.doctor.google.project import Project
from ironburst.document import ClusterDocument

Nodes = GoogleGroup | GooglePool


@dataclass(frozen=True)
class GoogleSite:
    """One declared cluster with nodes in Google Cloud."""

    config: ClusterConfig
    cloud: GoogleCloud
    project: Project
    now: datetime
    document: ClusterDocument | None = None

    @property
    def nodes(self) -> list[tuple[str, Nodes]]:
        """Fixed groups and pools, each with what people call it."""
        groups = [(f"group {group.name}", group) for group in self.cloud.groups]
        return [*groups, *((f"pool {pool.name}", pool) for pool in self.cloud.pools)]


def zones_of(nodes: Nodes) -> list[str]:
    """The zones that they may be in."""
    return [nodes.zone] if isinstance(nodes, GoogleGroup) else list(nodes.zones)


def most(nodes: Nodes) -> int:
    """How many there may be at once."""
    return nodes.count if isinstance(nodes, GoogleGroup) else nodes.max_nodes


def markets_of(nodes: Nodes) -> list[str]:
    """on-demand, spot, capacity-block."""
    return ["on-demand"] if isinstance(nodes, GoogleGroup) else list(nodes.markets)
