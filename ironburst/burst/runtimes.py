"""How long a job runs, learned from the jobs that have ended:
run time / limit of the same user, account, queue, or all.

`Experience` is data: it is part of the snapshot. `learn` takes one ended job in, `estimate` answers for one job:

- The last `SAMPLES` of a group are kept as ln(run time / limit);
  a sample counts half as much as one `HALF` jobs younger.
- The most specific group (user, account, queue, all) that can give an interval at all is taken; else the limit itself.
- The interval holds `COVERAGE` of the jobs, without any assumption on how run times are distributed:
  its ends are the order statistics that leave room for one more sample, the new job itself (conformal prediction; Vovk,
  Gammerman, Shafer 2005). That asks for 9 samples.
- A job that has run for a while is compared with those samples only that ran longer (relative to their limits).
- Nothing is known unless the job says so (`run_s`).

What a decision counts on is `expected_s`: a waiting job takes the median of its group, a running one ends early
(docs/adr/0017). Renting can't be undone, and home is predicted again and again: one look at which ends that nobody
knows seem late would be enough to rent. Declared run times leave no doubt: with them nothing is earlier.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from ironburst.burst.memory import Experience
from ironburst.burst.snapshot import Job

SAMPLES = 64
HALF = 32  # a user's habits change within tens of jobs
COVERAGE = 0.8
EARLY = 0.3  # part of the jobs that have run so long already which end sooner than a decision counts on
_DECAY = 0.5 ** (1 / HALF)
_LEAST = math.log(1e-6)
_Interval = tuple[float, float, float, int]


@dataclass(frozen=True)
class Estimate:
    """A job's whole run time, seconds, and what it is taken from: told, user:NAME,
    account:NAME, queue:NAME, all (`n` samples), limit.
    """

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
    """The experience after `job` has ended, having run for `ran_s`.
    A job without a limit, or that never ran, teaches nothing.
    """
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
    return replace(
        experience, ratios={group: experience.ratios[group] for group in sorted(wanted) if group in experience.ratios}
    )


def estimate(experience: Experience, job: Job, ran_s: float = 0.0) -> Estimate | None:
    """How long it runs in all, given that it has run for `ran_s` already. None: no limit, and nobody declared it."""
    return _estimate(experience, job, ran_s, {})


def estimates(experience: Experience, jobs: Iterable[Job], now_s: float) -> dict[int, Estimate | None]:
    """`estimate` of each job, by its id, at that moment: one that is on nodes has run since its start."""
    cache: dict[tuple[str, float], _Interval | None] = {}
    return {
        job.id: _estimate(experience, job, now_s - job.start_s if job.on and job.start_s else 0.0, cache)
        for job in jobs
    }


def _estimate(
    experience: Experience, job: Job, ran_s: float, cache: dict[tuple[str, float], _Interval | None]
) -> Estimate | None:
    ran_s = ran_s if _positive(ran_s) else 0.0
    if job.run_s is not None and _positive(job.run_s):
        told_s = max(job.run_s, ran_s)
        return Estimate(told_s, told_s, told_s, "told")
    limit_s = job.time_limit_s
    if limit_s is None or not _positive(limit_s):
        return None
    most = max(limit_s, ran_s)
    done = math.log(ran_s / limit_s) if ran_s > 0 else -math.inf
    for group in groups(job):
        if (group, done) not in cache:
            cache[group, done] = _samples(experience.ratios.get(group, ())).interval(done)
        if interval := cache[group, done]:
            *ratios, n = interval
            median, low, high = (min(max(limit_s * math.exp(ratio), ran_s), most) for ratio in ratios)
            return Estimate(median, low, high, group, n)
    return Estimate(most, ran_s, most, "limit")


def expected_s(experience: Experience, jobs: Iterable[Job], now_s: float) -> dict[int, float]:
    """How long jobs run as a decision counts on it, seconds, by id,
    of all those of which more is known than their limit.

    Of a job that has run for a while: the lower end (EARLY) of those of its group that ran longer; what it has run, if
    none did, for then it may end at any moment. Of any other: the median of `estimate`.
    """
    if not experience.ratios:
        jobs = [job for job in jobs if job.run_s is not None]
    expected: dict[int, float] = {}
    samples_of: dict[tuple[str, str, tuple[str, ...]], _Samples | None] = {}
    for job in jobs:
        ran_s = now_s - job.start_s if job.on and job.start_s and job.start_s < now_s else 0.0
        limit_s = job.time_limit_s
        if job.run_s is not None and _positive(job.run_s):
            expected[job.id] = max(job.run_s, ran_s)
        elif experience.ratios and limit_s and math.isfinite(limit_s) and limit_s > 0:
            if (who := (job.user, job.account, job.partitions)) not in samples_of:
                known = (_samples(experience.ratios.get(group, ())) for group in groups(job))
                samples_of[who] = next((samples for samples in known if samples.interval(-math.inf)), None)
            if samples := samples_of[who]:
                ratio = samples.over(math.log(ran_s / limit_s), EARLY) if ran_s > 0 else samples.over(-math.inf, 0.5)
                expected[job.id] = min(max(limit_s * math.exp(ratio), ran_s), max(limit_s, ran_s))
    return expected


class _Samples(NamedTuple):
    """Of one group: ascending, and with each the weight of those from it on,
    negative (so that it ascends); one more at the end, 0.
    """

    values: list[float]
    from_it: list[float]

    def interval(self, above: float) -> _Interval | None:
        """(median, low, high, samples used) of the samples over `above`. None: too few for an interval."""
        values, from_it = self
        first = bisect_right(values, above)
        total = -from_it[first]
        room = (1 - COVERAGE) / 2 * (total + 1.0) + 1e-9  # that may lie outside on one side; the new job counts as one
        low, high = bisect_right(from_it, room - total) - 2, bisect_left(from_it, -room, first)
        if low < first or high >= len(values):
            return None
        return self.over(above, 0.5), values[low], values[high], len(values) - first

    def over(self, above: float, part: float) -> float:
        """The sample that this part (by weight) of those over `above` lies below; `above`, if none is over it."""
        first = bisect_right(self.values, above)
        if first == len(self.values):
            return above
        return self.values[max(bisect_left(self.from_it, (1 - part) * self.from_it[first]) - 1, first)]


@lru_cache(maxsize=4096)  # a group's are the same until one of its jobs ends
def _samples(samples: tuple[float, ...]) -> _Samples:
    weighted = sorted((value, _DECAY**age) for age, value in enumerate(reversed(samples)))
    from_it = [0.0]
    for _, weight in reversed(weighted):
        from_it.append(from_it[-1] - weight)
    return _Samples([value for value, _ in weighted], from_it[::-1])


def _positive(seconds: float | None) -> bool:
    return seconds is not None and math.isfinite(seconds) and seconds > 0
