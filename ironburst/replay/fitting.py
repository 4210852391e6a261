"""How patient a policy may be and still keep the waits that are wanted, from a team's own history. Pure.

For each patience (`Limits.patience`) the whole history is played once through `burst.decide`, and counted by windows:
parts of it one after the other, of equally many jobs. What is reported of a window was reached with the patience that
those before it gave: never on what it was fitted to.
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
from ironburst.replay.outcome import Bill, Played
from ironburst.replay.results import Waits
from ironburst.replay.traces import Floats, Trace

PATIENCE = tuple(round(1.15**step, 2) for step in range(-6, 11))  # 0.43 to 4.05, tried one after the other
WINDOWS = 4
LEAST_JOBS = 400  # of a history: a 99th percentile of fewer in a window says nothing
# the waits that a patience is chosen by are at most so much of what they may be: no later window is like those before
SPARE = 0.9


class Reached(NamedTuple):
    """In a part of the history: its waits, and USD of the leases (nothing prepaid) as far as they fall into it."""

    waits: Waits
    usd: float


@dataclass(frozen=True)
class Tried:
    """One patience. `whole`: of all jobs; `windows`: of each alone; `before`: of all before each but the first;
    `not_rented`: late jobs that nothing could be rented for.
    """

    patience: float
    whole: Reached
    windows: tuple[Reached, ...]
    before: tuple[Reached, ...]
    not_rented: int


@dataclass(frozen=True)
class Checked:
    """A window (its number, from 0), with what the windows before it gave."""

    window: int
    tried: Tried

    @property
    def reached(self) -> Reached:
        """On this window alone."""
        return self.tried.windows[self.window]


@dataclass(frozen=True)
class Fit:
    """`best`: what all windows together give, or the shortest patience where none keeps the waits (`kept` says it).
    `checked`: each window but the first.
    """

    tried: tuple[Tried, ...]
    best: Tried
    kept: bool
    checked: tuple[Checked, ...]

    @property
    def unfitted(self) -> Tried:
        """A patience of 1."""
        return next(each for each in self.tried if each.patience == 1)


def fit(
    trace: Trace,
    policy: Policy,
    play: Callable[[Policy], Played],
    tell: Callable[[int, int], None] | None = None,
) -> Fit:
    """`policy`: with limits, whose target is what is wanted; `play`: plays the trace with such a policy. `tell`: called
    with what is done, and all. Raises ValueError for a history that is too short.
    """
    limits = policy.limits
    assert limits
    if len(trace) < LEAST_JOBS:
        raise ValueError(f"the history has {len(trace):,} jobs; a patience can be fitted to {LEAST_JOBS} or more")
    tried: list[Tried] = []
    for patience in PATIENCE:
        tried.append(_tried(trace, patience, play(replace(policy, limits=replace(limits, patience=patience)))))
        if tell:
            tell(len(tried), len(PATIENCE))
        # longer ones are chosen nowhere; the frontier is shown up to 1 at least
        if patience >= 1 and not any(_fits(limits.target, each) for each in (tried[-1].whole, *tried[-1].before)):
            break
    if tell:
        tell(len(PATIENCE), len(PATIENCE))
    best = _longest(tried, [_fits(limits.target, each.whole) for each in tried])
    checked = [
        Checked(window, _longest(tried, [_fits(limits.target, each.before[window - 1]) for each in tried]) or tried[0])
        for window in range(1, WINDOWS)
    ]
    return Fit(tuple(tried), best or tried[0], best is not None, tuple(checked))


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


def _fits(target: WaitTarget, reached: Reached) -> bool:
    return worst(target, reached.waits)[1] <= SPARE


def _longest(tried: Sequence[Tried], good: Sequence[bool]) -> Tried | None:
    """The last one that is good, as all before it are."""
    first_bad = good.index(False) if False in good else len(good)
    return tried[first_bad - 1] if first_bad else None


def _tried(trace: Trace, patience: float, played: Played) -> Tried:
    hours = (played.start_s - trace.submit_s) / 3600
    cuts = np.linspace(0, len(trace), WINDOWS + 1).astype(int)
    moments = [-np.inf, *(float(trace.submit_s[cut]) for cut in cuts[1:-1]), np.inf]
    paid = [bill for bill in played.bills if not bill.prepaid and bill.to_s > bill.from_s]
    usd = [sum(_falls_into(bill, *span) for bill in paid) for span in pairwise(moments)]

    def reached(first: int, end: int) -> Reached:
        return Reached(_waits(trace, hours, int(cuts[first]), int(cuts[end])), sum(usd[first:end]))

    return Tried(
        patience,
        reached(0, WINDOWS),
        tuple(reached(window, window + 1) for window in range(WINDOWS)),
        tuple(reached(0, window) for window in range(1, WINDOWS)),
        len(played.not_rented),
    )


def _falls_into(bill: Bill, from_s: float, to_s: float) -> float:
    """USD of it, evenly over its time."""
    there_s = min(bill.to_s, to_s) - max(bill.from_s, from_s)
    return bill.usd * max(0.0, there_s) / (bill.to_s - bill.from_s)


def _waits(trace: Trace, hours: Floats, first: int, end: int) -> Waits:
    return results.of_hours(trace.take(slice(first, end)), hours[first:end])
