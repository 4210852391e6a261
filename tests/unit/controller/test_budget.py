"""Ceilings by day, month and account: in the policy, in the ledger, and held by the controller whatever goes another
way than planned.
"""

from dataclasses import replace

import pytest

from ironburst.burst import Budget, Decision, Launch, decide, from_json, to_json
from ironburst.burst.budget import Ceiling
from ironburst.burst.headroom import Headroom, charges
from ironburst.controller import clock_repair, records, spending
from ironburst.controller.apply import recheck
from ironburst.controller.ledger import Ledger
from ironburst.controller.money import counts_from_s, day, month
from ironburst.document import BudgetDocument as Declared
from ironburst.document import ClusterDocument
from ironburst.ports import LaunchRequest, Observation, SchedulerError, Uptime
from tests.fakes.snapshots import BUSY, NOW, POLICY, job, lease, pool, snapshot
from tests.fakes.world import World

DAY, HOUR = 86400.0, 3600.0
MIDNIGHT = day(NOW)[1]  # NOW is noon
MONTHLY = Declared(usd_per_month=9000.0)


def budget(month_usd=10000.0, day_usd=None, accounts=None, spent=0.0, days=3):
    """Nothing is set aside; `spent` today."""
    ceilings = [Ceiling("month", month_usd, *month(NOW), spent)]
    ceilings += [Ceiling("day", day_usd, *day(NOW + n * DAY), spent if n == 0 else 0.0) for n in range(days) if day_usd]
    ceilings += [Ceiling("month", usd, *month(NOW), account=name) for name, usd in (accounts or {}).items()]
    return Budget(month_usd, spent, 0.0, month(NOW)[1], day_usd, accounts or {}, tuple(ceilings))


def shot(jobs, money, **more):
    return replace(snapshot([*BUSY, *jobs], **more), budget=money)


# ---- the policy


def test_the_least_of_what_is_left_applies_and_the_waiting_job_says_which_ceiling_and_until_when():
    # (600 + 7200 + 300) s of spot at $20: $45 each
    decision = decide(shot([job(), job(2)], budget(day_usd=60.0)), POLICY)
    assert [launch.jobs for launch in decision.launches] == [(1,)]
    wait = next(each for each in decision.waits if each.job == 2)
    assert wait.code == "budget" and wait.look_again_s == MIDNIGHT
    assert (
        "would set aside $45.00, and $15.00 of the day's $60.00 (2026-11-21) is left ($0.00 spent, $45.00 set aside)"
        in wait.text
    )
    assert "until 2026-11-22 00:00:00Z" in wait.text
    assert len(decide(shot([job(), job(2)], budget(day_usd=90.0)), POLICY).launches) == 2


def test_each_day_pays_for_its_own_part():
    long = job(limit_s=36 * HOUR)
    pools = [pool(max_run_s=2 * DAY)]
    # 12 h today, a whole day tomorrow: $240, $480
    assert decide(shot([long], budget(day_usd=500.0), pools=pools), POLICY).launches
    assert decide(shot([long], budget(day_usd=500.0, spent=255.0), pools=pools), POLICY).launches
    late = decide(shot([long], budget(day_usd=500.0, spent=265.0), pools=pools), POLICY)
    assert late.launches == () and late.waits[-1].look_again_s == MIDNIGHT
    never = decide(shot([long], budget(day_usd=450.0), pools=pools), POLICY).infeasible[0]
    assert never.code == "over_budget"
    assert "at least $480.00, more than the whole of the day's $450.00" in never.text


def test_tomorrows_ceiling_blocks_what_runs_into_tomorrow():
    money = budget(day_usd=500.0)
    full = tuple(replace(each, committed_usd=490.0) if each.from_s == MIDNIGHT else each for each in money.ceilings)
    decision = decide(shot([job(limit_s=20 * HOUR), job(2, limit_s=5 * HOUR)], replace(money, ceilings=full)), POLICY)
    assert [launch.jobs for launch in decision.launches] == [(2,)]
    assert next(each for each in decision.waits if each.job == 1).look_again_s == MIDNIGHT + DAY


def test_an_account_with_a_ceiling_stops_at_it_and_others_do_not():
    jobs = [job(n, account=name) for n, name in enumerate(["vision", "vision", "speech"], 1)]
    decision = decide(shot(jobs, budget(accounts={"vision": 50.0})), POLICY)
    assert [(launch.jobs, launch.account) for launch in decision.launches] == [((1,), "vision"), ((3,), "")]
    text = next(each.text for each in decision.waits if each.job == 2)
    assert "$5.00 of account vision's $50.00 of the month is left" in text


def test_a_node_is_shared_by_jobs_of_one_payer_only():
    half = {"each": replace(job().each, gpus=4, cpus=1, memory_mb=500)}
    jobs = [job(1, account="vision", **half), job(2, account="speech", **half), job(3, account="vision", **half)]
    decision = decide(shot(jobs, budget(accounts={"vision": 500.0})), POLICY)
    assert sorted(launch.jobs for launch in decision.launches) == [(1, 3), (2,)]
    together = decide(shot(jobs, budget()), POLICY)
    assert sorted(launch.jobs for launch in together.launches) == [(1, 2), (3,)]


def test_who_takes_an_unused_node_over_pays_for_it_from_now_on():
    idle = replace(lease("p5-1"), account="vision", committed_until_s=NOW + 10 * HOUR)
    mine = job(1, account="speech", limit_s=HOUR, requeue=False)
    enough = shot([mine], budget(accounts={"vision": 900.0, "speech": 600.0}), leases=[idle])
    assigned = decide(enough, POLICY).assigns[0]
    assert assigned.account == "speech" and assigned.committed_usd == 0.0  # for all it is set aside already
    poor = decide(shot([mine], budget(accounts={"vision": 900.0, "speech": 400.0}), leases=[idle]), POLICY)
    # 1.25 h of a new one, not 10 h of this
    assert not poor.assigns and [launch.nodes for launch in poor.launches] == [("p5-2",)]


def test_a_snapshot_without_ceilings_is_read_and_decided_as_before():
    old = snapshot([*BUSY, job(), job(2)], budget=80.0)
    said = to_json(old)
    for name in ("usd_per_day", "accounts", "ceilings"):
        del said["budget"][name]
    assert decide(from_json(type(old), said), POLICY) == decide(old, POLICY)
    assert len(decide(old, POLICY).launches) == 1


def test_money_that_was_taken_meanwhile_drops_launches_and_assigns():
    nodes = ("p5-1",)
    launch = Launch("p5", ("a",), "spot", nodes, (1,), 20.0, NOW + HOUR, 20.0, "late", "vision")
    seen = Observation((job(1),), snapshot([]).nodes)
    for money, kept in (
        (budget(30.0), 1),
        (budget(10.0), 0),
        (budget(accounts={"vision": 19.0}), 0),
        (budget(day_usd=19.0), 0),
        (None, 0),
    ):
        checked, dropped = recheck(Decision(launches=(launch,)), seen, money, (), NOW)
        assert len(checked.launches) == kept and len(dropped) == 1 - kept
    held = lease("p5-1", jobs=(1,))
    before = decide(shot([job(1)], budget(), leases=[lease("p5-1")], pools=[pool(markets=("on-demand",))]), POLICY)
    assert before.assigns and before.widen
    checked, dropped = recheck(before, seen, budget(1.0), [held], NOW)
    assert not checked.assigns and not checked.widen and "is left" in dropped[0]


# ---- the ledger


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def slow(tmp_path):
    """The same with a tick of half a minute."""
    return World(tmp_path, tick_s=30)


def declared(world, **money):
    """The world's document with this budget."""
    said = world.document.model_dump(mode="json")
    said["budget"] |= money
    world.document = ClusterDocument.model_validate(said)


def add(ledger, node, from_s, to_s=None, account="", until_s=None, at=NOW):
    launch = Launch("p5", ("a",), "on-demand", (node,), (1,), 36.0, until_s or at, 0.0, "", account)
    ledger.add_launch(node, launch, "p5", "ami", boot_s=60, serial=1, now_s=at)
    to, more = (records.ENDED, {"to_s": to_s}) if to_s else (records.READY, {})
    ledger.move(ledger.leases_of(node), to, at, from_s=from_s, **more)


def test_the_ledger_counts_each_day_month_and_account_by_itself(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    add(ledger, "p5-1", NOW - 14 * HOUR, NOW - 2 * HOUR)  # since 22:00 of the day before
    add(ledger, "p5-2", NOW - HOUR, account="vision", until_s=MIDNIGHT + HOUR)
    declared = Declared(usd_per_month=9000.0, usd_per_day=1000.0, accounts={"vision": 900.0})
    counted = spending.budget(ledger, declared, NOW)
    kept = {(ceiling.kind, ceiling.account, ceiling.from_s): ceiling for ceiling in counted.ceilings}
    slack = records.CLOCK_S / HOUR * 36.0  # what is near to midnight counts on both days
    today = kept["day", "", day(NOW)[0]]
    assert today.spent_usd == pytest.approx(10 * 36 + slack + 36)
    assert today.committed_usd == pytest.approx(12 * 36 + slack)
    assert kept["day", "", MIDNIGHT].committed_usd == pytest.approx(36 + slack)
    assert kept["day", "", MIDNIGHT].spent_usd == 0
    assert kept["month", "", month(NOW)[0]].spent_usd == pytest.approx(13 * 36) == pytest.approx(counted.spent_usd)
    team = kept["month", "vision", month(NOW)[0]]
    assert (team.spent_usd, team.committed_usd) == (pytest.approx(36), pytest.approx(13 * 36))


def test_a_handed_over_lease_is_paid_by_its_new_account_from_then_on(tmp_path):
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    add(ledger, "p5-1", NOW, account="vision", until_s=NOW + HOUR)
    spending.assign(ledger, 2, ["p5-1/p5-1"], NOW + 3 * HOUR, NOW + HOUR, "speech")
    ledger.close()
    declared = Declared(usd_per_month=9000.0, accounts={"vision": 900.0, "speech": 900.0})
    counted = spending.budget(Ledger(path), declared, NOW + 2 * HOUR)  # durable
    spent = {ceiling.account: (ceiling.spent_usd, ceiling.committed_usd) for ceiling in counted.ceilings}
    assert spent == {"": (72, 36), "vision": (36, 0), "speech": (36, 36)}


def test_a_lease_of_an_older_ironburst_keeps_what_it_has_cost(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    add(ledger, "p5-1", NOW, until_s=NOW + 2 * HOUR)
    ledger._db.execute("DROP TABLE rates")
    assert spending.budget(Ledger(tmp_path / "ledger.sqlite", read_only=True), MONTHLY, NOW + HOUR).spent_usd == 36.0
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.rate("p5-1/p5-1", NOW + HOUR, "", 72.0)
    assert spending.budget(ledger, MONTHLY, NOW + 2 * HOUR).spent_usd == pytest.approx(36 + 72)


def test_a_clock_that_is_put_back_uncounts_no_money(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    add(ledger, "p5-1", NOW, until_s=NOW + 2 * HOUR)
    clock_repair.tick_began(ledger, NOW + HOUR, 10.0, Uptime("before", 5000.0))
    before = spending.budget(ledger, MONTHLY, NOW + HOUR)
    clock_repair.tick_began(ledger, NOW + HOUR - 200, 10.0, Uptime("after", 20.0))
    after = spending.budget(ledger, MONTHLY, NOW + HOUR - 200)
    assert after.spent_usd - before.spent_usd == pytest.approx(0.1)  # a tick
    assert after.spent_usd + after.committed_usd == pytest.approx(before.spent_usd + before.committed_usd)


def test_a_clock_that_is_put_back_while_the_controller_is_away_uncounts_no_money(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    add(ledger, "p5-1", NOW, until_s=NOW + 2 * HOUR)
    clock_repair.tick_began(ledger, NOW, 10.0, Uptime("boot", 5000.0))
    clock_repair.tick_began(ledger, NOW + 300 - 200, 10.0, Uptime("boot", 5300.0))
    assert spending.budget(ledger, MONTHLY, NOW + 100).spent_usd == pytest.approx(36 * 300 / HOUR)
    clock_repair.tick_began(ledger, NOW + 110, 10.0, Uptime("boot", 5310.0))
    assert spending.budget(ledger, MONTHLY, NOW + 110).spent_usd == pytest.approx(36 * 310 / HOUR)  # once
    ledger.note("clock", repr(NOW + 110))  # as an older ironburst wrote it
    assert clock_repair.tick_began(ledger, NOW + 120, 10.0, Uptime("boot", 5320.0)) == NOW + 110
    assert spending.budget(ledger, MONTHLY, NOW + 120).spent_usd == pytest.approx(36 * 320 / HOUR)


# ---- the controller


def test_a_day_ceiling_holds_in_the_controller_and_lifts_at_midnight(world):
    declared(world, usd_per_day=30.0)
    world.fill_home(limit_s=2 * DAY)
    world.clock.at = MIDNIGHT - 2 * HOUR
    for _ in range(3):
        world.slurm.submit(limit_s=1800, runs_s=1500)  # (120 + 1800 + 60 + 420) s of spot at $24: $16.00 each
    world.tick()
    assert len(world.cloud.requests) == 1
    world.clock.at = MIDNIGHT + records.CLOCK_S + 60
    world.tick()
    assert len(world.cloud.requests) > 1


def test_a_job_that_runs_past_its_money_is_ended_only_if_no_money_is_left(slow):
    declared(slow, usd_per_month=20.0)
    slow.fill_home(limit_s=9 * HOUR)
    job = slow.slurm.submit(limit_s=600, runs_s=9 * HOUR)  # $8.00 are set aside: Slurm lets it run on
    slow.until(lambda: "ready" in slow.states(), 120)
    slow.until(lambda: slow.clock.now() > slow.ledger.leases()[0].committed_until_s + 60, 1500, 10)
    assert slow.slurm.state(job) == "RUNNING"  # others don't need the money
    slow.until(lambda: slow.slurm.state(job) == "PENDING", 3000)
    assert "the month's $20.00 is used up" in slow.events("interrupted")[0]
    slow.until(lambda: not slow.cloud.alive(), 120)
    assert 17.0 < spending.budget(slow.ledger, Declared(usd_per_month=20.0), slow.clock.now()).spent_usd <= 20.0


@pytest.mark.parametrize("what", ["price", "ceiling"])
def test_what_is_declared_anew_holds_for_what_is_rented(slow, what):
    slow.fill_home(limit_s=9 * HOUR)
    job = slow.slurm.submit(limit_s=4 * HOUR, runs_s=4 * HOUR, requeue=False)  # on demand: $55.04 an hour
    slow.until(lambda: slow.slurm.state(job) == "RUNNING", 120)
    said = slow.document.model_dump(mode="json")
    if what == "price":
        said["pools"][0]["usd_per_hour"]["on-demand"], said["budget"]["usd_per_month"] = 110.08, 300.0
    else:
        said["budget"]["usd_per_month"] = 100.0
    slow.document = ClusterDocument.model_validate(said)
    slow.tick(3)
    assert slow.slurm.state(job) == "RUNNING"  # not yet: it may end early
    slow.until(lambda: slow.slurm.state(job) == "NODE_FAIL", 3 * HOUR, 30)
    slow.until(lambda: not slow.ledger.leases(), 120)
    spent = spending.budget(slow.ledger, Declared(usd_per_month=0.0), slow.clock.now()).spent_usd
    usd = said["budget"]["usd_per_month"]
    assert usd * 0.85 < spent <= usd


def test_without_the_scheduler_a_ceiling_is_held_all_the_same(world, monkeypatch):
    declared(world, usd_per_month=20.0)
    world.fill_home(limit_s=9 * HOUR)
    world.slurm.submit(limit_s=600, runs_s=9 * HOUR)
    world.until(lambda: "ready" in world.states(), 60)

    def gone():
        raise SchedulerError("slurmctld does not answer")

    monkeypatch.setattr(world.slurm, "observe", gone)
    began = world.clock.now()
    while world.cloud.alive() and world.clock.now() < began + 2 * HOUR:
        with pytest.raises(SchedulerError):
            world.controller.tick(world.document)
        world.clock.at += 10
    spent = (world.clock.now() - began) / HOUR * 24
    assert not world.cloud.alive() and 15 < spent <= 20 and world.events("needs_a_person")
    monkeypatch.undo()
    world.until(lambda: not world.ledger.leases(), 600)


def test_an_instance_that_lives_on_is_paid_for(world, monkeypatch):
    world.fill_home()
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 60)
    monkeypatch.setattr(world.cloud, "terminate", lambda ids: set())
    world.until(lambda: world.states() == [records.TERMINATED], 300)
    world.tick(100)
    monkeypatch.undo()
    world.until(lambda: not world.ledger.leases(), 300)
    assert not world.cloud.alive()
    (only,) = world.ledger.leases(open_only=False)
    assert only.to_s - only.from_s > 200 + 60


def test_one_that_lives_on_until_nobody_looked_is_paid_for_until_it_is_gone(world, monkeypatch):
    """The provider took the call but didn't say that it ends, and it was gone before the next look."""
    world.fill_home()
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 60)
    real = world.cloud.terminate
    monkeypatch.setattr(world.cloud, "terminate", lambda ids: set(real(ids)) - set(ids))
    world.until(lambda: world.states() == [records.TERMINATED], 300)
    called = world.clock.now()
    world.clock.at += 45
    world.until(lambda: not world.ledger.leases(), 300)
    assert world.ledger.leases(open_only=False)[0].to_s >= called + 45


def test_a_lost_answer_is_paid_for_from_the_first_call_on(world):
    world.cloud.lost_answers = 1
    world.fill_home()
    world.slurm.submit(limit_s=600)
    world.tick()
    asked = world.clock.now() - world.document.burst.tick_s
    money = spending.budget(world.ledger, Declared(usd_per_month=0.0), world.clock.now())
    assert world.states() == [records.REQUESTED] and money.spent_usd == pytest.approx(24 / 60)  # a minute at least
    assert money.committed_usd > 1200 / HOUR * 24 - 0.01
    world.clock.at += 100  # nobody is there
    world.until(lambda: world.states() != [records.REQUESTED], 60)
    (only,) = world.ledger.leases()
    assert only.from_s == pytest.approx(asked, abs=5)
    assert only.committed_until_s - only.from_s == pytest.approx(1200, abs=5)


def test_an_orphan_of_a_known_launch_is_counted(world):
    ledger = world.ledger
    ledger.add_launch(
        "lost", Launch("p5", ("a",), "spot", ("p5-3",), (7,), 24.0, NOW, 0.0, "", "vision"), "p5", "ami-1", 60, 1, NOW
    )
    ledger.move(ledger.leases_of("lost"), records.ENDED, NOW)
    world.cloud.launch(
        LaunchRequest("ib-x", "lost", "lab", "p5", "us-east-1a", "spot", 1, {}, "ami-1", '{"nodes": ["p5-3"]}')
    )
    world.clock.at += HOUR
    world.tick()
    assert not world.cloud.alive() and world.events("orphan")
    counted = spending.budget(ledger, Declared(usd_per_month=9000.0, accounts={"vision": 100.0}), world.clock.now())
    assert counted.spent_usd == pytest.approx(24.0, abs=0.1) == pytest.approx(counted.ceilings[-1].spent_usd, abs=0.1)


def test_funds_take_what_they_promise():
    funds = Headroom(budget(100.0, day_usd=50.0))
    asked = charges(funds.budget, "", 10.0, NOW, NOW + 4 * HOUR)
    assert funds.short(asked) is None
    funds.take(asked)
    ceiling, needed, left = funds.short(asked)
    assert (ceiling.kind, needed, left) == ("day", 40.0, 10.0)


def test_months_are_calendar_months():
    assert month(1_795_262_400.0) == (1_793_491_200.0, 1_796_083_200.0)  # November 2026
    december = month(1_797_000_000.0)
    assert december[1] - december[0] == 31 * 86400


def test_what_a_month_counts_begins_as_far_before_it_as_clocks_differ():
    start_s = month(NOW)[0]
    assert counts_from_s(NOW) == start_s - records.CLOCK_S
    assert counts_from_s(start_s + 1) == month(start_s - 1)[0] - records.CLOCK_S  # maybe it is the month before


def test_money_is_set_aside_for_the_jobs_that_run_though_slurm_started_them_on_each_others_nodes(tmp_path):
    """Two nodes join in one tick, and Slurm gives the shorter job the longer node (day 26 of three clouds)."""
    world = World(tmp_path, usd_per_month=1e6)
    world.fill_home()
    short = world.slurm.submit(limit_s=2 * HOUR, runs_s=2 * HOUR - 60)
    long = world.slurm.submit(limit_s=6 * HOUR, runs_s=6 * HOUR - 60)
    world.until(lambda: world.slurm.state(short) == world.slurm.state(long) == "RUNNING", 900)
    of = {job: world.slurm.jobs[job].job.on[0] for job in (short, long)}
    leases = {lease.node: lease for lease in world.ledger.leases()}
    until = {job: leases[of[job]].committed_until_s for job in of}
    assert until[short] < until[long]
    world.ledger.update([leases[of[short]]], committed_until_s=until[long])
    world.ledger.update([leases[of[long]]], committed_until_s=until[short])
    before = spending.budget(world.ledger, MONTHLY, world.clock.now()).committed_usd
    aside = MONTHLY.model_copy(
        update={"usd_per_month": before + world.ledger.leases()[0].usd(world.clock.now()) * 2 + 9}
    )
    world.document = world.document.model_copy(update={"budget": aside})
    world.tick()
    now = {lease.node: lease.committed_until_s for lease in world.ledger.leases()}
    assert {job: now[of[job]] for job in of} == until
    world.until(lambda: world.slurm.state(long) == "COMPLETED", 7 * HOUR, 60.0)
    assert all(len(world.slurm.jobs[job].started) == 1 for job in of)
