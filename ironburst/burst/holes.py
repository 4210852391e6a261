"""Holes of a plan (ironburst.burst.packing): what a job leaves free before it, on the GPUs that waited for its others.
Later jobs may fill it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # it is loaded where it is used: `ironburst status` would wait for it
    import numpy as np
    from numpy.typing import NDArray

LEAST_HOLE_S = 60.0  # no shorter one is remembered: hardly a job fits into it


class _Hole(NamedTuple):
    row: int
    begins: Sequence[float]  # of its GPUs, ascending
    until: float
    entries: list[int]


class Holes:
    """Holes of the nodes of a kind. Each is on one row, ends at one moment, and begins for each of its GPUs at its own.

    A job of k GPUs can begin in it when k of them are free: so each hole has an entry
    for each number of GPUs that begins later.
    """

    def __init__(self) -> None:
        import numpy as np

        # of the entries; `_gpus` 0: not in use
        self._begin: NDArray[np.float64] = np.zeros(32)
        self._until: NDArray[np.float64] = np.zeros(32)
        self._gpus: NDArray[np.int64] = np.zeros(32, dtype=np.int64)
        self._of: list[_Hole | None] = []
        self._unused: list[int] = []
        self._longest: list[float] = []  # by GPUs, less one: no hole that has so many is longer

    def copy(self) -> Holes:
        """As they are now, to be changed apart."""
        apart = copy(self)
        apart._begin, apart._until, apart._gpus = self._begin.copy(), self._until.copy(), self._gpus.copy()
        apart._of, apart._unused, apart._longest = self._of.copy(), self._unused.copy(), self._longest.copy()
        return apart

    def add(self, row: int, begins: Sequence[float], until: float) -> None:
        """`begins`: of each GPU, ascending."""
        if not begins or until - begins[0] < LEAST_HOLE_S:
            return
        entries: list[int] = []
        hole, count = _Hole(row, begins, until, entries), len(begins)
        self._longest += [0.0] * (count - len(self._longest))
        for gpus in range(1, count + 1):
            begin = begins[gpus - 1]
            if until - begin > self._longest[gpus - 1]:
                self._longest[gpus - 1] = until - begin
            if gpus < count and begins[gpus] == begin:
                continue
            if until - begin < LEAST_HOLE_S:
                break
            if self._unused:
                entry = self._unused.pop()
                self._of[entry] = hole
            else:
                entry = len(self._of)
                self._of.append(hole)
                if entry == len(self._gpus):
                    for column in (self._begin, self._until, self._gpus):
                        column.resize(2 * len(column), refcheck=False)
            self._begin[entry], self._until[entry], self._gpus[entry] = begin, until, gpus
            entries.append(entry)

    def earliest(self, gpus: int, nodes: int, lasts: float) -> tuple[float, list[int]] | None:
        """(start, entries of holes on different rows) for a job of that many nodes."""
        if gpus > len(self._longest) or lasts > self._longest[gpus - 1]:
            return None
        used = len(self._of)
        begin = self._begin[:used]
        fit = ((self._gpus[:used] >= gpus) & (self._until[:used] - begin >= lasts)).nonzero()[0]
        if len(fit) < nodes:
            return None
        if nodes == 1:
            entry = int(fit[begin[fit].argmin()])
            return float(begin[entry]), [entry]
        by_row: dict[int, int] = {}
        for entry in fit[begin[fit].argsort(kind="stable")].tolist():
            by_row.setdefault(self.row(entry), entry)
        first = list(by_row.values())
        if len(first) < nodes:
            return None
        start = float(begin[first[nodes - 1]])
        good = [entry for entry in first if begin[entry] <= start and self._until[entry] >= start + lasts]
        return (start, good[:nodes]) if len(good) >= nodes else None

    def row(self, entry: int) -> int:
        """The row that its hole is on."""
        hole = self._of[entry]
        assert hole is not None
        return hole.row

    def fill(self, entry: int, gpus: int, start: float, end: float) -> None:
        """Take that many of its GPUs from `start` to `end`, those that wait the shortest."""
        hole = self._of[entry]
        assert hole is not None
        for freed in hole.entries:
            self._gpus[freed], self._of[freed] = 0, None
        self._unused += hole.entries
        begins, last = hole.begins, bisect_right(hole.begins, start)
        self.add(hole.row, [*begins[: last - gpus], *begins[last:]], hole.until)
        self.add(hole.row, begins[last - gpus : last], start)
        self.add(hole.row, [end] * gpus, hole.until)
