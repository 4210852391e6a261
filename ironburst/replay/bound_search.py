"""Prices that make the certified bound large.
It only searches: whatever it finds, `Problem.value` says what it is worth.

The value is concave in the prices, and the choices that the jobs make at some prices are the slope there
(`Choices.excess_...`). Prices climb along it with steps that are smoothed and scaled for each price (Adam: Kingma and
Ba, ICLR 2015), longer at first, on coarse buckets of time first, whose result is the start on finer ones. The prices of
waiting span orders of magnitude, so their logarithms move.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ironburst.replay.bound import Choices, Prices, Problem, WaitLimits
from ironburst.replay.traces import Floats, Trace

BUCKET_H, BUCKET_ZERO_WAIT_H = 0.25, 0.0625  # of the finest prices; nobody may wait: finer ones, which then cost little
STAGES = ((16, 0.15), (4, 0.3), (1, 0.55))  # buckets so many times the finest, for this part of the time
STEP, LATER_STEP = 0.1, 0.05  # GPU-hours of rent an iteration: in the first stage, in later ones
WAIT_STEP = 3.0  # times that, for the logarithms of the prices of waiting
KEEP_SLOPE, KEEP_SQUARE = 0.9, 0.98  # of the smoothing: parts that an iteration keeps
LEAST_SCALE = 0.05  # below this slope steps get shorter


@dataclass(frozen=True, eq=False)
class Bound:
    """No policy rents fewer than `gpu_hours`: proved by `prices`.
    `trail`: (seconds, best so far) of each iteration of the search.
    """

    gpu_hours: float
    prices: Prices
    wall_s: float
    trail: tuple[tuple[float, float], ...]


def lower_bound(
    trace: Trace,
    pool_gpus: int,
    limits: WaitLimits,
    budget_s: float = 180.0,
    bucket_h: float | None = None,
    iterations: int | None = None,
    tell: Callable[[str], None] | None = None,
) -> Bound:
    """Search for `budget_s` seconds (or a number of iterations, which repeats exactly).
    `tell` is given a line now and then.
    """
    if bucket_h is None:
        bucket_h = BUCKET_ZERO_WAIT_H if limits.max_h is not None and np.max(limits.max_h) == 0 else BUCKET_H
    problem = Problem(trace, pool_gpus, limits)
    best, trail, told, began = None, [], -math.inf, time.monotonic()
    for prices, choices in _climb(problem, bucket_h, budget_s, iterations):
        if best is None or choices.value > best[0]:
            best = (choices.value, prices)
        trail.append((time.monotonic() - began, best[0]))
        if tell and trail[-1][0] - told >= 5:
            told = trail[-1][0]
            tell(f"{max(0.0, best[0]):,.0f} GPU-hours after {told:,.0f} s, {len(trail)} iterations")
    assert best
    return Bound(max(0.0, best[0]), best[1], time.monotonic() - began, tuple(trail))


def _climb(
    problem: Problem, bucket_h: float, budget_s: float, iterations: int | None
) -> Iterator[tuple[Prices, Choices]]:
    """Each iteration's prices and what they are worth; the first charge nothing."""
    horizon = float((problem.submit + problem.duration).max()) + bucket_h
    nothing = Prices(bucket_h, np.zeros(math.ceil(horizon / bucket_h)))
    yield nothing, problem.value(nothing)
    if (not problem.allowed and np.isinf(problem.most_wait).all()) or not problem.gpu_hours.any():
        return
    best = _first_guess(problem, horizon, bucket_h * STAGES[0][0])
    for stage, (coarseness, share) in enumerate(STAGES):
        start, value = _on_buckets(best, bucket_h * coarseness, horizon), -math.inf
        progress = _progress(share * budget_s, iterations and max(1, round(share * iterations)))
        for prices, choices in _ascend(problem, start, STEP if stage == 0 else LATER_STEP, progress):
            if choices.value > value:
                best, value = prices, choices.value
            yield prices, choices
    for name in problem.allowed:  # which a logarithm never reaches
        free = best.of_waiting({name: 0.0})
        if (choices := problem.value(free)).value > value:
            best, value = free, choices.value
            yield free, choices


def _progress(budget_s: float, iterations: int | None) -> Iterator[float]:
    """From 0 up to 1: the part of the time, or of the iterations, that is gone."""
    began, done = time.monotonic(), 0
    while (gone := done / iterations if iterations else (time.monotonic() - began) / max(budget_s, 1e-9)) < 1:
        yield gone
        done += 1


def _first_guess(problem: Problem, horizon: float, bucket_h: float) -> Prices:
    """Half the rent for a GPU-hour of the pool until the last submit;
    prices of waiting from how much of it is allowed.
    """
    edges = np.arange(math.ceil(horizon / bucket_h)) * bucket_h
    total = problem.gpu_hours.sum()
    # of all GPU-hours, that each limit's worth may be
    parts = {"mean": 0.01, "weighted": 0.03, "p99": 0.001, "p999": 0.02}
    least = {"mean": 0.01 * problem.jobs, "weighted": 0.01 * total, "p99": 1.0, "p999": 1.0}
    waits = {name: parts[name] * total / max(amount, least[name]) for name, amount in problem.allowed.items()}
    return Prices(bucket_h, np.where(edges <= problem.submit[-1], 0.5, 0.0)).of_waiting(waits)


def _on_buckets(prices: Prices, bucket_h: float, horizon: float) -> Prices:
    """The same prices on buckets that are as long, or so many times shorter."""
    buckets = math.ceil(horizon / bucket_h)
    finer = np.repeat(prices.gpu_hour, round(prices.bucket_h / bucket_h))[:buckets]
    return replace(prices, bucket_h=bucket_h, gpu_hour=np.pad(finer, (0, buckets - len(finer))))


def _ascend(
    problem: Problem, prices: Prices, step: float, progress: Iterator[float]
) -> Iterator[tuple[Prices, Choices]]:
    """Climb from these prices; steps get shorter as the time goes by."""
    names, buckets = list(problem.allowed), len(prices.gpu_hour)
    there = problem.pool_gpus * prices.bucket_h
    logs: Floats = np.log([max(getattr(prices, name), 1e-12) for name in names])
    slope = square = np.zeros(buckets + len(names))
    for done, gone in enumerate(progress, 1):
        choices = problem.value(prices)
        yield prices, choices
        of_waits = [choices.excess_waits[name] / max(problem.allowed[name], 1e-9) for name in names]
        excess = np.concatenate([choices.excess_gpu_hours / there, np.clip(of_waits, -10, 10)])
        slope = KEEP_SLOPE * slope + (1 - KEEP_SLOPE) * excess
        square = KEEP_SQUARE * square + (1 - KEEP_SQUARE) * excess**2
        length = step * (1 - gone) ** 1.5 + 0.003 * step
        moved = length * (slope / (1 - KEEP_SLOPE**done)) / (np.sqrt(square / (1 - KEEP_SQUARE**done)) + LEAST_SCALE)
        logs = logs + WAIT_STEP * moved[buckets:]
        of_waiting = np.exp(np.minimum(logs, 50.0)).tolist()
        prices = replace(prices, gpu_hour=np.maximum(prices.gpu_hour + moved[:buckets], 0))
        prices = prices.of_waiting(dict(zip(names, of_waiting, strict=True)))
