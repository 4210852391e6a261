"""When a job would start at home: list scheduling over the moments at which each node's GPUs are free.

Jobs are placed one after another in the queue's order, each at its earliest start that moves no job placed before it (conservative
backfill), so the prediction errs to the late side where jobs end before their limits. A node is a row of GPUs. A job that asks for more
of a node's CPUs or memory than its GPUs' share counts as that many GPUs. Of the gaps before placed jobs each GPU remembers the last one.
The work per job grows with the nodes, not with the jobs that are placed already.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from ironburst.burst.snapshot import Job, Node, Resources

# Part of a GPU's share of CPUs or memory by which a job may exceed its own share: else every odd request would cost a GPU more.
TOLERANCE = 0.1


@dataclass(frozen=True)
class Placement:
    """`start`: seconds since 1970; `rows`: (kind of node, rows there); `gap`: it lies before jobs that were placed earlier."""

    start: float
    rows: tuple[tuple[int, tuple[int, ...]], ...]
    gap: bool = False


class _Kind:
    """Nodes with equal resources. `free`: when each GPU is free, ascending in a row; `gap_from`, `gap_to`: its last gap before that."""

    def __init__(self, now_s: float, total: Resources, names: Sequence[str]):
        self.total, self.width = total, max(total.gpus, 1)
        self.row_of = {name: row for row, name in enumerate(names)}
        self.free = np.full((len(names), self.width), now_s)
        self.gap_from, self.gap_to = np.zeros_like(self.free), np.zeros_like(self.free)
        self.longest = np.zeros(len(names))  # gap of each row: none of its gaps is longer

    def copy(self) -> _Kind:
        other = copy(self)
        other.free, other.gap_from, other.gap_to, other.longest = (
            array.copy() for array in (self.free, self.gap_from, self.gap_to, self.longest)
        )
        return other

    def gpus(self, each: Resources) -> int | None:
        """GPUs of a row that a part of a job takes; None: it never fits."""
        if not each.within(self.total):
            return None
        parts = ((each.cpus, self.total.cpus), (each.memory_mb, self.total.memory_mb))
        shares = [math.ceil(self.width * part / whole - TOLERANCE) for part, whole in parts if whole]
        return min(self.width, max(each.gpus, 0, *shares))


class Plan:
    """The queue laid over nodes, job by job."""

    def __init__(self, now_s: float, nodes: Sequence[Node], running: Iterable[Job], overdue_s: float = 30.0):
        self.now_s = now_s
        totals = list(dict.fromkeys(node.total for node in nodes))
        self._kinds = [_Kind(now_s, total, [node.name for node in nodes if node.total == total]) for total in totals]
        number_of = {name: number for number, kind in enumerate(self._kinds) for name in kind.row_of}
        self._shapes: dict[Resources, list[int | None]] = {}
        for job in running:
            end = math.inf if job.end_s is None else max(job.end_s, now_s + overdue_s)
            for name in job.on:
                if (number := number_of.get(name)) is not None:
                    kind = self._kinds[number]
                    # the GPUs that are free first: those of other running jobs are taken for longer
                    row = kind.free[kind.row_of[name]]
                    row[: self._shape(job.each)[number] or 0] = end
                    row.sort()

    def copy(self) -> Plan:
        """As it is now, to be changed apart."""
        other = copy(self)
        other._kinds = [kind.copy() for kind in self._kinds]
        return other

    def earliest(self, job: Job) -> Placement | None:
        """The first moment at which `job.nodes` nodes have room for the whole time limit; None: never, as the nodes are."""
        lasts = math.inf if job.time_limit_s is None else job.time_limit_s
        needs = self._shape(job.each)
        gap = self._in_gaps(job.nodes, needs, lasts)
        tail = self._at_end(job.nodes, needs)
        return gap if gap and (tail is None or gap.start < tail.start) else tail

    def place(self, job: Job, placement: Placement) -> None:
        end = math.inf if job.time_limit_s is None else placement.start + job.time_limit_s
        for number, rows in placement.rows:
            kind, gpus = self._kinds[number], self._shape(job.each)[number]
            for row in rows:
                if not gpus:
                    continue
                (self._fill_gap if placement.gap else self._extend)(kind, row, gpus, placement.start, end)

    # ---- behind all that is placed
    def _at_end(self, nodes: int, needs: Sequence[int | None]) -> Placement | None:
        ready = [
            (number, np.full(len(kind.free), self.now_s) if need == 0 else kind.free[:, need - 1])
            for number, (kind, need) in enumerate(zip(self._kinds, needs, strict=True)) if need is not None
        ]  # fmt: skip
        if sum(len(times) for _, times in ready) < nodes:
            return None
        if len(ready) == 1:
            times = ready[0][1]
            start = times.min() if nodes == 1 else np.partition(times, nodes - 1)[nodes - 1]
        else:
            start = np.partition(np.concatenate([times for _, times in ready]), nodes - 1)[nodes - 1]
        if math.isinf(start):
            return None
        start = max(float(start), self.now_s)
        return Placement(start, self._fullest(nodes, start, ready))

    def _fullest(self, nodes: int, start: float, ready: Sequence[tuple[int, np.ndarray]]) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Of the nodes that are ready at `start` those with the fewest free GPUs, so that whole nodes stay whole."""
        chosen, left = [], nodes
        for number, times in ready:
            rows = np.flatnonzero(times <= start)
            if len(rows) > 1:
                room = (self._kinds[number].free[rows] <= start).sum(axis=1)
                rows = rows[np.argsort(room, kind="stable")[:left]] if left > 1 else rows[[room.argmin()]]
            chosen.append((number, tuple(int(row) for row in rows[:left])))
            left -= len(chosen[-1][1])
            if left == 0:
                break
        return tuple(chosen)

    def _extend(self, kind: _Kind, row: int, gpus: int, start: float, end: float) -> None:
        """Of the GPUs that are free at `start` take those that are free last: the others can begin something sooner."""
        free, gap_from, gap_to = kind.free[row], kind.gap_from[row], kind.gap_to[row]
        first = int(np.searchsorted(free, start, side="right")) - gpus
        for slot in range(first, first + gpus):
            if free[slot] < start:
                gap_from[slot], gap_to[slot] = free[slot], start
                kind.longest[row] = max(kind.longest[row], start - gap_from[slot])
            free[slot] = end
        order = free.argsort(kind="stable")
        kind.free[row], kind.gap_from[row], kind.gap_to[row] = free[order], gap_from[order], gap_to[order]

    # ---- before it
    def _in_gaps(self, nodes: int, needs: Sequence[int | None], lasts: float) -> Placement | None:
        best: Placement | None = None
        for number, (kind, need) in enumerate(zip(self._kinds, needs, strict=True)):
            rows = np.flatnonzero(kind.longest >= max(lasts, 1.0)) if need else ()
            if len(rows) < nodes:
                continue
            begin, until = kind.gap_from[rows], kind.gap_to[rows]
            # GPUs without a gap that is long enough may still be free for good: their end counts as a gap to the end of time
            opens = np.where(until - begin >= lasts, begin, kind.free[rows])
            opens = np.sort(opens, axis=1)[:, need - 1]
            start = float(np.partition(opens, nodes - 1)[nodes - 1])
            good = rows[(opens <= start) & (self._room(kind, rows, start, start + lasts) >= need)]
            if math.isfinite(start) and len(good) >= nodes and (best is None or start < best.start):
                best = Placement(max(start, self.now_s), ((number, tuple(int(row) for row in good[:nodes])),), gap=True)
        return best

    @staticmethod
    def _room(kind: _Kind, rows: np.ndarray, start: float, end: float) -> np.ndarray:
        """GPUs of each row that are free from `start` to `end`."""
        inside = (kind.gap_from[rows] <= start) & (kind.gap_to[rows] >= end)
        return (inside | (kind.free[rows] <= start)).sum(axis=1)

    def _fill_gap(self, kind: _Kind, row: int, gpus: int, start: float, end: float) -> None:
        inside = np.flatnonzero((kind.gap_from[row] <= start) & (kind.gap_to[row] >= end))[:gpus]
        kind.gap_from[row, inside] = end
        kind.longest[row] = (kind.gap_to[row] - kind.gap_from[row]).max()
        if len(inside) < gpus:
            self._extend(kind, row, gpus - len(inside), start, end)

    def _shape(self, each: Resources) -> list[int | None]:
        if each not in self._shapes:
            self._shapes[each] = [kind.gpus(each) for kind in self._kinds]
        return self._shapes[each]


def could_ever_fit(job: Job, nodes: Iterable[Node]) -> bool:
    """Whether the nodes, all up and empty, could take the job."""
    return sum(job.each.within(node.total) for node in nodes) >= job.nodes
