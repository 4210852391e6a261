"""Copies of a ledger: the same when they are restored, whatever the ledger is in."""

import sqlite3
from contextlib import closing

import pytest

from ironburst import cli
from ironburst.controller import copies, postgresql, schema
from ironburst.controller.ledger import Ledger
from ironburst.controller.lock import LockedError
from ironburst.controller.schema import LedgerError
from tests.fakes.world import World
from tests.postgresql import ledger_file
from tests.postgresql import ledger_path as ledger_path


def lived(tmp_path, path):
    """A site in the middle of its day: leases that ended, that are used and that come; the controller goes on."""
    world = World(tmp_path, ledger=path)
    world.cloud.capacity["us-east-1a", "spot"] = 0
    world.fill_home()
    first = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.slurm.state(first) == "COMPLETED" and not world.ledger.leases(), 1800)
    world.slurm.submit(nodes=2, limit_s=3600, runs_s=3000)
    world.until(lambda: world.states().count("ready") == 2, 1800)
    return world


def contents(path):
    with closing(postgresql.database(path, read_only=True)) as db:
        return copies.contents(db, copies.tables(db))


def rows(world):
    ledger = world.ledger
    return ledger.leases(open_only=False), ledger.events(), ledger.decisions(), ledger.all_cool_downs()


def test_a_copy_is_the_ledger_and_its_controller_goes_on_with_it(tmp_path, ledger_path, capsys):
    world = lived(tmp_path, ledger_path)
    before = rows(world)
    assert cli.main(["backup", str(tmp_path / "copy.sqlite"), "--ledger", str(ledger_path)]) == 0
    assert "the same when restored" in capsys.readouterr().out
    world.ledger.close()
    if ledger_path.suffix == ".sqlite":
        ledger_path.rename(tmp_path / "gone")
    else:
        ledger_path = ledger_file(tmp_path / "again")
    copies.restore(tmp_path / "copy.sqlite", ledger_path)
    world.path = ledger_path
    world.start()
    assert rows(world) == before
    world.until(world.quiet, 7200)
    assert rows(world)[1][: len(before[1])] == before[1]
    assert {event.kind for event in rows(world)[1]}.isdisjoint({"orphan", "lost", "trouble", "needs_a_person"})


@pytest.mark.parametrize("other", ["sqlite", "postgresql"])
def test_a_ledger_moves_from_a_file_to_a_database_and_back(tmp_path, ledger_path, other):
    world = lived(tmp_path, ledger_path)
    was = contents(ledger_path)
    copies.save(ledger_path, tmp_path / "copy")
    target = ledger_file(tmp_path / "moved") if other == "postgresql" else tmp_path / "moved.sqlite"
    copies.restore(tmp_path / "copy", target)
    assert contents(target) == was
    with pytest.raises(LedgerError, match="isn't empty" if other == "postgresql" else "already: move it away"):
        copies.restore(tmp_path / "copy", target)
    world.ledger.close()


def test_what_is_copied_is_of_one_moment(tmp_path, ledger_path, monkeypatch):
    world = lived(tmp_path, ledger_path)
    counted, before = copies.contents, len(rows(world)[1])

    def slowly(db, columns):
        found = counted(db, columns)
        world.ledger.event("trouble", "written meanwhile", 1.0)
        return found

    monkeypatch.setattr(copies, "contents", slowly)
    copies.copied(ledger_path, tmp_path / "copy")
    assert len(Ledger(tmp_path / "copy", read_only=True).events()) == before < len(rows(world)[1])


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM events WHERE id = (SELECT max(id) FROM events)",
        "UPDATE leases SET usd_per_hour = usd_per_hour + 1e-9",
        "UPDATE meta SET value = '{}' WHERE key = 'owner'",
        "DROP INDEX events_by_time; DELETE FROM rates",
    ],
)
def test_a_copy_that_isnt_the_same_gets_no_name(tmp_path, ledger_path, monkeypatch, damage):
    lived(tmp_path, ledger_path)
    made = copies.copied

    def damaged(path, draft):
        found = made(path, draft)
        with closing(sqlite3.connect(draft)) as db:
            db.executescript(damage)
        return found

    monkeypatch.setattr(copies, "copied", damaged)
    (tmp_path / "copies").mkdir()
    with pytest.raises(LedgerError, match="isn't the same when it is restored"):
        copies.save(ledger_path, tmp_path / "copies")
    assert list((tmp_path / "copies").iterdir()) == []


def test_the_newest_copies_stay(tmp_path):
    Ledger(tmp_path / "ledger.sqlite").close()
    (tmp_path / "copies").mkdir()
    for day in range(1, 5):
        (tmp_path / f"copies/ledger-2026110{day}T000000Z.sqlite").touch()
    (tmp_path / "copies/other").touch()
    newest, _ = copies.save(tmp_path / "ledger.sqlite", tmp_path / "copies", keep=2)
    left = sorted(path.name for path in (tmp_path / "copies").iterdir())
    assert left == ["ledger-20261104T000000Z.sqlite", newest.name, "other"]


def test_restoring_beside_a_controller_is_refused(tmp_path, ledger_path, capsys):
    world = lived(tmp_path, ledger_path)
    copies.save(ledger_path, tmp_path / "copy")
    if world.ledger.shared:
        with pytest.raises(LockedError, match="another controller holds the ledger"):
            copies.restore(tmp_path / "copy", ledger_path)
    assert cli.main(["backup", "--restore", str(tmp_path / "copy"), "--ledger", str(ledger_path)]) != 0
    assert rows(world)


def test_a_copy_of_a_newer_version_is_refused_and_left_alone(tmp_path):
    schema.opened(tmp_path / "copy", read_only=False).close()
    with closing(sqlite3.connect(tmp_path / "copy")) as db:
        db.execute("UPDATE meta SET value = '9'")
        db.commit()
    with pytest.raises(LedgerError, match="version 9"):
        copies.restore(tmp_path / "copy", tmp_path / "ledger.sqlite")
    assert not (tmp_path / "ledger.sqlite").exists()
