"""What the controller needs of Karpenter: a Protocol, and the records that pass through it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class NodeClaim:
    """One machine of Karpenter's, from the wish to its end. Times are seconds since 1970, by the API server's clock."""

    uid: str
    name: str
    node_pool: str
    instance_type: str  # empty: not chosen yet
    market: str  # on-demand or spot; empty: not chosen yet
    created_s: float
    launched: bool  # there is an instance, which costs money
    deleting_s: float | None = None  # since when it is to end; Karpenter doesn't count it under a limit any more
    expires_s: float = math.inf  # Karpenter ends it then, and takes its pods away
    grace_s: float = math.inf  # so long the pods may stay that nothing may disrupt

    @property
    def ends_s(self) -> float:
        """It is gone by then; infinite: not known."""
        return min(self.expires_s, math.inf if self.deleting_s is None else self.deleting_s) + self.grace_s


@dataclass(frozen=True)
class NodePools:
    """What is there at one moment. `limits`: of the NodePools that there are, the nodes that each may have, by its
    limits; None: no limit.
    """

    claims: tuple[NodeClaim, ...] = ()
    limits: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Size:
    """What one node of a NodePool counts for under a limit."""

    gpus: int
    cpus: int


class Karpenter(Protocol):
    """All methods raise SchedulerError."""

    def look(self, cluster: str, sizes: Mapping[str, Size]) -> NodePools:
        """The stack's NodePools of these names, and all NodeClaims of the stack."""

    def limit(self, node_pool: str, size: Size, nodes: int) -> None:
        """The most nodes of this NodePool."""
