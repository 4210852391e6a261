"""What is said of a job: every verdict has its sentence."""

import math
from typing import get_args

import pytest

from ironburst.burst.answers import Answers
from ironburst.burst.lateness import Late, LateCode, Limit, NotYet, NotYetCode
from ironburst.burst.renting import Renting
from tests.fakes.snapshots import NOW, POLICY, home, job, snapshot

DUE, LIMIT, SIZED = NOW + 7200, Limit(3600.0), Limit(3600.0, 16.0)
SOON = NotYet("home_soon", DUE, DUE, limit=LIMIT)
OVER = Late("over_limit", DUE, LIMIT)
PREDICTED = "predicted to start at home at 2026-11-21 14:00:00Z"
MAY_WAIT = "a job of 16.0 GPU-hours may wait 1 h"
TOO_LATE = "its predicted start at home, 2026-11-21 14:00:00Z, is too late to end by its deadline 2026-11-21 15:00:00Z"
SAID = [
    (SOON, f"{PREDICTED}, 2 h after it was submitted, within the wait limit of 1 h"),
    (NotYet("home_soon", DUE, DUE, limit=SIZED), f"{PREDICTED}; {MAY_WAIT}"),
    (
        NotYet("home_sooner", DUE, DUE, limit=SIZED, boot_s=600.0),
        f"{PREDICTED}: sooner than a rented node, which takes 10 min to boot",
    ),
    (
        NotYet("home_down", math.inf, DUE, limit=LIMIT),
        "its nodes at home are down or drained; it has waited 0 s of 1 h",
    ),
    (NotYet("deadline", DUE, NOW), f"{TOO_LATE}; it is rented for at 2026-11-21 12:00:00Z if that still holds"),
    (
        NotYet("settling", DUE, NOW, because=OVER),
        (
            f"{PREDICTED}, 2 h after it was submitted, over the wait limit of 1 h; "
            "it is rented for if that still holds when it has waited 0 s"
        ),
    ),
    (Late("never_at_home", math.inf), "it can never start at home: no node there suits it"),
    (
        Late("home_down", math.inf, LIMIT),
        "it has waited 0 s, over the limit of 1 h, and its nodes at home are down or drained",
    ),
    (OVER, f"{PREDICTED}, 2 h after it was submitted, over the wait limit of 1 h"),
    (Late("over_limit", DUE, SIZED), f"{PREDICTED}, 2 h after it was submitted; {MAY_WAIT}"),
    (
        Late("over_predicted_limit", DUE, SIZED),
        (
            f"{PREDICTED}, 2 h after it was submitted; "
            "a job of 16.0 GPU-hours is rented for if it is predicted to wait over 1 h"
        ),
    ),
    (Late("deadline", DUE), TOO_LATE),
    (
        Late("last_call", DUE, rent_by_s=NOW),
        (
            "it hasn't started at home yet, and a node that is rented after 2026-11-21 12:00:00Z "
            "would be too late for its deadline"
        ),
    ),
    (
        Late("prepaid", DUE, because=SOON),
        (
            f"{PREDICTED}, 2 h after it was submitted, within the wait limit of 1 h; "
            "but a node that is paid for anyway can take it sooner"
        ),
    ),
    (
        Late("makes_room", DUE, because=Late("over_limit", DUE, SIZED), room_for=job(7)),
        f"the cheapest job before job 7, for which it makes room: {PREDICTED}, 2 h after it was submitted; {MAY_WAIT}",
    ),
]


def answers():
    return Answers(POLICY, home(), Renting(snapshot([]), POLICY, {}))


@pytest.mark.parametrize(("verdict", "said"), [pytest.param(*row, id=row[0].code) for row in SAID])
def test_a_verdict_in_words(verdict, said):
    assert answers().why(job(deadline_s=NOW + 10_800), verdict) == said


def test_every_code_is_said():
    assert {verdict.code for verdict, _ in SAID if isinstance(verdict, Late)} == set(get_args(LateCode))
    assert {verdict.code for verdict, _ in SAID if isinstance(verdict, NotYet)} == set(get_args(NotYetCode))


def test_a_job_has_one_answer_and_the_latest_counts():
    told = answers()
    told.not_yet(job(1), SOON)
    told.not_yet(job(2), SOON)
    told.cannot_start(job(1), ("begin", "it isn't to begin yet"))
    assert [(wait.job, wait.code) for wait in told.waits] == [(2, "home_soon"), (1, "begin")]
