"""When a job would start at home: list scheduling over the moments at which each node's GPUs are free.

Jobs are placed one after another in the queue's order, each at its earliest start that moves no job placed before it
(conservative backfill), so the prediction errs to the late side where jobs end before their limits. A node is a row of
GPUs. A job that asks for more of a node's CPUs or memory than its GPUs' share counts as that many GPUs. The work per
job grows with the logarithm of the nodes, not with the jobs that are placed already: a heap for each number of GPUs
knows the node that has that many free first. Placing only ever makes a node free later, so an entry of a heap that is
out of date stands too far in front, and is put right when it comes up.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Hashable, Mapping, Sequence
from copy import copy
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, NamedTuple, TypeAlias

from ironburst.burst.holes import Holes
from ironburst.burst.resources import Resources
from ironburst.burst.snapshot import Job, Node

# Part of a GPU's share of CPUs or memory by which a job may exceed its own share:
# else every odd request would cost a GPU more.
TOLERANCE = 0.1
TIES = 8  # of so many nodes that are free at the same moment the fullest is taken


class Placement(NamedTuple):
    """`start`: seconds since 1970; `rows`: (kind of node, rows there);
    `holes`: those that it fills, one a row, else empty.
    """

    start: float
    rows: tuple[tuple[int, tuple[int, ...]], ...]
    holes: tuple[int, ...] = ()


class _Kind:
    """Nodes that are alike to every job. `free`: of each row when each GPU is free for good, ascending."""

    def __init__(self, now_s: float, nodes: Sequence[Node]):
        self.now_s, self.node, total = now_s, nodes[0], nodes[0].total
        self.total, self.width, self.names = total, max(total.gpus, 1), [node.name for node in nodes]
        self.free = [[now_s] * self.width for _ in nodes]
        self.holes = Holes()
        # by GPUs: (when so many are free, or earlier; row)
        self._heaps: list[list[tuple[float, int]] | None] = [None] * (self.width + 1)
        # by GPUs that are free now: the rows, or rows that had so many
        self._idle: list[list[int]] | None = None

    def copy(self) -> _Kind:
        """As they are now, to be changed apart."""
        apart = copy(self)
        apart.free = [row.copy() for row in self.free]
        apart.holes = self.holes.copy()
        apart._heaps = [heap and heap.copy() for heap in self._heaps]
        apart._idle = self._idle and [rows.copy() for rows in self._idle]
        return apart

    def gpus(self, each: Resources) -> int | None:
        """GPUs of a row that a part of a job takes; None: it never fits."""
        if not each.within(self.total):
            return None
        parts = ((each.cpus, self.total.cpus), (each.memory_mb, self.total.memory_mb))
        shares = [math.ceil(self.width * part / whole - TOLERANCE) for part, whole in parts if whole]
        return min(self.width, max(each.gpus, 0, *shares))

    def first(self, gpus: int) -> float:
        """The earliest moment at which some row has that many GPUs free for good."""
        heap, free = self._heaps[gpus] or self._heap(gpus), self.free
        while True:
            moment, row = heap[0]
            actual = free[row][gpus - 1]
            if actual == moment:
                return moment
            heapreplace(heap, (actual, row))

    def fullest(self, gpus: int, start: float) -> int:
        """Of the rows that have that many GPUs free at `start = first(gpus)` the one with
        the fewest, so that whole nodes stay whole.
        """
        if start <= self.now_s:
            return self._fullest_now(gpus)
        heap = self._heap(gpus)
        if gpus == self.width or not [at_s for at_s, _ in heap[1:3] if at_s <= start]:
            return heap[0][1]
        ties = self.soonest(gpus, 1)
        return min((bisect_right(self.free[row], start), row) for _, row in ties)[1]

    def any(self, count: int) -> list[tuple[float, int]]:
        """As many rows as there are, up to `count`, for jobs that take no GPU: they can begin now."""
        return [(self.now_s, row) for row in range(min(count, len(self.free)))]

    def soonest(self, gpus: int, count: int) -> list[tuple[float, int]]:
        """(moment, row) of the first rows that have that many GPUs free: `count`,
        and some of those that are so at the same moment.
        """
        heap = self._heap(gpus)
        first: list[tuple[float, int]] = []
        while heap and len(first) < count + TIES:
            moment = self.first(gpus)
            if len(first) >= count and moment > first[count - 1][0]:
                break
            first.append(heappop(heap))
        for entry in first:
            heappush(heap, entry)
        return first

    def extend(self, row: int, gpus: int, start: float, end: float) -> None:
        """Of the GPUs that are free at `start` take those that are free last: the others can begin something sooner."""
        free = self.free[row]
        first = bisect_right(free, start) - gpus
        taken = free[first : first + gpus]
        if taken[0] < start:
            self.holes.add(row, taken, start)
        del free[first : first + gpus]
        at = bisect_right(free, end)
        free[at:at] = [end] * gpus
        if self._idle is not None and taken[0] <= self.now_s:
            heappush(self._idle[bisect_right(free, self.now_s)], row)

    def _fullest_now(self, gpus: int) -> int:
        idle = self._idle_rows()
        for count in range(gpus, self.width + 1):
            rows = idle[count]
            while rows:
                if bisect_right(self.free[rows[0]], self.now_s) == count:
                    return rows[0]
                heappop(rows)  # it had so many
        raise AssertionError("no row is free now")

    def _idle_rows(self) -> list[list[int]]:
        if self._idle is None:
            self._idle = [[] for _ in range(self.width + 1)]
            for row, free in enumerate(self.free):
                self._idle[bisect_right(free, self.now_s)].append(row)  # ascending: a heap
        return self._idle

    def _heap(self, gpus: int) -> list[tuple[float, int]]:
        heap = self._heaps[gpus]
        if heap is None:
            heap = self._heaps[gpus] = [(free[gpus - 1], row) for row, free in enumerate(self.free)]
            heapify(heap)
        return heap


_Groups: TypeAlias = tuple[list[list[Node]], bool]  # nodes that are alike, and whether a job's size alone says where


def _alike(nodes: Sequence[Node], barred: Collection[frozenset[str]]) -> _Groups:
    alike: dict[tuple[Hashable, ...], list[Node]] = {}
    for node in nodes:
        of = tuple(names for names in barred if node.name in names) if barred else ()
        types = tuple(node.gpu_types.items()) if node.gpu_types else ()
        total = node.total.gpus, node.total.cpus, node.total.memory_mb  # a dataclass's own hash costs a call
        alike.setdefault((total, types, node.partitions, of), []).append(node)
    by_size = not (barred or any(key[1] for key in alike)) and len({key[2] for key in alike}) < 2
    return list(alike.values()), by_size


class Plan:
    """The queue laid over nodes, job by job. `on`: the jobs on each node; `run_s`: how long jobs run, by id, where it
    isn't their limit; `barred`: sets of nodes that some job may not have; `kept`: `Snapshot.kept`.
    """

    def __init__(
        self,
        now_s: float,
        nodes: Sequence[Node],
        on: Mapping[str, Sequence[Job]],
        overdue_s: float = 30.0,
        run_s: Mapping[int, float] | None = None,
        barred: Collection[frozenset[str]] = (),
        kept: dict[str, Any] | None = None,
    ):
        self.now_s, self._run_s, self._barred = now_s, run_s or {}, bool(barred)
        kept = {} if kept is None else kept
        if "alike" not in kept or kept["alike"][:2] != (nodes, barred):
            kept["alike"] = nodes, barred, _alike(nodes, barred)
        groups: _Groups = kept["alike"][2]
        self._kinds, self._by_size_alone = [_Kind(now_s, of_it) for of_it in groups[0]], groups[1]
        self._shapes: dict[Resources, list[int | None]] = {}
        self._needs_of: dict[Hashable, list[int | None]] = {}
        # the same by identity: that of equal ones costs a hash each time
        self._known: dict[int, tuple[Resources, list[int | None]]] = {}
        self._asked: tuple[Job, list[int | None], float] | None = None  # a job, its needs, how long it runs
        self._lay_running(on, now_s + overdue_s, kept.setdefault("ends", {}))

    def _lay_running(
        self,
        on: Mapping[str, Sequence[Job]],
        soon_s: float,
        kept: dict[str, tuple[Sequence[Job], Resources, list[float]]],
    ) -> None:
        """The jobs that are on nodes, each up to its end, but at least to `soon_s`. `kept`: of a node's jobs, on a node
        of that size, the ends by GPU.
        """
        for number, kind in enumerate(self._kinds):
            width, total, now_s = kind.width, kind.total, [self.now_s] * kind.width
            for row, name in enumerate(kind.names):
                if not (there := on.get(name)):
                    continue
                before = None if self._run_s else kept.get(name)  # learned run times change
                if before and before[0] is there and before[1] is total and before[2][0] > soon_s:
                    ends = before[2]
                else:
                    ends = self._ends(there, number, soon_s)
                    if ends and ends[0] > soon_s and not self._run_s:
                        kept[name] = there, total, ends
                # more than it has: their CPUs or memory counted as GPUs
                kind.free[row] = now_s[len(ends) :] + ends if len(ends) <= width else ends[-width:]

    def _ends(self, there: Sequence[Job], number: int, soon_s: float) -> list[float]:
        """When these jobs leave the GPUs of a node of that kind, ascending."""
        shapes, run_s, width, ends = self._known, self._run_s, self._kinds[number].width, list[float]()
        for job in there:
            end = math.inf if job.end_s is None else job.end_s
            if run_s and job.id in run_s and job.start_s is not None:
                end = job.start_s + run_s[job.id]
            needs = known[1] if (known := shapes.get(id(job.each))) else self._shape(job.each)
            # None: more than the node is said to have, so it has all of it
            gpus = None if job.exclusive else needs[number]
            ends += [max(soon_s, end)] * (width if gpus is None else gpus)
        ends.sort()
        return ends

    def copy(self) -> Plan:
        """As it is now, to be changed apart."""
        apart = copy(self)
        apart._kinds = [kind.copy() for kind in self._kinds]
        return apart

    def earliest(self, job: Job) -> Placement | None:
        """The first moment at which `job.nodes` nodes have room for as long
        as it runs; None: never, as the nodes are.
        """
        needs, lasts = self._needs(job), self._lasts_s(job)
        self._asked = job, needs, lasts
        tail = self._one_at_end(needs) if job.nodes == 1 else self._at_end(job.nodes, needs)
        if tail and tail.start <= self.now_s:
            return tail  # nothing is sooner
        best = tail
        for number, need in enumerate(needs):
            if need and (hole := self._kinds[number].holes.earliest(need, job.nodes, lasts)):
                start, entries = hole
                if not best or start < best.start:
                    rows = tuple(self._kinds[number].holes.row(entry) for entry in entries)
                    best = Placement(start, ((number, rows),), tuple(entries))
        return best

    def place(self, job: Job, placement: Placement) -> None:
        """Take its room for as long as the job runs."""
        if self._asked is None or self._asked[0] is not job:
            self._asked = job, self._needs(job), self._lasts_s(job)
        _, needs, lasts = self._asked
        end = placement.start + lasts
        for number, rows in placement.rows:
            kind, gpus = self._kinds[number], needs[number]
            if not gpus:
                continue
            if placement.holes:
                for entry in placement.holes:
                    kind.holes.fill(entry, gpus, placement.start, end)
            else:
                for row in rows:
                    kind.extend(row, gpus, placement.start, end)

    # ---- behind all that is placed
    def _one_at_end(self, needs: Sequence[int | None]) -> Placement | None:
        start, number, gpus = math.inf, -1, 0
        for kind, need in enumerate(needs):
            if need is not None and (moment := self._kinds[kind].first(need) if need else self.now_s) < start:
                start, number, gpus = moment, kind, need
        if number < 0:
            return None
        row = self._kinds[number].fullest(gpus, start) if gpus else 0
        return Placement(start, ((number, (row,)),))

    def _at_end(self, nodes: int, needs: Sequence[int | None]) -> Placement | None:
        ready = [
            (number, self._kinds[number].soonest(need, nodes) if need else self._kinds[number].any(nodes))
            for number, need in enumerate(needs)
            if need is not None
        ]
        moments = sorted(moment for _, rows in ready for moment, _ in rows)
        if len(moments) < nodes or math.isinf(start := moments[nodes - 1]):
            return None
        return Placement(start, self._fullest(nodes, start, ready))

    def _fullest(
        self, nodes: int, start: float, ready: Sequence[tuple[int, list[tuple[float, int]]]]
    ) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Of the rows that are ready at `start` those with the fewest free GPUs."""
        chosen, left = [], nodes
        for number, first in ready:
            free = self._kinds[number].free
            rows = sorted((bisect_right(free[row], start), row) for moment, row in first if moment <= start)[:left]
            if rows:
                chosen.append((number, tuple(row for _, row in rows)))
                left -= len(rows)
            if left == 0:
                break
        return tuple(chosen)

    def _lasts_s(self, job: Job) -> float:
        return self._run_s.get(job.id, math.inf if job.time_limit_s is None else job.time_limit_s)

    def _needs(self, job: Job) -> list[int | None]:
        """GPUs that a part of the job takes, by kind of node; None: it can't start there."""
        if self._by_size_alone and not job.exclusive:
            return known[1] if (known := self._known.get(id(job.each))) else self._shape(job.each)
        each, where = job.each, (job.partitions, *((job.excluded, job.passed_over) if self._barred else ()))
        key = each.gpus, each.cpus, each.memory_mb, job.exclusive, job.gpu_type, job.gpu_by_place, where
        if (needs := self._needs_of.get(key)) is None:
            needs = self._needs_of[key] = [
                (kind.width if job.exclusive else gpus) if kind.node.could_take(job) else None
                for kind, gpus in zip(self._kinds, self._shape(each), strict=True)
            ]
        return needs

    def _shape(self, each: Resources) -> list[int | None]:
        """The same by its size alone; None: it never fits."""
        needs = self._shapes.get(each)
        if needs is None:
            needs = self._shapes[each] = [kind.gpus(each) for kind in self._kinds]
        self._known[id(each)] = each, needs  # it lives as long as its id is known here
        return needs
