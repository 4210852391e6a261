"""GPUs over time, from the ledger: in use at home and rented, paid for, and wanted by jobs that waited. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from ironburst.controller.records import QUARTER_S, GpuUse, GpuUseRow, LeaseRow
from ironburst.page.chart import Series, drawn

DAY_S = 86400.0
MONTH_S = 30 * DAY_S


@dataclass(frozen=True)
class Recent:
    """What of the ledger the pictures are of, up to `now_s`, the last tick: nobody knows what came after.

    `gpus`: of a node, by instance type; `home_gpus`: all nodes of now.
    """

    now_s: float
    use: Sequence[GpuUseRow]
    leases: Sequence[LeaseRow]
    gpus: Mapping[str, int]
    home_gpus: int


@dataclass(frozen=True)
class Picture:
    """One picture, and what its lines are."""

    title: str
    svg: Markup
    legend: tuple[tuple[str, str], ...]  # (style, name)


def pictures(recent: Recent) -> list[Picture]:
    """A day in quarters of an hour, and thirty days in quarters of a day."""
    end_s = math.ceil(recent.now_s / QUARTER_S) * QUARTER_S
    out = []
    for title, long_s, part_s, marks in (
        ("24 hours", DAY_S, QUARTER_S, _hours),
        ("30 days", MONTH_S, DAY_S / 4, _days),
    ):
        edges = [end_s - long_s + n * part_s for n in range(round(long_s / part_s) + 1)]
        running = [
            Series("at home in all (now)", "all", [float(recent.home_gpus)] * (len(edges) - 1)),
            Series("in use at home", "home", _used(recent.use, edges, lambda use: use.home)),
            Series("rented (paid for)", "rented", _paid(recent, edges)),
            Series("in use, rented", "used", _used(recent.use, edges, lambda use: use.rented)),
        ]
        queue = [Series("wanted by jobs that wait", "waiting", _used(recent.use, edges, lambda use: use.waiting))]
        when = [_when(edges[n], edges[n + 1]) for n in range(len(edges) - 1)]
        for what, series in (("GPUs", running), ("GPUs wanted", queue)):
            svg = drawn(series, edges, marks(edges[0], edges[-1]), when)
            legend = tuple((each.style, each.name) for each in series)
            out.append(Picture(f"{what}, {title}", svg, legend))
    return out


def _used(rows: Iterable[GpuUseRow], edges: Sequence[float], which: Callable[[GpuUse], float]) -> list[float | None]:
    """GPUs on average in each part of the time, of the seconds that ticks saw; None: they saw none."""
    seen_s, seconds = [0.0] * (len(edges) - 1), [0.0] * (len(edges) - 1)
    for row in rows:
        n = math.floor((row.quarter * QUARTER_S - edges[0]) / (edges[1] - edges[0]))
        if 0 <= n < len(seen_s):
            seen_s[n] += row.seen_s
            seconds[n] += which(row)
    return [gpus / seen if seen else None for gpus, seen in zip(seconds, seen_s, strict=True)]


def _paid(recent: Recent, edges: Sequence[float]) -> list[float | None]:
    """GPUs on average in each part of the time, up to the last tick."""
    part_s, seconds = edges[1] - edges[0], [0.0] * (len(edges) - 1)
    for lease in recent.leases:
        begin, end = lease.paid(recent.now_s) or (0.0, 0.0)
        end, gpus = min(end, recent.now_s), recent.gpus.get(lease.instance_type, 0)
        first, last = (math.floor((moment - edges[0]) / part_s) for moment in (begin, end))
        for n in range(max(first, 0), min(last + 1, len(seconds))):
            seconds[n] += gpus * (min(end, edges[n + 1]) - max(begin, edges[n]))
    ends = (min(end, recent.now_s) for end in edges[1:])
    return [gpus / (end - begin) for gpus, begin, end in zip(seconds, edges, ends, strict=False)]


def _when(from_s: float, to_s: float) -> str:
    begin, end = datetime.fromtimestamp(from_s), datetime.fromtimestamp(to_s)
    return f"{begin:%m-%d %H:%M} to {end:%H:%M}"


def _marks(from_s: float, to_s: float, step: timedelta, form: str) -> Iterator[tuple[float, str]]:
    moment = datetime.fromtimestamp(from_s).replace(hour=0, minute=0, second=0, microsecond=0)
    while (at_s := moment.timestamp()) <= to_s:
        if at_s >= from_s + 0.02 * (to_s - from_s) and at_s <= to_s - 0.02 * (to_s - from_s):
            yield at_s, f"{moment:{form}}"
        moment += step


def _hours(from_s: float, to_s: float) -> list[tuple[float, str]]:
    return list(_marks(from_s, to_s, timedelta(hours=4), "%H:%M"))


def _days(from_s: float, to_s: float) -> list[tuple[float, str]]:
    return list(_marks(from_s, to_s, timedelta(days=5), "%m-%d"))
