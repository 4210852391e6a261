"""How long jobs may wait for each of their GPU-hours, from a team's own history; or that the limits which aren't fitted
are better kept. Pure.

The history is cut into parts, one after the other, of equally many jobs. With each such number
(`Limits.hours_per_gpu_hour`) a part is played by itself through `burst.decide`, from empty nodes on. A part gives the
longest number that makes its waits no longer than is wanted, or than they are without any number where that is longer;
some parts give the shortest of theirs. Such a number is recommended only if it wins outside of what it was fitted to:
each part is played with what the *others* gave, and there it may not be dearer than no number, nor wait longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from ironburst.burst.limits import WaitTarget
from ironburst.replay import results
from ironburst.replay.outcome import Played
from ironburst.replay.results import Waits
from ironburst.replay.traces import Floats, Trace

# Hours for each GPU-hour, each a quarter longer than the one before it: nearer ones differ by less than the order of
# jobs that are submitted in one second does. The published policy has 0.08.
HOURS = (0.02, 0.025, 0.032, 0.04, 0.05, 0.063, 0.08, 0.1, 0.125, 0.16, 0.2, 0.25, 0.32, 0.4, 0.5)
PARTS = 3
LEAST_JOBS = 400  # of a history: a 99th percentile of fewer in a part says nothing
LATE = 1.005  # of a wait: a limit that ends between two looks of the policy is kept
# On a part that a number wasn't fitted to, over no number: it may cost, and its jobs wait, so much; all such parts
# together have to cost less than WORTH, or there is nothing to change for
DEARER, LONGER, WORTH = 1.01, 1.03, 0.99

# Why no number is recommended
Why = Literal[
    "quiet",  # in most parts no number makes the waits as long as they may be, so how long is too long isn't known
    "none",  # in some part they are longer with every one
    "dearer",  # what the other parts gave costs more on a part
    "longer",  # it makes the waits of a part longer
    "no_gain",  # it costs as much
]


class Outcome(NamedTuple):
    """A part that was played: when each job began, USD of the leases (nothing prepaid), and the late jobs that nothing
    could be rented for.
    """

    start_s: Floats
    usd: float
    not_rented: int

    @classmethod
    def of(cls, played: Played) -> Outcome:
        """What counts of it."""
        usd = sum(bill.usd for bill in played.bills if not bill.prepaid)
        return cls(played.start_s, usd, len(played.not_rented))


class Reached(NamedTuple):
    """The waits of some jobs, what was paid for them, and late ones that nothing could be rented for."""

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
    """A part (its number, from 0), with what the other parts gave. `over`: its longest wait over what it may be, and
    the name of that wait's field.
    """

    part: int
    hours: float
    reached: Reached
    unfitted: Reached
    over: tuple[str, float]


@dataclass(frozen=True)
class Fit:
    """`recommended`: None: limits that aren't fitted, and `why`. `checked`: each part; empty where the parts give no
    number. `keeping`: the longest number with which every part keeps what is wanted, whatever it costs; None: none does.
    `tried`: those that all parts were played with, ascending.
    """

    recommended: float | None
    why: Why | None
    checked: tuple[Checked, ...]
    keeping: float | None
    tried: tuple[Tried, ...]
    unfitted: Tried

    @property
    def regret(self) -> float | None:
        """By which part more than without a number was paid where each part had what the others gave (below 0: less);
        None: nothing was to be paid, or the parts give no number.
        """
        usd = sum(each.unfitted.usd for each in self.checked)
        return sum(each.reached.usd for each in self.checked) / usd - 1 if usd else None


class _History:
    """Its parts, and what was reached on them."""

    def __init__(
        self,
        parts: Sequence[Trace],
        targets: Sequence[WaitTarget],
        play: Callable[[int, float | None], Outcome],
        tell: Callable[[int, int], None] | None,
    ):
        self.parts, self.targets, self._tell = parts, targets, tell
        self.played: dict[tuple[int, float | None], Outcome] = {}
        self._play = play
        self.reached = cache(self._reached)
        self.longest = cache(self._longest)

    def _reached(self, part: int, hours: float | None) -> Reached:
        got = self.played[part, hours] = self._play(part, hours)
        if self._tell:
            self._tell(len(self.played), self.most)
        return Reached(results.waits(self.parts[part], got.start_s), got.usd, got.not_rented)

    @property
    def most(self) -> int:
        """Plays that are made, about: without a number, by halving, and with what the others gave."""
        return len(self.parts) * (len(HOURS).bit_length() + 3)

    @cached_property
    def allowed(self) -> tuple[WaitTarget, ...]:
        """The waits that each part may have: those wanted, or those without a number where these are longer."""
        return tuple(longer(target, self.reached(part, None).waits) for part, target in enumerate(self.targets))

    def _longest(self, part: int, wanted: bool = False) -> float | None:
        """The longest number with which the part keeps what it may wait (`wanted`: what is wanted)."""
        target = (self.targets if wanted else self.allowed)[part]
        return longest(lambda hours: kept(target, self.reached(part, hours).waits))

    def shortest(self, parts: Sequence[int], wanted: bool = False) -> float | None:
        """What these parts give together."""
        found = [self.longest(part, wanted) for part in parts]
        return None if None in found else min(each for each in found if each)

    def check(self, part: int, hours: float) -> Checked:
        """The part with this number."""
        reached = self.reached(part, hours)
        return Checked(part, hours, reached, self.reached(part, None), worst(self.allowed[part], reached.waits))

    def tried(self, hours: float | None) -> Tried:
        """All of them with it."""
        reached = tuple(self.reached(part, hours) for part in range(len(self.parts)))
        wait_s = [self.played[part, hours].start_s - trace.submit_s for part, trace in enumerate(self.parts)]
        waits = results.of_hours(_joined(self.parts), np.concatenate(wait_s) / 3600)
        usd, late = sum(each.usd for each in reached), sum(each.not_rented for each in reached)
        return Tried(hours, Reached(waits, usd, late), reached)


def fit(
    parts: Sequence[Trace],
    targets: Sequence[WaitTarget],
    play: Callable[[int, float | None], Outcome],
    tell: Callable[[int, int], None] | None = None,
) -> Fit:
    """`targets`: what is wanted in each part. `play`: a part, by its number, with this number for limits (None: with
    those that aren't fitted). `tell`: called with the plays that are done, and about how many there are.
    """
    history, numbers = _History(parts, targets, play, tell), range(len(parts))
    together = history.shortest(numbers)
    others = [history.shortest([other for other in numbers if other != part]) for part in numbers]
    why: Why | None = None
    checked: tuple[Checked, ...] = ()
    if sum(history.longest(part) != HOURS[-1] for part in numbers) < 2:
        why = "quiet"
    elif together is None or None in others:
        why = "none"
    else:
        checked = tuple(history.check(part, hours) for part, hours in enumerate(others) if hours)
        why = _why([*checked, *(history.check(part, together) for part in numbers)], checked)
    keeping = history.shortest(numbers, wanted=True)
    shown = [each for each in HOURS if each == keeping or all((part, each) in history.played for part in numbers)]
    found = Fit(
        recommended=None if why else together,
        why=why,
        checked=checked,
        keeping=keeping,
        tried=tuple(history.tried(hours) for hours in shown),
        unfitted=history.tried(None),
    )
    if tell:
        tell(history.most, history.most)
    return found


def _why(all_checks: Sequence[Checked], others: Sequence[Checked]) -> Why | None:
    """Why the number that was checked isn't recommended; None: it is."""
    if any(each.reached.usd > DEARER * each.unfitted.usd for each in all_checks):
        return "dearer"
    if any(each.over[1] > LONGER for each in all_checks):
        return "longer"
    if sum(each.reached.usd for each in others) > WORTH * sum(each.unfitted.usd for each in others):
        return "no_gain"
    return None


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


def longer(target: WaitTarget, waits: Waits) -> WaitTarget:
    """Of each wait the longer one."""
    return WaitTarget(*(max(getattr(target, each.name), getattr(waits, each.name)) for each in fields(target)))


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


def _joined(parts: Sequence[Trace]) -> Trace:
    """One of all: only their sizes count."""
    submit_s, duration_s, gpus = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("submit_s", "duration_s", "gpus")
    )
    return Trace(np.sort(submit_s), duration_s, gpus)
