"""Pools whose nodes Karpenter launches, as a person declares them (`cloud.karpenter` of ironburst.config.models)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ironburst.config.software_models import Strict
from ironburst.config.types import Account, Duration, Name, NodeLabel, NodeLabelValue


class KarpenterPool(Strict):
    """One NodePool of one instance type and one market, so that its limit in GPUs is one in dollars."""

    name: Name
    instance_type: str = Field(examples=["g6e.12xlarge"])
    market: Literal["on-demand", "spot"] = Field(
        default="on-demand", description="spot counts by its declared price; Karpenter pays what it costs"
    )
    max_nodes: int = Field(gt=0, le=1000, description="never more than this many at a time, whatever money there is")
    max_run: Duration = Field(
        default="1d",
        validate_default=True,
        description="a node takes no new pods after this, and its last pods have as long again: it costs twice this at "
        "most. Pods without the annotation karpenter.sh/do-not-disrupt are evicted when it is over",
    )
    idle: Duration = Field(
        default="10m", validate_default=True, description="a node without pods ends after this, 5m at least"
    )
    node_class: str = Field(
        pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$",
        examples=["default"],
        description="node class that the cluster has: image, network and joining are Karpenter's own matter",
    )
    account: Account | None = Field(
        default=None, description="one of budget.accounts, which pays; none: the common ceilings alone"
    )
    zones: list[str] = Field(default=[], description="where nodes may be; none: wherever the node class has subnets")
    labels: dict[NodeLabel, NodeLabelValue] = Field(default={}, description="of its nodes, for pods that select them")
    taint_gpus: bool = Field(
        default=True, description="its nodes have the taint nvidia.com/gpu:NoSchedule: pods without GPUs stay away"
    )
