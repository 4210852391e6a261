"""GPUs over time, from the ledger: in use at home and rented, paid for, and wanted by jobs that waited. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from markupsafe import Markup

from ironburst.controller.records import GpuTimes, LeaseRow
from ironburst.page.chart import Series, Spans, average, drawn

DAY_S = 86400.0
MONTH_S = 30 * DAY_S
_NONE: Spans = np.empty((0, 3))


@dataclass(frozen=True)
class Recent:
    """What of the ledger the pictures are of, up to `now_s`, the last tick: nobody knows what came after.

    `gpus`: of a node, by instance type; `home_gpus`: all nodes of now.
    """

    now_s: float
    jobs: Iterable[GpuTimes]
    leases: Sequence[LeaseRow]
    gpus: Mapping[str, int]
    rented_nodes: frozenset[str]
    home_gpus: int


@dataclass(frozen=True)
class Picture:
    """One picture, and what its lines are."""

    title: str
    svg: Markup
    legend: tuple[tuple[str, str], ...]  # (style, name)


def pictures(recent: Recent) -> list[Picture]:
    """A day in quarters of an hour, and thirty days in quarters of a day."""
    home, rented, waiting = _spans(recent)
    paid = _paid(recent)
    out = []
    for title, long_s, part_s, marks in (("24 hours", DAY_S, 900.0, _hours), ("30 days", MONTH_S, DAY_S / 4, _days)):
        edges = [recent.now_s - long_s + n * part_s for n in range(round(long_s / part_s) + 1)]
        running = [
            Series("at home in all (now)", "all", [float(recent.home_gpus)] * (len(edges) - 1)),
            Series("in use at home", "home", average(home, edges)),
            Series("rented (paid for)", "rented", average(paid, edges)),
            Series("in use, rented", "used", average(rented, edges)),
        ]
        queue = [Series("wanted by jobs that wait", "waiting", average(waiting, edges))]
        when = [_when(edges[n], edges[n + 1]) for n in range(len(edges) - 1)]
        for what, series in (("GPUs", running), ("GPUs wanted", queue)):
            svg = drawn(series, edges, marks(edges[0], edges[-1]), when)
            legend = tuple((each.style, each.name) for each in series)
            out.append(Picture(f"{what}, {title}", svg, legend))
    return out


def _spans(recent: Recent) -> tuple[Spans, Spans, Spans]:
    """Of jobs: in use at home, in use rented, waiting. One that was put back counts from its last start."""
    rows = (
        (gpus, submit_s, until_s if start_s is None else start_s, until_s, on.partition(",")[0] in recent.rented_nodes)
        for gpus, submit_s, start_s, until_s, on in recent.jobs
    )
    jobs = np.fromiter(rows, "f8,f8,f8,f8,?")
    gpus, submit_s, start_s, until_s, rented = (jobs[f"f{n}"] for n in range(5))
    ran = np.column_stack((start_s, until_s, gpus))
    began = start_s < until_s
    return ran[began & ~rented], ran[began & rented], np.column_stack((submit_s, start_s, gpus))


def _paid(recent: Recent) -> Spans:
    paid = [(lease.paid(recent.now_s), recent.gpus.get(lease.instance_type, 0)) for lease in recent.leases]
    rows = [(*times, float(gpus)) for times, gpus in paid if times]
    return np.array(rows) if rows else _NONE


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
