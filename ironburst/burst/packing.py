"""When a job would start at home: list scheduling over the nodes' free resources, with the running jobs' ends.

Jobs are placed one after another in the queue's order, each at its earliest start that moves no job placed before it
(conservative backfill), so the prediction errs to the late side where jobs end before their limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ironburst.burst.snapshot import Job, Node, Resources

Placement = tuple[float, tuple[int, ...]]  # start, indices of nodes


def _vector(resources: Resources) -> np.ndarray:
    return np.array([resources.gpus, resources.cpus, resources.memory_mb], dtype=np.int64)


class Profile:
    """Free resources of nodes over time: a step function that starts at `now_s`; its last step goes on for ever."""

    def __init__(self, now_s: float, nodes: Sequence[Node], running: Iterable[Job], overdue_s: float = 30.0):
        self.nodes = list(nodes)
        self._index = {node.name: n for n, node in enumerate(self.nodes)}
        self._times = np.array([now_s])
        total = [_vector(node.total) for node in self.nodes] or [np.zeros(3, dtype=np.int64)]
        self._free = np.array([total])  # step, node, resource
        if not self.nodes:
            self._free = self._free[:, :0]
        for job in running:
            where = tuple(self._index[name] for name in job.on if name in self._index)
            end = np.inf if job.end_s is None else max(job.end_s, now_s + overdue_s)
            self._take(now_s, end, where, job.each)

    def earliest(self, job: Job) -> Placement | None:
        """The first moment at which `job.nodes` nodes have room for the whole time limit, and which nodes (fullest first)."""
        fits = (self._free >= _vector(job.each)).all(axis=2)
        steps = len(self._times)
        until = np.empty(fits.shape)  # up to when the room stays
        ahead = np.full(fits.shape[1], np.inf)
        for step in range(steps - 1, -1, -1):
            ahead = np.where(fits[step], ahead, self._times[step])
            until[step] = ahead
        lasts = np.inf if job.time_limit_s is None else job.time_limit_s
        with np.errstate(invalid="ignore"):
            good = fits & (until >= self._times[:, None] + lasts)
        enough = np.flatnonzero(good.sum(axis=1) >= job.nodes)
        if not len(enough):
            return None
        step = int(enough[0])
        candidates = np.flatnonzero(good[step])
        by_room = candidates[np.argsort(self._free[step, candidates, 0], kind="stable")]
        return float(self._times[step]), tuple(int(n) for n in by_room[: job.nodes])

    def place(self, job: Job, placement: Placement) -> None:
        start, where = placement
        self._take(start, np.inf if job.time_limit_s is None else start + job.time_limit_s, where, job.each)

    def free_now(self, name: str) -> Resources:
        return Resources(*(int(amount) for amount in self._free[0, self._index[name]]))

    def _take(self, start: float, end: float, where: tuple[int, ...], each: Resources) -> None:
        first, last = self._cut(start), len(self._times) if end == np.inf else self._cut(end)
        self._free[first:last, list(where)] -= _vector(each)

    def _cut(self, time: float) -> int:
        """The step that begins at `time`; makes it if there is none."""
        step = int(np.searchsorted(self._times, time))
        if step == len(self._times) or self._times[step] != time:
            self._times = np.insert(self._times, step, time)
            self._free = np.insert(self._free, step, self._free[step - 1], axis=0)
        return step


def could_ever_fit(job: Job, nodes: Iterable[Node]) -> bool:
    """Whether the nodes, all up and empty, could take the job."""
    return sum(job.each.within(node.total) for node in nodes) >= job.nodes
