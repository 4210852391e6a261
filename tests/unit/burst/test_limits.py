"""How long jobs may wait by their size, and what is rented for when one is late."""

import dataclasses
import math

import pytest

from ironburst.burst import Policy, decide
from ironburst.burst.limits import HOPELESS, LONGER, LOOK_S, REFERENCE, SHORTER, Limits, WaitTarget
from tests.fakes import snapshots as base

HOUR = 3600.0
LIMITS = Limits(REFERENCE)
POLICY = Policy(home_partition="home", wait_limit_s=0.0, limits=LIMITS)


def test_a_larger_job_may_wait_longer_up_to_its_cap():
    for limit in (LIMITS.timer_s, LIMITS.predicted_s, LIMITS.hard_s):
        waits = [limit(gpu_hours) for gpu_hours in (0.01, 0.1, 1, 10, 50, 200, 1000, 5000)]
        assert waits == sorted(waits) and all(wait <= REFERENCE.max_h * HOUR for wait in waits)
    assert LIMITS.hard_s(math.inf) < math.inf  # no job waits for ever


def test_limits_follow_a_power_of_the_target():
    def scaled(factor):
        return Limits(WaitTarget(*(factor * getattr(REFERENCE, field.name) for field in dataclasses.fields(REFERENCE))))

    for factor, power in ((0.25, dict.fromkeys(LONGER, SHORTER)), (4.0, LONGER)):
        longer = scaled(factor)
        for limit, gpu_hours, wait in (
            ("timer_s", 0.5, "mean_h"),
            ("timer_s", 500, "p99_h"),  # at its cap
            ("predicted_s", 50, "gpu_hour_weighted_h"),
            ("predicted_s", 1500, "p999_h"),  # at its cap
            ("predicted_s", 5000, "p999_h"),
            ("hard_s", 50, "gpu_hour_weighted_h"),
            ("hard_s", 5000, "p999_h"),
        ):
            expected = getattr(LIMITS, limit)(gpu_hours) * factor ** power[wait]
            assert getattr(longer, limit)(gpu_hours) == pytest.approx(expected), (factor, limit, gpu_hours)
    short = Limits(dataclasses.replace(REFERENCE, max_h=0.01))
    assert short.hard_s(1000) == 36.0  # never longer than the longest wait that is wanted


def test_fitted_limits_are_hours_for_each_gpu_hour_up_to_the_longest_wait():
    fitted = dataclasses.replace(LIMITS, hours_per_gpu_hour=0.1)
    assert fitted.timer_s(2.0) == pytest.approx(0.2 * HOUR - LOOK_S) and fitted.timer_s(0.0) == 0.0
    assert fitted.hard_s(500.0) == pytest.approx(50 * HOUR)
    assert fitted.predicted_s(500.0) == pytest.approx(HOPELESS * 50 * HOUR)
    for limit in (fitted.predicted_s, fitted.hard_s):
        assert limit(1e6) == limit(math.inf) == REFERENCE.max_h * HOUR
    tight = dataclasses.replace(fitted, target=WaitTarget.of_mean(0.001))
    assert tight.hard_s(500.0) == HOUR * tight.target.max_h < fitted.hard_s(500.0)  # a bound, and nothing else
    assert tight.hard_s(5.0) == fitted.hard_s(5.0)


def test_a_fitted_limit_is_late_when_it_ends_or_when_the_start_is_hopeless():
    size = 8 * 10.0
    policy = dataclasses.replace(POLICY, limits=dataclasses.replace(LIMITS, hours_per_gpu_hour=0.1))
    limit = 0.1 * size * HOUR
    for waited, ends_in, rented in (
        (0.0, 2.4 * limit, False),
        (0.0, 2.6 * limit, True),
        (limit - 10, 2000.0, False),
        (limit + 10, 2000.0, True),
    ):
        jobs = [base.running(90, ["dgx1", "dgx2"], ends_in), late(10 * HOUR, waited)]
        assert bool(decide(base.snapshot(jobs), policy).launches) is rented, (waited, ends_in)


def test_a_target_from_its_mean_has_the_proportions_of_the_reference():
    assert WaitTarget.of_mean(REFERENCE.mean_h) == REFERENCE
    assert WaitTarget.of_mean(0.62).p99_h == pytest.approx(2 * REFERENCE.p99_h)


def test_waits_that_are_given_stay_and_the_others_keep_their_order():
    target = WaitTarget.of_mean(0.31, p99_h=50.0, max_h=None)
    assert (target.mean_h, target.p99_h, target.p999_h) == (0.31, 50.0, 50.0)  # 38 h in proportion
    short = WaitTarget.of_mean(0.31, max_h=2.0)
    assert (short.p99_h, short.p999_h, short.gpu_hour_weighted_h, short.max_h) == (2.0, 2.0, 2.0, 2.0)
    assert WaitTarget.of_mean(400.0, p999_h=9.0).p99_h == 9.0


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_target_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match=r"p99_h is .*hours, 0 or more"):
        dataclasses.replace(REFERENCE, p99_h=value)


def late(limit_s, waited_s, **more):
    return base.job(1, limit_s=limit_s, submit_s=base.NOW - waited_s, **more)


def test_a_small_job_has_its_timer_whatever_is_predicted():
    size = 8 * 0.5  # GPU-hours
    assert LIMITS.small(size)
    timer = LIMITS.timer_s(size)
    waiting = decide(base.snapshot([*base.BUSY, late(0.5 * HOUR, timer - 10)]), POLICY)
    assert waiting.launches == () and waiting.waits[0].code == "home_soon"
    assert waiting.waits[0].look_again_s == pytest.approx(base.NOW + 10)
    assert decide(base.snapshot([*base.BUSY, late(0.5 * HOUR, timer + 1)]), POLICY).launches


def test_a_larger_job_is_rented_for_as_soon_as_it_is_predicted_too_late():
    size = 8 * 10.0
    allowed = LIMITS.predicted_s(size)
    for ends_in, rented in ((allowed - 60, False), (allowed + 60, True)):
        jobs = [base.running(90, ["dgx1", "dgx2"], ends_in), late(10 * HOUR, 0.0)]
        assert bool(decide(base.snapshot(jobs), POLICY).launches) is rented


def test_the_smallest_larger_job_before_a_late_one_makes_room_for_it():
    small, large = base.job(1, limit_s=6 * HOUR, priority=2), base.job(2, limit_s=8 * HOUR, priority=1)
    ends = LIMITS.predicted_s(8 * 6) - HOUR  # in time for the first, too late for the second behind it
    nodes = base.home(1)
    decision = decide(base.snapshot([base.running(90, ["dgx1"], ends), small, large], nodes), POLICY)
    assert [launch.jobs for launch in decision.launches] == [(1,)]
    assert "for which it makes room" in decision.launches[0].reason
    assert [wait.code for wait in decision.waits if wait.job == 2] == ["home_soon"]
    assert sorted(wait.job for wait in decision.waits) == [1, 2]  # each is spoken of once


def test_who_makes_room_must_be_rentable():
    small, large = (
        base.job(1, limit_s=6 * HOUR, priority=2, demands="the nodes dgx1"),
        base.job(2, limit_s=8 * HOUR, priority=1),
    )
    ends = LIMITS.predicted_s(8 * 6) - HOUR
    decision = decide(base.snapshot([base.running(90, ["dgx1"], ends), small, large], base.home(1)), POLICY)
    assert [launch.jobs for launch in decision.launches] == [(2,)]
    assert decision.infeasible == ()
