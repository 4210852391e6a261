"""A full disk, a damaged ledger, a fault of ours: rented nodes are given back all the same, and people are told."""

import sqlite3
from dataclasses import replace

import pytest

from ironburst.burst import Job
from ironburst.controller import loop, ownership, records, retention
from ironburst.controller.ledger_decisions import Wording
from ironburst.controller.loop import SystemClock
from ironburst.ports import LaunchRequest, OutcomeUnknown, SchedulerError
from tests.fakes.world import World

IDLE_S = 60  # the longest idle time of the fakes' pool


@pytest.fixture
def world(tmp_path):
    """A rented node with a short job on it."""
    world = World(tmp_path)
    world.fill_home(limit_s=86400.0)
    world.job = world.slurm.submit(limit_s=3600, runs_s=100)
    world.until(lambda: world.slurm.state(world.job) == "RUNNING", 120)
    return world


def fill_the_disk(world):
    """SQLite's own refusal: `database or disk is full`."""
    pages = world.ledger._db.execute("PRAGMA page_count").fetchone()[0]
    world.ledger._db.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(sqlite3.OperationalError, match="disk is full"):
        world.ledger.note("filler", "x" * 1_000_000)
    while True:  # what is left of its last pages
        try:
            world.ledger.event("filler", "x" * 50, world.clock.now())
        except sqlite3.OperationalError:
            return


def tick_badly(world, seconds, expected=sqlite3.Error):
    """Ticks that fail, but for those that find a place for the little that they write; the last failure."""
    end, last = world.clock.now() + seconds, None
    while world.clock.now() < end:
        try:
            world.controller.tick(world.document)
        except expected as error:
            last = error
        world.clock.at += world.document.burst.tick_s
    return last


def test_a_full_disk_ends_idle_nodes_and_no_job(world):
    fill_the_disk(world)
    tick_badly(world, 50)
    assert world.slurm.state(world.job) == "RUNNING" and world.cloud.alive()
    error = tick_badly(world, 100 + IDLE_S)
    assert world.slurm.state(world.job) == "COMPLETED" and world.cloud.alive() == []
    assert error and "a tick failed: OperationalError: database or disk is full" in loop.said(error)
    world.ledger._db.execute("PRAGMA max_page_count=1073741823")
    world.until(lambda: world.quiet() or not world.ledger.leases(), 600)
    assert len(world.slurm.jobs[world.job].started) == 1


def test_a_node_that_is_never_used_ends_too(tmp_path):
    world = World(tmp_path)
    world.fill_home()
    world.slurm.submit(limit_s=600)
    world.until(lambda: world.states() == [records.LAUNCHED], 60)
    world.ledger._db.execute("PRAGMA query_only=ON")
    assert tick_badly(world, world.document.pools[0].boot_s + 2 * IDLE_S)
    assert world.cloud.alive() == []


def test_a_ledger_that_takes_nothing_is_read_only_and_ends_idle_nodes(world):
    world.ledger._db.execute("PRAGMA query_only=ON")
    assert tick_badly(world, 100 + 2 * IDLE_S)
    assert world.cloud.alive() == []


def test_a_damaged_ledger_ends_idle_nodes(world):
    world.tick()
    world.ledger._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    world.ledger._db.execute("PRAGMA cache_size=0")
    size = world.path.stat().st_size
    with world.path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * (size - 100))
    assert tick_badly(world, 100 + 2 * IDLE_S)
    assert world.cloud.alive() == [] and world.slurm.state(world.job) == "COMPLETED"


def test_a_spot_notice_on_a_day_with_a_full_disk_puts_the_job_back(world):
    fill_the_disk(world)
    world.cloud.interrupt(world.ledger.leases()[0].instance_id)
    tick_badly(world, 6)
    assert world.slurm.jobs[world.job].job.restarts == 1 and world.cloud.queue != []


def test_a_fault_of_ours_runs_the_brake_and_is_told_and_the_loop_goes_on(world, monkeypatch):
    """A bug in the policy, for as long as it lasts."""

    def broken(*_):
        raise KeyError("nobody thought of this")

    monkeypatch.setattr("ironburst.controller.tick.decide", broken)
    clock, heard = SystemClock(), []

    def told(report):
        heard.append(report)
        world.clock.at += 20
        if len(heard) == 12:
            monkeypatch.undo()
        if len(heard) == 14:
            clock.stop()

    monkeypatch.setattr("ironburst.controller.loop.SystemClock.wait", lambda *_: False)
    loop.run(world.controller, clock, lambda: world.document, told)
    assert world.cloud.alive() == [] and [isinstance(each, KeyError) for each in heard] == [True] * 12 + [False] * 2
    (text,) = [text for text in world.events("needs_a_person") if "nobody thought of this" in text]
    assert "KeyError" in text and "test_brake.py" in text


def test_a_terminal_that_is_gone_and_a_full_disk_do_not_end_the_loop(world, monkeypatch):
    fill_the_disk(world)
    clock, calls = SystemClock(), []

    def told(report):
        calls.append(report)
        world.clock.at += 20
        if len(calls) == 12:
            clock.stop()
        raise BrokenPipeError

    monkeypatch.setattr("ironburst.controller.loop.SystemClock.wait", lambda *_: False)
    loop.run(world.controller, clock, lambda: world.document, told)
    assert world.cloud.alive() == []


def test_the_scheduler_is_out_of_reach_too_then_only_what_no_ceiling_pays_for_ends(world):
    fill_the_disk(world)

    def observe():
        raise SchedulerError("slurmctld does not answer")

    world.slurm.observe = observe
    for _ in range(20):
        with pytest.raises((sqlite3.Error, SchedulerError)):
            world.controller.tick(world.document)
        world.clock.at += 20
    assert world.cloud.alive(), "its job may still run"


def test_an_idle_node_that_is_given_a_job_at_that_moment_is_not_ended(world):
    """Drained first, then looked at again."""
    world.until(lambda: world.slurm.state(world.job) == "COMPLETED", 200)
    fill_the_disk(world)
    drain, node = world.slurm.drain, world.ledger.leases()[0].node

    def drain_late(nodes, reason):
        late = world.slurm.submit(limit_s=600, runs_s=600, partitions=("burst-p5",))
        assert world.slurm.jobs[late].job.on == (node,)
        world.slurm.drain = drain
        drain(nodes, reason)

    world.slurm.drain = drain_late
    tick_badly(world, 2 * IDLE_S)
    assert len(world.cloud.alive()) == 1


def test_a_name_that_is_no_text_stops_nothing(tmp_path):
    world = World(tmp_path)
    world.fill_home()
    odd = world.slurm.submit(limit_s=600, runs_s=60, name="caf\udce9 \ud83d")
    world.until(lambda: world.slurm.state(odd) == "COMPLETED", 600)
    assert world.ledger.job(odd).name == "caf? ?"


def test_one_unreadable_job_is_told_once(tmp_path):
    world = World(tmp_path)
    world.slurm.unreadable = ["job 7 in Slurm's JSON has a shape that isn't known"]
    world.tick(5)
    assert world.events("trouble") == world.slurm.unreadable
    world.slurm.unreadable = []
    world.tick()
    world.slurm.unreadable = ["job 7 in Slurm's JSON has a shape that isn't known"]
    world.tick()
    assert len(world.events("trouble")) == 2, "it was over, so it is news"


# ---- a clock that is wrong


def old_job(world):
    """A job that has left the queue long ago, but not too long."""
    job = Job(99, "old", "bob", "PENDING", world.clock.now(), 1, world.slurm.jobs[1].job.each, 60.0, ("home",))
    world.ledger.saw_jobs([job], world.clock.now())
    world.ledger.decided([(99, Wording("wait", "home", "home is free soon"))], world.clock.now())
    world.ledger.left_queue(99, world.clock.now())


def test_a_clock_a_year_ahead_deletes_and_ends_nothing(world):
    old_job(world)
    before = world.ledger.leases()
    world.clock.ahead_s = 365 * 86400.0
    for _ in range(5):
        with pytest.raises(Exception, match="expired"):
            world.controller.tick(world.document)
        world.clock.at += 10
    assert world.ledger.job(99) and world.ledger.decisions(99) and world.ledger.leases() == before
    world.clock.ahead_s = 0.0
    world.tick()
    assert world.ledger.job(99) and world.slurm.state(world.job) == "RUNNING" and len(world.cloud.alive()) == 1


def test_nothing_is_forgotten_before_the_cloud_has_answered(world):
    old_job(world)
    instances = world.cloud.instances

    def unreachable(cluster):
        raise OutcomeUnknown("no answer")

    world.cloud.instances = unreachable
    world.clock.at += 2 * retention.KEEP_S
    world.controller.tick(world.document)
    assert world.ledger.job(99) and world.ledger.decisions(99)
    world.cloud.instances = instances
    world.tick()
    assert world.ledger.job(99) is None


def test_a_machine_that_is_off_and_paid_for_is_ended_though_the_ledger_never_learnt_of_it(world):
    """In Azure a node that powers off is paid for until somebody deletes it (day 60 of three clouds)."""
    fill_the_disk(world)
    told = '{"nodes": ["p5-3"]}'
    launches = [
        LaunchRequest(f"ib-{owner}", owner, "lab", "p5", "us-east-1a", "spot", 1, {}, "ami-1", told, owner)
        for owner in (ownership.owner_of(world.ledger).id, "another site's")
    ]
    world.clock.at += 600
    off, theirs = (world.cloud.launch(each)[0].id for each in launches)
    for id in (off, theirs):
        world.cloud.all[id].instance = replace(world.cloud.all[id].instance, state="stopped")
    assert tick_badly(world, 30)
    assert not world.cloud.all[off].instance.alive
    assert {each.id for each in world.cloud.alive()} == {"i-1", theirs}


@pytest.mark.parametrize("ends", ["the brake", "its provider"])
def test_a_node_that_is_over_costs_no_more_while_the_disk_is_full(tmp_path, ends):
    """The ledger still has it as rented: day 188 of three clouds, where a ceiling seemed used up, and a job was put
    back.
    """
    world = World(tmp_path, markets=["on-demand"], usd_per_month=320.0)  # $294 are set aside
    world.fill_home(limit_s=86400.0)
    short = world.slurm.submit(limit_s=3600, runs_s=100 if ends == "the brake" else 3600)
    long = world.slurm.submit(limit_s=4 * 3600, runs_s=4 * 3600)
    world.until(lambda: {world.slurm.state(job) for job in (short, long)} == {"RUNNING"}, 300)
    world.ledger._db.execute("PRAGMA query_only=ON")
    if ends == "its provider":
        (node,) = world.slurm.jobs[short].job.on
        world.slurm.cancel(short)
        world.cloud.die(next(each.id for each in world.cloud.alive() if world.cloud.all[each.id].node == node), "gone")
    while world.slurm.state(long) == "RUNNING":
        assert tick_badly(world, 60)
    assert world.slurm.state(long) == "COMPLETED" and len(world.slurm.jobs[long].started) == 1
