"""How long a job may wait at home before it is worth renting for, from the waits that a team wants. Pure.

A job may wait the longer, the more GPU-hours it is: renting for it costs as much more. A small job has a timer, for
many small ones start before it runs out as soon as some GPUs are free; for the others the start is predicted, and one
that is predicted too late is rented for at once. Limits follow a power of the wait target over REFERENCE, about its
square root where that is shorter: half because a team that wants shorter waits gets them by shorter limits, half
because the pool that gives shorter waits is the less loaded one, where fewer jobs come to their limit.

The numbers come from a search on the first part of one public trace (docs/adr/0012); REFERENCE is what they were found
for. A team's own history gives one number in their place, the hours that a job may wait for each of its GPU-hours
(docs/adr/0055): then the target only bounds them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

HOUR_S = 3600.0
# Powers of a target below and above REFERENCE (docs/adr/0012 has what others gave). Above it one for each wait: the
# 99th percentile is what breaks first, and a job that waits longer than the 99.9th waits longer than it anyway, so
# longer limits for such jobs move it little.
SHORTER = 0.51
LONGER = {"mean_h": 0.8, "p99_h": 0.62, "p999_h": 0.88, "gpu_hour_weighted_h": 0.62}
# Of fitted limits: a larger job that is predicted to wait so many times its limit is hopeless, and rented for at once.
# Nearer to it a prediction isn't sure enough: others end early, or are rented for.
HOPELESS = 2.5
MOST_SIZES = 10_000  # that are remembered
LOOK_S = 10.0  # jobs are looked at so often: a timer ends one look early, else it would always be over

# Of a target's waits: those than which one is never shorter, and the one than which it is never longer
_NOT_SHORTER = {"p999_h": ("p99_h",), "max_h": ("mean_h", "p99_h", "p999_h", "gpu_hour_weighted_h")}
_NOT_LONGER = {"p999_h": "max_h", "p99_h": "p999_h", "gpu_hour_weighted_h": "max_h"}


@dataclass(frozen=True)
class WaitTarget:
    """Waits in hours that the jobs should have: mean, 99th and 99.9th percentile,
    the longest, and the mean weighted by GPU-hours.
    """

    mean_h: float
    p99_h: float
    p999_h: float
    max_h: float
    gpu_hour_weighted_h: float

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"a wait target's {each.name} is {value!r}; it must be a number of hours, 0 or more")

    @classmethod
    def of_mean(cls, mean_h: float, **given_h: float | None) -> WaitTarget:
        """Those that aren't given in the proportion of REFERENCE;
        but none of p99, p999 and max longer than the next.
        """
        factor = mean_h / REFERENCE.mean_h
        waits = {each.name: factor * getattr(REFERENCE, each.name) for each in fields(cls)} | {"mean_h": mean_h}
        known = {name: hours for name, hours in given_h.items() if hours is not None}
        waits |= known
        for name, shorter_ones in _NOT_SHORTER.items():
            if name not in known:
                waits[name] = max(waits[name], *(waits[shorter] for shorter in shorter_ones))
        for name, longer in _NOT_LONGER.items():
            if name not in known:
                waits[name] = min(waits[name], waits[longer])
        return cls(**waits)


# What the published policy (Starburst, whole queue) gives 512 GPUs on the development trace; benchmarks.burst prints it
REFERENCE = WaitTarget(0.31, 7.65, 38.0, 274.0, 16.8)


class Limit(NamedTuple):
    """How long a job may wait. `gpu_hours`: its size, where that sets the limit."""

    seconds: float
    gpu_hours: float | None = None


class SizeLimits(NamedTuple):
    """Of jobs of one size: `wait` is that on having waited, `predicted` that on a predicted wait, of larger ones."""

    small: bool
    wait: Limit
    predicted: Limit


@dataclass(frozen=True)
class Limits:
    """The limits of jobs, each of its size in GPU-hours (run time times GPUs); all in seconds."""

    target: WaitTarget
    small_gpu_hours: float = 12.3  # below: a timer
    timer_h: float = 0.098  # x GPU-hours to the power
    timer_power: float = 0.9
    timer_least_h: float = 0.0286
    timer_most_h: float = 2.45
    predicted_h: float = 0.1165  # x GPU-hours
    predicted_most_h: float = 46.0
    hard_h: float = 0.358  # x GPU-hours
    hard_most_h: float = 65.5
    top_gpu_hours: float = 1991.0  # the few jobs that hold most of the work: they alone may wait for days
    top_h: float = 136.0
    # x GPU-hours, for jobs of all sizes, but no longer than the target's longest: what a team's own history showed
    # (ironburst.replay.fitting). None: nothing was fitted, and the numbers above count.
    hours_per_gpu_hour: float | None = None

    def of_size(self, gpu_hours: float) -> SizeLimits:
        """All that a job of this size may wait."""
        if (limits := self._of_size.get(gpu_hours)) is None:
            if len(self._of_size) >= MOST_SIZES:
                self._of_size.clear()
            small = self.small(gpu_hours)
            wait = Limit(self.timer_s(gpu_hours) if small else self.hard_s(gpu_hours), gpu_hours)
            predicted = Limit(math.inf if small else self.predicted_s(gpu_hours), gpu_hours)
            limits = self._of_size[gpu_hours] = SizeLimits(small, wait, predicted)
        return limits

    def small(self, gpu_hours: float) -> bool:
        """Whether a job of this size has a timer."""
        return gpu_hours < self.small_gpu_hours

    def timer_s(self, gpu_hours: float) -> float:
        """Of a small job: worth renting for when it has waited so long."""
        if self.hours_per_gpu_hour is not None:
            return max(0.0, self._seconds(self.hours_per_gpu_hour * gpu_hours) - LOOK_S)
        slope_h, least_h, most_h = self._timer
        hours: float = slope_h * gpu_hours**self.timer_power + least_h
        return HOUR_S * min(hours, most_h)

    def predicted_s(self, gpu_hours: float) -> float:
        """Of a larger job: worth renting for as soon as it is predicted to wait longer."""
        if self.hours_per_gpu_hour is not None:
            return self._seconds(HOPELESS * self.hours_per_gpu_hour * gpu_hours)
        slope_h, most_h, top_h = self._predicted
        return HOUR_S * (top_h if gpu_hours >= self.top_gpu_hours else min(slope_h * gpu_hours, most_h))

    def hard_s(self, gpu_hours: float) -> float:
        """Of a larger job: worth renting for when it has waited so long,
        whatever was predicted. The bound on every wait.
        """
        if self.hours_per_gpu_hour is not None:
            return self._seconds(self.hours_per_gpu_hour * gpu_hours)
        slope_h, most_h, top_h = self._hard
        return HOUR_S * min(slope_h * gpu_hours, top_h if gpu_hours >= self.top_gpu_hours else most_h)

    # ---- what is the same for jobs of all sizes: each is asked for each job of a queue

    @cached_property
    def _of_size(self) -> dict[float, SizeLimits]:
        return {}

    @cached_property
    def _timer(self) -> tuple[float, float, float]:
        """(by GPU-hour to the power, least, most), hours."""
        scale, most_h = self._scales["mean_h"], self.timer_most_h * self._scales["p99_h"]
        return self.timer_h * scale, self.timer_least_h * scale, min(most_h, self.target.max_h)

    @cached_property
    def _predicted(self) -> tuple[float, float, float]:
        """(by GPU-hour, most, that of the top jobs), hours."""
        tail, most_h = self._scales["p999_h"], self.target.max_h
        slope_h = self.predicted_h * self._scales["gpu_hour_weighted_h"]
        return slope_h, min(self.predicted_most_h * tail, most_h), min(self.top_h * tail, most_h)

    @cached_property
    def _hard(self) -> tuple[float, float, float]:
        """The same."""
        tail, most_h = self._scales["p999_h"], self.target.max_h
        top_h = max(self.hard_most_h, self.top_h)
        slope_h = self.hard_h * self._scales["gpu_hour_weighted_h"]
        return slope_h, min(self.hard_most_h * tail, most_h), min(top_h * tail, most_h)

    @cached_property
    def _scales(self) -> dict[str, float]:
        ratios = {wait: getattr(self.target, wait) / getattr(REFERENCE, wait) for wait in LONGER}
        return {wait: ratio ** (SHORTER if ratio < 1 else LONGER[wait]) for wait, ratio in ratios.items()}

    def _seconds(self, hours: float) -> float:
        return HOUR_S * min(hours, self.target.max_h)
