"""How long jobs may wait for each of their GPU-hours, from a team's own history; or that the limits which aren't fitted
are better kept. Pure.

The history is cut into parts, one after the other, of equally many jobs. With each such number
(`Limits.hours_per_gpu_hour`) a part is played by itself through `burst.decide`, from empty nodes on. A part gives the
longest number that makes its waits no longer than is wanted, or than they are without any number where that is longer;
some parts give the shortest of theirs. Such a number is recommended only if it wins outside of what it was fitted to:
each part is played with what the *others* gave, and there it may not be dearer than no number, nor wait longer; nor
may what all gave, where the same jobs come faster: the next month may be busier than any that was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import count, pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

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
LEAST_BUSY = 2  # of the parts have to show which number is too long
LEAST_JOBS = 400  # of a history: a 99th percentile of fewer in a part says nothing
LATE = 1.005  # of a wait: a limit that ends between two looks of the policy is kept
# On a part that a number wasn't fitted to, over no number: it may cost, and its jobs wait, so much; all such parts
# together have to cost less than WORTH, or there is nothing to change for
DEARER, LONGER, WORTH = 1.01, 1.03, 0.99
BUSIER = 0.85  # of the times between submissions, in a history that is busier

# Why no number is recommended
Why = Literal[
    "quiet",  # in most parts no number makes the waits as long as they may be, so how long is too long isn't known
    "none",  # in some part they are longer with every one
    "dearer",  # what the other parts gave costs more on a part
    "longer",  # it makes the waits of a part longer
    "no_gain",  # it costs as much
    "busier",  # it is dearer or makes waits longer where the same jobs come faster
]


class PlayedPart(NamedTuple):
    """A part that was played: when each job began, USD of the leases (nothing prepaid), and the late jobs that nothing
    could be rented for.
    """

    start_s: Floats
    usd: float
    not_rented: int

    @classmethod
    def of(cls, played: Played) -> PlayedPart:
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
    number. `keeping`: the longest with which every part keeps what is wanted, whatever it costs; None: none does.
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


Over: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
Play: TypeAlias = Callable[[Trace, WaitTarget, float | None], PlayedPart]


class _Part:
    """A part of a history, and what was reached on it; every number is played once."""

    def __init__(self, number: int, trace: Trace, target: WaitTarget, play: Play):
        self.number, self.trace, self.target, self._play = number, trace, target, play
        self.played: dict[float | None, PlayedPart] = {}
        self.longest = cache(self._longest)

    def reached(self, hours: float | None) -> Reached:
        """With this number."""
        if hours not in self.played:
            self.played[hours] = self._play(self.trace, self.target, hours)
        got = self.played[hours]
        return Reached(results.waits(self.trace, got.start_s), got.usd, got.not_rented)

    @property
    def allowed(self) -> WaitTarget:
        """The waits that it may have: those that are wanted, or those without a number where these are longer."""
        return longer(self.target, self.reached(None).waits)

    def _longest(self, target: WaitTarget) -> float | None:
        return longest(lambda hours: kept(target, self.reached(hours).waits))

    def check(self, hours: float) -> Checked:
        """With this number, over none."""
        reached = self.reached(hours)
        return Checked(self.number, hours, reached, self.reached(None), worst(self.allowed, reached.waits))

    def busier(self) -> _Part:
        """The same jobs, each sooner behind the one before it."""
        return _Part(self.number, busier(self.trace), self.target, self._play)


def fit(
    parts: Sequence[Trace],
    targets: Sequence[WaitTarget],
    play: Play,
    tell: Callable[[int, int], None] | None = None,
    over: Over = map,
) -> Fit:
    """`targets`: what is wanted in each part. `play`: such jobs with this target and number (None: with limits that
    aren't fitted). `tell`: called with the plays that are done, and about how many there are. `over`: calls a function
    on each part, as `map` does, or on several at once.
    """
    done, most = count(1), len(parts) * (len(HOURS).bit_length() + 5)

    def told(trace: Trace, target: WaitTarget, hours: float | None) -> PlayedPart:
        outcome, number = play(trace, target, hours), next(done)
        if tell:
            tell(min(number, most - 1), most)
        return outcome

    history = [_Part(number, *part, told) for number, part in enumerate(zip(parts, targets, strict=True))]
    recommended, why, checked = _chosen(history, over)
    keeping = _shortest(over(lambda part: part.longest(part.target), history))
    shown = [hours for hours in HOURS if hours == keeping or all(hours in part.played for part in history)]
    tried = tuple(_tried(history, hours) for hours in shown)
    if tell:
        tell(most, most)
    return Fit(recommended, why, checked, keeping, tried, _tried(history, None))


def _chosen(history: Sequence[_Part], over: Over) -> tuple[float | None, Why | None, tuple[Checked, ...]]:
    """(what is recommended, why nothing is, each part with what the others gave)."""
    each = list(over(lambda part: part.longest(part.allowed), history))
    if sum(hours != HOURS[-1] for hours in each) < LEAST_BUSY:
        return None, "quiet", ()
    together = _shortest(each)
    if together is None:
        return None, "none", ()
    others = [_shortest([*each[:number], *each[number + 1 :]]) for number in range(len(each))]
    pairs = [(part, hours) for part, hours in zip(history, others, strict=True) if hours]
    checked = tuple(over(lambda pair: pair[0].check(pair[1]), pairs))
    why = _why([*checked, *over(lambda part: part.check(together), history)])
    if not why and sum(one.reached.usd for one in checked) > WORTH * sum(one.unfitted.usd for one in checked):
        why = "no_gain"
    if not why and _why(over(lambda part: part.busier().check(together), history)):
        why = "busier"
    return None if why else together, why, checked


def _shortest(numbers: Iterable[float | None]) -> float | None:
    """What parts give together."""
    found = list(numbers)
    return None if None in found else min(hours for hours in found if hours)


def _why(checked: Iterable[Checked]) -> Why | None:
    """What is worse than without a number; None: nothing."""
    for each in checked:
        if each.reached.usd > DEARER * each.unfitted.usd:
            return "dearer"
        if each.over[1] > LONGER:
            return "longer"
    return None


def _tried(history: Sequence[_Part], hours: float | None) -> Tried:
    """All parts with it."""
    reached = tuple(part.reached(hours) for part in history)
    submit_s, duration_s, gpus = (
        np.concatenate([getattr(part.trace, name) for part in history]) for name in ("submit_s", "duration_s", "gpus")
    )
    waits = results.waits(
        Trace(submit_s, duration_s, gpus), np.concatenate([part.played[hours].start_s for part in history])
    )
    usd, late = sum(each.usd for each in reached), sum(each.not_rented for each in reached)
    return Tried(hours, Reached(waits, usd, late), reached)


def busier(trace: Trace) -> Trace:
    """The same jobs, each sooner behind the one before it."""
    sooner_s = (1 - BUSIER) * (trace.submit_s - trace.submit_s[0])
    deadline_s = None if trace.deadline_s is None else trace.deadline_s - sooner_s
    return replace(trace, submit_s=trace.submit_s - sooner_s, deadline_s=deadline_s, start_s=None)


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
