"""Whether the waits of weeks are still those that are wanted: what is proven, and what may be chance."""

import math
import random

import pytest

from ironburst.burst import from_json, to_json, waits_kept
from ironburst.burst.limits import WaitTarget
from ironburst.burst.waits_kept import HALF, LEAST_JOBS, LEAST_WEEKS, WEEK_S, WEEKS, Ended, Kept

TARGET = WaitTarget(mean_h=0.5, p99_h=8.0, p999_h=30.0, max_h=100.0, gpu_hour_weighted_h=10.0)
NOW = 3000 * WEEK_S


def played(weeks, jobs):
    """`jobs(week)`: those that end in it; then a week begins."""
    kept = Kept(TARGET)
    for number in range(weeks):
        kept = waits_kept.add(kept, jobs(number), NOW + number * WEEK_S)
    return waits_kept.changed(kept, NOW + weeks * WEEK_S)


def a_week(wait_h, count=200, gpu_hours=1.0):
    return [Ended(wait_h, gpu_hours)] * count


def test_waits_that_are_too_long_week_after_week_are_told_with_what_they_were():
    found = played(LEAST_WEEKS, lambda week: a_week(0.8 + 0.02 * week))
    assert (found.direction, found.weeks, found.wait) == ("longer", LEAST_WEEKS, "mean_h")
    assert found.was == pytest.approx(0.83)


def test_each_of_the_waits_is_looked_at():
    assert played(6, lambda week: [*a_week(0.1, 500), *a_week(25.0, 1, 5000.0)]).wait == "gpu_hour_weighted_h"
    assert played(6, lambda week: [*a_week(0.1, 97), *a_week(8.5, 3, 0.1)]).wait == "p99_h"
    assert played(6, lambda week: [*a_week(0.1, 495), *a_week(31.0, 3, 0.1)]).wait == "p999_h"


def test_one_bad_week_proves_nothing_and_neither_do_too_few_weeks_or_jobs():
    assert played(WEEKS, lambda week: a_week(20.0 if week == 3 else 0.4)) is None
    assert played(LEAST_WEEKS - 1, lambda week: a_week(5.0)) is None
    assert played(WEEKS, lambda week: a_week(5.0, LEAST_JOBS - 1)) is None


def test_a_week_that_is_not_over_does_not_count():
    kept = Kept(TARGET)
    for number in range(LEAST_WEEKS):
        kept = waits_kept.add(kept, a_week(5.0), NOW + number * WEEK_S)
    assert waits_kept.changed(kept, NOW + (LEAST_WEEKS - 0.01) * WEEK_S) is None
    assert waits_kept.changed(kept, NOW + LEAST_WEEKS * WEEK_S)


def test_waits_are_too_short_only_where_all_five_are():
    short = lambda week: a_week(0.1 + 0.01 * week)  # noqa: E731
    assert played(LEAST_WEEKS, short).direction == "shorter"
    assert played(LEAST_WEEKS, lambda week: a_week(0.9 * TARGET.mean_h)) is None
    one_long = lambda wait_h: lambda week: [*short(week), Ended(wait_h, 0.1)]  # noqa: E731
    assert played(LEAST_WEEKS, one_long(HALF * TARGET.p999_h - 1)).direction == "shorter"
    assert played(LEAST_WEEKS, one_long(HALF * TARGET.p999_h + 1)) is None  # more than one of a thousand
    assert played(LEAST_WEEKS, lambda week: [*a_week(0.1, 3000), Ended(HALF * TARGET.max_h + 1, 0.1)]) is None


def test_old_weeks_go_and_so_do_those_ahead_of_a_clock_that_was_put_right():
    kept = waits_kept.add(Kept(TARGET), a_week(1.0), NOW + 5 * WEEK_S)
    kept = waits_kept.add(kept, a_week(1.0), NOW)
    assert [week.number for week in kept.weeks] == [NOW // WEEK_S]
    kept = waits_kept.add(kept, a_week(1.0, 1), NOW + (WEEKS + 1) * WEEK_S)
    assert [week.jobs for week in kept.weeks] == [1]
    assert waits_kept.changed(Kept(TARGET), NOW) is None


def test_without_work_and_without_waits_nothing_is_divided_by_nothing():
    assert played(WEEKS, lambda week: [Ended(0.0, 0.0)] * 100) is None
    nothing = WaitTarget(0.0, 0.0, 0.0, 0.0, 0.0)
    kept = waits_kept.add(Kept(nothing), [Ended(0.0, 0.0)] * 100, NOW)
    assert from_json(Kept, to_json(kept)) == kept and waits_kept.changed(kept, NOW + WEEK_S) is None


def test_waits_that_are_just_those_wanted_are_seldom_called_longer():
    """However bursty: most weeks are quiet, some are not."""
    chance, looks, wolves = random.Random(1), 150, 0
    for _ in range(looks):
        found = played(WEEKS, lambda week: a_week(chance.expovariate(1 / TARGET.mean_h), 60, 0.1))
        wolves += found is not None and found.wait == "mean_h"
    assert wolves / looks <= 0.01 + 3 * math.sqrt(0.01 / looks)
