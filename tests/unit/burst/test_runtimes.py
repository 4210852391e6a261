"""Run times learned online: intervals that hold what they say, the right group, nothing assumed known."""

import csv
import dataclasses
import json
import lzma
import math

import numpy as np
import pytest

from benchmarks import figures
from ironburst.burst import Job, Policy, Resources, decide, from_json, to_json
from ironburst.burst.limits import REFERENCE, Limits
from ironburst.burst.memory import Experience
from ironburst.burst.runtimes import COVERAGE, SAMPLES, Estimate, estimate, estimates, expected_s, learn, relevant
from tests.fakes import snapshots as base

LIMIT = 36000.0
DATA = figures.DATA / "philly_first70d.csv.xz"


def job(id=1, user="alice", account="", queue="home", limit_s=LIMIT, **more):
    values = {"state": "PENDING", "submit_s": 0.0, "nodes": 1, "each": Resources(8)} | more
    return Job(id=id, name="train", user=user, account=account, partitions=(queue,), time_limit_s=limit_s, **values)


def learned(ratios, experience=None, **who):
    experience = experience or Experience()
    for ratio in ratios:
        experience = learn(experience, job(**who), ratio * LIMIT)
    return experience


# ---- what is known


def test_nothing_is_known_before_anything_was_learned():
    assert estimate(Experience(), job()) == Estimate(LIMIT, 0.0, LIMIT, "limit")
    assert estimate(Experience(), job(limit_s=None)) is None
    assert estimate(Experience(), job(run_s=60.0)) == Estimate(60.0, 60.0, 60.0, "told")  # the job says so
    assert estimate(Experience(), job(limit_s=None, run_s=60.0), 90.0).median_s == 90.0


def test_the_most_specific_group_with_enough_samples_is_taken():
    experience = learned([0.5] * 20, user="bob", account="a", queue="q")
    assert estimate(experience, job(user="bob", account="b", queue="r")).of == "user:bob"
    assert estimate(experience, job(user="carol", account="a", queue="r")).of == "account:a"
    assert estimate(experience, job(user="carol", account="b", queue="q")).of == "queue:q"
    assert estimate(experience, job(user="carol", account="b", queue="r")).of == "all"
    assert estimate(learned([0.5] * 8), job()).of == "limit"  # eight samples can't hold 80% of anything
    assert estimate(experience, job(user="bob", limit_s=7200.0)).median_s == pytest.approx(3600.0, rel=1e-3)


def test_a_running_job_is_compared_with_those_that_ran_longer():
    experience = learned([0.1] * 30 + [0.8] * 20)
    fresh, later = estimate(experience, job()), estimate(experience, job(), 0.2 * LIMIT)
    assert fresh.low_s == pytest.approx(0.1 * LIMIT, rel=1e-3) and later.low_s == pytest.approx(0.8 * LIMIT, rel=1e-3)
    assert later.n == 20 and later.median_s == pytest.approx(0.8 * LIMIT, rel=1e-3)
    longest = estimate(experience, job(), 0.9 * LIMIT)  # longer than anything seen
    assert longest == Estimate(LIMIT, 0.9 * LIMIT, LIMIT, "limit")
    # over its limit, not ended yet
    assert estimate(experience, job(), 1.2 * LIMIT) == Estimate(*[1.2 * LIMIT] * 3, "limit")


def test_old_habits_are_forgotten():
    experience = learned([0.1] * 200 + [0.6] * 40)
    assert estimate(experience, job()).median_s == pytest.approx(0.6 * LIMIT, rel=1e-3)
    assert all(len(samples) == SAMPLES for samples in experience.ratios.values())


@pytest.mark.parametrize("ran_s", [0.0, -5.0, math.nan, math.inf])
def test_what_is_no_run_time_teaches_nothing(ran_s):
    assert learn(Experience(), job(), ran_s) == Experience()
    assert learn(Experience(), job(limit_s=None), 60.0) == learn(Experience(), job(limit_s=0.0), 60.0) == Experience()


def test_it_is_small_data_and_goes_through_json():
    experience = learned([0.3] * 20, learned([0.5] * 20), user="bob")
    assert from_json(Experience, json.loads(json.dumps(to_json(experience)))) == experience
    assert set(relevant(experience, [job(user="bob")]).ratios) == {"user:bob", "queue:home", "all"}
    assert len(json.dumps(to_json(experience)["ratios"]["all"])) <= 10 * SAMPLES


def test_many_jobs_at_once_get_the_same_answers():
    experience = learned(np.random.default_rng(0).uniform(0.01, 1, 60))
    jobs = [job(n, limit_s=60.0 * n) for n in range(1, 20)] + [job(20, state="RUNNING", on=("n1",), start_s=1000.0)]
    both = estimates(experience, jobs, 10000.0)
    assert both == {each.id: estimate(experience, each, 9000.0 if each.on else 0.0) for each in jobs}


# ---- whether the intervals hold


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.lognormal(-1.5, 1.2, n).clip(1e-4, 1),
        lambda rng, n: 1 / rng.uniform(2, 5, n),
        lambda rng, n: np.where(
            rng.random(n) < 0.4, 1.0, rng.uniform(0, 0.05, n) + 1e-4
        ),  # time-outs, and crashes at once
        lambda rng, n: 10 ** rng.uniform(-4, 0, n),
    ],
    ids=["lognormal", "2 to 5", "two kinds", "log-uniform"],
)
@pytest.mark.parametrize("running", [False, True], ids=["new", "running"])
def test_intervals_cover_what_they_say(draw, running):
    """A running job is looked at some time after its start, whatever its own length."""
    rng = np.random.default_rng(7)
    experience, held = Experience(), []
    for ratio in draw(rng, 2500):
        ran = float(10 ** rng.uniform(-4, 0)) if running else 0.0
        told = estimate(experience, job(), ran * LIMIT)
        if ratio > ran and told.of != "limit":
            held.append(told.low_s <= ratio * LIMIT * (1 + 1e-3) and ratio * LIMIT <= told.high_s * (1 + 1e-3))
        experience = learn(experience, job(), float(ratio) * LIMIT)
    assert len(held) > 600 and np.mean(held) >= COVERAGE - 0.03
    if not running:  # and isn't honest by being endless
        assert np.mean(held) <= 0.97


def online(stream):
    """(mean |ln(median / true)|, the same of the limit, share held) over (finish order) jobs: (user, account, limit_s,
    run_s).
    """
    experience, errors, naive, held = Experience(), [], [], []
    for user, account, limit_s, run_s in stream:
        submitted = job(user=user, account=account, limit_s=limit_s)
        told = estimate(experience, submitted)
        errors.append(abs(math.log(told.median_s / run_s)))
        naive.append(abs(math.log(limit_s / run_s)))
        held.append(told.low_s * 0.999 <= run_s <= told.high_s * 1.001)
        experience = learn(experience, submitted, run_s)
    return np.mean(errors), np.mean(naive), np.mean(held)


@pytest.mark.parametrize("depends", [True, False])
def test_a_factor_that_depends_on_the_queue_is_found_and_one_that_does_not_costs_nothing(depends):
    rng = np.random.default_rng(3)
    stream = []
    for n in range(3000):
        queue = "short" if rng.random() < 0.5 else "long"
        factor = (2.0 if queue == "short" else 5.0) if depends else 3.5
        run_s = 10 ** rng.uniform(2, 5)
        # users with too few jobs for an own group
        stream.append((f"user{n % 400}", queue, run_s * factor * rng.uniform(0.9, 1.1), run_s))
    error, naive, held = online(stream)
    assert naive > 1.1 and error < 0.08 and held >= COVERAGE - 0.03
    mixed = online([(user, "", limit_s, run_s) for user, _, limit_s, run_s in stream])[0]  # not told the queue
    assert mixed > 4 * error if depends else mixed == pytest.approx(error, rel=0.1)


@pytest.mark.skipif(not DATA.exists(), reason=f"no trace {DATA.name}: set IRONBURST_DATA")
@pytest.mark.parametrize("limits", ["2 to 5 times", "one a queue"])
def test_on_the_trace(limits):
    """Philly, 5,000 jobs in order of their end, learned by virtual cluster; a fixed limit a queue is the hardest case
    for a ratio.
    """
    with lzma.open(DATA, "rt") as file:
        rows = [(float(r["submit_s"]), float(r["duration_s"]), r["vc"]) for r in csv.DictReader(file)][:5000]
    rng = np.random.default_rng(5)
    rows.sort(key=lambda row: row[0] + row[1])
    limit = {"2 to 5 times": lambda run_s: run_s * rng.uniform(2, 5), "one a queue": lambda run_s: 40 * 86400.0}[limits]
    error, naive, held = online([("", vc, limit(max(run_s, 1.0)), max(run_s, 1.0)) for _, run_s, vc in rows])
    assert error < 0.4 * naive and held >= 0.75


# ---- in a decision


def test_a_decision_expects_jobs_to_end_as_those_before_them_did():
    late = base.job(1, user="bob", limit_s=7200.0)
    on_it = base.running(90, ["dgx1", "dgx2"], 10 * 3600 - 60, limit_s=36000.0, user="alice")
    policy = dataclasses.replace(base.POLICY, wait_limit_s=2 * 3600)
    known = learned([0.1] * 20, user="alice")
    assert decide(base.snapshot([on_it, late]), policy).launches
    waiting = decide(base.snapshot([on_it, late], experience=known), policy)
    assert waiting.launches == () and waiting.waits[0].start_s == pytest.approx(base.NOW - 60 + 3600, abs=20)
    others = learned([0.1] * 20, user="carol")  # of somebody else, but they tell of all
    assert decide(base.snapshot([on_it, late], experience=others), policy) == waiting
    told = dataclasses.replace(on_it, run_s=1800.0)
    assert decide(base.snapshot([told, late]), policy).waits[0].start_s == pytest.approx(base.NOW - 60 + 1800)


def test_the_size_of_a_job_is_what_it_is_expected_to_take_but_its_money_its_limit():
    limits = Policy(home_partition="home", wait_limit_s=0.0, limits=Limits(REFERENCE))
    job_s = base.job(1, limit_s=20 * 3600.0, submit_s=base.NOW - 2400)  # 160 GPU-hours at most
    busy = [base.running(90, ["dgx1", "dgx2"], 3 * 86400.0, limit_s=4 * 86400.0, run_s=4 * 86400.0)]
    short = learned([0.01] * 20, user="alice")  # 1.6 GPU-hours: its timer is over
    assert limits.limits.timer_s(1.6) < 2400
    decision = decide(base.snapshot([*busy, job_s], experience=short), limits)
    assert "1.6 GPU-hours" in decision.launches[0].reason
    boot_s, idle_s = 600.0, 300.0
    assert decision.launches[0].committed_until_s == base.NOW + boot_s + 20 * 3600 + idle_s


def test_a_late_verdict_needs_doubt_to_be_over():
    """Late if the running job takes its median, but not if it ends early: then it isn't rented for."""
    hours = np.arange(1, 21) / 2  # as long as jobs of hers ran: half an hour to ten
    experience = learned(hours / 10, user="alice")
    running = base.running(90, ["dgx1", "dgx2"], 9 * 3600, limit_s=36000.0, user="alice")
    running = dataclasses.replace(running, start_s=base.NOW - 3600)
    early_s, median_s = expected_s(experience, [running], base.NOW)[90], estimate(experience, running, 3600.0).median_s
    assert early_s < median_s - 3600
    waits = base.job(1, user="bob", limit_s=7200.0)

    def decided(limit_s):
        return decide(
            base.snapshot([running, waits], experience=experience),
            dataclasses.replace(base.POLICY, wait_limit_s=limit_s),
        )

    waited = base.NOW - waits.submit_s
    kept = decided(waited + median_s - 3600 - 600)
    assert kept.launches == () and kept.waits[0].start_s == pytest.approx(base.NOW + early_s - 3600)
    assert decided(waited + early_s - 3600 - 600).launches  # late even so


def test_told_run_times_leave_no_doubt():
    """What else was learned changes no decision then."""
    jobs = [
        base.running(90 + n, [name], 3600.0, user="alice", run_s=20000.0 + n) for n, name in enumerate(("dgx1", "dgx2"))
    ]
    jobs += [
        base.job(n, user="alice", limit_s=36000.0, run_s=1800.0 * n, submit_s=base.NOW - 3600) for n in range(1, 6)
    ]
    for policy in (base.POLICY, Policy("home", 0.0, limits=Limits(REFERENCE))):
        exact = decide(base.snapshot(jobs), policy)
        assert exact.waits
        for ratios in ([0.01] * 20, np.linspace(0.05, 1, 40)):
            assert decide(base.snapshot(jobs, experience=learned(ratios, user="alice")), policy) == exact


@pytest.mark.parametrize("seed", range(5))
def test_a_waiting_job_is_expected_at_the_median_a_running_one_early_among_those_of_its_group_that_ran_longer(seed):
    rng = np.random.default_rng(seed)
    experience, ran_of = Experience(), {}
    for n in range(200):
        ratio = float(rng.uniform(0.05, 0.8))
        ran_of.setdefault(f"u{n % 7}", []).append(ratio * LIMIT)
        experience = learn(experience, job(user=f"u{n % 7}", account=f"a{n % 3}"), ratio * LIMIT)
    now = 1e6
    waiting = [job(n, user=f"u{n}", account=f"a{n % 4}") for n in range(9)]
    expected = expected_s(experience, [*waiting, job(30, run_s=77.0), job(31, limit_s=None)], now)
    assert expected.pop(30) == 77.0
    assert expected == pytest.approx({one.id: estimate(experience, one).median_s for one in waiting})
    for ran_s in (100.0, 5000.0, 15000.0):
        running = job(1, user="u1", state="RUNNING", on=("x",), start_s=now - ran_s)
        longer = [each for each in ran_of["u1"] if each > ran_s]
        early_s = expected_s(experience, [running], now)[1]
        assert 0.1 <= np.mean([each < early_s * 0.999 for each in longer]) <= 0.4  # a quarter, but the young weigh more
    for outlived_s in (
        0.85 * LIMIT,
        1.2 * LIMIT,
    ):  # longer than anybody's: it may end at any moment, as its own group's do
        running = job(1, user="u1", state="RUNNING", on=("x",), start_s=now - outlived_s)
        assert expected_s(experience, [running], now)[1] == pytest.approx(outlived_s)
    # no group of its own has samples: as all
    alone = [job(n, user="new", account="new", queue=f"q{n}") for n in (1, 2)]
    assert expected_s(experience, alone, now)[1] == estimate(experience, alone[0]).median_s
    assert expected_s(learned([0.5] * 8), alone, now) == {}
