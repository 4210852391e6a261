"""A patience is chosen on what came before, and checked on what came after."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ironburst.burst import Policy
from ironburst.burst.limits import Limits, WaitTarget
from ironburst.replay import fitting
from ironburst.replay.outcome import Bill, Played
from ironburst.replay.traces import Trace

JOBS = 400
TARGET = WaitTarget(1.0, 1.0, 1.0, 1.0, 1.0)
POLICY = Policy("home", 0.0, limits=Limits(TARGET))
HISTORY = Trace(np.arange(JOBS) * 60.0, np.full(JOBS, 60.0), np.ones(JOBS, int))


def bill(from_s, to_s, usd, prepaid=False):
    return Bill("l", "p5", "a", "spot", from_s, to_s, usd, 0.0, 0.0, 1, False, prepaid)


def played(hours, bills=()):
    """Every job of window n waits hours[n]."""
    start_s = HISTORY.submit_s + 3600 * np.repeat(hours, JOBS // fitting.WINDOWS)
    none = np.zeros(JOBS, bool)
    return Played(start_s, none, 0, start_s + 60, ("",) * JOBS, np.zeros(JOBS), none.astype(int), tuple(bills))


def fit(waits):
    """`waits`: of each patience, the hours of each window."""
    return fitting.fit(HISTORY, POLICY, lambda policy: played(waits(policy.limits.patience)))


def test_the_longest_patience_counts_that_keeps_the_waits_with_something_to_spare():
    found = fit(lambda patience: [0.45 * patience] * 4)
    assert found.kept and found.best.patience == 1.75  # 0.79 h; with the next one 0.905
    assert [each.tried.patience for each in found.checked] == [1.75] * 3
    assert found.tried[-1].patience == 2.01  # those behind it aren't played


def test_a_longer_one_behind_one_that_breaks_a_wait_is_no_find():
    lucky = dict.fromkeys(fitting.PATIENCE, 0.5) | {1.15: 2.0}
    found = fit(lambda patience: [lucky[patience]] * 4)
    assert found.best.patience == 1


def test_each_window_is_checked_with_what_those_before_it_gave():
    """The workload changes in the third: what kept the waits until then doesn't any more."""
    found = fit(lambda patience: [0.4 * patience, 0.4 * patience, 0.8 * patience, 0.8 * patience])
    second, third, fourth = found.checked
    assert (second.tried.patience, third.tried.patience) == (2.01, 2.01)
    assert fitting.worst(TARGET, second.reached.waits)[1] == pytest.approx(0.804)
    assert fitting.worst(TARGET, third.reached.waits)[1] == pytest.approx(1.608)  # said, not hidden
    assert fourth.tried.patience == found.best.patience == 1


def test_what_no_patience_keeps_is_said_and_the_frontier_is_played_up_to_1():
    found = fit(lambda patience: [5.0] * 4)
    assert not found.kept and found.best is found.tried[0] and found.tried[-1] is found.unfitted


def test_money_is_counted_where_its_lease_was_there():
    quarter_s = 60.0 * JOBS / 4
    leases = [(0.0, 1.0, 1.0), (0.5, 1.5, 10.0), (3.5, 9.0, 100.0), (-1.0, 0.5, 1000.0)]
    bills = [bill(quarter_s * begin, quarter_s * end, usd) for begin, end, usd in leases]
    bills.append(bill(0.0, quarter_s, 5e5, prepaid=True))
    first = fitting.fit(HISTORY, POLICY, lambda policy: played([0.1] * 4, bills)).tried[0]
    assert [each.usd for each in first.windows] == pytest.approx([1006.0, 5.0, 0.0, 100.0])
    assert [each.usd for each in first.before] == pytest.approx([1006.0, 1011.0, 1011.0])
    assert first.whole.usd == pytest.approx(1111.0)


def test_the_longest_wait_over_what_is_wanted_is_named():
    waits = replace(played_waits([0.5] * 4), p99_h=0.7)
    assert fitting.worst(TARGET, waits) == ("p99_h", 0.7)
    assert fitting.worst(replace(TARGET, p999_h=0.0), waits) == ("p999_h", math.inf)


def played_waits(hours):
    return fitting.fit(HISTORY, POLICY, lambda policy: played(hours)).tried[0].whole.waits
