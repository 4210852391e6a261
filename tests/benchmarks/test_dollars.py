"""The dollar benchmark: what the peers pay by hand, what is offered, what a reservation is worth, and what it
prints.
"""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import dollars, offers, peers
from benchmarks.dollar_peers import pay
from benchmarks.offers import ON_DEMAND
from ironburst.burst import Pool, Resources
from ironburst.replay.outcome import Bill
from ironburst.replay.provider import Shortage, SimulatedCloud
from ironburst.replay.traces import Trace

HOUR = 3600.0


def pool(name, gpus, usd, zones=("a",)):
    names = tuple(f"{name}-{n}" for n in range(9))
    return Pool(
        name,
        name,
        nodes=names,
        instance_type=name,
        each=Resources(gpus),
        gpu_type="",
        markets=(ON_DEMAND,),
        usd_per_hour={ON_DEMAND: usd},
        zones=zones,
        boot_s=600.0,
        idle_s=HOUR,
        max_run_s=1e9,
        min_billing_s=60.0,
    )


def trace(*jobs):
    submit, hours, gpus = zip(*jobs, strict=True)
    return Trace(np.array(submit) * HOUR, np.array(hours) * HOUR, np.array(gpus))


def test_a_peer_pays_for_the_cheapest_fitting_instances_of_each_job_alone():
    jobs = trace((0, 10, 8), (1, 1, 1), (1, 2, 4), (1, 3, 12))  # the first one fills home
    paid = pay(
        jobs, 8, peers.PEERS["no_wait"], SimulatedCloud((pool("x8", 8, 8.0), pool("x1", 1, 1.5), pool("y1", 1, 2.0)))
    )
    assert paid.rented.tolist() == [False, True, True, True] and paid.refusals == 0
    assert paid.usd == pytest.approx(1.5 * (1 + 1 / 6) + 8 * (2 + 1 / 6) + 2 * 8 * (3 + 1 / 6))
    assert paid.boot_usd == pytest.approx((1.5 + 8 + 16) / 6)
    assert paid.start_s[1:].tolist() == [HOUR + 600] * 3


def test_a_peer_that_is_refused_goes_to_the_next_type_or_tries_again():
    jobs = trace((0, 10, 8), (1, 1, 1))
    for seed in range(20):
        cloud = SimulatedCloud((pool("x1", 1, 1.5), pool("x8", 8, 8.0)), seed, {ON_DEMAND: Shortage(0.5, HOUR)})
        paid = pay(jobs, 8, peers.PEERS["no_wait"], cloud)
        later = paid.start_s[1] - HOUR - 600
        assert later >= 0 and later % cloud.cool_down_s == 0
        assert paid.usd == pytest.approx(1.5 * 7 / 6) or paid.usd == pytest.approx(8 * 7 / 6)
        assert (paid.refusals > 0) == (later > 0 or paid.usd > 2)


def test_offered_are_the_cheapest_types_with_their_prices_and_rates():
    both = offers.pools((offers.SPOT, ON_DEMAND))
    assert {each.each.gpus for each in both} == {1, 4, 8}
    cheapest = next(each for each in both if each.name == "g6.xlarge")
    assert cheapest.usd_per_hour == {"spot": 0.4104, ON_DEMAND: 0.8048}
    assert 0 < cheapest.interruptions_per_hour["spot"] < 0.01
    assert all(each.markets == (ON_DEMAND,) for each in offers.pools((ON_DEMAND,)))
    (kept,) = offers.reserved({"g6.48xlarge": 3}, 0.5)
    assert kept.prepaid_markets == kept.markets and len(kept.nodes) == 3
    assert kept.usd_per_hour == {"reservation": 13.3504 / 2}


def test_a_reservation_is_recommended_for_what_runs_most_of_the_time():
    kind = next(each for each in offers.pools((ON_DEMAND,)) if each.name == "g6.48xlarge")

    bills = [
        Bill("1", kind.name, "a", ON_DEMAND, from_s, to_s, 0.0, 0.0, 0.0, 1, False, False)
        for from_s, to_s in ((0, 10 * HOUR), (0, 5 * HOUR), (7 * HOUR, 8 * HOUR))
    ]
    played = SimpleNamespace(bills=bills)

    # at 0.43 of the price: the first one runs all of 10 h, the second one 6 of them, a third one never
    assert dollars.recommended(played, [kind], 0.0, 10 * HOUR, 0.43) == {kind.name: 2}
    assert dollars.recommended(played, [kind], 0.0, 10 * HOUR, 0.65) == {kind.name: 1}
    assert dollars.recommended(played, [kind], -20 * HOUR, 10 * HOUR, 0.43) == {}
    # what comes after that time isn't known then: 5 h of two, not 6
    assert dollars.recommended(played, [kind], 0.0, 7 * HOUR, 0.72) == {kind.name: 1}
    assert dollars.recommended(played, [kind], 0.0, 7 * HOUR, 0.71) == {kind.name: 2}


def test_it_prints_what_all_pay_and_the_ratios(tmp_path, capsys):
    random = np.random.default_rng(0)
    rows = zip(
        np.sort(random.integers(0, 60_000, 60)),
        random.integers(600, 20_000, 60),
        random.choice([1, 4, 8, 12], 60),
        strict=True,
    )
    file = tmp_path / "jobs.csv"
    file.write_text("submit_s,duration_s,num_gpus,vc\n" + "".join(f"{s},{d},{g},q\n" for s, d, g in rows))
    assert dollars.main(["--trace", str(file), "--pool-gpus", "16", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert "2026-07-20" in printed["prices"] and "2025-06-28" in printed["prices"] and "declared" in printed["prices"]
    for row in "abc":
        ours = printed[row]
        assert ours["usd"] > 0 and 0 <= ours["idle_usd"] <= ours["usd"] and 0 <= ours["boot_usd"] <= ours["usd"]
        assert printed["ratios"][row]["usd"] == pytest.approx(ours["usd"] / printed["starburst"]["usd"])
        assert printed["ratios"][row]["max_wait_h"] == pytest.approx(
            ours["max_wait_h"] / printed["starburst"]["max_wait_h"]
        )
    # a part of what is paid is paid in the last quarter, and some wait is the longest one
    for row in ("starburst", "no_wait", *"abc"):
        assert 0 < printed[f"{row} aside"]["usd"] < printed[row]["usd"]
        assert printed[f"{row} aside"]["max_wait_h"] <= printed[row]["max_wait_h"]
    assert printed["aside"]["a"]["usd"] == pytest.approx(printed["a aside"]["usd"] / printed["starburst aside"]["usd"])
    assert printed["b"]["usd"] < printed["a"]["usd"] and printed["a"]["interruptions"] == 0
    for wrong in (["--rows", "d"], ["--days", "5"], ["--days", "9-5"], ["--least-gpu-hours", "1e9"]):
        assert dollars.main(["--trace", str(file), *wrong]) == 2
        assert capsys.readouterr().err.startswith("benchmarks.dollars: --")
    assert dollars.main(["--trace", str(file), "--reserved", "g6.48xlarge"]) == 2
    assert "TYPE=N" in capsys.readouterr().err


def test_without_anything_to_reserve_the_third_row_is_the_second():
    jobs, played = trace(*[(hour, 5, 8) for hour in range(8)]), []

    def rows(reserve):
        played.clear()
        setting = dollars.Setting(16, ("b", "c"), reserve=reserve)

        def tell(row):
            return lambda *told: played.append(row) if len(told) == 1 else None

        return dollars.jitter_once(jobs, setting, 1, tell)

    without = rows({})
    assert without["c"] == without["b"] and without["b"]["usd"] > 0 and "c" not in played
    prepaid = rows({"g6.48xlarge": 1})
    assert prepaid["c"]["prepaid_usd"] > 0 and prepaid["b"]["usd"] == without["b"]["usd"] and played.count("c") == 1


def test_what_is_reserved_can_be_given():
    assert dollars._counts("g6.xlarge=3, g6.48xlarge=1") == {"g6.xlarge": 3, "g6.48xlarge": 1}
