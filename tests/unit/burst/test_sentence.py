"""The sentence about one job: every number in it follows the decision."""

from dataclasses import replace

import pytest

from ironburst.burst import (
    Alternative,
    Infeasible,
    Wait,
    decide,
)
from ironburst.burst.sentence import Asked, alternative, sentence
from tests.fakes.snapshots import NOW, POLICY, job, pool, running, snapshot

HOUR = 3600.0


def wait_of(decision, id=1):
    return next(wait for wait in decision.waits if wait.job == id)


ASKED = Asked(job=4711, nodes=2, gpus=8, time_limit_s=6 * HOUR)
RENT = Alternative("rent", 108.0, 120.0, "soon", "p5", "on-demand", "p5.48xlarge", 2)
WAIT = Wait(4711, "home_soon", "...", start_s=NOW + 1560.0, run_s=6 * HOUR, alternatives=(RENT,))


def clock(seconds):
    return f"T+{seconds - NOW:.0f}s"


def said(asked=ASKED, decided=WAIT, at_s=NOW, **alternative):
    if alternative:
        decided = replace(decided, alternatives=(replace(decided.alternatives[0], **alternative),))
    return sentence(asked, decided, at_s, clock)


def test_a_waiting_job_in_one_sentence():
    # 108 * (6 h + 2 min)
    assert said() == (
        "Job 4711 (16 GPUs, 6 h) waits until T+1560s: two nodes free up at home by then; "
        "renting two p5.48xlarge now would cost about $652 and save 0.4 h."
    )


@pytest.mark.parametrize(
    ("change", "gone", "there"),
    [
        ({"asked": replace(ASKED, job=12)}, "Job 4711", "Job 12 "),
        ({"asked": replace(ASKED, gpus=4)}, "(16 GPUs", "(8 GPUs"),
        ({"asked": replace(ASKED, nodes=3)}, "two nodes", "three nodes"),
        ({"asked": replace(ASKED, nodes=1)}, "two nodes free up", "8 GPUs free up"),
        ({"asked": replace(ASKED, nodes=1, gpus=1)}, "(16 GPUs", "(1 GPU, "),
        ({"asked": replace(ASKED, time_limit_s=90 * 60)}, ", 6 h)", ", 1 h 30 min)"),
        ({"decided": replace(WAIT, start_s=NOW + 5160)}, "until T+1560s", "until T+5160s"),
        ({"decided": replace(WAIT, start_s=NOW + 5160)}, "save 0.4 h", "save 1.4 h"),
        (
            {"at_s": NOW + 1440},
            "save 0.4 h",
            "renting two p5.48xlarge now would cost about $652 and start it 0 s later",
        ),
        ({"decided": replace(WAIT, run_s=HOUR)}, "$652", "$112"),
        ({"at_s": NOW + 1560}, "waits until", "can start at home now: two nodes are free there"),
        ({"in_s": 1560 + 1800.0}, "save 0.4 h", "start it 0.5 h later"),
        ({"usd_per_hour": 216.0}, "$652", "$1,303"),
        ({"least_s": 10 * HOUR}, "$652", "$1,080"),
        ({"paid_s": HOUR}, "$652", "$544"),
        ({"nodes": 4}, "two p5.48xlarge", "four p5.48xlarge"),
        ({"instance_type": "p4d.24xlarge"}, "p5.48xlarge", "two p4d.24xlarge"),
        ({"what": "share"}, "renting", "using two rented p5.48xlarge"),
    ],
)
def test_every_number_in_it_follows_the_data(change, gone, there):
    text = said(**change)
    assert gone in said() and gone not in text and there in text


def test_a_job_that_money_or_capacity_keeps_waiting_says_so():
    for code, words in (("budget", "too little of the budget is left"), ("cool_down", "the cloud refused it lately")):
        text = said(decided=replace(WAIT, code=code, alternatives=(replace(RENT, why=code),)))
        assert text.endswith(f"would cost about $652 and save 0.4 h, but {words}.")


def test_a_job_that_is_rented_for_names_cost_time_and_what_waiting_would_have_been():
    home = Alternative("home", 0.0, 9 * HOUR, "late")
    rented = Wait(4711, "renting", "because", start_s=NOW + 600, usd=661.0, run_s=6 * HOUR, alternatives=(home,))
    assert sentence(ASKED, rented, NOW, clock) == (
        "Job 4711 (16 GPUs, 6 h) is rented for at about $661, to start by T+600s; "
        "waiting at home would save $661 and start it 8.8 h later: because."
    )


def test_what_has_no_figures_says_its_reason():
    assert said(decided=Wait(4711, "held", "it is held")) == "Job 4711 (16 GPUs, 6 h) waits: it is held."
    endless = replace(ASKED, time_limit_s=None)
    refused = sentence(endless, Infeasible(4711, "no_time_limit", "it has no finite time limit"), NOW, clock)
    assert refused == "Job 4711 (16 GPUs, no time limit) can't be rented for: it has no finite time limit."


def test_an_alternative_by_itself():
    assert (
        alternative(RENT, WAIT, NOW)
        == "two p5.48xlarge (on-demand, pool p5): $652 more, 0.4 h sooner; home is soon enough"
    )
    later = alternative(replace(RENT, usd_per_hour=1.0, in_s=5160.0), replace(WAIT, usd=11.0), NOW)
    assert later == "two p5.48xlarge (on-demand, pool p5): $3.57 less, 1.0 h later; home is soon enough"


def test_the_sentence_of_a_real_decision_has_the_decisions_own_figures():
    jobs = [running(90, ["dgx1", "dgx2"], 1560), job(4711, nodes=2, limit_s=6 * HOUR, requeue=False)]
    for hourly in (55.04, 41.28):
        wait = wait_of(
            decide(
                snapshot(jobs, pools=[pool(usd_per_hour={"spot": 20.0, "on-demand": hourly}, boot_s=120.0)]), POLICY
            ),
            4711,
        )
        text = sentence(ASKED, wait, NOW, clock)
        assert f"would cost about ${2 * hourly * (6 * HOUR + 120) / HOUR:,.0f} and save 0.4 h" in text
        assert "until T+1560s" in text
