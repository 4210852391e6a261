"""A lease while it lives: what the policy sees of it, whom its time is charged to, and its bill."""

import pytest

from ironburst.burst import Job, Pool, Resources
from ironburst.replay.leases import LeasedRun, LiveLease

HOUR = 3600.0
JOB = Job(7, "", "ann", "PENDING", 0.0, 1, Resources(4), HOUR, ("home",), account="ml", requeue=False)


def lease(market="on-demand", **pool):
    told = {"boot_s": 600.0, "idle_s": HOUR, "max_run_s": 1e9, "min_billing_s": HOUR, "prepaid_markets": ("block",)}
    x8 = Pool("x8", "burst-x8", ("x8-0",), "x8", Resources(8), "", (market,), {market: 8.0}, ("a",), **(told | pool))
    return LiveLease("1/x8-0", "1", "x8-0", x8, "a", market, 8.0, 0.0, 9 * HOUR, waiting=[7])


def test_its_time_is_charged_by_the_gpu_seconds_of_its_jobs_while_any_is_on_it():
    live = lease()
    live.joined_s = 600.0
    live.begin(7, 4, 600.0)
    live.begin(8, 2, 600.0)
    assert live.free_gpus == 2 and live.seen().worked and live.seen().idle_since_s is None
    live.end(8, 600.0, 600.0 + HOUR)
    assert live.idle_since_s is None
    live.end(7, 600.0, 600.0 + 2 * HOUR)
    assert live.idle_since_s == live.seen().idle_since_s == 600.0 + 2 * HOUR
    assert live.charges() == {7: pytest.approx(16 * 8 / 10), 8: pytest.approx(16 * 2 / 10)}
    bill = live.bill(1200.0 + 2 * HOUR, interrupted=False)
    assert bill.usd == pytest.approx(8 * (2 + 1 / 3)) and bill.boot_usd == pytest.approx(8 / 6) and bill.jobs == 2
    assert bill.usd == pytest.approx(bill.boot_usd + bill.idle_usd + sum(live.charges().values()))


def test_one_that_is_never_used_pays_the_minimum_and_a_prepaid_one_its_time():
    assert lease().bill(60.0, interrupted=True).usd == pytest.approx(8.0) and lease().charges() == {}
    prepaid = lease("block").bill(60.0, interrupted=False)
    assert prepaid.prepaid and prepaid.usd == prepaid.boot_usd == pytest.approx(8 / 60)


def test_the_policy_sees_one_and_the_same_object_until_something_changes():
    live = lease()
    seen = live.seen()
    assert live.seen() is seen and seen.jobs == (7,)
    live.assign(8, 0.0)
    assert live.seen() is not seen and live.seen().jobs == (7, 8)


def test_a_job_on_leases_is_told_by_its_limit_and_saves_its_work_at_checkpoints():
    run = LeasedRun.of(JOB, [lease()], start_s=600.0, end_s=2000.0)
    assert (run.seen.state, run.seen.on, run.seen.partitions) == ("RUNNING", ("x8-0",), ("burst-x8",))
    assert run.seen.end_s == 600.0 + HOUR and (run.seen.account, run.seen.requeue) == ("ml", False)
    assert run.saved_s(1300.0, every_s=300.0) == 600.0 and run.saved_s(1300.0, every_s=0.0) == 0.0
