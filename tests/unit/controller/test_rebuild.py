"""A ledger that is lost, or restored from a copy: the jobs run on, and no money is spent twice."""

import sqlite3
from contextlib import closing

import pytest

from ironburst.controller import rebuild, records, spending
from ironburst.controller.money import month
from ironburst.controller.ownership import STALE_S, heard_of
from ironburst.document import BudgetDocument as Declared
from ironburst.document import ClusterDocument
from tests.fakes import Crash
from tests.fakes.world import World

HOUR, DAY = 3600.0, 86400.0


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path, tick_s=30)
    said = made.document.model_dump(mode="json")
    said["budget"] |= {"usd_per_day": 5000.0, "accounts": {"vision": 9000.0}}
    made.document = ClusterDocument.model_validate(said)
    made.fill_home(limit_s=9 * DAY)
    return made


def lose(world):
    """The ledger is gone; a new one begins in its place."""
    world.ledger.close()
    for path in world.path.parent.glob("ledger.sqlite*"):
        path.unlink()
    world.start()


def copy(world, path):
    with closing(sqlite3.connect(path)) as other:
        world.ledger._db.backup(other)


def restore(world, path):
    lose(world)
    world.ledger.close()
    path.rename(world.path)
    world.start()


def copy_in(world, path, state):
    """A copy of the ledger from when its only lease was in another state."""
    copy(world, path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE leases SET state = ?", [state])
        if state in records.EARLY:
            other.execute("UPDATE leases SET instance_id = NULL, from_s = NULL, seen_s = NULL")
        if state == "requested":
            other.execute("UPDATE intents SET state = 'open'")
        other.commit()


def rented(world, runs_s=3 * HOUR, **more):
    """A job that runs on a rented node."""
    more = {"requeue": False, "account": "vision"} | more
    job = world.slurm.submit(limit_s=6 * HOUR, runs_s=runs_s, **more)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 600)
    return job


def bill(world, usd_per_hour=55.04):
    """What the cloud has counted."""
    now = world.clock.now()
    times = [((fake.ended_at or now) - fake.instance.launched_s) for fake in world.cloud.all.values()]
    return sum(max(time, 60) for time in times) / HOUR * usd_per_hour


def spent(world, account=None):
    money = spending.budget(world.ledger, Declared(usd_per_month=9e9, accounts={"vision": 9e9}), world.clock.now())
    return next(each.spent_usd for each in money.ceilings if each.account == (account or ""))


def spent_today(world):
    money = spending.budget(world.ledger, Declared(usd_per_month=9e9, usd_per_day=9e9), world.clock.now())
    return next(each.spent_usd for each in money.ceilings if each.kind == "day" and each.from_s <= world.clock.now())


def test_a_lost_ledger_gets_its_working_nodes_back_from_the_instances(world):
    job = rented(world)
    before = world.ledger.leases()[0]
    world.clock.at += HOUR
    world.tick()
    lose(world)
    world.tick()
    (lease,) = world.ledger.leases()
    assert (lease.node, lease.instance_id, lease.state) == (before.node, before.instance_id, records.READY)
    assert (lease.pool, lease.market, lease.zone, lease.usd_per_hour) == ("p5", "on-demand", "us-east-1a", 55.04)
    assert lease.from_s == world.cloud.alive()[0].launched_s and world.ledger.jobs_of(lease.id) == (job,)
    assert spent(world, "vision") == pytest.approx(bill(world), abs=1)
    assert lease.committed_until_s >= world.slurm.jobs[job].job.end_s
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 4 * HOUR, 120)
    assert len(world.slurm.jobs[job].started) == 1 and len(world.cloud.all) == 1
    world.until(lambda: not world.cloud.alive(), HOUR)


def test_a_new_ledger_elsewhere_waits_until_the_old_one_is_stale(world, tmp_path):
    job = rented(world)
    world.ledger.close()
    world.path = tmp_path / "elsewhere" / "ledger.sqlite"
    world.start()
    world.clock.at += STALE_S + 1
    world.tick()
    assert world.states() == [records.READY] and world.events("owner")
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 4 * HOUR, 120)
    assert len(world.slurm.jobs[job].started) == 1


def test_what_was_coming_up_is_reaped_and_paid_from_its_launch(world):
    world.cloud.boot_s = 9 * HOUR
    world.slurm.submit(limit_s=HOUR, requeue=False)
    world.until(lambda: world.cloud.alive(), 120)
    lose(world)
    world.slurm.cancel(2)
    world.until(lambda: not world.cloud.alive(), 900)
    world.tick()
    ended = [lease for lease in world.ledger.leases(open_only=False) if lease.instance_id == "i-1"]
    assert len(ended) == 1 and ended[0].from_s == world.cloud.all["i-1"].instance.launched_s
    assert spent(world) >= bill(world)


def test_a_second_full_budget_never_appears(world):
    said = world.document.model_dump(mode="json")
    said["budget"] = {"usd_per_month": 420.0}
    world.document = ClusterDocument.model_validate(said)
    job = rented(world, runs_s=5 * HOUR)
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 6 * HOUR, 120)
    world.until(lambda: not world.ledger.leases(), HOUR)
    before = spent(world)
    assert before > 275
    world.tick()
    lose(world)
    world.slurm.submit(limit_s=6 * HOUR, runs_s=5 * HOUR, requeue=False)
    world.tick(20)
    assert len(world.cloud.all) == 1 and spent(world) == pytest.approx(before, abs=1)
    assert "budget" in {row.code for row in world.ledger.decisions()}
    world.ledger.close()
    world.start()
    world.tick(3)
    lose(world)
    world.tick(3)
    assert spent(world) == pytest.approx(before, abs=1)  # carried once


def test_a_controller_that_dies_before_it_has_taken_it_over_loses_nothing(world, monkeypatch):
    job = rented(world, runs_s=HOUR)
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 3 * HOUR, 120)
    world.until(lambda: not world.ledger.leases(), HOUR)
    world.tick()
    before = spent(world)
    lose(world)

    def dies(*_, **__):
        raise Crash("in the middle of its first tick")

    with monkeypatch.context() as patch:
        patch.setattr(rebuild, "_settle", dies)
        with pytest.raises(Crash):
            world.tick()
    world.start()
    world.tick()
    assert before > 50 and spent(world) == pytest.approx(before, abs=1)


def test_what_is_carried_over_keeps_its_account_its_day_and_its_month(world):
    job = rented(world)
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 4 * HOUR, 120)
    world.until(lambda: not world.ledger.leases(), HOUR)
    world.clock.at += DAY
    other = rented(world, runs_s=HOUR, account="speech")
    world.until(lambda: world.slurm.state(other) == "COMPLETED", 4 * HOUR, 120)
    world.until(lambda: not world.ledger.leases(), HOUR)
    world.tick()
    before = spent(world), spent(world, "vision"), spent_today(world)
    assert before[0] > before[1] > before[2] > 55
    lose(world)
    world.tick()
    assert (spent(world), spent(world, "vision"), spent_today(world)) == pytest.approx(before, abs=1)
    assert "carried over" in world.events("needs_a_person")[0]
    lose(world)
    world.clock.at = month(world.clock.now())[1] + 2 * HOUR
    world.tick()
    assert spent(world) == 0  # of last month


def test_a_restored_ledger_interrupts_no_present_job(world, tmp_path):
    first = rented(world)
    old = world.ledger.leases()[0]
    copy(world, tmp_path / "copy")
    world.until(lambda: world.slurm.state(first) == "COMPLETED", 4 * HOUR, 120)
    world.until(lambda: not world.ledger.leases(), HOUR)
    world.clock.at += DAY
    second = rented(world)
    world.clock.at += HOUR
    world.tick()
    node = world.ledger.leases()[0].node
    assert old.node == node
    restore(world, tmp_path / "copy")
    world.tick()
    (lease,) = world.ledger.leases()
    assert (lease.node, lease.instance_id, lease.state) == (node, "i-3", records.READY) and old.instance_id == "i-1"
    assert spent(world) == pytest.approx(bill(world), abs=2)
    world.until(lambda: world.slurm.state(second) == "COMPLETED", 4 * HOUR, 120)
    assert len(world.slurm.jobs[second].started) == 1 and world.slurm.forced == []
    assert spent(world) == pytest.approx(bill(world), abs=2)


def test_a_job_that_got_its_node_after_the_copy_is_nobody_elses(world, tmp_path):
    first = rented(world)
    copy(world, tmp_path / "copy")
    second = world.slurm.submit(limit_s=HOUR, runs_s=1800, account="vision")
    world.until(lambda: world.slurm.state(second) == "RUNNING", 4 * HOUR)
    assert "p5" in world.slurm.jobs[second].job.on[0]
    restore(world, tmp_path / "copy")
    world.tick()
    assert not [text for text in world.events("needs_a_person") if "nothing was rented for it" in text]
    lease = next(lease for lease in world.ledger.leases() if lease.node == world.slurm.jobs[second].job.on[0])
    assert lease.state == records.READY and second in world.ledger.jobs_of(lease.id)
    world.until(lambda: world.slurm.state(second) == "COMPLETED", 4 * HOUR, 120)
    assert len(world.slurm.jobs[second].started) == 1 and world.slurm.state(first) in ("COMPLETED", "RUNNING")


def test_a_job_that_got_a_known_node_after_the_copy_has_money_set_aside(world, tmp_path):
    """Past its time in the copy, the lease was the first to go when the month was short of some cents."""
    said = world.document.model_dump(mode="json")
    first = rented(world, runs_s=1800)
    copy(world, tmp_path / "copy")
    world.until(lambda: world.slurm.state(first) == "COMPLETED", HOUR)
    second = world.slurm.submit(limit_s=8 * HOUR, runs_s=7.5 * HOUR, account="vision", requeue=False)
    world.until(lambda: world.slurm.state(second) == "RUNNING", 4 * HOUR)
    assert len(world.cloud.all) == 1, "the lease is used again"
    restore(world, tmp_path / "copy")
    world.tick()
    (lease,) = world.ledger.leases()
    assert lease.committed_until_s >= world.slurm.jobs[second].job.end_s
    world.until(lambda: world.clock.now() > lease.from_s + 7 * HOUR, 8 * HOUR, 120)
    money = spending.budget(world.ledger, Declared(usd_per_month=9e9), world.clock.now())
    said["budget"]["usd_per_month"] = money.spent_usd + money.committed_usd - 0.5
    world.document = ClusterDocument.model_validate(said | {"serial": said["serial"] + 1})
    world.until(lambda: world.slurm.state(second) == "COMPLETED", 4 * HOUR, 120)
    assert len(world.slurm.jobs[second].started) == 1 and world.slurm.forced == []


@pytest.mark.parametrize("kept", ["a copy", "nothing"])
@pytest.mark.parametrize("away_s", [1200.0, 9 * HOUR])
def test_what_ran_on_while_no_controller_looked_is_paid(world, tmp_path, kept, away_s):
    """The last controller's claim says what ran; that it has ended meanwhile, and when, nothing shows any more."""
    job = rented(world, runs_s=2 * HOUR)
    copy(world, tmp_path / "copy")
    world.clock.at += HOUR
    world.tick()
    set_aside = world.ledger.leases()[0].committed_until_s
    before, said_s = bill(world), world.clock.now()
    world.clock.at += away_s - 900
    (instance,) = world.cloud.alive()
    world.cloud.die(instance.id)
    world.clock.at += 900
    world.slurm.live()
    del world.cloud.all[instance.id]  # as EC2, an hour later
    restore(world, tmp_path / "copy") if kept == "a copy" else lose(world)
    world.tick()
    ran_on_s = min(world.clock.now(), set_aside) - said_s
    assert spent(world) == pytest.approx(before + ran_on_s / HOUR * 55.04, abs=2)
    assert spent(world, "vision") == pytest.approx(spent(world)) and world.slurm.jobs[job].started


def test_what_a_copy_takes_for_running_and_the_cloud_shows_as_ended_is_paid_once(world, tmp_path):
    """It is shown ended for an hour more: that is no sign of life. When it ended is in what was said (day 180)."""
    job = rented(world, runs_s=HOUR)
    copy(world, tmp_path / "copy")
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 2 * HOUR)
    world.until(lambda: not world.ledger.leases(), HOUR)
    before = spent(world)
    world.clock.at += 2400
    world.tick()
    assert world.cloud.instances("lab"), "it is still shown"
    restore(world, tmp_path / "copy")
    world.tick()
    assert spent(world) == pytest.approx(before, abs=1) and before >= bill(world) - 1


@pytest.mark.parametrize("arrived", ["it ended unseen", "it lives", "the copy knows of the call"])
def test_a_call_without_an_answer_is_counted_when_the_ledger_is_lost(world, tmp_path, arrived):
    """The disk was full when the answer came, and the ledger is lost before the next one (day 381)."""
    world.cloud.lost_answers = 1
    world.slurm.submit(limit_s=6 * HOUR, runs_s=3 * HOUR, requeue=False, account="vision")
    world.until(lambda: world.states() == ["requested"], 600)
    world.cloud.hidden = set(world.cloud.all)
    asked_s = world.clock.now()
    world.tick()
    copy(world, tmp_path / "copy")
    (said,) = heard_of(world.slurm.claim("", "", STALE_S)).running
    assert not said.instance and said.asked_s == pytest.approx(asked_s, abs=60)
    world.clock.at += 1800
    if arrived == "it ended unseen":
        world.cloud.die("i-1")
    else:
        world.cloud.hidden.clear()
    restore(world, tmp_path / "copy") if arrived == "the copy knows of the call" else lose(world)
    world.tick()
    world.until(lambda: not world.cloud.alive() or world.slurm.jobs[2].job.on, HOUR)
    assert bill(world) - 1 <= spent(world, "vision") <= bill(world) + 2


@pytest.mark.parametrize("state", ["intended", "powering", "requested", "launched", "joined", "releasing", "leaving"])
def test_whatever_a_restored_ledger_was_about_the_present_job_runs_on(world, tmp_path, state):
    first = rented(world)
    copy_in(world, tmp_path / "copy", state)
    world.tick()
    restore(world, tmp_path / "copy")  # and the instance is still the same
    world.tick(3)
    same = state not in ("releasing", "leaving")  # these had begun
    assert world.slurm.state(first) == "RUNNING" or not same
    assert not same or [lease.instance_id for lease in world.ledger.leases()] == ["i-1"]


@pytest.mark.parametrize("state", ["intended", "powering", "requested", "launched", "joined", "releasing", "leaving",
                                   "interrupted", "terminated"])  # fmt: skip
@pytest.mark.parametrize("spool", [True, False])
def test_another_instance_is_none_of_a_restored_leases_business(world, tmp_path, state, spool):
    first = rented(world)
    copy_in(world, tmp_path / "copy", state)
    world.until(lambda: world.slurm.state(first) == "COMPLETED", 5 * HOUR, 120)
    world.until(lambda: not world.ledger.leases(), HOUR)
    world.clock.at += 2 * HOUR
    second = rented(world)
    world.clock.at += HOUR
    world.tick()
    restore(world, tmp_path / "copy")
    if not spool:
        world.slurm.claimed = None
    world.tick(3)
    assert world.slurm.state(second) == "RUNNING" and world.slurm.forced == []
    assert "i-3" in [lease.instance_id for lease in world.ledger.leases()]
    world.until(lambda: world.slurm.state(second) == "COMPLETED", 4 * HOUR, 120)
    assert len(world.slurm.jobs[second].started) == 1
    world.until(lambda: not world.cloud.alive() and not world.ledger.leases(), HOUR)
    # the ledger, or else the spool, must have known of the first one
    assert spent(world) >= bill(world) - 1 or (not spool and state in records.EARLY)


def test_without_ledger_and_spool_what_is_still_shown_is_paid_from_its_launch(world):
    job = rented(world)
    world.clock.at += HOUR
    world.tick()
    lose(world)
    world.slurm.claimed = None
    world.tick()
    assert spent(world, "vision") == pytest.approx(bill(world), abs=1)
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 4 * HOUR, 120)
    assert len(world.slurm.jobs[job].started) == 1


def test_a_node_that_does_not_answer_yet_keeps_its_job_and_gets_its_lease_when_it_does(world):
    """slurmctld has restarted: every node is silent for a moment."""
    job = rented(world)
    name = world.ledger.leases()[0].node
    world.clock.at += HOUR
    world.tick()
    lose(world)
    world.slurm.nodes[name].states |= {"NOT_RESPONDING"}
    world.tick(3)
    assert world.states() == [] and world.slurm.state(job) == "RUNNING" and len(world.cloud.alive()) == 1
    world.slurm.nodes[name].states -= {"NOT_RESPONDING"}
    world.tick()
    assert world.states() == [records.READY]


@pytest.mark.parametrize(("reason", "state"), [("no lease", records.JOINED), ("fan is loud", records.READY)])
def test_a_drained_node_without_a_lease_waits_behind_our_drain_or_keeps_a_persons(world, reason, state):
    job = rented(world)
    name = world.ledger.leases()[0].node
    world.clock.at += HOUR
    world.tick()
    lose(world)
    world.slurm.cancel(job)
    world.slurm.drain([name], reason)
    world.tick()
    (text,) = [text for text in world.events("needs_a_person") if "i-1" in text]
    assert text.endswith(f"it has one again, {state}")
    world.until(lambda: not world.cloud.alive(), HOUR)
