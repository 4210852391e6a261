"""The certified bound: never above what the best schedule of all rents, found by trying every one; and not far below
it.
"""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from ironburst.replay import bound
from ironburst.replay.bound import Choices, Prices, Problem, WaitLimits, gpu_hours_used
from ironburst.replay.bound_search import lower_bound
from ironburst.replay.traces import Trace, in_order

POOL = 3
TOLERANCE = 1e-9
NAMES = ("mean", "weighted", "p99", "p999")


def small(seed):
    """(trace, limits): 4 jobs in whole hours, so in some best schedule every wait is a whole number up to `max_h`."""
    random = np.random.default_rng(seed)
    trace = in_order(3600 * random.integers(0, 4, 4), 3600 * random.integers(1, 6, 4), random.integers(1, POOL + 2, 4))
    others = [None if random.random() < 0.5 else float(random.integers(0, 9) / 2) for _ in range(4)]
    return trace, WaitLimits(*others, max_h=float(random.integers(0, 6)))


def optimum(trace, limits):
    """The least GPU-hours that any schedule rents: every subset, every start. Waits are counted as the figures count
    them.
    """
    waits = [-1, *range(int(limits.max_h) + 1)]  # -1: rented, at once
    plans = np.array(list(itertools.product(waits, repeat=len(trace))))
    rented, wait = plans < 0, np.maximum(plans, 0)
    submit, duration = (trace.submit_s / 3600).astype(int), (trace.duration_s / 3600).astype(int)
    hours = np.arange(submit.max() + int(limits.max_h) + duration.max() + 1)
    start = submit + wait
    running = (start[..., None] <= hours) & (hours < (start + duration)[..., None]) & ~rented[..., None]
    kept = ((running * trace.gpus[:, None]).sum(1) <= POOL).all(1)
    for limit, reached in (
        (limits.mean_h, wait.mean(1)),
        (limits.gpu_hour_weighted_h, np.average(wait, axis=1, weights=trace.gpu_hours)),
        (limits.p99_h, np.percentile(wait, 99, axis=1)),
        (limits.p999_h, np.percentile(wait, 99.9, axis=1)),
    ):
        if limit is not None:
            kept &= reached <= limit + TOLERANCE
    return (rented * trace.gpu_hours).sum(1)[kept].min()


def some_prices(problem, random, buckets=24):
    waits = {name: random.exponential(0.5) for name in problem.allowed}
    return Prices(random.choice([0.3, 0.5, 1.0]), random.exponential(random.choice([0.1, 0.5, 1]), buckets), **waits)


def plainly(problem, prices):
    """The value once more, job by job, with the cheapest of very many starts."""
    edges = np.arange(len(prices.gpu_hour) + 60) * prices.bucket_h

    def paid(time):
        inside = np.clip(time - edges[: len(prices.gpu_hour)], 0, prices.bucket_h)
        return (prices.gpu_hour * inside).sum()

    total = 0.0
    for submit, run, gpus, most in zip(problem.submit, problem.duration, problem.gpus, problem.most_wait, strict=True):
        most = min(most, 40)
        starts = np.concatenate(
            [edges, edges - run, submit + np.linspace(0, most, 60), *([submit + t] for t in problem.tails.values())]
        )
        costs = [gpus * run]
        for start in starts[(starts >= submit) & (starts <= submit + most)] if gpus <= problem.pool_gpus else ():
            wait = start - submit
            tails = sum(getattr(prices, name) for name, limit in problem.tails.items() if wait > limit)
            costs.append(
                gpus * (paid(start + run) - paid(start)) + (prices.mean + prices.weighted * gpus * run) * wait + tails
            )
        total += min(costs)
    worth = problem.pool_gpus * prices.bucket_h * prices.gpu_hour.sum()
    return total - worth - sum(getattr(prices, name) * amount for name, amount in problem.allowed.items())


def too_high(seeds, bound):
    """The cases in which `bound(trace, limits)` is above the optimum."""
    return [seed for seed in seeds if bound(*(case := small(seed))) > optimum(*case) + TOLERANCE]


@pytest.mark.parametrize("seed", range(30))
def test_the_value_is_the_sum_of_the_cheapest_choices(seed):
    random = np.random.default_rng(seed)
    n = random.integers(1, 9)
    trace = in_order(random.uniform(0, 8, n) * 3600, random.exponential(2, n) * 3600, random.integers(1, 6, n))
    problem = Problem(
        trace, POOL, WaitLimits(*(None if random.random() < 0.4 else random.uniform(0, 3) for _ in range(5)))
    )
    prices = some_prices(problem, random)
    assert problem.value(prices).value == pytest.approx(plainly(problem, prices), abs=1e-6)


def test_at_any_prices_it_is_below_every_schedule():
    random = np.random.default_rng(0)

    def at_any_prices(trace, limits):
        problem = Problem(trace, POOL, limits)
        return max(problem.value(some_prices(problem, random)).value for _ in range(20))

    assert too_high(range(40), at_any_prices) == []


def test_searched_for_it_is_below_every_schedule_and_near():
    bounds, optima = [], []
    for seed in range(25):
        trace, limits = small(seed)
        bounds.append(lower_bound(trace, POOL, limits, iterations=100, bucket_h=0.5).gpu_hours)
        optima.append(optimum(trace, limits))
    assert (np.array(bounds) <= np.array(optima) + TOLERANCE).all()
    # what is lost: whole jobs (four jobs are the worst case for that), and the search
    assert sum(bounds) >= 0.85 * sum(optima)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda trace, limits: (
            lower_bound(trace, POOL - 1, limits, iterations=40, bucket_h=0.5).gpu_hours
        ),  # a GPU less than there is
        lambda trace, limits: (
            lower_bound(trace, POOL, replace(limits, max_h=0.0), iterations=40, bucket_h=0.5).gpu_hours
        ),
        lambda trace, limits: 1.05 * lower_bound(trace, POOL, limits, iterations=100, bucket_h=0.5).gpu_hours,
    ],
    ids=["pool too small", "waits forbidden", "five per cent too high"],
)
def test_the_check_catches_a_bound_that_is_too_high(wrong):
    assert too_high(range(12), wrong) != []


def test_longer_waits_never_raise_it():
    trace, _ = small(3)
    random = np.random.default_rng(3)
    tight = WaitLimits(0.5, 0.5, 1.0, 1.5, 2.0)
    for name in ("mean_h", "gpu_hour_weighted_h", "p99_h", "p999_h", "max_h"):
        loose = replace(tight, **{name: getattr(tight, name) + 1})
        for _ in range(20):
            prices = some_prices(Problem(trace, POOL, tight), random)
            assert (
                Problem(trace, POOL, loose).value(prices).value
                <= Problem(trace, POOL, tight).value(prices).value + TOLERANCE
            )
        assert optimum(trace, replace(loose, max_h=3.0)) <= optimum(trace, replace(tight, max_h=2.0))


def test_excess_is_the_slope_of_the_value():
    """A supergradient: along any direction the value stays under its tangent, so the search may trust it."""
    random = np.random.default_rng(5)
    trace = in_order(random.uniform(0, 8, 30) * 3600, random.exponential(2, 30) * 3600, random.integers(1, 4, 30))
    problem = Problem(trace, POOL, WaitLimits(1.0, 1.0, 2.0, 3.0, 5.0))
    for _ in range(50):
        here, there = some_prices(problem, random), some_prices(problem, random)
        there = replace(there, bucket_h=here.bucket_h)
        found: Choices = problem.value(here)
        tangent = found.value + found.excess_gpu_hours @ (there.gpu_hour - here.gpu_hour)
        tangent += sum(found.excess_waits[name] * (getattr(there, name) - getattr(here, name)) for name in NAMES)
        assert problem.value(there).value <= tangent + 1e-6


def test_as_many_may_be_above_a_percentile_as_are_counted():
    random = np.random.default_rng(7)
    for n in [*range(1, 30), 99, 100, 101, 102, 1000, 1001, 1002, 63_623]:
        problem = Problem(Trace(np.zeros(n), np.ones(n), np.ones(n)), POOL, WaitLimits(p99_h=1.0, p999_h=1.0))
        for name, percent in (("p99", 99), ("p999", 99.9)):
            for above in {int(problem.allowed[name]) + 1, int(problem.allowed[name]) + 3} - set(range(n + 1, n + 9)):
                waits = np.where(np.arange(n) < above, 1 + random.exponential(5, n) + 1e-3, 0.5)
                assert np.percentile(waits, percent) > 1, (
                    "more above the limit than counted, but the percentile is kept"
                )


def test_a_job_may_wait_until_the_pool_costs_nothing():
    problem = Problem(Trace([0], [36_000], [1]), POOL, WaitLimits(p99_h=1.0))
    prices = Prices(10.0, np.full(300, 0.5), p99=0.1)  # the pool costs something for 3000 hours
    bound = problem.value(prices)
    assert bound.value == pytest.approx(0.1 - POOL * 0.5 * 3000, abs=1e-6) and bound.wait_h.tolist() == [3000]


def test_gpu_hours_used_in_each_bucket():
    used = gpu_hours_used(np.array([0.25, 1.0, 9.0]), np.array([1.0, 0.5, 3.0]), np.array([2.0, 1.0, 8.0]), 0.5, 4)
    assert used.tolist() == pytest.approx([0.5, 1.0, 0.5 + 0.5, 0.0])


def test_jobs_larger_than_the_pool_are_rented():
    trace = Trace([0, 0], [3600, 7200], [POOL + 1, 1])
    assert lower_bound(trace, POOL, WaitLimits(max_h=1.0), iterations=5, bucket_h=1.0).gpu_hours == pytest.approx(
        POOL + 1
    )


def test_without_limits_nothing_has_to_be_rented():
    trace, _ = small(1)
    trace = replace(trace, gpus=np.minimum(trace.gpus, POOL))
    assert lower_bound(trace, POOL, WaitLimits(), iterations=5).gpu_hours == 0


def test_what_cannot_be_is_refused():
    trace, _ = small(0)
    with pytest.raises(ValueError, match="the wait limit mean_h is -1"):
        WaitLimits(mean_h=-1)
    with pytest.raises(ValueError, match="prices are 0 or more"):
        Prices(1.0, np.array([0.1, -0.1]))
    with pytest.raises(ValueError, match="no such limit"):
        Problem(trace, POOL, WaitLimits(max_h=1.0)).value(Prices(1.0, np.zeros(3), mean=0.1))


@pytest.mark.filterwarnings("error")
def test_a_wait_that_costs_next_to_nothing_is_the_longest_without_a_warning():
    problem = SimpleNamespace(most_wait=np.array([7.0, 7.0]))
    reach = bound._reach(problem, np.array([1e5, 0.0]), np.array([5e-324, 5e-324]), [(1.0, 3.0)])
    assert reach.tolist() == [7.0, 0.0]
