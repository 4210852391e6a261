"""What the cluster's document says of pools that Karpenter launches: a part of model.py's document."""

from __future__ import annotations

from pydantic import Field

from ironburst.document.part import Part


class KarpenterPool(Part):
    """A NodePool of Karpenter's whose nodes our budget pays for."""

    name: str
    node_pool: str = Field(description="name of the NodePool")
    instance_type: str
    gpus: int = Field(description="of one node")
    cpus: int = Field(description="of one node")
    market: str
    usd_per_hour: float = Field(description="of one node")
    max_nodes: int
    max_run_s: int = Field(description="a node takes pods for so long, and lives as long again at most")
    account: str = Field(default="", description="empty: the common ceilings alone")
