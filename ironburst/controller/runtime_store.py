"""Run times of jobs that have ended, kept in the ledger (ironburst.burst.runtimes).

The queue shows what is on nodes, not how it ended: a job that was on nodes at the last tick and is gone from the queue
has ended in between, or when Slurm says so (a completing one has its true end). If the ticks are too far apart to
tell, it teaches nothing. A requeued job is still in the queue, so it hasn't ended. Cancelled, failed and timed-out jobs
count: they held their nodes as long.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ironburst.burst import Job, from_json, runtimes, to_json
from ironburst.burst.memory import Experience
from ironburst.controller.ledger import Ledger

_KEY = "experience"
_UNSURE_S, _UNSURE_PART = 60.0, 0.05  # how far off an end may be taken, at most: the larger of both


def experience(ledger: Ledger) -> Experience:
    """What was learned so far; an unreadable one (of another version) starts again."""
    return _read(ledger.noted(_KEY) or "{}")


@lru_cache(maxsize=2)  # of thousands of jobs it takes as long as the rest of a tick, and few ticks change it
def _read(said: str) -> Experience:
    try:
        return from_json(Experience, json.loads(said))
    except ValueError:
        return Experience()


def ended(before: Mapping[int, Job], before_s: float, jobs: Iterable[Job], now_s: float) -> list[tuple[Job, float]]:
    """(job, seconds that it ran) of those that were on nodes at `before_s` and have left since."""
    here = {job.id for job in jobs if job.pending or job.on}
    runs = []
    for id, job in before.items():
        if id in here or job.start_s is None:
            continue
        if job.state == "COMPLETING" and job.end_s is not None and job.end_s <= now_s:
            runs.append((job, job.end_s - job.start_s))
        else:
            ran, off = (before_s + now_s) / 2 - job.start_s, (now_s - before_s) / 2
            if off <= max(_UNSURE_S, _UNSURE_PART * ran):
                runs.append((job, ran))
    return [(job, ran) for job, ran in runs if ran > 0]


def learn(ledger: Ledger, runs: Iterable[tuple[Job, float]]) -> None:
    """Add (job, seconds that it ran) to what was learned."""
    known = before = experience(ledger)
    for job, ran_s in runs:
        known = runtimes.learn(known, job, ran_s)
    if known != before:
        ledger.note(_KEY, json.dumps(to_json(known), separators=(",", ":")))
