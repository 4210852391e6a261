"""What the checks read: the declaration, the published document where there is one, and the subscription."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ironburst import catalog
from ironburst.catalog.azure.sizes import Size, size
from ironburst.config.azure.models import AzureCloud, AzureGroup, AzurePool
from ironburst.config.models import ClusterConfig
from ironburst.doctor.azure.subscription import Subscription
from ironburst.document import ClusterDocument

Nodes = AzureGroup | AzurePool


@dataclass(frozen=True)
class AzureSite:
    """One declared cluster with nodes in Azure."""

    config: ClusterConfig
    cloud: AzureCloud
    subscription: Subscription
    now: datetime
    document: ClusterDocument | None = None

    @property
    def nodes(self) -> list[tuple[str, Nodes]]:
        """Fixed groups and pools, each with what people call it."""
        groups = [(f"group {group.name}", group) for group in self.cloud.groups]
        return [*groups, *((f"pool {pool.name}", pool) for pool in self.cloud.pools)]


def zones_of(nodes: Nodes) -> list[str]:
    """The numbers of the zones that they may be in; empty: in none."""
    zones = [nodes.zone] if isinstance(nodes, AzureGroup) else list(nodes.zones)
    return [zone.rpartition("-")[2] if "-" in zone else "" for zone in zones]


def most(nodes: Nodes) -> int:
    """How many there may be at once."""
    return nodes.count if isinstance(nodes, AzureGroup) else nodes.max_nodes


def markets_of(nodes: Nodes) -> list[str]:
    """on-demand, spot, capacity-block."""
    return ["on-demand"] if isinstance(nodes, AzureGroup) else list(nodes.markets)


def kinds(nodes: Nodes) -> Iterator[Size]:
    """Their sizes that the catalogue knows."""
    for name in nodes.types:
        try:
            yield size(name)
        except catalog.Unknown:
            continue
