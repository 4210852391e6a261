"""A stand-in's clock, and what happens when its time has come."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime


class Timeline:
    """Runs with `clock` (seconds since 1970), and ahead of it by what `passes`."""

    def __init__(self, clock: Callable[[], float]):
        self._clock, self._ahead_s = clock, 0.0
        self._due, self._order = list[tuple[float, int, Callable[[], None]]](), itertools.count()

    def now(self) -> float:
        return self._clock() + self._ahead_s

    def passes(self, seconds: float) -> None:
        self._ahead_s += seconds
        self.settle()

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now() + seconds, next(self._order), act))

    def settle(self) -> None:
        """Do what is due."""
        while self._due and self._due[0][0] <= self.now():
            heapq.heappop(self._due)[2]()

    def stamp(self) -> str:
        return datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds")
