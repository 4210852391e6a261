"""What the checks read: the declaration, the published document where there is one, and the subscription."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ironburst.config.azure.models import AzureCloud, AzureGroup, AzurePool
from ironburst.config.models import ClusterConfig
from ironburst.doctor import rented
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
        return rented.named(self.cloud.groups, self.cloud.pools)


def zones_of(nodes: Nodes) -> list[str]:
    """The numbers of the zones that they may be in; empty: in none."""
    zones = [nodes.zone] if isinstance(nodes, AzureGroup) else list(nodes.zones)
    return [zone.rpartition("-")[2] if "-" in zone else "" for zone in zones]
