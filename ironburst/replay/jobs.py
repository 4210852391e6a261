"""The jobs of a trace while it is played, as the scheduler and the policy see them. Pure."""

from __future__ import annotations

import numpy as np

from ironburst.burst import Job, Resources, runtimes
from ironburst.burst.memory import Experience
from ironburst.replay.home import HOME
from ironburst.replay.traces import Floats, Trace

# so long home takes a job without a time limit to run; the policy is told that it has none
UNLIMITED_S = 10 * 365 * 86400.0
LEAST_S = 1.0  # the time limit of a job that ran for no time, or past its limit


class Jobs:
    """Plain numbers, by the job's place in the trace: one of an array takes longer to look up.

    `left_s`: how long it still runs; `limit_s`: the time limit that the scheduler sees; `gpu_hours`: expected.
    `experience`: what was learned of run times from the jobs that have ended; `resources`: by number of GPUs.
    """

    def __init__(self, trace: Trace, gpus_per_node: int, deadlines: bool):
        """`deadlines`: those of the trace count, and what its jobs save."""
        limit_s = trace.duration_s if trace.limit_s is None else trace.limit_s
        limit_s = np.where(limit_s < UNLIMITED_S, limit_s, UNLIMITED_S)  # NaN: none
        limit_s[limit_s <= 0] = LEAST_S
        self.learns, self.experience = trace.limit_s is not None, Experience()
        self.submit_s: list[float] = trace.submit_s.tolist()
        self.gpus: list[int] = trace.gpus.tolist()
        self.left_s: list[float] = trace.duration_s.tolist()
        self.limit_s: list[float] = limit_s.tolist()
        self.gpu_hours = [gpus * limit_s / 3600 for gpus, limit_s in zip(self.gpus, self.limit_s, strict=True)]
        self._trace, self._gpus_per_node = trace, gpus_per_node
        self._deadline_s = _known(trace.deadline_s, len(trace)) if deadlines else None
        self._saves_s = _known(trace.saves_s, len(trace)) if deadlines else None
        self.resources = {gpus: Resources(gpus) for gpus in range(gpus_per_node + 1)}  # shared: looked up by identity

    def pending(self, number: int, now_s: float, eligible_s: float | None = None) -> Job:
        """The job as it enters the queue. `eligible_s`: again, then."""
        gpus, trace = self.gpus[number], self._trace
        nodes = max(1, -(-gpus // self._gpus_per_node))
        job = Job(
            id=number,
            name="",
            user=trace.user[number] if trace.user else "",
            state="PENDING",
            submit_s=self.submit_s[number],
            nodes=nodes,
            each=self.resources[-(-gpus // nodes)],
            time_limit_s=self.limit_s[number] if self.limit_s[number] < UNLIMITED_S else None,
            partitions=(HOME,),
            priority=0,
            requeue=trace.requeue is None or bool(trace.requeue[number]),
            account=trace.queue[number] if trace.queue else "",
            eligible_s=eligible_s,
            deadline_s=self._deadline_s[number] if self._deadline_s else None,
            saves_s=self._saves_s[number] if self._saves_s else None,
        )
        if expected_s := self.learns and runtimes.expected_s(self.experience, [job], now_s):
            self.gpu_hours[number] = gpus * expected_s[number] / 3600
        return job

    def running(self, job: Job, nodes: dict[int, list[str]], start_s: float, end_s: float) -> tuple[Job, ...]:
        """A job at home: one part for each number of GPUs on the nodes that are named by it."""
        return tuple(
            Job(
                id=job.id,
                name="",
                user=job.user,
                state="RUNNING",
                submit_s=job.submit_s,
                nodes=len(names),
                each=self.resources[gpus],
                time_limit_s=job.time_limit_s,
                partitions=(HOME,),
                on=tuple(names),
                start_s=start_s,
                end_s=end_s,
                account=job.account,
            )
            for gpus, names in nodes.items()
        )

    def learn(self, job: Job) -> None:
        """It has ended, in one go: how long did it run?"""
        if self.learns:
            self.experience = runtimes.learn(self.experience, job, self.left_s[job.id])

    def lose_nodes(self, number: int, left_s: float) -> None:
        """It was interrupted, and has this much left to run: what it saved counts off its limit."""
        self.limit_s[number] = max(LEAST_S, self.limit_s[number] - (self.left_s[number] - left_s))
        self.left_s[number] = left_s


def _known(values: Floats | None, count: int) -> list[float | None]:
    """None where it isn't known."""
    return [None] * count if values is None else [None if np.isnan(value) else float(value) for value in values]
