"""Owned nodes while a trace is played: which GPUs are free, and which nodes are kept free for large jobs. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ironburst.nodes.gpus import NodeGpu

HOME = "home"  # the partition's name while a trace is played


def step_back(gpu_hours: float) -> float:
    """Large jobs let smaller ones of up to a day later go first: as a scheduler's priority by size and age does it."""
    return 3600 * min(0.026 * gpu_hours, 25.0)


@dataclass(frozen=True)
class Home:
    """Owned nodes, and how their scheduler works. Times in seconds.

    `step_back_s`: by how much a job of that many GPU-hours steps back in the queue; `reserved`: how many waiting jobs
    of whole nodes and at least `reserve_gpu_hours` keep nodes free; `room_s`: what a free GPU counts when a node is
    chosen (fuller nodes first); `tick_s`: the policy is asked once in such a time at most, as the controller does it.
    """

    nodes: int
    gpus: int = 8
    step_back_s: Callable[[float], float] = step_back
    reserved: int = 4
    reserve_gpu_hours: float = 310.0
    room_s: float = 15.0
    tick_s: float = 10.0
    kinds: tuple[NodeGpu, ...] = ()  # of the nodes' GPUs, in turn; empty: not known


Parts = list[tuple[int, int]]  # of a job: (node, GPUs on it)


class HomeNodes:
    """Free GPUs of each node and the moment of its last end."""

    def __init__(self, home: Home):
        self.home, self.free = home, np.full(home.nodes, home.gpus)
        self.last_end_s = np.zeros(home.nodes)
        self.reserved_from_s = np.full(home.nodes, math.inf)
        self._ends_s: list[list[float]] = [[] for _ in range(home.nodes)]  # of the jobs on each node

    @property
    def most_free(self) -> int:
        """GPUs of the node that has most of them free."""
        return max(self.free.tolist(), default=0)

    def fit(self, gpus: int, now_s: float, end_s: float) -> Parts | None:
        """Where a job could begin now; None: nowhere. Large ones take whole nodes, and a part of one for the rest."""
        whole, rest = divmod(gpus, self.home.gpus)
        usable = self.reserved_from_s >= end_s
        parts: Parts = []
        if whole:
            empty = np.flatnonzero((self.free == self.home.gpus) & usable)
            if len(empty) < whole + (rest > 0):
                return None
            parts = [(int(node), self.home.gpus) for node in empty[:whole]]
        if rest:
            usable &= self.free >= rest
            for node, _ in parts:
                usable[node] = False
            candidates = np.flatnonzero(usable)
            if not len(candidates):
                return None
            longer_s = np.maximum(end_s - np.maximum(self.last_end_s[candidates], now_s), 0.0)
            best = (longer_s + self.home.room_s * self.free[candidates]).argmin()
            parts.append((int(candidates[best]), rest))
        return parts

    def begin(self, parts: Parts, end_s: float) -> None:
        """A job takes these GPUs; it is expected to end then."""
        for node, gpus in parts:
            self.free[node] -= gpus
            self._ends_s[node].append(end_s)
            self.last_end_s[node] = max(self.last_end_s[node], end_s)

    def end(self, parts: Parts, end_s: float) -> None:
        """A job gives them back; `end_s`: as when it began."""
        for node, gpus in parts:
            self.free[node] += gpus
            self._ends_s[node].remove(end_s)
            self.last_end_s[node] = max(self._ends_s[node], default=0.0)

    def reserve_none(self) -> None:
        """Keep no node free any more."""
        self.reserved_from_s[:] = math.inf

    def reserve(self, nodes: int, now_s: float) -> None:
        """Keep that many nodes free from the moment on at which they are all empty, at the soonest."""
        ends_s = np.where(np.isinf(self.reserved_from_s), np.maximum(self.last_end_s, now_s), math.inf)
        soonest = np.argpartition(ends_s, nodes - 1)[:nodes] if nodes < len(ends_s) else np.arange(len(ends_s))
        if nodes <= len(ends_s) and math.isfinite(start_s := float(ends_s[soonest].max())):
            self.reserved_from_s[soonest] = start_s
