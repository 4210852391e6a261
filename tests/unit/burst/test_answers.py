"""What is said of a job: every verdict has its sentence."""

import math
from dataclasses import replace
from typing import get_args

import pytest

from ironburst.burst import Lease, decide
from ironburst.burst.answers import Answers
from ironburst.burst.lateness import Late, LateCode, NotYet, NotYetCode
from ironburst.burst.limits import Limit, Limits, WaitTarget
from ironburst.burst.renting import Renting
from ironburst.burst.spot import Choice
from tests.fakes.snapshots import BUSY, NOW, POLICY, home, job, running, snapshot

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
    (NotYet("deadline", DUE, NOW), f"{TOO_LATE}; it isn't rented for before 2026-11-21 12:00:00Z"),
    (
        NotYet("settling", DUE, NOW, because=OVER),
        (
            f"{PREDICTED}, 2 h after it was submitted, over the wait limit of 1 h; "
            "it isn't rented for before it has waited 0 s"
        ),
    ),
    (
        NotYet("spot", DUE, NOW, because=OVER, choice=Choice("wait", 7200.0, False)),
        (
            f"{PREDICTED}, 2 h after it was submitted, over the wait limit of 1 h; "
            "it waits for spot, which isn't to be had, and can do so for 2 h until it has to be on demand"
        ),
    ),
    (
        OVER._replace(choice=Choice("spot", 7200.0, True)),
        (
            f"{PREDICTED}, 2 h after it was submitted, over the wait limit of 1 h; "
            "2 h could be lost before it has to be on demand for its deadline"
        ),
    ),
    (
        OVER._replace(choice=Choice("on-demand", 7200.0, False)),
        (
            f"{PREDICTED}, 2 h after it was submitted, over the wait limit of 1 h; "
            "2 h could be lost before its deadline, but on demand is expected to cost less in the end"
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


def answers(**nodes):
    return Answers(POLICY, home(**nodes), Renting(snapshot([]), POLICY, {}))


@pytest.mark.parametrize(("verdict", "said"), [pytest.param(*row, id=row[0].code) for row in SAID])
def test_a_verdict_in_words(verdict, said):
    states = ("IDLE", "DRAIN") if verdict.code == "home_down" else ("IDLE",)
    assert answers(states=states).why(job(deadline_s=NOW + 10_800), verdict) == said


def test_every_code_is_said():
    assert {verdict.code for verdict, _ in SAID if isinstance(verdict, Late)} == set(get_args(LateCode))
    assert {verdict.code for verdict, _ in SAID if isinstance(verdict, NotYet)} == set(get_args(NotYetCode))


def test_a_job_has_one_answer_and_the_latest_counts():
    told = answers()
    told.not_yet(job(1), SOON)
    told.not_yet(job(2), SOON)
    told.cannot_start(job(1), ("begin", "it isn't to begin yet"))
    assert [(wait.job, wait.code) for wait in told.waits] == [(2, "home_soon"), (1, "begin")]


BY_SIZE = replace(POLICY, limits=Limits(WaitTarget.of_mean(0.31)))
OLD = {"submit_s": NOW - 5 * 3600}


def said(jobs, policy=POLICY, **more):
    decision = decide(snapshot(jobs, **more), policy)
    return {each.job: each.text for each in (*decision.waits, *decision.infeasible)}, decision


@pytest.mark.parametrize("policy", [POLICY, BY_SIZE], ids=["one limit", "by size"])
@pytest.mark.parametrize(
    ("reason", "what"), [("PartitionTimeLimit", "time limit"), ("PartitionNodeLimit", "number of nodes")]
)
def test_a_job_that_its_partition_bars_is_not_predicted_to_start_there(reason, what, policy):
    """`sbatch --time=UNLIMITED` to a partition with a MaxTime, as Slurm 24.11 shows it."""
    texts, decision = said([*BUSY, job(limit_s=None, reason=reason, **OLD)], policy)
    assert texts == {
        1: f"it can never start at home: its {what} is over what partition home allows; but it has no finite time "
        "limit, so its cost has no limit either: submit it with --time"
    }
    assert decision.launches == () and decision.waits == ()


def test_one_that_a_pool_takes_is_rented_for_at_once_though_home_is_free():
    _, decision = said([job(reason="PartitionTimeLimit", **OLD)])
    assert [launch.jobs for launch in decision.launches] == [(1,)]


def test_a_job_that_may_go_elsewhere_too_is_predicted():
    texts, _ = said([*BUSY, job(reason="PartitionTimeLimit", partitions=("home", "long"), limit_s=None)])
    assert texts[1].startswith("predicted to start at home")


def test_a_nodes_end_that_nobody_knows_is_not_called_a_node_that_is_down():
    endless = running(90, ["dgx1", "dgx2"], 0, limit_s=None)
    texts, _ = said([replace(endless, end_s=None), job()])
    assert texts[1] == "jobs without a time limit are on its nodes at home; it has waited 0 s of 1 h"


def test_what_it_costs_is_not_by_the_month():
    texts, _ = said([*BUSY, job(**OLD)], budget=10.0)
    assert "costs at least $45.00, more than the whole of the month's $10.00" in texts[1]


ODD = [
    {"limit_s": None},
    {"limit_s": None, "each": replace(job().each, gpus=0)},
    {"limit_s": None, "nodes": 9},
    {"limit_s": None, "reason": "PartitionTimeLimit"},
    {"deadline_s": NOW + 60},
    {"nodes": 2, "limit_s": 864e5},
]


@pytest.mark.parametrize("policy", [POLICY, BY_SIZE, replace(POLICY, settle_s=1e6)], ids=["one", "by size", "settling"])
@pytest.mark.parametrize("more", ODD, ids=str)
@pytest.mark.parametrize("waited_s", [0.0, 3000.0, 86400.0])
def test_no_sentence_has_an_infinite_number_nor_promises_to_rent_what_is_never_rented_for(more, waited_s, policy):
    endless = replace(running(91, ["dgx2"], 0, limit_s=None), end_s=None)
    for others in ([], BUSY, [endless, running(92, ["dgx1"], 36000)]):
        texts, decision = said([*others, job(submit_s=NOW - waited_s, **more)], policy)
        assert texts[1] and not any(word in texts[1] for word in ("inf ", "$inf", "nan", " a month"))
        assert decision.launches or "it is rented for" not in texts[1]


def test_a_job_that_home_is_too_small_for_may_not_start_there():
    told = answers()
    ready = [Lease(f"l{n}", "one", f"p5-{n}", "p5", "a", "spot", "ready", (1,), 20.0, NOW + 9e4) for n in (1, 2, 3)]
    told.served(job(1, nodes=3), ready)
    told.served(job(2, nodes=2), ready[:2])
    assert [wait.text for wait in told.waits] == [
        "it may start on p5-1, p5-2, p5-3",
        "it may start on p5-1, p5-2 or at home, whichever the scheduler finds first",
    ]
