"""The published burst policies, plain and fast: a limit for each job, then it is rented (Starburst, USENIX ATC'24).

Jobs run whole, once, in the pool (nodes of 8 GPUs, first fit in node order) or rented. A job of more than 8 GPUs takes
whole empty nodes and one part for the rest, each on another node. At one instant: finished jobs leave, jobs whose limit
ends are rented, new jobs join, the queue is scanned. Run times are known exactly, as the authors' own simulator has it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.figures import Outcome
from ironburst.replay.traces import Trace

NODE_GPUS = 8
STARBURST_H_PER_GPU_H = 0.08


@dataclass(frozen=True)
class Peer:
    """`limit_s(trace)`: how long a job waits. `whole_queue`: start all that fit, or stop at the first that doesn't."""

    limit_s: Callable[[Trace], np.ndarray]
    whole_queue: bool


PEERS = {
    "no_wait": Peer(lambda trace: np.zeros(len(trace)), whole_queue=False),
    "constant": Peer(lambda trace: np.full(len(trace), 3600.0), whole_queue=True),
    "starburst_head": Peer(lambda trace: STARBURST_H_PER_GPU_H * 3600 * trace.gpu_hours, whole_queue=False),
    "starburst": Peer(lambda trace: STARBURST_H_PER_GPU_H * 3600 * trace.gpu_hours, whole_queue=True),
}


class Pool:
    """Free GPUs of nodes of 8, as bit masks: bit n of `at_least[k]` says that node n has k or more free."""

    def __init__(self, gpus: int):
        if gpus < NODE_GPUS or gpus % NODE_GPUS:
            raise ValueError(f"a pool of {gpus} GPUs is no number of nodes of {NODE_GPUS}")
        every = (1 << gpus // NODE_GPUS) - 1
        self.free = [NODE_GPUS] * (gpus // NODE_GPUS)
        self.at_least = [every] * (NODE_GPUS + 1)

    def place(self, gpus: int) -> list[tuple[int, int]] | None:
        """First fit: [(node, GPUs taken)], or None."""
        whole, rest = divmod(gpus, NODE_GPUS)
        chosen: list[tuple[int, int]] = []
        used, empty = 0, self.at_least[NODE_GPUS]
        if whole > empty.bit_count():
            return None
        for _ in range(whole):
            bit = empty & -empty
            empty ^= bit
            used |= bit
            chosen.append((bit.bit_length() - 1, NODE_GPUS))
        if rest:
            fitting = self.at_least[rest] & ~used
            if not fitting:
                return None
            chosen.append(((fitting & -fitting).bit_length() - 1, rest))
        for node, taken in chosen:
            self._take(node, taken)
        return chosen

    def give_back(self, parts: list[tuple[int, int]]) -> None:
        for node, taken in parts:
            self._take(node, -taken)

    def _take(self, node: int, gpus: int) -> None:
        before, after = self.free[node], self.free[node] - gpus
        self.free[node] = after
        for k in range(min(before, after) + 1, max(before, after) + 1):
            self.at_least[k] ^= 1 << node


def run(trace: Trace, pool_gpus: int, peer: Peer) -> Outcome:
    """Run a peer over a trace; exact, event by event. A job larger than the pool is rented when its limit ends."""
    submit, duration, gpus = trace.submit_s.tolist(), trace.duration_s.tolist(), trace.gpus.tolist()
    ends_waiting = (trace.submit_s + peer.limit_s(trace)).tolist()
    jobs = len(submit)
    pool = Pool(pool_gpus)
    start = [-1.0] * jobs
    rented = [False] * jobs
    running: list[tuple[float, int, list[tuple[int, int]]]] = []  # (end, job, parts)
    limits: list[tuple[float, int]] = []
    # whole queue: one a size, for all jobs of a size fit or none does; else one for all. With each: what it needs of
    # one node
    queues: dict[int, tuple[int, deque[int]]] = {}
    at_least = pool.at_least
    arrived = 0
    never = float("inf")

    def begin(job: int, now: float, parts: list[tuple[int, int]]) -> None:
        start[job] = now
        heapq.heappush(running, (now + duration[job], job, parts))

    def head(queue: deque[int]) -> int:
        while queue and start[queue[0]] >= 0:
            queue.popleft()
        return queue[0] if queue else jobs

    while arrived < jobs or limits:
        while limits and start[limits[0][1]] >= 0:
            heapq.heappop(limits)
        now = min(submit[arrived] if arrived < jobs else never, limits[0][0] if limits else never)
        if running and running[0][0] < now:
            now = running[0][0]
        if now == never:
            break
        while running and running[0][0] <= now:
            pool.give_back(heapq.heappop(running)[2])
        while limits and limits[0][0] <= now:
            job = heapq.heappop(limits)[1]
            if start[job] < 0:
                start[job], rented[job] = now, True
        while arrived < jobs and submit[arrived] <= now:
            size = gpus[arrived] if peer.whole_queue else 0
            if size not in queues:
                queues[size] = (min(size, NODE_GPUS), deque())
            queues[size][1].append(arrived)
            heapq.heappush(limits, (ends_waiting[arrived], arrived))
            arrived += 1
        candidates = [
            (job, queue) for node, queue in queues.values() if queue and at_least[node] and (job := head(queue)) < jobs
        ]
        heapq.heapify(candidates)
        while candidates:
            job, queue = heapq.heappop(candidates)
            parts = pool.place(gpus[job])
            if parts is None:
                continue  # none of this size fits now, nor will any later in this scan
            begin(job, now, parts)
            queue.popleft()
            if (following := head(queue)) < jobs:
                heapq.heappush(candidates, (following, queue))
    return Outcome(np.array(start), np.array(rented))
