"""What no policy can beat: a certified lower bound on the GPU-hours that a trace
makes one rent, within limits on waiting.

Lagrangian dual of the clairvoyant problem; docs/bound.md has the proof. Give every GPU-hour of the pool a price that
may change from bucket to bucket of time, and give a price to every limit on waiting. At these prices each job chooses
alone what is cheapest for it: to be rented at once, or to start at home at some moment. The jobs' costs, less what the
pool and the limits are worth at these prices, is at most what the best policy rents: for ANY prices that aren't
negative. So `Problem.value` is all that the bound rests on; how its prices were found doesn't matter
(ironburst.replay.bound_search looks for good ones).

Nothing is rounded: the buckets only say where prices may change. Starts are any moment, run times are exact,
and the price of a run is the exact integral. A job's cost is piecewise linear in its start, so the cheapest
start is its submit, its last allowed moment, a moment where a limit is reached, or one at which its start
or its end falls on an edge of a bucket; all of these are tried. What is ignored lowers the bound: packing into
nodes, boot times, not knowing the future.

Time is in hours from the first submit, cost in GPU-hours of rent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ironburst.replay.traces import Flags, Floats, Integers, Trace

ROUNDING = 1e-9  # of all GPU-hours: taken off for the rounding of sums
CELLS = 50_000  # starts tried at once: what stays in a processor's cache


@dataclass(frozen=True)
class WaitLimits:
    """What the waits of all jobs must keep to, in hours; None: not limited.
    `max_h` is one for all, or an array, one a job.
    """

    mean_h: float | None = None
    gpu_hour_weighted_h: float | None = None
    p99_h: float | None = None
    p999_h: float | None = None
    max_h: float | Floats | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not (np.asarray(value, float) >= 0).all():
                raise ValueError(f"the wait limit {name} is {value}; allowed is 0 or more hours, or None for no limit")


@dataclass(frozen=True, eq=False)
class Prices:
    """Rent (in GPU-hours) that is charged: for a GPU-hour of the pool in each bucket of
    time, and for waiting; none is negative.

    `gpu_hour`: array over buckets of `bucket_h` hours from the first submit; after the last one the pool costs nothing.
    `mean`: for an hour that a job waits. `weighted`: for an hour that a job waits, for each of its GPU-hours. `p99`,
    `p999`: for each job that waits longer than that limit.
    """

    bucket_h: float
    gpu_hour: Floats
    mean: float = 0.0
    weighted: float = 0.0
    p99: float = 0.0
    p999: float = 0.0

    def __post_init__(self) -> None:
        least = min(self.gpu_hour.min(initial=0), self.mean, self.weighted, self.p99, self.p999)
        if not (self.bucket_h > 0 and least >= 0):
            raise ValueError("prices are 0 or more, and a bucket is longer than 0 hours")

    def of_waiting(self, changed: Mapping[str, float]) -> Prices:
        """With these prices of waiting, by their names (mean, weighted, p99, p999); the others stay."""
        return Prices(
            bucket_h=self.bucket_h,
            gpu_hour=self.gpu_hour,
            mean=changed.get("mean", self.mean),
            weighted=changed.get("weighted", self.weighted),
            p99=changed.get("p99", self.p99),
            p999=changed.get("p999", self.p999),
        )


@dataclass(frozen=True, eq=False)
class Choices:
    """What each job chooses at given prices (`wait_h`; `home`: not rented),
    the bound that follows, and what each price would like.

    `excess`: by how much the choices pass what is there, in the unit of each price: GPU-hours of the pool a bucket
    (array), and for each limit on waiting. It is a supergradient of the value: a price goes up where it is positive.
    """

    value: float
    wait_h: Floats
    home: Flags
    excess_gpu_hours: Floats
    excess_waits: Mapping[str, float] = field(default_factory=dict)


class Problem:
    """A trace, the GPUs of the pool (packing ignored) and the limits that the waits must keep to."""

    def __init__(self, trace: Trace, pool_gpus: int, limits: WaitLimits):
        self.pool_gpus, self.limits, self.jobs = pool_gpus, limits, len(trace)
        self.submit = (trace.submit_s - trace.submit_s[0]) / 3600
        self.duration = trace.duration_s / 3600
        self.gpus = trace.gpus.astype(float)
        self.gpu_hours = trace.gpu_hours
        self.fits = trace.gpus <= pool_gpus
        most = np.inf if limits.max_h is None else np.asarray(limits.max_h, float)
        self.most_wait = np.broadcast_to(most, self.jobs)
        # what the limits allow in all; a percentile (interpolated linearly) is kept only if its lower neighbour is
        total = self.gpu_hours.sum()
        allowed = {
            "mean": None if limits.mean_h is None else limits.mean_h * self.jobs,
            "weighted": None if limits.gpu_hour_weighted_h is None else limits.gpu_hour_weighted_h * total,
            "p99": None if limits.p99_h is None else float(self.jobs - 1 - (self.jobs - 1) * 99 // 100),
            "p999": None if limits.p999_h is None else float(self.jobs - 1 - (self.jobs - 1) * 999 // 1000),
        }
        self.allowed = {name: amount for name, amount in allowed.items() if amount is not None}
        # hours from which on each costs
        tails = {"p99": limits.p99_h, "p999": limits.p999_h}
        self.tails = {name: limit for name, limit in tails.items() if limit is not None}

    def value(self, prices: Prices) -> Choices:
        """The bound at these prices, and the choices it comes from.

        Raises ValueError for a price on a limit that isn't there.
        """
        for name in ("mean", "weighted", "p99", "p999"):
            if getattr(prices, name) and name not in self.allowed:
                raise ValueError(f"there is a price on {name}, but no such limit on waiting")
        cost, wait = _cheapest_at_home(self, prices)
        home = self.fits & (cost < self.gpu_hours)
        wait = np.where(home, wait, 0.0)  # rented jobs are rented at once: to wait first costs more
        paid = np.where(home, cost, self.gpu_hours).sum()
        start, buckets = self.submit[home] + wait[home], len(prices.gpu_hour)
        used = gpu_hours_used(start, self.duration[home], self.gpus[home], prices.bucket_h, buckets)
        there = self.pool_gpus * prices.bucket_h
        spent = {"mean": wait.sum(), "weighted": (wait * self.gpu_hours).sum()}
        spent |= {name: float((wait > limit).sum()) for name, limit in self.tails.items()}
        worth_of_limits = sum(getattr(prices, name) * amount for name, amount in self.allowed.items())
        worth = there * prices.gpu_hour.sum() + worth_of_limits
        return Choices(
            value=float(paid - worth - ROUNDING * self.gpu_hours.sum()),
            wait_h=wait,
            home=home,
            excess_gpu_hours=used - there,
            excess_waits={name: spent[name] - amount for name, amount in self.allowed.items()},
        )


def gpu_hours_used(start: Floats, duration: Floats, gpus: Floats, bucket_h: float, buckets: int) -> Floats:
    """GPU-hours that these runs use in each bucket (hours from 0; what runs
    later than the last bucket isn't counted).
    """

    def from_then_on(at: Floats) -> Floats:  # GPU-hours in each bucket of jobs that never end
        bucket = np.minimum((at / bucket_h).astype(int), buckets)
        part = np.bincount(bucket, gpus * ((bucket + 1) * bucket_h - at), buckets + 1)
        whole = np.bincount(bucket + 1, gpus * bucket_h, buckets + 2)
        return np.asarray(part[:buckets] + np.cumsum(whole)[:buckets], float)

    return from_then_on(start) - from_then_on(start + duration)


Consider = Callable[[Integers, Floats, Floats], None]  # jobs; their cost at home with these waits; the waits
Steps = list[tuple[float, float]]  # (hours, price): what a wait costs beyond each tail limit


def _cheapest_at_home(problem: Problem, prices: Prices) -> tuple[Floats, Floats]:
    """For each job the least that a run at home costs over all starts that its
    limit allows, and the wait before that start.

    Only starts that could be cheaper than the best of (rent, start at once) are tried: a wait of w costs at least w x
    the prices of waiting. (Where rent is cheaper the cost returned is some other start's, not below rent.)
    """
    bucket = prices.bucket_h
    paid = np.concatenate([[0.0], np.cumsum(prices.gpu_hour) * bucket])  # for one GPU, from 0 to each edge
    slope = prices.mean + prices.weighted * problem.gpu_hours
    steps = [(limit, getattr(prices, name)) for name, limit in problem.tails.items() if getattr(prices, name) > 0]

    def price_at(jobs: Integers, wait: Floats) -> Floats:
        start = problem.submit[jobs] + wait
        run = _at(paid, start + problem.duration[jobs], bucket) - _at(paid, start, bucket)
        beyond = sum(price * (wait > limit) for limit, price in steps)
        price: Floats = problem.gpus[jobs] * run + (slope[jobs] * wait + beyond)
        return price

    def consider(jobs: Integers, candidate_cost: Floats, candidate_wait: Floats) -> None:
        better = candidate_cost < cost[jobs]
        cost[jobs[better]], wait[jobs[better]] = candidate_cost[better], candidate_wait[better]

    cost, wait = price_at(np.arange(problem.jobs), np.zeros(problem.jobs)), np.zeros(problem.jobs)
    reach = _reach(problem, np.minimum(cost, problem.gpu_hours), slope, steps)
    free = len(prices.gpu_hour) * bucket  # from then on a run costs nothing: no sense in a later start
    reach = np.where(problem.fits, np.minimum(reach, np.maximum(free - problem.submit, 0)), 0.0)
    for limit, _ in steps:
        jobs = np.flatnonzero(reach >= limit)
        consider(jobs, price_at(jobs, np.full(len(jobs), limit)), np.full(len(jobs), limit))
    jobs = np.flatnonzero(reach > 0)
    consider(jobs, price_at(jobs, reach[jobs]), reach[jobs])
    _try_edges(problem, paid, bucket, slope, steps, reach, consider)
    return cost, wait


def _reach(problem: Problem, least: Floats, slope: Floats, steps: Steps) -> Floats:
    """The longest wait of each job that could be cheaper than `least`, by what waiting alone costs."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        reach = np.where(least > 0, np.minimum(problem.most_wait, least / slope), 0.0)
        for count in range(1, len(steps) + 1):  # beyond the tail limits there is less left to win
            passed = sorted(steps)[:count]
            limit = passed[-1][0]
            left = np.maximum(least - sum(price for _, price in passed), 0)
            beyond = np.maximum(limit, np.where(left > 0, left / slope, 0))
            reach = np.where(reach > limit, np.minimum(reach, beyond), reach)
    return reach


def _at(paid: Floats, time: Floats, bucket: float) -> Floats:
    """The cumulated price at any time: linear within a bucket, constant after the last."""
    return np.asarray(np.interp(time, np.arange(len(paid)) * bucket, paid))


def _try_edges(
    problem: Problem, paid: Floats, bucket: float, slope: Floats, steps: Steps, reach: Floats, consider: Consider
) -> None:
    """Try each start within reach that falls on an edge, or whose end does.
    In blocks of jobs that reach about as many edges.

    A job submitted in bucket i that runs m buckets and a part f of one may start on edge k + 1, or f before it (k >=
    i): that run ends on edge k + 1 + m.
    """
    first = (problem.submit / bucket).astype(int)
    last = ((problem.submit + reach) / bucket).astype(int)
    edges = np.where(reach > 0, last - first + 1, 0)  # with the first beyond reach
    whole = (problem.duration / bucket).astype(int)
    part = problem.duration / bucket - whole
    order = np.argsort(edges, kind="stable")
    order = order[edges[order] > 0]
    if not len(order):
        return
    counts = edges[order]
    needed = int(first[order].max() + whole[order].max() + counts[-1]) + 3
    after = np.full(max(0, needed - len(paid)), paid[-1])  # after the last bucket the pool costs nothing
    padded = np.concatenate([paid, after])
    begin = 0
    while begin < len(order):
        alike = int(np.searchsorted(counts, 4 + 1.25 * counts[begin], side="right"))
        end = min(alike, begin + max(1, CELLS // int(counts[alike - 1])))
        jobs, least, most, begin = order[begin:end], int(counts[begin]), int(counts[end - 1]), end
        windows = sliding_window_view(padded, most + 2)
        at_start, at_end = windows[first[jobs]], windows[first[jobs] + whole[jobs]]
        f, waiting, furthest = part[jobs, None], (slope[jobs] / problem.gpus[jobs])[:, None], reach[jobs, None]
        wait = np.arange(1, most + 1) * bucket - (problem.submit[jobs] - first[jobs] * bucket)[:, None]  # to each edge
        whole_buckets = at_end[:, 1:-1] - at_start[:, 1:-1] + waiting * wait
        for price, earlier in (
            (at_end[:, 2:] - at_end[:, 1:-1], np.zeros_like(f)),
            (at_start[:, 1:-1] - at_start[:, :-2], f * bucket),
        ):
            price *= f
            price += whole_buckets
            for limit, step in steps:
                if furthest.max() > limit:
                    price += (wait - earlier > limit) * (step / problem.gpus[jobs])[:, None]
            price[:, 0][wait[:, 0] < earlier[:, 0]] = np.inf
            price[:, least - 1 :][wait[:, least - 1 :] - earlier > furthest] = np.inf
            best = np.argmin(price, axis=1)[:, None]
            cost = np.take_along_axis(price, best, 1) - waiting * earlier
            consider(jobs, cost[:, 0] * problem.gpus[jobs], (np.take_along_axis(wait, best, 1) - earlier)[:, 0])
