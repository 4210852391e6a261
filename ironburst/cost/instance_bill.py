"""The bill of one rented instance against its lease: hours first, then prices. Pure.

An instance is billed by the second, at least a minute, and has lines for each clock hour (UTC; Azure: each day) that it
ran in, with the seconds of that hour. So each line's hours are compared with the seconds of that hour which the ledger
has: they can differ where the ledger's beginning or end lies in the hour, or beyond them; in an hour that lies within
the lease, with other hours after it, they can't, and then they are unexplained. Where an instance is several lines an
hour (Google: cores, memory, GPUs), one of them has its hours, and their prices count together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from ironburst.controller.records import MIN_BILLING_S
from ironburst.cost.accounted import Window
from ironburst.cost.bill_row import UNITS
from ironburst.cost.causes import UNEXPLAINED
from ironburst.cost.leases import Priced
from ironburst.cost.line import Line

Found = str
"""a cause of causes.CAUSES"""
Say = Callable[[Found, int, int], None]
"""(cause, 1e-10 USD, lines)"""
SECOND_S = 1.5  # of either end of an instance, rounded to seconds by both sides
DECIMALS = 2 * 10**4  # of a line: both sides round, ours to a micro-dollar


class _Instance:
    """One instance, while its lines are looked at."""

    def __init__(self, lease: Priced, gpus: int, part: Window, horizon_s: float, say: Say):
        self.lease, self.gpus, self.part, self.horizon_s, self.say = lease, gpus, part, horizon_s, say
        self.explained = 0

    def add(self, cause: Found, units: float, lines: int = 0) -> None:
        """A difference; parts of a unit are left to the rounding."""
        if whole := round(units):
            self.explained += whole
            self.say(cause, whole, lines)

    def seconds(self, line: Line) -> float:
        """Of the instance, that a line is for."""
        return 3600 * line.hours / (self.gpus if line.of_gpus else 1)

    def estimate(self, from_s: float, to_s: float) -> float:
        """What the ledger has of a time, within its part."""
        part = self.part.overlap(from_s, to_s)
        return UNITS * (self.lease.usd(part[1]) - self.lease.usd(part[0])) if part else 0.0

    def hour(self, from_s: float, to_s: float, lines: Sequence[Line], *, first: bool, last: bool) -> None:
        """One hour (or what the report's lines are of)."""
        part = self.part.overlap(from_s, to_s)
        ours_s, its_s = (part[1] - part[0] if part else 0.0), sum(map(self.seconds, lines))
        estimate = self.estimate(from_s, to_s)
        at_s = part[0] if part else from_s
        a_second = estimate / ours_s if ours_s else UNITS * self.lease.at(at_s)[1] / 3600
        more_s = its_s - ours_s
        if more_s:
            cause = self.why(from_s, to_s, its_s, ours_s, first=first, last=last)
            late = cause == "ended_sooner" and to_s >= self.horizon_s and self.lease.to_s >= to_s
            self.add("not_billed_yet" if late else cause, more_s * a_second)
        by_cause: dict[Found, list[float]] = {}
        for line in lines:
            units = float(line.units)
            if line.usd_per_hour is not None:  # what the line says of itself
                strays = line.units - UNITS * line.usd_per_hour * line.hours
                if abs(strays) > max(DECIMALS, UNITS * 1e-9 * line.usd_per_hour):
                    self.add(_UNKNOWN, strays, 1)
                    units -= strays
            cause = line.price_cause(self.lease.lease.market)
            by_cause.setdefault(cause, []).append(units - self.seconds(line) * a_second)
        for cause, its in by_cause.items():
            if abs(sum(its)) > DECIMALS * len(its):
                self.add(cause, sum(its), len(its))

    def why(self, from_s: float, to_s: float, its_s: float, ours_s: float, *, first: bool, last: bool) -> Found:
        """Why an hour has more or fewer seconds than the ledger has of it."""
        begin, end = self.lease.from_s, self.lease.to_s
        more_s = its_s - ours_s
        if abs(more_s) <= SECOND_S:
            return "rounding"
        if its_s > to_s - from_s + SECOND_S:
            return _UNKNOWN
        before_s, after_s = max(min(begin, to_s) - from_s, 0.0), max(to_s - max(end, from_s), 0.0)
        if more_s > 0:
            if more_s <= after_s + SECOND_S:
                return "ran_on"
            return "began_sooner" if more_s <= before_s + SECOND_S else "ran_on" if before_s and after_s else _UNKNOWN
        if last or end < to_s:
            return "ended_sooner"
        return "began_later" if first or begin > from_s else _UNKNOWN

    def uncovered(self, hours: Sequence[tuple[float, float]]) -> None:
        """Time of the lease of which the bill has no line."""
        edges = [(self.part.from_s, self.part.from_s), *hours, (self.part.to_s, self.part.to_s)]
        latest = edges[0][1]
        for number, (before, after) in enumerate(pairwise(edges)):
            latest = max(latest, before[1])
            units = self.estimate(latest, after[0])
            if not units:
                continue
            cause = _UNKNOWN
            if number == len(edges) - 2:
                cause = "not_billed_yet" if latest >= self.horizon_s else "ended_sooner"
            elif number == 0:
                cause = "began_later"
            self.add(cause, -units)


_UNKNOWN = UNEXPLAINED


def of_instance(
    lease: Priced, lines: Sequence[Line], gpus: int, part: Window, units: int, horizon_s: float, say: Say
) -> None:
    """Say what makes the lines' sum of the estimate (`units`, of `part` of the lease's time, which is what lies in the
    window). `gpus`: of the instance; `horizon_s`: up to there the bill goes.
    """
    its = _Instance(lease, gpus, part, horizon_s, say)
    by_hour: dict[tuple[float, float], list[Line]] = {}
    for line in lines:
        by_hour.setdefault((line.from_s, line.to_s), []).append(line)
    least = lease.to_s - lease.from_s <= MIN_BILLING_S and sum(map(its.seconds, lines)) <= MIN_BILLING_S + 1
    if least and len(by_hour) == 1:  # a minute is billed in the hour in which it began
        begin, end = next(iter(by_hour))
        by_hour = {(min(begin, part.from_s), max(end, part.to_s)): list(lines)}
    hours = sorted(by_hour)
    for number, (from_s, to_s) in enumerate(hours):
        its.hour(from_s, to_s, by_hour[from_s, to_s], first=number == 0, last=number == len(hours) - 1)
    its.uncovered(hours)
    # what is left of decimals: at most a micro-dollar or two a line
    left = sum(line.units for line in lines) - units - its.explained
    its.add("rounding" if abs(left) <= DECIMALS * (len(lines) + 2) else _UNKNOWN, left)
