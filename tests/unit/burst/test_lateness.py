"""Whether a job is late: the verdict by itself, and in whole decisions."""

import math
from dataclasses import replace

import pytest

from ironburst.burst import Resources, decide, lateness
from ironburst.burst.lateness import Late, Lateness, NotYet
from ironburst.burst.limits import REFERENCE, Limit, Limits
from tests.fakes.snapshots import BUSY, NOW, POLICY, code_of, home, job, pool, running, snapshot

HOUR = 3600.0
BOOT_S = 600.0
HOME = home()
BY_SIZE = replace(POLICY, limits=Limits(REFERENCE))


def judge(start_in_s, policy=POLICY, room_now=False, now_s=NOW, **asked):
    """The verdict on a job that home is predicted to start so many seconds from NOW."""
    judged = Lateness(now_s, policy, HOME, {}, boot_s=lambda job: BOOT_S, room_now=lambda job: room_now)
    return judged.verdict(job(**asked), NOW + start_in_s)


# ---- the verdict by itself


def test_a_start_within_the_limit_is_not_late_and_one_second_more_is():
    soon = judge(HOUR)
    assert soon == NotYet("home_soon", NOW + HOUR, NOW + HOUR, limit=Limit(HOUR))
    assert judge(HOUR + 1) == Late("over_limit", NOW + HOUR + 1, Limit(HOUR))
    overdue = judge(-60.0, submit_s=NOW - 1800)  # looked at again at the end of its limit at the latest
    assert (overdue.code, overdue.look_again_s) == ("home_soon", NOW)


@pytest.mark.parametrize(
    ("start_in_s", "waited_s", "room_now", "code"),
    [
        (BOOT_S, HOUR, False, "home_sooner"),
        (BOOT_S + 1, HOUR, False, "over_limit"),
        (BOOT_S, HOUR, True, "over_limit"),  # a rented node that is there needs no boot
        (BOOT_S, HOUR + lateness.DOUBT_S, False, "home_sooner"),
        (BOOT_S, HOUR + lateness.DOUBT_S + 1, False, "over_limit"),  # believed long enough
    ],
)
def test_a_late_job_is_left_to_a_start_at_home_within_a_boot_for_a_while(start_in_s, waited_s, room_now, code):
    verdict = judge(start_in_s, submit_s=NOW - waited_s, room_now=room_now)
    assert verdict.code == code
    if isinstance(verdict, NotYet):
        assert (verdict.look_again_s, verdict.rent_s, verdict.boot_s) == (NOW + start_in_s, None, BOOT_S)


def test_without_a_start_the_job_waits_for_home_unless_home_is_too_small():
    down = judge(math.inf, submit_s=NOW - HOUR)
    assert (down.code, down.look_again_s, down.rent_s) == ("home_down", NOW, NOW)
    assert isinstance(down, NotYet)
    assert judge(math.inf, submit_s=NOW - HOUR - 1) == Late("home_down", math.inf, Limit(HOUR))
    assert judge(math.inf, nodes=len(HOME) + 1) == Late("never_at_home", math.inf)


def test_a_job_settles_first_whatever_makes_it_late():
    patient = replace(POLICY, settle_s=30.0)
    settling = judge(9 * HOUR, patient, submit_s=NOW - 29)
    assert (settling.code, settling.look_again_s, settling.rent_s) == ("settling", NOW + 1, NOW + 1)
    assert settling.because == Late("over_limit", NOW + 9 * HOUR, Limit(HOUR))
    assert isinstance(judge(9 * HOUR, patient, submit_s=NOW - 30), Late)


def test_a_small_job_has_a_timer_and_a_larger_one_is_predicted():
    small, large = {"limit_s": 0.5 * HOUR}, {"limit_s": 10 * HOUR}  # 4 and 80 GPU-hours
    timer_s, predicted_s = BY_SIZE.limits.timer_s(4.0), BY_SIZE.limits.predicted_s(80.0)
    waiting = judge(99 * HOUR, BY_SIZE, **small)
    assert waiting == NotYet(
        "home_soon", NOW + 99 * HOUR, NOW + timer_s, rent_s=NOW + timer_s, limit=Limit(timer_s, 4.0)
    )
    assert judge(99 * HOUR, BY_SIZE, now_s=NOW + timer_s + 1, **small).code == "over_limit"
    assert isinstance(judge(predicted_s - 1, BY_SIZE, **large), NotYet)
    late = judge(predicted_s + 1, BY_SIZE, **large)
    assert late == Late("over_predicted_limit", NOW + predicted_s + 1, Limit(predicted_s, 80.0), large=True)
    hard_s = BY_SIZE.limits.hard_s(80.0)
    waited = judge(hard_s + HOUR, BY_SIZE, now_s=NOW + hard_s + 1, **large)
    assert waited == Late("over_limit", NOW + hard_s + HOUR, Limit(hard_s, 80.0), large=True)


def test_a_deadline_that_home_misses_is_rented_for_two_boots_ahead():
    must_start_s = NOW + 2 * BOOT_S + 1
    ahead = judge(HOUR, deadline_s=must_start_s + 7200)
    assert ahead == NotYet("deadline", NOW + HOUR, NOW + 1, rent_s=NOW + 1)
    assert judge(HOUR, now_s=NOW + 1, deadline_s=must_start_s + 7200) == Late("deadline", NOW + HOUR)
    assert judge(math.inf, deadline_s=NOW + 7200) == Late("deadline", math.inf)  # no start at all is too late, too


@pytest.mark.parametrize(
    ("start_in_s", "slack_s", "code"),
    [
        (60.0, BOOT_S + lateness.LAST_CALL_S + 1, "home_soon"),
        (60.0, BOOT_S + lateness.LAST_CALL_S, "last_call"),
        (60.0, BOOT_S, "last_call"),
        (60.0, BOOT_S - 1, "home_soon"),  # a rented node would be too late
        (0.0, BOOT_S, "home_soon"),  # it can start now
    ],
)
def test_a_deadline_that_home_keeps_has_a_last_call(start_in_s, slack_s, code):
    verdict = judge(start_in_s, deadline_s=NOW + slack_s + 7200)
    assert verdict.code == code
    if isinstance(verdict, Late):
        assert verdict.rent_by_s == NOW + slack_s - BOOT_S


def test_gpu_hours_are_what_is_expected_or_the_limit():
    judged = Lateness(NOW, POLICY, HOME, {2: HOUR}, boot_s=lambda job: BOOT_S, room_now=lambda job: False)
    assert judged.gpu_hours(job(1, nodes=2, limit_s=2 * HOUR)) == 32.0
    assert judged.gpu_hours(job(2, nodes=2, limit_s=2 * HOUR)) == 16.0
    assert judged.gpu_hours(job(3, limit_s=None)) == math.inf
    assert judged.gpu_hours(job(4, limit_s=None, each=Resources(0, 1, 1))) == 0.0


# ---- in whole decisions


def test_a_job_that_starts_at_home_within_the_limit_waits_with_a_reason_and_a_time():
    decision = decide(snapshot([running(90, ["dgx1", "dgx2"], 1800), job()]), POLICY)
    assert decision.launches == () and decision.waits[0].code == "home_soon"
    assert decision.waits[0].look_again_s == NOW + 1800 and "within the wait limit of 1 h" in decision.waits[0].text


def test_a_late_job_is_rented_for_at_once_not_when_the_limit_is_over():
    decision = decide(snapshot([*BUSY, job()]), POLICY)
    (launch,) = decision.launches
    expected = ("p5", "spot", ("p5-1",), ("a", "b"), (1,))
    assert (launch.pool, launch.market, launch.nodes, launch.zones, launch.jobs) == expected
    assert launch.committed_usd == pytest.approx(20.0 * (600 + 7200 + 300) / 3600)
    assert "over the wait limit of 1 h" in launch.reason


def test_renting_never_comes_later_than_home():
    decision = decide(snapshot([running(90, ["dgx1", "dgx2"], 500), job(submit_s=NOW - 3900)]), POLICY)
    assert decision.launches == () and code_of(decision, 1) == "home_sooner"


def test_home_being_drained_for_a_while_is_no_reason_to_rent_before_the_limit():
    down = home(states=("DRAIN", "IDLE"))
    assert code_of(decide(snapshot([job()], down), POLICY), 1) == "home_down"
    assert decide(snapshot([job(submit_s=NOW - 3601)], down), POLICY).launches


def test_a_deadline_that_home_keeps_changes_nothing():
    shot = snapshot([running(90, ["dgx1", "dgx2"], 1800), job(deadline_s=NOW + 1800 + 7200)])
    assert code_of(decide(shot, POLICY), 1) == "home_soon"


def test_a_job_that_home_would_end_too_late_is_rented_for_two_boots_before_it_must_start():
    """Home is within the wait limit, so without its deadline it would wait."""
    for slack, code in ((1201, "deadline"), (1200, "renting"), (600, "renting"), (599, "deadline")):
        decision = decide(snapshot([running(90, ["dgx1", "dgx2"], 1800), job(deadline_s=NOW + slack + 7200)]), POLICY)
        assert code_of(decision, 1) == code, slack
        assert bool(decision.launches) == (code == "renting")
        if slack == 1201:
            assert decision.waits[0].look_again_s == decision.waits[0].rent_s == NOW + 1
    (missed,) = decision.infeasible
    assert "is too late to end by its deadline" in missed.text
    assert "in pool p5 it would end at 2026-11-21 14:10:00Z, after" in missed.text


def test_a_job_settles_before_it_is_rented_for():
    patient = replace(POLICY, settle_s=30.0)
    decision = decide(snapshot([*BUSY, job(submit_s=NOW - 29)]), patient)
    assert decision.launches == () and code_of(decision, 1) == "settling"
    expected = (NOW + 1, NOW + 1, NOW + 10 * HOUR)
    assert (decision.waits[0].look_again_s, decision.waits[0].rent_s, decision.waits[0].start_s) == expected
    assert decide(snapshot([*BUSY, job(submit_s=NOW - 30)]), patient).launches
    assert decide(snapshot([job(submit_s=NOW - 29)]), patient).waits[0].code == "home_soon"


def test_a_start_at_home_that_never_comes_is_believed_for_a_boot_only():
    near = [running(90, ["dgx1", "dgx2"], 500)]
    assert code_of(decide(snapshot([*near, job(submit_s=NOW - HOUR - 600)]), POLICY), 1) == "home_sooner"
    assert decide(snapshot([*near, job(submit_s=NOW - HOUR - 601)]), POLICY).launches


def adversary(boot_s, tick_s=60.0, most_s=6 * HOUR):
    """Seconds from a job's submission to its node, if somebody of higher priority comes whenever home is about to be
    free.
    """
    victim, id, free_s, now = job(1, limit_s=1200.0, submit_s=NOW), 100, NOW + 300, NOW
    while now < NOW + most_s:
        if now >= free_s:  # the scheduler starts the one with the highest priority
            id, free_s = id + 1, now + 300
        on_it = replace(running(id, ["dgx1"], 0, limit_s=300.0), end_s=free_s)
        if decide(replace(snapshot([on_it, victim], home(1), [pool(boot_s=boot_s)]), now_s=now), POLICY).launches:
            return now + boot_s - NOW
        now += tick_s
    return math.inf


def test_no_job_waits_for_ever_behind_a_prediction_that_is_always_near(monkeypatch):
    """The bound that docs/policy.md states: wait limit + doubt (a boot, at least 10 min) + tick + boot."""
    for boot_s in (120.0, 600.0, 1200.0):
        bound = POLICY.wait_limit_s + max(boot_s, lateness.DOUBT_S) + 60.0 + boot_s
        assert POLICY.wait_limit_s < adversary(boot_s) <= bound
    monkeypatch.setattr(lateness, "DOUBT_S", math.inf)
    assert adversary(600.0) == math.inf  # the adversary is one: without the end of belief the job waits for ever
