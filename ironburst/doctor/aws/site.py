"""What the checks read: the declaration, the published document where there is one, and the account.

How a declaration names zones, markets and capacity is read here, and nowhere else of the doctor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ironburst.config.aws.models import AwsCloud, AwsGroup, AwsPool
from ironburst.config.models import ClusterConfig
from ironburst.doctor import rented
from ironburst.doctor.aws.account import Account
from ironburst.document import ClusterDocument
from ironburst.nodes.naming import node_role

PUBLISH = "run `pulumi up`, publish its document and name it with --document"


@dataclass(frozen=True)
class AwsSite:
    """One declared cluster with nodes in AWS."""

    config: ClusterConfig
    cloud: AwsCloud
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
    def nodes(self) -> list[tuple[str, AwsGroup | AwsPool]]:
        """Fixed groups and pools, each with what people call it."""
        return rented.named(self.cloud.groups, self.cloud.pools)


def markets_of(nodes: AwsGroup | AwsPool) -> list[str]:
    """on-demand, spot, capacity-block."""
    if isinstance(nodes, AwsGroup):
        return ["capacity-block" if nodes.capacity_block else "on-demand"]
    return list(nodes.markets)


@dataclass(frozen=True)
class Reserved:
    """Capacity that somebody has reserved or bought for nodes."""

    id: str
    block: bool  # a capacity block
    ends: datetime | None  # as declared


def reserved(nodes: AwsGroup | AwsPool) -> Reserved | None:
    """None: they take what EC2 has, or what a group of reservations has."""
    if nodes.capacity_block:
        return Reserved(nodes.capacity_block.id, True, nodes.capacity_block.ends)
    ends = nodes.capacity_ends if isinstance(nodes, AwsPool) else None
    return Reserved(nodes.capacity_reservation, False, ends) if nodes.capacity_reservation else None


def node_roles(site: AwsSite, kind: str | None = None) -> list[str]:
    """The logical names of the roles that rented nodes have, of one kind of scheduler or of all: those of pools with
    data in S3 are their own.
    """
    s3 = {name for name, data in site.cloud.data.items() if data.s3}
    names = [
        node_role(_beside_first(site, pool), pool.name if s3 & set(pool.data) else "")
        for pool in site.cloud.pools
        if kind in (None, site.config.scheduler_of(pool).kind)
    ]
    return list(dict.fromkeys(names))


def _beside_first(site: AwsSite, pool: AwsPool) -> str:
    scheduler = site.config.scheduler_of(pool)
    return "" if scheduler is site.config.scheduler else scheduler.kind
