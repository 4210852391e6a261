"""How long jobs may wait for each of their GPU-hours and still keep the waits that are wanted, from a team's own
history. Pure.

The history is cut into parts, one after the other, of equally many jobs. For each such number
(`Limits.hours_per_gpu_hour`) every part is played by itself through `burst.decide`, from empty nodes on. Every part has
to keep the waits: in a quiet one nearly every long wait is a limit, a busy one shows what the queue makes of them. What
is reported of a part was reached with what those before it gave: never on what it was fitted to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ironburst.burst import Policy
from ironburst.burst.limits import WaitTarget
from ironburst.replay import results
from ironburst.replay.outcome import Played
from ironburst.replay.results import Waits
from ironburst.replay.traces import Trace

STEP = 1.02
HOURS = tuple(float(f"{0.01 * STEP**step:.3g}") for step in range(233))  # 0.01 to 0.99 for each GPU-hour
PARTS = 3
LEAST_JOBS = 400  # of a history: a 99th percentile of fewer in a part says nothing
LATE = 1.005  # of a wait: a limit that ends between two looks of the policy is kept


class Reached(NamedTuple):
    """In a part of the history: its waits, USD of the leases (nothing prepaid), and late jobs that nothing could be
    rented for.
    """

    waits: Waits
    usd: float
    not_rented: int


@dataclass(frozen=True)
class Tried:
    """One number. `whole`: of all jobs; `parts`: of each part by itself."""

    hours: float | None  # for each GPU-hour; None: limits that weren't fitted
    whole: Reached
    parts: tuple[Reached, ...]


@dataclass(frozen=True)
class Checked:
    """A part (its number, from 0), with what the parts before it gave."""

    part: int
    tried: Tried

    @property
    def reached(self) -> Reached:
        """Only on this part."""
        return self.tried.parts[self.part]


@dataclass(frozen=True)
class Fit:
    """`best`: what all parts together give, or the shortest number where none keeps the waits (`kept` says it).
    `tried`: those that were played, ascending. `checked`: each part but the first. `unfitted`: without any number.
    """

    tried: tuple[Tried, ...]
    best: Tried
    kept: bool
    checked: tuple[Checked, ...]
    unfitted: Tried


def fit(
    trace: Trace,
    policy: Policy,
    play: Callable[[Trace, Policy], Played],
    tell: Callable[[int, int], None] | None = None,
) -> Fit:
    """`policy`: with limits, whose target is what is wanted in each part. `tell`: called with what is done, and all.
    Raises ValueError for a history that is too short.
    """
    limits, parts, most = policy.limits, parts_of(trace), 1 + PARTS * len(HOURS).bit_length()
    assert limits
    tried: dict[float | None, Tried] = {}

    def at(hours: float | None) -> Tried:
        if hours not in tried:
            now = replace(policy, limits=replace(limits, hours_per_gpu_hour=hours))
            tried[hours] = _tried(hours, trace, parts, [play(part, now) for part in parts])
            if tell:
                tell(len(tried), most)
        return tried[hours]

    def of_first(count: int) -> float | None:
        return longest(lambda hours: all(kept(limits.target, each.waits) for each in at(hours).parts[:count]))

    found = [of_first(count) for count in range(1, PARTS + 1)]
    checked = tuple(Checked(part, at(found[part - 1] or HOURS[0])) for part in range(1, PARTS))
    best, unfitted = at(found[-1] or HOURS[0]), at(None)
    if tell:
        tell(most, most)
    fitted = sorted((each for each in tried.values() if each.hours), key=lambda each: each.hours or 0.0)
    return Fit(tuple(fitted), best, found[-1] is not None, checked, unfitted)


def parts_of(trace: Trace) -> list[Trace]:
    """Its jobs, in parts. Raises ValueError for a history that is too short."""
    if len(trace) < LEAST_JOBS:
        raise ValueError(f"the history has {len(trace):,} jobs; limits can be fitted to {LEAST_JOBS} or more")
    cuts = np.linspace(0, len(trace), PARTS + 1).astype(int).tolist()
    return [trace.take(slice(first, end)) for first, end in pairwise(cuts)]


def longest(good: Callable[[float], bool]) -> float | None:
    """The longest of HOURS that is good, by halving, for longer limits make longer waits; None: none is."""
    first, bad = 0, len(HOURS)  # all before `first` are good
    while first < bad:
        middle = (first + bad) // 2
        first, bad = (middle + 1, bad) if good(HOURS[middle]) else (first, middle)
    return HOURS[first - 1] if first else None


def kept(target: WaitTarget, waits: Waits) -> bool:
    """Whether all five waits are."""
    return worst(target, waits)[1] <= LATE


def worst(target: WaitTarget, waits: Waits) -> tuple[str, float]:
    """Which of the five waits is longest over what it may be (the name of its field), and how much so."""
    wanted = ((each.name, getattr(target, each.name)) for each in fields(target))
    over = [(_over(getattr(waits, name), hours), name) for name, hours in wanted]
    ratio, name = max(over)
    return name, ratio


def _over(hours: float, wanted_h: float) -> float:
    if wanted_h > 0:
        return hours / wanted_h
    return 0.0 if hours <= 0 else np.inf


def _tried(hours: float | None, trace: Trace, parts: Sequence[Trace], played: Sequence[Played]) -> Tried:
    reached = tuple(
        Reached(
            results.waits(part, each.start_s),
            sum(bill.usd for bill in each.bills if not bill.prepaid),
            len(each.not_rented),
        )
        for part, each in zip(parts, played, strict=True)
    )
    waits = results.waits(trace, np.concatenate([each.start_s for each in played]))
    usd, late = sum(each.usd for each in reached), sum(each.not_rented for each in reached)
    return Tried(hours, Reached(waits, usd, late), reached)
