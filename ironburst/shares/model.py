"""What the arithmetic of shares is about. GPUs are whole ones, of the nodes that all teams share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GUARANTEED, OVER, OWN = "guaranteed", "over", "own"
"""what a job counts in, as its scheduler has it: its team's guarantee, over quota, or the team's own nodes"""


@dataclass(frozen=True)
class TeamShare:
    """What one team was promised. `account`: its Slurm account, or its Kubernetes namespace."""

    account: str
    guaranteed: int = 0
    over_quota: bool = True  # it may use idle GPUs beyond its guarantee
    weight: int = 1  # its part of what is idle
    most: int | None = None  # at once; None: as many as there are
    nodes: tuple[str, ...] = ()  # that are its alone

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> TeamShare:
        """From the document's `shares`."""
        return cls(
            account=written["account"],
            guaranteed=written["guaranteed_gpus"],
            over_quota=written["over_quota"],
            weight=written["weight"],
            most=written["max_gpus"],
            nodes=tuple(written["nodes"]),
        )


@dataclass(frozen=True)
class SharedJob:
    """A job that is on shared nodes, or waits for them. `order`: who waits longer has less."""

    id: int
    account: str
    nodes: int
    each: int  # GPUs on each of its nodes
    order: float = 0.0
    on: tuple[str, ...] = ()  # the nodes that it is on; none: it waits
    over: bool = False  # it is on them over quota, and ends when a guarantee needs its place; or waits for that alone

    @property
    def gpus(self) -> int:
        """Of all its nodes."""
        return self.nodes * self.each


@dataclass(frozen=True)
class Quota:
    """What a team may have at this moment. The scheduler holds both numbers, each against the jobs of its kind."""

    guaranteed: int
    over: int  # beyond it: what its jobs over quota may have together
    short: int = 0  # so much less is guaranteed than was promised, because nodes are away
