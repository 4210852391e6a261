"""What else could have been done for a job, by how much it is worse, and the sentence that says so."""

import json
from dataclasses import replace

import pytest

from ironburst.burst import Alternative, CoolDown, Decision, Infeasible, Wait, decide, from_json, to_json
from ironburst.burst.alternatives import BEST
from ironburst.burst.sentence import Asked, alternative, sentence
from tests.fakes.snapshots import BUSY, NOW, POLICY, job, lease, pool, running, snapshot

HOUR = 3600.0


def wait_of(decision, id=1):
    return next(each for each in decision.waits if each.job == id)


def rows(wait):
    return [(each.what, each.market, each.usd(wait.run_s), each.in_s, each.why) for each in wait.alternatives]


def test_a_waiting_job_knows_what_renting_would_cost_and_when_it_would_start():
    wait = wait_of(
        decide(snapshot([running(90, ["dgx1", "dgx2"], 1800), job(nodes=2, limit_s=HOUR, requeue=False)]), POLICY)
    )
    assert (wait.code, wait.start_s) == ("home_soon", NOW + 1800)
    assert rows(wait) == [
        ("rent", "on-demand", pytest.approx(2 * 50 * (600 + HOUR) / HOUR), 600.0, "soon")
    ]  # spot is for one node


def test_a_rented_node_with_room_is_the_first_alternative():
    shot = snapshot([running(90, ["dgx1", "dgx2"], 1800), job(limit_s=HOUR)], leases=[lease("p5-1")])
    wait = wait_of(decide(shot, POLICY))
    first = wait.alternatives[0]
    assert (first.what, first.in_s, first.nodes) == ("share", 0.0, 1)
    assert first.usd(wait.run_s) == pytest.approx(50)  # set aside so far is the idle time after it
    longer = replace(shot, leases=(replace(shot.leases[0], committed_until_s=NOW + 300 + 1800),))
    assert wait_of(decide(longer, POLICY)).alternatives[0].usd(wait.run_s) == pytest.approx(25)


def test_what_is_in_the_way_of_each_offer_is_its_reason():
    closed = tuple(CoolDown("p5", zone, "spot", 1, NOW + 60, "ICE") for zone in "ab")
    wait = wait_of(decide(snapshot([*BUSY, job()], cool_downs=closed, budget=60.0), POLICY))
    assert [(each.market, each.why) for each in wait.alternatives] == [("spot", "cool_down"), ("on-demand", "budget")]
    assert wait.start_s == NOW + 10 * HOUR


def test_a_job_that_is_rented_for_knows_what_waiting_and_the_other_offers_would_have_been():
    shot = snapshot(
        [*BUSY, job(limit_s=HOUR)], pools=[pool(), pool("g6", markets=("on-demand",), usd_per_hour={"on-demand": 30.0})]
    )
    wait = wait_of(decide(shot, POLICY))
    paid = 20 * (600 + HOUR) / HOUR
    assert (wait.code, wait.usd, wait.start_s) == ("renting", pytest.approx(paid), NOW + 600)
    assert rows(wait) == [
        ("home", "", 0.0, 10 * HOUR, "late"),
        ("rent", "on-demand", pytest.approx(30 * (600 + HOUR) / HOUR), 600.0, "dearer"),
        ("rent", "on-demand", pytest.approx(50 * (600 + HOUR) / HOUR), 600.0, "dearer"),
    ]


def test_a_start_is_expected_after_the_boot_that_was_seen_lately():
    known = pool(markets=("on-demand",), usual_boot_s=240.0)
    waiting = wait_of(decide(snapshot([running(90, ["dgx1", "dgx2"], 1800), job()], pools=[known]), POLICY))
    assert [each.in_s for each in waiting.alternatives] == [240.0]
    rented = wait_of(decide(snapshot([*BUSY, job()], pools=[known]), POLICY))
    assert (rented.code, rented.start_s) == ("renting", NOW + 240)


def test_never_more_than_three_and_none_for_what_can_not_be_rented():
    pools = [pool(f"p{n}", usd_per_hour={"spot": 20.0 + n, "on-demand": 50.0 + n}) for n in range(4)]
    decision = decide(snapshot([job(), job(2, limit_s=None)], pools=pools), POLICY)
    assert [each.pool for each in wait_of(decision).alternatives] == ["p0", "p1", "p2"] and BEST == 3
    assert wait_of(decision, 2).alternatives == ()


def test_prepaid_capacity_costs_nothing_more_and_the_minimum_billing_is_seen():
    paid = pool(markets=("on-demand",), prepaid_markets=("on-demand",))
    assert wait_of(decide(snapshot([job()], pools=[paid]), POLICY)).alternatives[0].usd(7200.0) == 0
    short = pool(markets=("on-demand",), min_billing_s=7200.0)
    wait = wait_of(decide(snapshot([job(limit_s=60.0)], pools=[short]), POLICY))
    assert (wait.run_s, wait.alternatives[0].usd(wait.run_s)) == (60.0, 100.0)
    told = wait_of(decide(snapshot([job(limit_s=HOUR, run_s=1200.0)], pools=[pool()]), POLICY))
    assert told.run_s == 1200.0 and told.alternatives[0].usd(told.run_s) == pytest.approx(20 * (600 + 1200) / HOUR)


def test_they_come_through_json_and_a_decision_written_before_them_is_still_read():
    decision = decide(snapshot([*BUSY, job(), job(2)], budget=80.0), POLICY)
    data = json.loads(json.dumps(to_json(decision)))
    assert from_json(Decision, data) == decision and data["waits"][0]["alternatives"]
    for each in data["waits"]:
        del each["start_s"], each["usd"], each["run_s"], each["alternatives"]
    assert [each.text for each in from_json(Decision, data).waits] == [each.text for each in decision.waits]


# ---- the sentence

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
    assert said() == (
        "Job 4711 (16 GPUs, 6 h) waits until T+1560s: two nodes free up at home by then; "
        "renting two p5.48xlarge now would cost about $652 and save 0.4 h."
    )  # 108 * (6 h + 2 min)


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
        assert (
            f"would cost about ${2 * hourly * (6 * HOUR + 120) / HOUR:,.0f} and save 0.4 h" in text
            and "until T+1560s" in text
        )
