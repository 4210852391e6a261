"""Whether jobs still wait as long as is wanted, week by week. Pure.

The limits behind a wait target were fitted to a workload. When it changes, the waits come out longer than wanted, or so
much shorter that more is rented than need be. Waits come in bursts, so jobs are no independent samples; weeks nearly
are. So each week gives one figure a wait, how far its jobs were from what is wanted, and a one-sided t-test over the
weeks says whether that can be chance (Ibragimov and Müller 2010: valid however much weeks differ in their spread).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ironburst.burst.limits import WaitTarget

WEEK_S = 7 * 86400.0
WEEKS = 8  # of the newest whole ones, at most
LEAST_JOBS = 50  # of a week that counts
HALF = 0.5  # all waits below so much of what is wanted: jobs could wait longer
# Student's t by degrees of freedom, one-sided 1%: with five waits one look in twenty cries wolf, at most
CRITICAL_T = {3: 4.541, 4: 3.747, 5: 3.365, 6: 3.143, 7: 2.998}
LEAST_WEEKS = min(CRITICAL_T) + 1
_PARTS = {"p99_h": 0.01, "p999_h": 0.001}  # of the jobs that may wait longer


class Ended(NamedTuple):
    """A job that has ended: its wait, and its GPUs x hours."""

    wait_h: float
    gpu_hours: float


@dataclass(frozen=True)
class Over:
    """How many jobs waited longer than the target's percentiles."""

    p99_h: int = 0
    p999_h: int = 0


@dataclass(frozen=True)
class Week:
    """Sums over the jobs that ended in a week; `number`: of the week, since 1970."""

    number: int
    jobs: int = 0
    wait_h: float = 0.0
    gpu_hours: float = 0.0
    weighted_h: float = 0.0  # waits x GPU-hours
    longest_h: float = 0.0
    over: Over = Over()
    over_half: Over = Over()  # than half of them


@dataclass(frozen=True)
class Kept:
    """The newest weeks, the oldest first, and the target that they are counted by."""

    target: WaitTarget
    weeks: tuple[Week, ...] = ()


class Changed(NamedTuple):
    """`wait`: which of the five is longer than wanted, and how long it was; for a percentile: the part of the jobs that
    waited longer than it. Empty: all are far shorter.
    """

    direction: Literal["longer", "shorter"]
    weeks: int
    wait: str = ""
    was: float = 0.0


def add(kept: Kept, ended: Iterable[Ended], now_s: float) -> Kept:
    """With these jobs, that ended about now. Weeks that are too old, or ahead of a clock that was put right, go."""
    number = int(now_s // WEEK_S)
    before = [week for week in kept.weeks if number - WEEKS <= week.number < number]
    week = next((week for week in kept.weeks if week.number == number), Week(number))
    for job in ended:
        week = _with(week, job, kept.target)
    return replace(kept, weeks=(*before, *((week,) if week.jobs else ())))


def changed(kept: Kept, now_s: float) -> Changed | None:
    """What the newest whole weeks prove; None: nothing."""
    number, target = int(now_s // WEEK_S), kept.target
    weeks = [week for week in kept.weeks if number - WEEKS <= week.number < number and week.jobs >= LEAST_JOBS]
    if len(weeks) < LEAST_WEEKS:
        return None
    for wait in ("mean_h", "gpu_hour_weighted_h", "p99_h", "p999_h"):
        if _proven(_above(weeks, wait, target, 1.0)):
            return Changed("longer", len(weeks), wait, _was(weeks, wait))
    means = ("mean_h", "gpu_hour_weighted_h")
    if (
        all(_proven([-value for value in _above(weeks, wait, target, HALF)]) for wait in means)
        and all(_part(weeks, wait, lambda week: week.over_half) <= may for wait, may in _PARTS.items())
        and max(week.longest_h for week in weeks) <= HALF * target.max_h
    ):
        return Changed("shorter", len(weeks))
    return None


def _with(week: Week, job: Ended, target: WaitTarget) -> Week:
    def counted(over: Over, factor: float) -> Over:
        longer = {wait: job.wait_h > factor * getattr(target, wait) for wait in _PARTS}
        return Over(over.p99_h + longer["p99_h"], over.p999_h + longer["p999_h"])

    return Week(
        week.number,
        week.jobs + 1,
        week.wait_h + job.wait_h,
        week.gpu_hours + job.gpu_hours,
        week.weighted_h + job.wait_h * job.gpu_hours,
        max(week.longest_h, job.wait_h),
        counted(week.over, 1.0),
        counted(week.over_half, HALF),
    )


def _above(weeks: Sequence[Week], wait: str, target: WaitTarget, factor: float) -> list[float]:
    """Of each week: by how much its jobs, all together, are above so much of the target."""
    if wait in _PARTS:
        return [getattr(week.over, wait) - _PARTS[wait] * week.jobs for week in weeks]
    wanted_h = factor * getattr(target, wait)
    if wait == "mean_h":
        return [week.wait_h - wanted_h * week.jobs for week in weeks]
    return [week.weighted_h - wanted_h * week.gpu_hours for week in weeks]


def _proven(values: Sequence[float]) -> bool:
    """Whether their mean is above 0, and not by chance."""
    mean, spread = statistics.fmean(values), statistics.stdev(values)
    return mean > 0 and mean > CRITICAL_T[len(values) - 1] * spread / math.sqrt(len(values))


def _was(weeks: Sequence[Week], wait: str) -> float:
    if wait in _PARTS:
        return _part(weeks, wait, lambda week: week.over)
    if wait == "mean_h":
        return sum(week.wait_h for week in weeks) / sum(week.jobs for week in weeks)
    return sum(week.weighted_h for week in weeks) / sum(week.gpu_hours for week in weeks)


def _part(weeks: Sequence[Week], wait: str, over: Callable[[Week], Over]) -> float:
    longer: int = sum(getattr(over(week), wait) for week in weeks)
    return longer / sum(week.jobs for week in weeks)
