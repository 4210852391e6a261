"""Renting that starts at once and has no limit: what counts is GPU-hours, not money. Pure.

It answers a play as `ironburst.replay.rented` does, which counts money.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping

from ironburst.burst import Decision, Job, Node, Pool, Resources
from ironburst.replay.outcome import Bill, Fates
from ironburst.replay.view import OFF, RentedView

NAMES = 16  # nodes of each size: where they aren't enough for one decision, larger ones are


class AtOnce:
    """Any job that is rented for starts at once, on instances of 1 to `gpus` GPUs at the same price a GPU."""

    open, next_s = False, math.inf
    bills: tuple[Bill, ...] = ()
    prepaid_usd, refusals = 0.0, 0

    def __init__(self, fates: Fates, gpus: int):
        self.fates, self.now_s = fates, -math.inf
        self._ends: list[tuple[float, int]] = []  # (moment, job)
        pools = tuple(_pool(count) for count in range(1, gpus + 1))
        nodes = {name: Node(name, (pool.partition,), pool.each, OFF) for pool in pools for name in pool.nodes}
        self._view = RentedView(pools, pools, nodes, frozenset(nodes))

    def advance(self, now_s: float) -> list[int]:
        """It is this moment. Returns the jobs that lost their nodes: none ever does."""
        self.now_s = now_s
        return []

    def wants_decision(self) -> bool:
        """Never for its own sake."""
        return False

    def view(self) -> RentedView:
        """The same at any moment."""
        return self._view

    def take_done(self) -> list[int]:
        """The jobs that ended since this was asked last."""
        done = []
        while self._ends and self._ends[0][0] <= self.now_s:
            done.append(heapq.heappop(self._ends)[1])
        return done

    def started_at_home(self, jobs: Iterable[int]) -> None:
        """Nothing rented waits for anybody."""

    def apply(self, decision: Decision, pending: Mapping[int, Job]) -> list[int]:
        """Do what the decision says. Returns the jobs that start now."""
        jobs = [number for launch in decision.launches for number in launch.jobs if number in pending]
        for number in jobs:
            self.fates.begins(number, self.now_s, "burst")
            self.fates.end_s[number] = self.now_s + self.fates.left_s[number]
            heapq.heappush(self._ends, (float(self.fates.end_s[number]), number))
        return jobs

    def take_moved(self) -> list[int]:
        """Nothing moves here."""
        return []

    def close(self, began_s: float, ended_s: float) -> None:
        """The play is over: nothing is paid."""


def _pool(gpus: int) -> Pool:
    name = f"burst-{gpus}"
    return Pool(
        name=name,
        partition=name,
        nodes=tuple(f"{name}-{n}" for n in range(NAMES)),
        instance_type=name,
        each=Resources(gpus),
        gpu_type="",
        markets=("on-demand",),
        usd_per_hour={"on-demand": float(gpus)},
        zones=("a",),
        boot_s=0.0,
        idle_s=0.0,
        max_run_s=math.inf,
    )
