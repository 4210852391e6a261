"""What is too slow, and which port it comes from. Pure.

The floor of a measurement is, in this order: what was accepted of this pair and rail, less 5 %, as of the gate's
baseline; the median of its rail in this run, less 10 %, as most rows of acceptance_thresholds.csv allow of a line; and
in any case FLOOR of the line, the lowest of those rows (T29), so that a whole fabric that is slow is none that is even.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ironburst.health import ib_write_bw
from ironburst.health.expectation import Expectation
from ironburst.health.findings import Unreadable

ACCEPTED, EVEN, FLOOR = 0.95, 0.90, 0.78


@dataclass(frozen=True)
class Port:
    """A card of a node. `rail`: 1 for its first; `gbps`: of its line."""

    node: str
    device: str
    rail: int
    gbps: float

    def __str__(self) -> str:
        return f"{self.node} {self.device}"


@dataclass(frozen=True)
class Bandwidth:
    """One measurement. `test`: pairs or ring; `gbps` None: there is none, and `error` says why."""

    test: str
    sender: Port
    receiver: Port
    gbps: float | None
    error: str = ""

    @property
    def key(self) -> str:
        """By which what was accepted is kept: the same in both directions."""
        ends = sorted((self.sender.node, self.receiver.node))
        return f"{self.test} {ends[0]} {ends[1]} rail {self.sender.rail}"


@dataclass(frozen=True)
class Slow:
    """A measurement below its floor. `wanted`: Gb/s; `than`: what that comes from."""

    measured: Bandwidth
    wanted: float
    than: str


@dataclass(frozen=True)
class Suspect:
    """A port that is in more than half of its measurements below the floor."""

    port: Port
    slow: int
    of: int


def read(text: str, error: str, served: str) -> tuple[float | None, str]:
    """(Gb/s, what went wrong) of a client's output. `error`: of its process; `served`: of its server's."""
    if error or served:
        said = " ".join(text.split())[-160:]
        where = f"the receiver's ib_write_bw: {served}" if served and not error else f"ib_write_bw: {error}"
        return None, f"{where}: {said}" if said and error else where
    try:
        findings = ib_write_bw.parse(text, Expectation())
    except Unreadable as unread:
        return None, str(unread)
    if wrong := [finding.text for finding in findings if not finding.passed]:
        return None, wrong[0]
    return list(ib_write_bw.figures(text).values())[-1], ""


def slow(measured: Sequence[Bandwidth], accepted: Mapping[str, float]) -> list[Slow]:
    """Those below their floors, the worst first; without a figure, worst of all."""
    of_rail: dict[tuple[str, int, float], list[float]] = defaultdict(list)
    for each in measured:
        if each.gbps is not None:
            of_rail[each.test, each.sender.rail, line(each)].append(each.gbps)
    found = []
    for each in measured:
        its = of_rail[each.test, each.sender.rail, line(each)]
        floors = [(FLOOR * line(each), f"{FLOOR:.0%} of the line's {line(each):g}")]
        if best := accepted.get(each.key):
            floors.append((ACCEPTED * best, f"what was accepted, {best:g}"))
        elif len(its) > 2:
            middle = statistics.median(its)
            floors.append((EVEN * middle, f"the median of its rail, {middle:g}"))
        wanted, than = max(floors)
        if each.gbps is None or each.gbps < wanted:
            found.append(Slow(each, round(wanted, 1), than))
    return sorted(found, key=lambda each: (each.measured.gbps or 0) / line(each.measured))


def line(measured: Bandwidth) -> float:
    """Gb/s of the slower one of both ports."""
    return min(measured.sender.gbps, measured.receiver.gbps)


def suspects(measured: Iterable[Bandwidth], below: Sequence[Slow]) -> list[Suspect]:
    """Ports behind more than one slow measurement, the surest first: a pair says nothing about which of its two."""
    count: dict[Port, int] = defaultdict(int)
    bad: dict[Port, int] = defaultdict(int)
    for each in measured:
        for port in (each.sender, each.receiver):
            count[port] += 1
    for each_slow in below:
        for port in (each_slow.measured.sender, each_slow.measured.receiver):
            bad[port] += 1
    found = [Suspect(port, n, count[port]) for port, n in bad.items() if n > 1 and n > count[port] / 2]
    return sorted(found, key=lambda each: (-each.slow / each.of, -each.slow, str(each.port)))


def baseline(
    measured: Iterable[Bandwidth], accepted: Mapping[str, float], *, anew: bool, good: bool
) -> dict[str, float]:
    """What is accepted after a run: new pairs of a good one, or with `anew` all that it has measured."""
    figures: dict[str, float] = {}
    for each in measured:
        if each.gbps is not None:
            figures[each.key] = max(each.gbps, figures.get(each.key, 0.0))
    if anew:
        return {**accepted, **figures}
    return {**figures, **accepted} if good else dict(accepted)
