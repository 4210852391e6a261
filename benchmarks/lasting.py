"""States that last in random days: what was paid for them, and what ironburst.nodes.state_times allows of that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ironburst.controller.records import STOP_S, EventRow
from ironburst.nodes.state_times import StateTime

LOOKS = 4  # ticks from a step of the table to the end of an instance


class Bill(Protocol):
    def usd(self, start_s: float, end_s: float, ids: Iterable[str]) -> float: ...


@dataclass(frozen=True)
class Lasting:
    """A state that came and doesn't go. `what`: as events name it, with its state. `way_s`: what its job or its node
    has for leaving, beside the time that a controller gives it.
    """

    what: tuple[str, ...]
    row: StateTime
    since_s: float
    instances: tuple[str, ...]
    way_s: float = 0.0
    job: int | None = None

    def paid(self, bill: Bill) -> float:
        """USD since it came."""
        return bill.usd(self.since_s, float("inf"), self.instances)

    def allowed(self, bill: Bill, tick_s: float) -> float:
        """The USD of these up to the last step of its row, and until the instance can have gone."""
        until_s = self.since_s + self.row.steps[-1][0] + self.way_s + STOP_S + LOOKS * tick_s
        return bill.usd(self.since_s, until_s, self.instances)

    def unheard(self, bill: Bill, events: Iterable[EventRow], tick_s: float) -> bool:
        """Whether it was paid for beyond its first step, and nobody was told."""
        step_s = self.since_s + self.row.steps[0][0] + self.way_s + LOOKS * tick_s
        told = any(all(word in each.text for word in self.what) for each in events if each.at_s >= self.since_s)
        return not told and bill.usd(step_s, float("inf"), self.instances) > 0
