"""The ledger as a file: what it refuses, what a transaction leaves, what is forgotten. And who may write it."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ironburst.burst import Job, Launch, Resources
from ironburst.controller import lock, retention, schema
from ironburst.controller.job_story import gather
from ironburst.controller.ledger import Ledger, LedgerError
from ironburst.controller.ledger_decisions import Wording
from ironburst.controller.records import GpuUse
from ironburst.controller.retention import KEEP_S
from tests.fakes.world import World
from tests.postgresql import ledger_path as ledger_path


def test_a_damaged_or_newer_ledger_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "bad").write_bytes(b"no database at all, but long enough to be looked at" * 10)
    with pytest.raises(LedgerError, match="can't be used as a ledger"):
        Ledger(tmp_path / "bad")
    Ledger(tmp_path / "new").close()
    db = sqlite3.connect(tmp_path / "new")
    db.execute("UPDATE meta SET value = '9'")
    db.commit()
    with pytest.raises(LedgerError, match="version 9; this ironburst reads version 1: start the"):
        Ledger(tmp_path / "new")


def test_a_reader_of_a_ledger_that_is_being_made_is_told_so(tmp_path):
    """The file is there before its tables; those of an older ironburst were made one by one."""
    (tmp_path / "empty").touch()
    with pytest.raises(LedgerError, match="empty is being made: ask again"):
        Ledger(tmp_path / "empty", read_only=True)
    Ledger(tmp_path / "half").close()
    db = sqlite3.connect(tmp_path / "half")
    db.execute("DELETE FROM meta WHERE key = 'version'")
    db.execute("DROP TABLE cool_downs")
    db.commit()
    db.close()
    with pytest.raises(LedgerError, match="half is being made: ask again"):
        Ledger(tmp_path / "half", read_only=True)
    Ledger(tmp_path / "half").close()  # the controller goes on
    assert Ledger(tmp_path / "half", read_only=True).all_cool_downs() == []


def test_a_ledgers_tables_come_at_once(tmp_path, monkeypatch):
    """Whoever is killed while they are made leaves none of them."""
    monkeypatch.setattr(schema, "VERSION", object())  # SQLite takes no such value: the last statement fails
    with pytest.raises(sqlite3.Error):
        schema.apply(db := sqlite3.connect(tmp_path / "new", isolation_level=None))
    db.close()
    assert sqlite3.connect(tmp_path / "new").execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_a_failed_transaction_leaves_nothing(ledger_path):
    ledger = Ledger(ledger_path)
    with pytest.raises(RuntimeError), ledger.transaction():
        ledger.event("x", "y", 1.0)
        raise RuntimeError
    assert ledger.events() == []


def test_what_cost_no_money_is_forgotten_after_a_season(ledger_path):
    ledger, day = Ledger(ledger_path), 86400.0
    launch = Launch("p5", ("a",), "spot", ("p5-1",), (2,), 20.0, 9000.0, 50.0, "late")
    ledger.add_launch("l1", launch, "p5.48xlarge", "ami", boot_s=600.0, serial=1, now_s=0.0)
    for number in (1, 2, 3):
        ledger.saw_jobs([Job(number, "train", "ann", "PENDING", 0.0, 1, Resources(8), 3600.0, ("home",))], 0.0)
        ledger.decided([(number, Wording("wait", "home_soon", "it waits"))], 0.0)
    for number in (1, 2):
        ledger.left_queue(number, day)
    ledger.event("trouble", "no answer", day)
    ledger.event("joined", "it is there", day, launch="l1")
    retention.forget_old(ledger, KEEP_S)
    assert ledger.job(1) and len(ledger.events()) == 2
    retention.forget_old(ledger, KEEP_S + 1.5 * day)
    assert ledger.job(1) is None and ledger.decisions(1) == []
    assert [event.kind for event in ledger.events()] == ["joined"]
    assert ledger.job(2) and ledger.decisions(2)[-1].text == "it waits"  # a node was rented for it
    assert ledger.job(3) and ledger.decisions(3)  # it is still in the queue
    assert ledger.events_of(2, ["l1"]) == ledger.events()


def test_the_lock_ends_with_its_process(tmp_path):
    code = f"import sys; sys.path.insert(0, {str(Path.cwd())!r})\nfrom ironburst.controller import lock\n"
    code += f"with lock.held({str(tmp_path / 'l')!r}):\n    print('held', flush=True); sys.stdin.read()\n"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with pytest.raises(lock.LockedError, match=f"process {process.pid} "), lock.held(tmp_path / "l"):
        pass
    process.kill()
    process.wait()
    with lock.held(tmp_path / "l"):
        pass


def test_the_lock_is_held_on_a_full_disk_too(tmp_path):
    """Else the controller couldn't start there, and nobody would give nodes back."""
    code = "import resource, signal\nfrom ironburst.controller import lock\n"
    code += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    code += f"with lock.held({str(tmp_path / 'l')!r}):\n    print('held')\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "held\n"), done.stderr


def test_a_reader_leaves_nothing_beside_a_ledger_that_nobody_has_open(tmp_path):
    """SQLite would make its log anew: a reader may not, or leaves files that the controller may not write."""
    path = tmp_path / "ledger.sqlite"
    Ledger(path).close()
    path.chmod(0o440)
    before = sorted(tmp_path.iterdir())
    reader = Ledger(path, read_only=True)
    assert reader.leases() == [] and sorted(tmp_path.iterdir()) == before == [path]
    reader.close()


def test_a_reader_beside_a_controller_sees_what_it_has_just_written(ledger_path):
    writer = Ledger(ledger_path)
    writer.note("key", "one")
    reader = Ledger(ledger_path, read_only=True)
    writer.note("key", "two")
    assert reader.noted("key") == "two"


def test_the_newest_decision_of_each_job_that_waits(ledger_path):
    ledger = Ledger(ledger_path)
    for id, state in ((1, "PENDING"), (2, "RUNNING"), (3, "PENDING")):
        ledger.saw_jobs([Job(id, "train", "ann", state, 0.0, 1, Resources(8), 3600.0, ("home",))], 1.0)
    for id in (1, 2, 1, 3):
        ledger.decided([(id, Wording("wait", f"code{id}", "first"))], 1.0)
    ledger.decided([(1, Wording("wait", "other", "second"))], 2.0)
    assert {id: row.text for id, row in ledger.last_decisions().items()} == {1: "second", 3: "first"}
    assert [row.job for row in ledger.newest_decisions(2)] == [1, 3]


def test_gpus_are_added_up_by_the_quarter_of_an_hour_and_nobody_looked_for_longer_than_one(ledger_path):
    ledger = Ledger(ledger_path)
    looks = [(10.0, 8), (40.0, 8), (900.0, 4), (930.0, 2), (800.0, 1), (9000.0, 1), (9030.0, 3)]
    for at_s, gpus in looks:  # one after a clock that was set back, one after hours
        ledger.saw_gpus(GpuUse(gpus, 0, 10 * gpus), at_s)
    known = [(row.quarter, row.last_s, row.seen_s, row.home, row.rented, row.waiting) for row in ledger.gpu_use(0.0)]
    assert known == [
        (0, 800.0, 890.0, 8 * 30 + 4 * 860, 0.0, 10 * (8 * 30 + 4 * 860)),
        (1, 930.0, 30.0, 2 * 30, 0.0, 20 * 30),
        (9, 9000.0, 900.0, 900, 0.0, 9000),
        (10, 9030.0, 30.0, 90, 0.0, 900),
    ]
    assert [row.quarter for row in ledger.gpu_use(950.0)] == [1, 9, 10]
    ledger.forget_before(9000.0)
    assert [row.quarter for row in ledger.gpu_use(0.0)] == [9, 10]


def test_parts_are_found_by_their_number(tmp_path):
    """Of 8: tasks of an array, parts of a heterogeneous job, an earlier job of the number; no other's."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for id, called in enumerate(("8_1", "8_22", "8+1", "8@2026-11-21T12:00Z", "80_1", "7_8", "", "18_1", "8"), 1):
        job = Job(id, "train", "ann", "RUNNING", 0.0, 1, Resources(8), 3600.0, ("home",), called=called)
        ledger.saw_jobs([job], 1.0)
    assert [row.called for row in ledger.parts(8)] == ["8_1", "8_22", "8+1", "8@2026-11-21T12:00Z"]
    plan = " ".join(
        row["detail"]
        for row in ledger._rows(
            "EXPLAIN QUERY PLAN SELECT * FROM jobs WHERE called != '' AND called >= '8_' AND called < '8`'"
        )
    )
    assert "jobs_by_part" in plan, "of a million jobs none is read in vain"


def test_a_newer_ledger_is_left_byte_for_byte_as_it_is(tmp_path):
    path = tmp_path / "new"
    Ledger(path).close()
    db = sqlite3.connect(path)
    db.execute("UPDATE meta SET value = '2' WHERE key = 'version'")
    db.execute("DROP TABLE decisions")  # what it has in its place, this one can't know
    db.execute("ALTER TABLE leases DROP COLUMN seen_s")
    db.commit()
    db.close()
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(LedgerError, match="version 2; this ironburst reads version 1: start"):
            Ledger(path, read_only=read_only)
    assert path.read_bytes() == before


def test_columns_that_a_newer_ironburst_added_are_no_trouble(tmp_path):
    """So the wheel of before can take a ledger back."""
    world = World(tmp_path)
    tables = [row[0] for row in world.ledger._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        world.ledger._db.execute(f"ALTER TABLE {table} ADD COLUMN added TEXT NOT NULL DEFAULT 'x'")
    world.ledger._db.execute("CREATE TABLE more (x INTEGER)")
    world.ledger.close()
    world.start()
    world.cloud.capacity["us-east-1a", "spot"] = 0  # cool-downs, too
    world.fill_home()
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.slurm.state(job) == "COMPLETED" and not world.ledger.leases(), 600)
    said = gather(Ledger(world.path, read_only=True), job, world.clock.now())
    assert said["leases"] and said["story"] and len(tables) > 8
