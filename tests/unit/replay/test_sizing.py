"""How many nodes to own, reserve and rent."""

from dataclasses import replace

import numpy as np
import pytest

from ironburst.burst import Policy, Pool, Resources
from ironburst.replay import sizing
from ironburst.replay.home import Home
from ironburst.replay.provider import SimulatedCloud
from ironburst.replay.sizing import Prices, SizingError, WaitGoal, reservation
from ironburst.replay.traces import Trace

HOUR = 3600.0
POOL = Pool(
    "p5",
    "burst-p5",
    nodes=("p5-1",),
    instance_type="p5",
    each=Resources(8),
    gpu_type="h100",
    markets=("on-demand",),
    usd_per_hour={"on-demand": 1.0},
    zones=("a",),
    boot_s=600.0,
    idle_s=600.0,
    max_run_s=HOUR,
)
CLOUD, POLICY = SimulatedCloud((POOL,)), Policy("home", 2 * HOUR)


def steady(days=1.5, every_h=1.0, hours=4.0, gpus=8):
    """Jobs of a whole node, so that `hours / every_h` nodes are busy all the time."""
    submit = np.arange(0, days * 24 / every_h) * every_h * HOUR
    return Trace(submit, np.full(len(submit), hours * HOUR), np.full(len(submit), gpus))


def sized(trace=None, wanted=None, nodes=(0, 4), **prices):
    given = Prices(**{"owned": 1.0, "rented": 3.0} | prices)
    return sizing.size(trace or steady(), Home(1), POLICY, CLOUD, given, wanted or WaitGoal(), nodes)


def test_steady_work_is_owned_when_owning_is_cheap_and_rented_when_it_is_dear():
    assert sized().best.nodes == 4 and sized(owned=5.0).best.nodes == 0
    four, none = sized().candidates[1], sized().candidates[0]
    assert four.owned_usd == pytest.approx(8760 * 4 * 8 * 1.0) and four.rented_usd == 0 and four.waits.max_h == 0
    # the rented nodes boot and idle too: at least what the jobs ran, over a year
    assert none.rented_usd >= none.rented_gpu_hours * 3.0 == pytest.approx(36 * 32 * 3.0 * 8760 / 35)
    assert none.total_usd == none.owned_usd + none.reserved_usd + none.rented_usd


def test_a_job_without_a_time_limit_can_be_rented_for_with_the_longest_of_the_history():
    jobs = steady()
    some = np.where(np.arange(len(jobs)) % 2, np.nan, 5 * HOUR)
    all_of_them = replace(jobs, limit_s=np.full(len(jobs), 5 * HOUR))
    assert sized(replace(jobs, limit_s=some)).candidates == sized(all_of_them).candidates


def test_a_reservation_takes_what_is_always_rented_and_only_if_it_is_cheaper():
    none = sized(reserved=2.0).candidates[0]
    assert none.reserved_nodes == 4 and none.reserved_usd == pytest.approx(8760 * 4 * 8 * 2.0)
    assert none.rented_usd < sized().candidates[0].rented_usd
    assert sized(reserved=3.1).candidates[0].reserved_nodes == 0


def test_a_wanted_wait_rules_out_candidates_that_do_not_keep_it():
    answer = sized(wanted=WaitGoal(p95_h=0.01), nodes=(0, 1, 4))
    # a rented node takes 10 minutes to boot
    assert [candidate.kept for candidate in answer.candidates] == [False, False, True]
    assert answer.best.nodes == 4 and answer.candidates[0].patience == sizing.PATIENCE[-1]
    assert sized(wanted=WaitGoal(p95_h=0.01), nodes=(0,)).best is None


def test_the_most_patient_policy_that_keeps_the_wait_is_chosen():
    tight, loose = (sized(wanted=WaitGoal(p95_h=limit), nodes=(3,)).candidates[0] for limit in (1.5, 30.0))
    assert tight.kept and loose.kept and loose.patience > tight.patience and loose.rented_usd < tight.rented_usd


def test_candidates_lie_around_the_mean_use():
    answer = sizing.size(steady(days=1.1), Home(1), POLICY, CLOUD, Prices(1.0, 3.0), WaitGoal())
    counts = [candidate.nodes for candidate in answer.candidates]
    assert counts[0] == 0 and counts == sorted(set(counts)) and answer.mean_gpus == pytest.approx(32, rel=0.05)
    assert {4, 8} <= set(counts)


def test_reservations_by_hand():
    # one node all of 10 h, a second for 6 of them, a third for 2
    leases = [(0, 10 * HOUR, 1.0), (0, 6 * HOUR, 1.0), (HOUR, 3 * HOUR, 1.0)]
    assert reservation(leases, 10, None) == (0, 18.0)
    assert reservation(leases, 10, 0.5) == (2, 2.0)
    assert reservation(leases, 10, 0.7) == (1, 8.0)
    assert reservation([], 10, 0.5) == reservation([(HOUR, HOUR, 1.0)], 10, 0.5) == (0, 0.0)
    # a lease that outlasts the history makes no reservation worth it
    assert reservation([(0, 20 * HOUR, 1.0)], 10, 1.1) == (0, 20.0)


def test_a_reservation_takes_the_dearest_lease_of_each_moment():
    # spot all the time, and on demand for 5 of 10 h: the first node takes 5 h of each (19 USD), the second one 5 h of
    # spot (4)
    leases = [(0, 10 * HOUR, 0.8), (2 * HOUR, 7 * HOUR, 3.0)]
    assert reservation(leases, 10, 1.8) == (1, pytest.approx(4.0))
    assert reservation(leases, 10, 2.0) == (0, pytest.approx(23.0))
    assert reservation(leases, 10, 0.3) == (2, 0.0)


def test_a_sample_is_a_stretch_as_busy_as_the_whole():
    random = np.random.default_rng(1)
    submit = np.sort(random.uniform(0, 100 * HOUR, 1000))
    work = np.where(submit < 50 * HOUR, HOUR, 3 * HOUR)
    part = sizing.sample(Trace(submit, work, np.ones(1000, int)), 200)
    assert len(part) == 200 and set(part.duration_s) == {HOUR, 3 * HOUR}  # across the change: the mean of both halves
    assert sizing.sample(part, 500) is part


@pytest.mark.parametrize("wrong", [{"owned": 0.0}, {"rented": -1.0}, {"reserved": float("nan")}])
def test_a_price_that_is_none_is_refused(wrong):
    with pytest.raises(SizingError, match="allowed is more than 0"):
        Prices(**{"owned": 1.0, "rented": 1.0} | wrong)


def test_a_history_of_hours_or_a_negative_wait_is_refused():
    with pytest.raises(SizingError, match=r"within 11.0 h"):
        sized(steady(days=0.5))
    with pytest.raises(SizingError, match="p50_h is -1"):
        WaitGoal(p50_h=-1.0)
