"""What a played trace comes to: the waits, and what waited and was rented over time. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ironburst.burst import Pool
from ironburst.replay.bound import WaitLimits
from ironburst.replay.outcome import Played
from ironburst.replay.traces import Flags, Floats, Trace

POINTS = 400  # of a curve over time


@dataclass(frozen=True)
class Waits:
    """Hours from submit to start, of all jobs, rented ones too; percentiles interpolated linearly."""

    mean_h: float
    p50_h: float
    p95_h: float
    p99_h: float
    p999_h: float
    max_h: float
    gpu_hour_weighted_h: float

    def limits(self) -> WaitLimits:
        """The limits that a schedule with these waits just keeps (the five that a bound knows)."""
        return WaitLimits(self.mean_h, self.gpu_hour_weighted_h, self.p99_h, self.p999_h, self.max_h)


def waits(trace: Trace, start_s: Floats) -> Waits:
    """The waits from each job's submit to its start (seconds, on the trace's clock)."""
    return of_hours(trace, (np.asarray(start_s, float) - trace.submit_s) / 3600)


def of_hours(trace: Trace, hours: Floats) -> Waits:
    """Of what is counted as each job's wait, where that isn't start - submit."""
    p50, p95, p99, p999 = np.percentile(hours, [50, 95, 99, 99.9])
    work = trace.gpu_hours
    weighted = float(np.average(hours, weights=work)) if work.sum() else float(hours.mean())
    return Waits(float(hours.mean()), float(p50), float(p95), float(p99), float(p999), float(hours.max()), weighted)


def recorded(trace: Trace) -> tuple[int, Waits] | None:
    """(jobs whose start the trace knows, their waits then); None where it knows none. A start before the submit, as a
    requeued job's can be, is a wait of 0.
    """
    if trace.start_s is None:
        return None
    known = trace.take(~np.isnan(trace.start_s))
    assert known.start_s is not None
    return len(known), waits(known, np.maximum(known.start_s, known.submit_s))


@dataclass(frozen=True)
class OfAccount:
    """What was rented for an account, and the mean waits of its jobs (hours): as recorded, if that is known, and as
    they were played.
    """

    account: str
    jobs: int
    rented_jobs: int
    rented_gpu_hours: float
    recorded_mean_h: float | None
    mean_h: float


def by_account(trace: Trace, played: Played) -> list[OfAccount]:
    """Most rented GPU-hours first. Jobs without an account count as their user's."""
    unknown = ("",) * len(trace)
    names = np.array(
        [queue or user or "-" for queue, user in zip(trace.queue or unknown, trace.user or unknown, strict=True)]
    )
    rows = []
    for name in sorted(set(names.tolist())):
        its = names == name
        rented, was = its & played.rented, recorded(trace.take(its))
        rows.append(
            OfAccount(
                name,
                jobs=int(its.sum()),
                rented_jobs=int(rented.sum()),
                rented_gpu_hours=float(trace.gpu_hours[rented].sum()),
                recorded_mean_h=was[1].mean_h if was else None,
                mean_h=waits(trace.take(its), played.start_s[its]).mean_h,
            )
        )
    return sorted(rows, key=lambda row: (-row.rented_gpu_hours, row.account))


@dataclass(frozen=True, eq=False)
class Curves:
    """GPUs over time, each a mean over one of POINTS equal parts of it.
    `hours` from the first submit, of the parts' middles.
    """

    hours: Floats
    queued: Floats
    rented: Floats
    home: Floats


def curves(trace: Trace, start_s: Floats, end_s: Floats, rented: Flags) -> Curves:
    """Of jobs that ran then (seconds, on the trace's clock), some of them `rented`."""
    began, ended = float(trace.submit_s[0]), float(end_s.max())
    edges = np.linspace(began, max(ended, began + 1.0), POINTS + 1)
    gpus = trace.gpus.astype(float)
    at_home = ~np.asarray(rented, bool)
    return Curves(
        hours=(edges[:-1] + edges[1:]) / 2 / 3600 - began / 3600,
        queued=mean_in_use(trace.submit_s, start_s, gpus, edges),
        rented=mean_in_use(start_s[rented], end_s[rented], gpus[rented], edges),
        home=mean_in_use(start_s[at_home], end_s[at_home], gpus[at_home], edges),
    )


def mean_in_use(from_s: Floats, to_s: Floats, gpus: Floats, edges: Floats) -> Floats:
    """The mean, between each two edges (seconds), of what is in use: `gpus` of each from `from_s` to `to_s`. Exact."""
    times = np.concatenate([from_s, to_s])
    order = np.argsort(times, kind="stable")
    times, steps = times[order], np.concatenate([gpus, -gpus])[order]
    # the integral up to an edge: of each step before it, its height times its distance
    heights, moments = np.concatenate([[0.0], np.cumsum(steps)]), np.concatenate([[0.0], np.cumsum(steps * times)])
    before = np.searchsorted(times, edges, side="left")
    integrals = np.diff(heights[before] * edges - moments[before])
    means: Floats = np.maximum(integrals / np.diff(edges), 0.0)
    return means


def rented_hours(trace: Trace, pool: Sequence[str], pools: Sequence[Pool]) -> tuple[float, int]:
    """GPU-hours that jobs ran on rented nodes (`pool`: where each ran at last; empty: at home), by the pools' relative
    speeds; and how many of them slower ones took over their time limit, where a scheduler would end them.
    """
    its = {each.name: each.speed for each in pools}
    speeds = np.array([its.get(name, 1.0) for name in pool])
    rented = np.array([bool(name) for name in pool], bool)
    hours = float((trace.gpu_hours / speeds)[rented].sum()) if len(rented) else 0.0
    over = trace.duration_s / speeds > (math.inf if trace.limit_s is None else trace.limit_s)
    return hours, int((over & rented & (speeds < 1)).sum())
