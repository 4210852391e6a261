"""How long a job runs, learned from the jobs that have ended: run time / limit of the same user, account, queue, or all.

`Experience` is data: it is part of the snapshot. `learn` takes one ended job in, `estimate` answers for one job:

- The last `SAMPLES` of a group are kept as ln(run time / limit); a sample counts half as much as one `HALF` jobs younger.
- The most specific group (user, account, queue, all) that can give an interval at all is taken; else the limit itself.
- The interval holds `COVERAGE` of the jobs, without any assumption on how run times are distributed: its ends are the order statistics
  that leave room for one more sample, the new job itself (conformal prediction; Vovk, Gammerman, Shafer 2005). That asks for 9 samples.
- A job that has run for a while is compared with those samples only that ran longer (relative to their limits).
- Nothing is known unless the job says so (`run_s`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ironburst.burst.snapshot import Experience, Job

SAMPLES = 64
HALF = 32  # a user's habits change within tens of jobs
COVERAGE = 0.8
_DECAY = 0.5 ** (1 / HALF)
_LEAST = math.log(1e-6)
_Interval = tuple[float, float, float, int]


@dataclass(frozen=True)
class Estimate:
    """A job's whole run time, seconds, and what it is taken from: told, user:NAME, account:NAME, queue:NAME, all (`n` samples), limit."""

    median_s: float
    low_s: float
    high_s: float
    of: str
    n: int = 0


def groups(job: Job) -> tuple[str, ...]:
    """The groups that a job belongs to, the most specific first."""
    queue = job.partitions[0] if job.partitions else ""
    named = (("user", job.user), ("account", job.account), ("queue", queue))
    return (*(f"{kind}:{name}" for kind, name in named if name), "all")


def learn(experience: Experience, job: Job, ran_s: float) -> Experience:
    """The experience after `job` has ended, having run for `ran_s`. A job without a limit, or that never ran, teaches nothing."""
    if not _positive(job.time_limit_s) or not _positive(ran_s):
        return experience
    sample = round(max(math.log(ran_s / (job.time_limit_s or 1.0)), _LEAST), 3)
    known = dict(experience.ratios)
    for group in groups(job):
        known[group] = (*known.get(group, ()), sample)[-SAMPLES:]
    return replace(experience, ratios=known)


def relevant(experience: Experience, jobs: Iterable[Job]) -> Experience:
    """What matters for these jobs: a snapshot needs no more."""
    wanted = {group for job in jobs for group in groups(job)}
    return replace(experience, ratios={group: experience.ratios[group] for group in sorted(wanted) if group in experience.ratios})


def estimate(experience: Experience, job: Job, ran_s: float = 0.0) -> Estimate | None:
    """How long it runs in all, given that it has run for `ran_s` already. None: it has no limit and nobody told."""
    return _estimate(experience, job, ran_s, {})


def estimates(experience: Experience, jobs: Iterable[Job], now_s: float) -> dict[int, Estimate | None]:
    """`estimate` of each job, by its id, at that moment: one that is on nodes has run since its start."""
    cache: dict[tuple[str, float], _Interval | None] = {}
    return {job.id: _estimate(experience, job, now_s - job.start_s if job.on and job.start_s else 0.0, cache) for job in jobs}


def _estimate(experience: Experience, job: Job, ran_s: float, cache: dict[tuple[str, float], _Interval | None]) -> Estimate | None:
    ran_s = ran_s if _positive(ran_s) else 0.0
    if job.run_s is not None and _positive(job.run_s):
        return Estimate(*[max(job.run_s, ran_s)] * 3, "told")
    limit_s = job.time_limit_s
    if limit_s is None or not _positive(limit_s):
        return None
    most = max(limit_s, ran_s)
    done = math.log(ran_s / limit_s) if ran_s > 0 else -math.inf
    for group in groups(job):
        if (group, done) not in cache:
            cache[group, done] = _interval(experience.ratios.get(group, ()), done)
        if found := cache[group, done]:
            median, low, high = (min(max(limit_s * math.exp(ratio), ran_s), most) for ratio in found[:3])
            return Estimate(median, low, high, group, found[3])
    return Estimate(most, ran_s, most, "limit")


def _interval(samples: tuple[float, ...], above: float) -> _Interval | None:
    """(median, low, high, samples used) of the samples over `above`. None: too few for an interval."""
    weighted = sorted((value, _DECAY**age) for age, value in enumerate(reversed(samples)) if value > above)
    total = sum(weight for _, weight in weighted)
    room = (1 - COVERAGE) / 2 * (total + 1.0) + 1e-9  # that may lie outside on one side; the new job counts as one
    low = high = None
    median, passed = 0.0, 0.0
    for value, weight in weighted:
        if passed < total / 2 <= passed + weight:
            median = value
        passed += weight
        if passed <= room:
            low = value
    passed = 0.0
    for value, weight in reversed(weighted):
        passed += weight
        if passed <= room:
            high = value
    return None if low is None or high is None else (median, low, high, len(weighted))


def _positive(seconds: float | None) -> bool:
    return seconds is not None and math.isfinite(seconds) and seconds > 0
