"""What each GPU of a hall may draw so that the hall stays within that many watts: the same for all, as far as they take
it, because the slowest GPU sets a gang's pace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class Unreachable(ValueError):
    """Not even with each GPU at its least; `least_w` is what the hall draws then."""

    def __init__(self, least_w: float):
        super().__init__(f"with each GPU at its least the hall may draw {least_w:.0f} W")
        self.least_w = least_w


@dataclass(frozen=True)
class CappedNode:
    """A node whose GPUs take a limit from `least_w` to `most_w` each; `rest_w`: the most that all else of it draws."""

    gpus: int
    least_w: float
    most_w: float
    rest_w: float

    def limit(self, each_w: int) -> int:
        """Of each of its GPUs, where the hall's is that much."""
        return int(min(max(each_w, self.least_w), self.most_w))

    def draws(self, each_w: int) -> float:
        """W, at most."""
        return self.rest_w + self.gpus * self.limit(each_w)


def limits(watts: float, machines: Mapping[str, CappedNode], fixed_w: float) -> dict[str, int]:
    """W of each GPU by node, the most that keep machines and `fixed_w` within `watts`. Raises Unreachable."""

    def total(each_w: int) -> float:
        return fixed_w + sum(machine.draws(each_w) for machine in machines.values())

    low, high = 0, int(max((machine.most_w for machine in machines.values()), default=0))
    if total(low) > watts:
        raise Unreachable(total(low))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if total(middle) <= watts else (low, middle - 1)
    return {name: machine.limit(low) for name, machine in machines.items()}
