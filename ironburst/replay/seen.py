"""The jobs that a controller saw, as a trace: what its recorded ticks show of them. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ironburst.burst import Job, Snapshot
from ironburst.replay import traces
from ironburst.replay.formats import TraceError
from ironburst.replay.traces import Trace


@dataclass
class _RunningJob:
    """A job under way: as it was seen last, and since when it has been on nodes; None: it waits."""

    job: Job
    start_s: float | None = None


def trace(snapshots: Iterable[Snapshot], partition: str) -> Trace:
    """The jobs of a home partition that have ended, oldest submit first. A job ended when it was missed: up to a tick
    late, or as late as a controller that was away. Raises TraceError if there is none.
    """
    under_way: dict[int, _RunningJob] = {}
    ended: list[tuple[Job, float, float]] = []  # (job, start, end)
    left_out: Counter[str] = Counter()
    for snapshot in snapshots:
        ours = {job.id: job for job in snapshot.jobs if partition in job.partitions}
        for gone in under_way.keys() - ours.keys():
            seen = under_way.pop(gone)
            if seen.start_s is None:
                left_out["cancelled while it waited"] += 1
            elif not seen.job.nodes * seen.job.each.gpus:
                left_out["no GPU"] += 1
            else:
                ended.append((seen.job, seen.start_s, snapshot.now_s))
        for id, job in ours.items():
            seen = under_way.setdefault(id, _RunningJob(job))
            seen.job, seen.start_s = job, (job.start_s or seen.start_s or snapshot.now_s) if job.on else None
    if still := len(under_way):
        left_out["not at its end yet"] += still
    if not ended:
        why = "".join(f"; left out: {count} ({reason})" for reason, count in left_out.items())
        raise TraceError(f"no job of partition {partition} has started and ended in these ticks{why}")
    jobs, starts_s, ends_s = zip(*ended, strict=True)
    return traces.in_order(
        [job.submit_s for job in jobs],
        [max(end - start, 0.0) for start, end in zip(starts_s, ends_s, strict=True)],
        [job.nodes * job.each.gpus for job in jobs],
        queue=[job.account for job in jobs],
        user=[job.user for job in jobs],
        limit_s=[math.nan if job.time_limit_s is None else job.time_limit_s for job in jobs],
        deadline_s=[math.nan if job.deadline_s is None else job.deadline_s for job in jobs],
        requeue=[job.requeue for job in jobs],
        start_s=list(starts_s),
        left_out=dict(left_out),
    )
