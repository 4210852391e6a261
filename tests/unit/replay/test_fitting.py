"""A number is recommended only where it wins on parts that it wasn't fitted to."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ironburst.burst.limits import WaitTarget
from ironburst.replay import fitting
from ironburst.replay.fitting import Outcome
from ironburst.replay.outcome import Bill, Played
from ironburst.replay.results import Waits
from ironburst.replay.traces import Trace

JOBS = 600
TARGET = WaitTarget(1.0, 1.0, 1.0, 1.0, 1.0)
HISTORY = Trace(np.arange(JOBS) * 60.0, np.full(JOBS, 60.0), np.ones(JOBS, int))
UNFITTED = 0.3  # hours that every job waits without a number


def cheaper(hours, part):
    """What such numbers pay: 0.05 as much as none does."""
    return 1000 * (0.05 / hours) ** 0.3


def fit(waits, usd=cheaper, unfitted=(UNFITTED,) * fitting.PARTS, not_rented=0, plays=None):
    """`waits(hours for each GPU-hour, part)`: the hours that its jobs wait; `usd`: what is paid. A part that comes
    faster is half a part further.
    """
    parts = fitting.parts_of(HISTORY)

    def play(trace, target, hours):
        number = next(number for number, part in enumerate(parts) if part.submit_s[0] == trace.submit_s[0])
        part = number + 0.5 * (trace.submit_s[-1] < parts[number].submit_s[-1])
        if plays is not None:
            plays.append((part, hours))
        wait_h = unfitted[number] if hours is None else waits(hours, part)
        paid = 1000.0 if hours is None else usd(hours, part)
        return Outcome(trace.submit_s + 3600 * wait_h, paid, not_rented)

    return fitting.fit(parts, [TARGET] * len(parts), play)


def test_the_longest_counts_that_keeps_the_waits_in_every_part_if_it_wins_on_those_kept_aside():
    found = fit(lambda hours, part: hours * (10.0, 9.9, 9.8)[int(part)])
    assert (found.recommended, found.why, found.keeping) == (0.1, None, 0.1)
    assert [(each.part, each.hours) for each in found.checked] == [(0, 0.1), (1, 0.1), (2, 0.1)]
    assert found.regret == pytest.approx((0.05 / 0.1) ** 0.3 - 1) and found.regret < 0
    assert [each.hours for each in found.tried] == sorted({each.hours for each in found.tried})
    assert found.unfitted.hours is None and found.unfitted.whole.waits.mean_h == pytest.approx(UNFITTED)


def test_what_the_others_gave_is_what_a_part_is_checked_with():
    """The last part keeps only shorter numbers: the others' makes it wait longer than it may, and that is said."""
    found = fit(lambda hours, part: hours * (10.0, 10.0, 12.4)[int(part)])
    assert (found.recommended, found.why, found.keeping) == (None, "longer", 0.08)
    assert [each.hours for each in found.checked] == [0.08, 0.08, 0.1]
    assert found.checked[2].over == ("p99_h", pytest.approx(1.24)) or found.checked[2].over[1] == pytest.approx(1.24)


def test_a_number_that_is_dearer_on_one_part_is_not_recommended_and_the_regret_is_told():
    """As on the busy third of the Philly trace: less on most parts, and more where most is paid."""
    found = fit(lambda hours, part: 10 * hours, usd=lambda hours, part: (800.0, 990.0, 1100.0)[int(part)])
    assert (found.recommended, found.why, found.keeping) == (None, "dearer", 0.1)
    assert found.regret == pytest.approx(2890 / 3000 - 1)


def test_a_gain_that_is_none_is_not_worth_a_change():
    found = fit(lambda hours, part: 10 * hours, usd=lambda hours, part: 995.0)
    assert (found.recommended, found.why, found.regret) == (None, "no_gain", pytest.approx(-0.005))


@pytest.mark.parametrize(("more", "why"), [({"usd": 1.5}, "busier"), ({"waits": 1.5}, "busier"), ({"usd": 1.3}, None)])
def test_what_is_worse_where_the_same_jobs_come_faster_is_not_recommended(more, why):
    """The next month may be busier than any of the history: a third of Chronus is so, the others are quiet."""

    def of_part(name, part):
        return more.get(name, 1.0) if part == 1.5 else 1.0

    found = fit(
        lambda hours, part: 10 * hours * of_part("waits", part),
        usd=lambda hours, part: cheaper(hours, part) * of_part("usd", part) / 1.05,
    )
    assert (found.recommended, found.why) == (None if why else 0.1, why)
    assert found.regret < -0.2  # on the parts as they were


def test_busier_is_the_same_jobs_sooner_and_their_deadlines_with_them():
    trace = replace(HISTORY.take(slice(3)), deadline_s=HISTORY.submit_s[:3] + 500)
    faster = fitting.busier(trace)
    assert faster.submit_s.tolist() == [0, 51, 102] and (faster.deadline_s - faster.submit_s).tolist() == [500] * 3
    assert faster.gpu_hours.tolist() == trace.gpu_hours.tolist()


def test_a_part_that_waits_too_long_without_a_number_does_not_shorten_it():
    """It takes the longest number that every part keeps, and paid for the worst one: that part waits longer anyway."""
    found = fit(lambda hours, part: hours * (10.0, 10.0, 16.0)[int(part)], unfitted=(0.3, 0.3, 1.6))
    assert (found.recommended, found.keeping) == (0.1, 0.05)


def test_parts_where_nobody_waits_say_nothing():
    found = fit(lambda hours, part: hours * (10.0, 0.1, 0.1)[int(part)])
    assert (found.recommended, found.why, found.regret, found.checked) == (None, "quiet", None, ())


def test_what_no_number_keeps_is_said():
    found = fit(lambda hours, part: 5.0, not_rented=1)
    assert (found.recommended, found.why, found.keeping) == (None, "none", None)
    assert found.unfitted.whole.not_rented == fitting.PARTS


def test_it_is_found_with_few_plays_of_a_part():
    plays = []
    fit(lambda hours, part: 10 * hours * (1 + part / 10), plays=plays)
    assert len(plays) == len(set(plays)) <= fitting.PARTS * (len(fitting.HOURS).bit_length() + 5)


def test_a_limit_that_ends_between_two_looks_is_kept():
    assert fitting.kept(TARGET, waits_of(1.004)) and not fitting.kept(TARGET, waits_of(1.006))


def test_money_is_that_of_the_leases_without_what_is_prepaid():
    bills = tuple(
        Bill("l", "p5", "a", "spot", 0.0, 60.0, usd, 0.0, 0.0, 1, False, prepaid)
        for usd, prepaid in ((3.0, False), (4.0, False), (5e5, True))
    )
    none = np.zeros(2, bool)
    played = Played(
        np.zeros(2), none, 0, np.ones(2), ("", ""), np.zeros(2), none.astype(int), bills, not_rented={1: "x"}
    )
    assert (Outcome.of(played).usd, Outcome.of(played).not_rented) == (7.0, 1)


def test_a_history_that_is_too_short_is_refused():
    with pytest.raises(ValueError, match="the history has 399 jobs; limits can be fitted to 400 or more"):
        fitting.parts_of(HISTORY.take(slice(399)))


def test_the_longest_wait_over_what_is_wanted_is_named():
    waits = replace(waits_of(0.5), p99_h=0.7)
    assert fitting.worst(TARGET, waits) == ("p99_h", 0.7)
    assert fitting.worst(replace(TARGET, p999_h=0.0), waits) == ("p999_h", math.inf)


def waits_of(hours):
    return Waits(*(hours,) * 7)
