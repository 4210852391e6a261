"""What leases have cost, and for what: their jobs by GPU-hours, booting, idling. Pure.

A lease's dollars are split again for every part of time in which it has one price and one payer: what it boots is boot,
what its GPUs give to jobs is theirs, the rest is idle. The shares add up to what the lease has cost, exactly.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple

from ironburst.controller import money
from ironburst.controller.records import REQUESTED, LeaseRow
from ironburst.cost.accounted import JobRun, Window

MICRO = 1_000_000
Part = Literal["jobs", "boot", "idle", "other"]
"""other: what the ledger knows the price of, and nothing else (carried over, without a lease, Karpenter's)"""


class Segment(NamedTuple):
    """A try of a job on one node, for a time."""

    run: int  # which one
    from_s: float
    to_s: float
    gpus: float  # on this node; without those of times when it was suspended


class Charge(NamedTuple):
    """A share of a lease's dollars, in one window."""

    window: int  # which one
    lease: int  # which one
    part: Part
    account: str  # whose ceiling paid
    run: int  # whose it is; -1: nobody's
    micro: int  # USD


@dataclass(frozen=True)
class Priced:
    """A lease that has been paid for, and its prices over time."""

    lease: LeaseRow
    from_s: float
    to_s: float
    prices: tuple[tuple[float, str, float], ...]  # from when on, who pays, USD per hour; the first is from `from_s` on

    def usd(self, until_s: float) -> float:
        """What it had cost by then."""
        total, until_s = 0.0, min(until_s, self.to_s)
        for n, (from_s, _, usd_per_hour) in enumerate(self.prices):
            end = self.prices[n + 1][0] if n + 1 < len(self.prices) else self.to_s
            total += max(min(until_s, end) - from_s, 0.0) / 3600 * usd_per_hour
        return total

    def micro(self, from_s: float, to_s: float) -> int:
        """What a part of its time cost: parts that meet add up to the whole."""
        return round(self.usd(to_s) * MICRO) - round(self.usd(from_s) * MICRO)

    def at(self, at_s: float) -> tuple[str, float]:
        """(who pays, USD per hour) at a moment; before its beginning and after its end the nearest."""
        n = bisect_right([each[0] for each in self.prices], at_s) - 1
        return self.prices[max(n, 0)][1:]


def priced(leases: Iterable[LeaseRow], rates: money.Paid, now_s: float) -> list[Priced]:
    """Those that have cost something by now, or would have if they weren't paid for already. A call without an answer
    isn't counted, as in `money.spent`.
    """
    found = []
    for lease in leases:
        paid = None if lease.state == REQUESTED else lease.paid(now_s)
        if paid is None or paid[1] <= paid[0]:
            continue
        its = [(max(rate.from_s, paid[0]), rate.account, rate.usd_per_hour) for rate in money.rates_of(lease, rates)]
        its = [each for n, each in enumerate(its) if n + 1 == len(its) or its[n + 1][0] > each[0]]
        found.append(Priced(lease, *paid, tuple(its)))
    return found


class Occupied:
    """Tries of jobs by node, in the order of their starts."""

    def __init__(self, runs: Sequence[JobRun], now_s: float):
        self._on: dict[str, list[Segment]] = {}
        for n, run in enumerate(runs):
            if run.start_s is None or not run.nodes or not run.gpus:
                continue
            end = now_s if run.end_s is None else min(run.end_s, now_s)
            if end > run.start_s:
                for node in run.nodes:
                    self._on.setdefault(node, []).append(Segment(n, run.start_s, end, run.gpus_a_node * run.busy))
        for its in self._on.values():
            its.sort(key=lambda each: (each.from_s, each.run))
        self._latest = {node: list(accumulate((each.to_s for each in its), max)) for node, its in self._on.items()}

    def during(self, lease: Priced) -> list[Segment]:
        """Those on its node that overlap its time."""
        its, latest = self._on.get(lease.lease.node, []), self._latest.get(lease.lease.node, [])
        first, after = bisect_right(latest, lease.from_s), bisect_left(its, lease.to_s, key=lambda each: each.from_s)
        return [each for each in its[first:after] if each.to_s > lease.from_s]


def charges(
    leases: Sequence[Priced],
    on: Occupied,
    gpus: Mapping[str, int],
    windows: Sequence[Window],
) -> Iterator[Charge]:
    """All that the leases cost in the windows (one after the other). `gpus`: of a node of each
    pool; of a pool that isn't declared any more, as many as its jobs held at most.
    """
    ends = [window.to_s for window in windows]
    for number, lease in enumerate(leases):
        its = on.during(lease)
        room = float(gpus.get(lease.lease.pool) or max((each.gpus for each in its), default=1.0))
        boot_s, whole = _booted(lease, its), _whole(lease.lease)
        first = bisect_right(ends, lease.from_s)
        for n in range(first, len(windows)):
            if windows[n].from_s >= lease.to_s:
                break
            for begin, end, account in _pieces(lease, windows[n]):
                micro = lease.micro(begin, end)
                if whole:
                    yield Charge(n, number, whole, account, -1, micro)
                    continue
                for part, run, share in _shares(micro, begin, end, boot_s, room, its):
                    yield Charge(n, number, part, account, run, share)


def _whole(lease: LeaseRow) -> Part | None:
    """Of a lease of which the ledger knows nothing but what it costs."""
    known = lease.instance_id is not None and lease.end_reason != "it had no lease"
    return None if known else "other"


def _booted(lease: Priced, its: Sequence[Segment]) -> float:
    """When its boot was over: it joined, or had a job. One that never did either booted all the time."""
    joined_s = lease.to_s if lease.lease.joined_s is None else lease.lease.joined_s
    return min([joined_s, *(each.from_s for each in its[:1])])


def _pieces(lease: Priced, window: Window) -> Iterator[tuple[float, float, str]]:
    for n, (from_s, account, _) in enumerate(lease.prices):
        end = lease.prices[n + 1][0] if n + 1 < len(lease.prices) else lease.to_s
        if part := window.overlap(from_s, min(end, lease.to_s)):
            yield *part, account


def _shares(
    micro: int, begin: float, end: float, boot_s: float, room: float, its: Sequence[Segment]
) -> Iterator[tuple[Part, int, int]]:
    """(what for, whose, how much) of a piece of a lease."""
    weights: list[tuple[Part, int, float]] = []
    if boot_s > begin:
        weights.append(("boot", -1, room * (min(boot_s, end) - begin)))
    taken = ((each, min(each.to_s, end) - max(each.from_s, begin)) for each in its)
    weights += [("jobs", each.run, each.gpus * seconds) for each, seconds in taken if seconds > 0]
    idle = room * (end - begin) - sum(weight for _, _, weight in weights)
    if idle > 0 or not weights:
        weights.append(("idle", -1, max(idle, 1.0)))
    total = sum(weight for _, _, weight in weights)
    sums = [round(micro * (part / total)) for part in accumulate(weight for _, _, weight in weights)] if total else []
    sums[-1:] = [micro]
    before = 0
    for (part, run, _), now in zip(weights, sums, strict=True):
        yield part, run, now - before
        before = now
