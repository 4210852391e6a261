"""What a policy spent and how long its jobs waited: one way to count, for every policy."""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ironburst.replay import results
from ironburst.replay.traces import Trace

DATA = Path(os.environ.get("IRONBURST_DATA") or Path(__file__).parents[2] / "shared" / "data")
# the five that a policy is held to
WAITS = ("mean_wait_h", "p99_wait_h", "p999_wait_h", "max_wait_h", "gpu_hour_weighted_wait_h")


def trace_path(name: str, as_json: bool) -> Path | None:
    """The trace file `name`, also by its name in the folder of the shared data; None, and the reason is printed, if
    there is none.
    """
    path = next((path for path in (Path(name), DATA / name) if path.exists()), None)
    if not path:
        reason = f"skipped: there is no {name} here or in the folder of shared data; set IRONBURST_DATA to that folder"
        print(json.dumps({"skipped": reason}) if as_json else reason)
    return path


def show(results: Mapping[str, object], as_json: bool) -> None:
    """Print what was measured: as JSON, or a line for each figure."""
    width = max(map(len, results), default=0)
    print(json.dumps(results, indent=1) if as_json else "\n".join(f"{key:{width}} {results[key]}" for key in results))


@dataclass(frozen=True)
class Outcome:
    """What became of each job, in the trace's order: `start_s` (on the clock of submit_s) and whether it ran
    `rented`.
    """

    start_s: np.ndarray
    rented: np.ndarray


def figures(trace: Trace, outcome: Outcome, pool_gpus: int, wall_s: float) -> dict[str, float]:
    """GPU-hours rented; waits (start - submit of every job, rented ones too; percentiles interpolated linearly); the
    speed.

    Raises ValueError, one sentence, for an outcome that can't be: a job that started before its submit or never, or
    more GPUs in use at home than there are. (Whether the jobs fit into nodes is the policy's own business.)
    """
    wait_h = (np.asarray(outcome.start_s, float) - trace.submit_s) / 3600
    if not (wait_h >= 0).all():
        job = int(np.argmax(~(wait_h >= 0)))
        submit_s, start_s = trace.submit_s[job], outcome.start_s[job]
        raise ValueError(f"job {job} was submitted at {submit_s:g} s but started at {start_s:g} s")
    if (used := most_in_use(trace, outcome)) > pool_gpus:
        raise ValueError(f"{used} GPUs were in use at home at one time, but the pool has {pool_gpus}")
    return {
        "rented_gpu_hours": float(trace.gpu_hours[outcome.rented].sum()),
        **wait_figures(trace, wait_h),
        "wall_s": wall_s,
        "jobs_per_s": len(trace) / wall_s,
    }


def wait_figures(trace: Trace, wait_h: np.ndarray) -> dict[str, float]:
    """The five waits, and the median."""
    waits = results.of_hours(trace, wait_h)
    return {
        "mean_wait_h": waits.mean_h,
        "p50_wait_h": waits.p50_h,
        "p99_wait_h": waits.p99_h,
        "p999_wait_h": waits.p999_h,
        "max_wait_h": waits.max_h,
        "gpu_hour_weighted_wait_h": waits.gpu_hour_weighted_h,
    }


def most_in_use(trace: Trace, outcome: Outcome) -> int:
    """The most GPUs that ran at home at one time; a job that ends makes room for one that starts at the same
    instant.
    """
    home = ~np.asarray(outcome.rented)
    start, gpus = np.asarray(outcome.start_s)[home], trace.gpus[home]
    times = np.concatenate([start + trace.duration_s[home], start])  # ends first: the sort is stable
    order = np.argsort(times, kind="stable")
    return int(np.cumsum(np.concatenate([-gpus, gpus])[order]).max(initial=0))


def mean_of(runs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each figure over runs."""
    runs = list(runs)
    return {name: statistics.fmean(run[name] for run in runs) for name in runs[0]}


def ratios(
    ours: Mapping[str, float], theirs: Mapping[str, float], rent: str = "rented_gpu_hours"
) -> dict[str, float | None]:
    """Ours over theirs: the rent and the five waits. None where theirs is 0 or not a number that can be compared."""
    return {name: ours[name] / theirs[name] if theirs.get(name) else None for name in (rent, *WAITS)}


def finite(value):
    """For JSON, which knows no infinity and no NaN: None in their place, in nested dicts too."""
    if isinstance(value, Mapping):
        return {name: finite(inner) for name, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
