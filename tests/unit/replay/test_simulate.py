"""A trace played through decide(): who starts when, at home or rented."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ironburst.burst import Policy
from ironburst.burst.limits import REFERENCE, Limits
from ironburst.replay import simulate
from ironburst.replay.home import Home
from ironburst.replay.simulate import play
from ironburst.replay.traces import Trace

HOUR = 3600.0


def first_come(gpu_hours):
    return 0.0


def fixed(wait_s):
    return Policy(home_partition="home", wait_limit_s=wait_s)


def trace(*jobs):
    """Jobs as (submit h, hours, GPUs)."""
    submit, hours, gpus = zip(*jobs, strict=True)
    return Trace(np.array(submit) * HOUR, np.array(hours) * HOUR, np.array(gpus))


def test_an_empty_cluster_takes_all_at_once():
    played = play(trace((0, 1, 8), (0, 1, 4), (0.5, 1, 4)), Home(2), fixed(60.0))
    assert played.start_s.tolist() == [0, 0, 0.5 * HOUR] and not played.rented.any() and played.decisions == 0


def test_a_job_that_would_wait_too_long_is_rented_for_at_its_submission():
    played = play(trace((0, 10, 8), (1, 2, 8)), Home(1), fixed(HOUR))
    assert played.rented.tolist() == [False, True] and played.start_s[1] == HOUR


def test_a_job_that_waits_within_its_limit_stays_home():
    played = play(trace((0, 10, 8), (9.5, 2, 8)), Home(1), fixed(HOUR))
    assert not played.rented.any() and played.start_s[1] == 10 * HOUR


def test_a_job_without_a_time_limit_stays_at_home_and_one_of_no_length_is_rented_for():
    nan = math.nan
    jobs = Trace(
        np.arange(4) * HOUR, np.array([20.0, 2.0, 2.0, 0.0]) * HOUR, np.full(4, 8), limit_s=[nan, nan, 3 * HOUR, nan]
    )
    played = play(jobs, Home(1), fixed(HOUR))
    assert played.rented.tolist() == [False, False, True, False] and played.start_s[1] == 20 * HOUR
    known = Trace(jobs.submit_s, jobs.duration_s, jobs.gpus)
    assert play(known, Home(1), fixed(HOUR)).rented.tolist() == [False, True, True, True]


def test_a_gang_and_the_rest_of_it_get_nodes_of_their_own():
    played = play(trace((0, 1, 12), (0, 1, 4), (0, 1, 8)), Home(2, step_back_s=first_come), fixed(10 * HOUR))
    assert played.start_s.tolist() == [0, 0, HOUR]


def test_nodes_are_kept_for_a_large_job_and_short_ones_pass_it():
    # the gang needs both nodes at hour 2; a long job may not take the free one, a short one may
    jobs = trace((0, 2, 8), (0.1, 50, 16), (0.2, 40, 8), (0.3, 1, 8))
    kept = play(jobs, Home(2, step_back_s=first_come, reserve_gpu_hours=100.0), fixed(500 * HOUR))
    assert (kept.start_s / HOUR).round(3).tolist() == [0, 2, 52, 0.3]
    taken = play(jobs, Home(2, step_back_s=first_come, reserved=0), fixed(500 * HOUR))
    assert taken.start_s[2] == pytest.approx(0.2 * HOUR) and taken.start_s[1] > kept.start_s[1]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_played_can_be(seed):
    """Never more GPUs than there are, no start before a submit, and every job starts once."""
    random = np.random.default_rng(seed)
    count = 120
    jobs = Trace(
        np.sort(random.uniform(0, 30 * HOUR, count)),
        random.exponential(2 * HOUR, count),
        random.choice([1, 1, 2, 4, 8, 12, 16], count),
    )
    home = Home(3)
    played = play(jobs, home, Policy("home", 0.0, limits=Limits(REFERENCE)))
    assert np.isfinite(played.start_s).all() and (played.start_s >= jobs.submit_s).all() and played.decisions > 0
    at_home = ~played.rented
    for moment in played.start_s[at_home]:
        on = at_home & (played.start_s <= moment) & (moment < played.start_s + jobs.duration_s)
        assert jobs.gpus[on].sum() <= home.nodes * home.gpus
    again = play(jobs, home, Policy("home", 0.0, limits=Limits(REFERENCE)))
    assert np.array_equal(again.start_s, played.start_s) and np.array_equal(again.rented, played.rented)


def test_run_times_are_not_told_where_the_trace_has_limits_but_learned(monkeypatch):
    random = np.random.default_rng(3)
    count = 150
    submit, hours = np.sort(random.uniform(0, 100 * HOUR, count)), random.uniform(1, 8, count)
    jobs = Trace(submit, hours * HOUR, random.choice([4, 8], count), queue=("vc",) * count, limit_s=4 * hours * HOUR)
    seen, ask = [], simulate.decide

    def look(snapshot, *given, **options):
        seen.append(snapshot)
        return ask(snapshot, *given, **options)

    monkeypatch.setattr(simulate, "decide", look)
    play(jobs, Home(2), Policy("home", 0.0, limits=Limits(REFERENCE)))
    assert all(job.run_s is None for shot in seen for job in shot.jobs)
    for job in (job for shot in seen for job in shot.jobs):
        assert job.time_limit_s == jobs.limit_s[job.id]
        assert job.end_s in (None, job.start_s and job.start_s + job.time_limit_s)
    assert not seen[0].experience.ratios
    ratios = seen[-1].experience.ratios["account:vc"]
    assert len(ratios) > 50 and np.allclose(ratios, np.log(0.25), atol=0.001)
    # at home it ends when it does, not at its limit
    assert max(len([job for job in shot.jobs if job.on]) for shot in seen) >= 2


def test_limits_that_are_always_right_are_as_good_as_known_run_times():
    random = np.random.default_rng(4)
    count = 250
    submit, hours = np.sort(random.uniform(0, 60 * HOUR, count)), random.uniform(1, 20, count)
    known = Trace(submit, hours * HOUR, random.choice([1, 4, 8, 16], count), queue=("vc",) * count)
    policy = Policy("home", 0.0, limits=Limits(REFERENCE))
    exact, learned = (play(jobs, Home(6), policy) for jobs in (known, replace(known, limit_s=known.duration_s)))
    assert 0 < exact.rented.sum() < count
    assert np.array_equal(exact.start_s, learned.start_s) and np.array_equal(exact.rented, learned.rented)


def test_the_policy_is_asked_once_a_tick_at_most():
    jobs = trace(*((n / 360000, 5, 8) for n in range(300)))  # 300 within 3 seconds
    asked = play(jobs, Home(1, tick_s=10.0), Policy("home", HOUR)).decisions
    assert asked <= 1 + 300 / 64  # a tick rents for as many as there are names


def test_a_job_that_is_larger_than_home_is_rented_for_at_once():
    """24 GPUs beside two idle nodes of 8; a job of home's behind it isn't held up."""
    played = play(trace((0, 1, 24), (0, 1, 16)), Home(2), fixed(HOUR))
    assert played.rented.tolist() == [True, False] and played.start_s.tolist() == [0, 0]
