"""What the checks read: the declaration, the published document where there is one, and the account.

How a declaration names types, capacity and links is read here, and nowhere else of the doctor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ironburst.config.cloud_models import Cloud, Group, Pool
from ironburst.config.models import ClusterConfig
from ironburst.config.network_models import CloudNetwork, HallLink
from ironburst.doctor.account import Account
from ironburst.document import ClusterDocument

PUBLISH = "run `pulumi up`, publish its document and name it with --document"


@dataclass(frozen=True)
class Site:
    """One declared cluster with nodes in AWS."""

    config: ClusterConfig
    cloud: Cloud
    account: Account
    now: datetime
    document: ClusterDocument | None = None
    accounts: Sequence[str] = ()
    """account numbers that the stack file allows (aws:allowedAccountIds); empty: any"""

    @property
    def name(self) -> str:
        """The cluster's."""
        return self.config.name

    @property
    def nodes(self) -> list[tuple[str, Group | Pool]]:
        """Fixed groups and pools, each with what people call it."""
        groups = [(f"group {group.name}", group) for group in self.cloud.groups]
        return [*groups, *((f"pool {pool.name}", pool) for pool in self.cloud.pools)]


def types_of(nodes: Group | Pool) -> list[str]:
    """The instance types that they may have."""
    return [nodes.instance_type]


def zones_of(nodes: Group | Pool) -> list[str]:
    """The zones that they may lie in."""
    return [nodes.zone] if isinstance(nodes, Group) else list(nodes.zones)


def most(nodes: Group | Pool) -> int:
    """How many there may be at once."""
    return nodes.count if isinstance(nodes, Group) else nodes.max_nodes


def markets_of(nodes: Group | Pool) -> list[str]:
    """on-demand, spot, capacity-block."""
    if isinstance(nodes, Group):
        return ["capacity-block" if nodes.capacity_block else "on-demand"]
    return list(nodes.markets)


@dataclass(frozen=True)
class Reserved:
    """Capacity that somebody has reserved or bought for nodes."""

    id: str
    block: bool | None  # a capacity block; None: the declaration doesn't say
    ends: datetime | None  # as declared


def reserved(nodes: Group | Pool) -> Reserved | None:
    """None: they take what EC2 has."""
    if isinstance(nodes, Pool):
        return Reserved(nodes.capacity_reservation, None, nodes.capacity_ends) if nodes.capacity_reservation else None
    if nodes.capacity_block:
        return Reserved(nodes.capacity_block.id, True, nodes.capacity_block.ends)
    return Reserved(nodes.capacity_reservation, False, None) if nodes.capacity_reservation else None


def node_roles(_site: Site) -> list[str]:
    """The logical names of the roles that rented nodes have."""
    return ["node"]


def links(network: CloudNetwork) -> list[HallLink]:
    """The ways to halls."""
    return [network.hall_link] if network.hall_link else []
