"""Limits are chosen on what came before, and checked on what came after."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ironburst.burst import Policy
from ironburst.burst.limits import Limits, WaitTarget
from ironburst.replay import fitting
from ironburst.replay.outcome import Bill, Played
from ironburst.replay.traces import Trace

JOBS = 600
TARGET = WaitTarget(1.0, 1.0, 1.0, 1.0, 1.0)
POLICY = Policy("home", 0.0, limits=Limits(TARGET))
HISTORY = Trace(np.arange(JOBS) * 60.0, np.full(JOBS, 60.0), np.ones(JOBS, int))
UNFITTED = 0.3  # hours that every job waits without a number


def bill(usd, prepaid=False):
    return Bill("l", "p5", "a", "spot", 0.0, 60.0, usd, 0.0, 0.0, 1, False, prepaid)


def played(part, wait_h, bills=(), not_rented=None):
    """Every job of the part waits so long."""
    jobs, start_s = len(part), part.submit_s + 3600 * wait_h
    none = np.zeros(jobs, bool)
    more = {"not_rented": not_rented or {}}
    return Played(start_s, none, 0, start_s + 60, ("",) * jobs, np.zeros(jobs), none.astype(int), tuple(bills), **more)


def number_of(part):
    return int(part.submit_s[0] // 60) * fitting.PARTS // JOBS


def fit(waits, **more):
    """`waits(hours for each GPU-hour, part)`: the hours that its jobs wait."""

    def play(part, policy):
        hours = policy.limits.hours_per_gpu_hour
        return played(part, UNFITTED if hours is None else waits(hours, number_of(part)), **more)

    return fitting.fit(HISTORY, POLICY, play)


def test_the_longest_counts_that_keeps_the_waits_in_every_part():
    found = fit(lambda hours, part: hours * (10.0, 12.5, 4.0)[part])
    assert found.kept and found.best.hours == pytest.approx(0.08, rel=0.02) and found.best.hours <= 0.0804
    second, third = found.checked
    assert second.tried.hours == pytest.approx(0.1, rel=0.02) and second.part == 1
    assert fitting.worst(TARGET, second.reached.waits)[1] == pytest.approx(1.25, rel=0.02)  # said, not hidden
    assert third.tried.hours == found.best.hours
    assert fitting.worst(TARGET, third.reached.waits)[1] == pytest.approx(0.32, rel=0.02)
    assert [each.hours for each in found.tried] == sorted({each.hours for each in found.tried})
    assert found.unfitted.hours is None and found.unfitted.whole.waits.mean_h == pytest.approx(UNFITTED)
    assert found.best.whole.waits.mean_h == pytest.approx(found.best.hours * (10.0 + 12.5 + 4.0) / 3)


def test_it_is_found_with_few_plays_of_a_part():
    plays = []
    fit(lambda hours, part: plays.append((hours, part)) or 10 * hours)
    assert len(plays) == len(set(plays)) <= fitting.PARTS * (len(fitting.HOURS).bit_length() + 1)


def test_a_limit_that_ends_between_two_looks_is_kept():
    assert fitting.kept(TARGET, waits_of(1.004)) and not fitting.kept(TARGET, waits_of(1.006))


def test_what_no_limits_keep_is_said():
    found = fit(lambda hours, part: 5.0, not_rented={7: "no_pool"})
    assert not found.kept and found.best is found.tried[0] and found.best.hours == fitting.HOURS[0]
    assert found.best.whole.not_rented == fitting.PARTS


def test_what_all_limits_keep_gives_the_longest():
    assert fit(lambda hours, part: 0.5).best.hours == fitting.HOURS[-1]


def test_money_is_that_of_the_leases_without_what_is_prepaid():
    found = fit(lambda hours, part: 10 * hours, bills=[bill(3.0), bill(4.0), bill(5e5, prepaid=True)])
    assert [each.usd for each in found.best.parts] == [7.0] * 3 and found.best.whole.usd == 21.0


def test_a_history_that_is_too_short_is_refused():
    with pytest.raises(ValueError, match="the history has 399 jobs; limits can be fitted to 400 or more"):
        fitting.fit(HISTORY.take(slice(399)), POLICY, lambda part, policy: played(part, 0.0))


def test_the_longest_wait_over_what_is_wanted_is_named():
    waits = replace(waits_of(0.5), p99_h=0.7)
    assert fitting.worst(TARGET, waits) == ("p99_h", 0.7)
    assert fitting.worst(replace(TARGET, p999_h=0.0), waits) == ("p999_h", math.inf)


def waits_of(hours):
    return fit(lambda given, part: hours).tried[0].parts[0].waits
