"""Which nodes are taken out of service next. Pure.

At most the declared share of each rack and of each partition is out at once, and never the last node of a partition
that takes jobs, unless the share is 100 %.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from ironburst.document import Host
from ironburst.ports.service import Occupancy

NODE_ROLES = {"slurm_node": "slurm", "kubernetes_node": "kubernetes"}
"""of a node of a scheduler, and its kind"""


class ShareError(ValueError):
    """A share that can't be read; the text is one sentence."""


@dataclass(frozen=True)
class MaxUnavailable:
    """How much of a rack or partition may be out at once: a number of nodes, or a fraction of them (0 to 1)."""

    nodes: int | None = 1
    fraction: float | None = None

    @property
    def whole(self) -> bool:
        """Whether all may be out at once."""
        return self.fraction == 1.0

    def of(self, size: int) -> int:
        """Number of nodes of `size`; at least one."""
        return max(1, math.floor(self.fraction * size + 1e-9)) if self.fraction is not None else self.nodes or 1


ONE_NODE = MaxUnavailable(1)


def share(text: str) -> MaxUnavailable:
    """ "25%" or "2". Raises ShareError."""
    percent, number = re.fullmatch(r"(\d+(?:\.\d+)?)%", text), re.fullmatch(r"[1-9]\d*", text)
    if percent and 0 < float(percent.group(1)) <= 100:
        return MaxUnavailable(None, float(percent.group(1)) / 100)
    if number:
        return MaxUnavailable(int(text))
    raise ShareError(
        f"--share {text!r} is no share: "
        "give a number of nodes per rack and partition (2), or a percentage above 0 (25%)"
    )


def groups(host: Host) -> list[tuple[str, ...]]:
    """What a node shares its fate with: its rack, and its partition."""
    rack = [("rack", host.hall or "", host.rack)] if host.rack else []
    partition = [("partition", host.partition)] if host.partition else []
    return [*rack, *partition]


def order(names: Sequence[str], nodes: Mapping[str, Occupancy], ours: Set[str]) -> list[str]:
    """Those that are out already first (`ours`, then others), then those that are free soonest; else as they come."""

    def rank(name: str) -> tuple[int, float]:
        node = nodes.get(name)
        first = 0 if name in ours else 1 if node is None or not node.available else 2
        return first, node.end_s if node else 0.0

    return sorted(names, key=rank)


def batch(
    waiting: Sequence[str], hosts: Sequence[Host], nodes: Mapping[str, Occupancy], limit: MaxUnavailable
) -> list[str]:
    """The nodes to take out now, of those that wait, in their order;
    empty if each would take the last one of its partition.

    `hosts`: all of the document (a share counts all of a rack or partition); `nodes`: what the scheduler says of them.
    """
    known = {host.name: host for host in hosts if not NODE_ROLES.keys().isdisjoint(host.roles)}
    sizes: dict[tuple[str, ...], int] = {}
    serving: dict[tuple[str, ...], int] = {}
    for name, host in known.items():
        for group in groups(host):
            sizes[group] = sizes.get(group, 0) + 1
            serving[group] = serving.get(group, 0) + (name in nodes and nodes[name].available)
    taken: dict[tuple[str, ...], int] = {}
    chosen = []
    for name in waiting:
        mine = groups(known[name])
        if any(taken.get(group, 0) >= limit.of(sizes[group]) for group in mine):
            continue
        serves = name in nodes and nodes[name].available
        if serves and not limit.whole and any(group[0] == "partition" and serving[group] <= 1 for group in mine):
            continue
        for group in mine:
            taken[group] = taken.get(group, 0) + 1
            serving[group] -= serves
        chosen.append(name)
    return chosen
