"""Copies of a ledger: one file of SQLite each, whatever the ledger is in, and proven by restoring it."""

from __future__ import annotations

import hashlib
import socket
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ironburst.controller import postgresql, private, schema
from ironburst.controller.schema import Database, LedgerError

_Columns = Mapping[str, tuple[str, ...]]  # of each table
_NUMBERED = {"leases": "rowid", "decisions": "id", "events": "id"}  # in the order in which they were written
# nothing reads it any more: what a ledger of before 22 November kept for replay, and one column of two commits
_FORMER = {"rounds": ("id", "at_s", "snapshot", "policy", "decision"), "jobs": ("since_s",)}


class Content(NamedTuple):
    """Of a table: how many rows, and the sum of their hashes, which is the same in any order."""

    rows: int
    sum: int


def save(path: Path, to: Path, keep: int = 0) -> tuple[Path, dict[str, int]]:
    """Copy a ledger, its controller may run; restore the copy into an empty ledger, and compare that row by row with
    what was copied. `to`: a file, or a folder that is there, in which the copy is named by the time and the newest
    `keep` stay (0: all). Returns the file, and how many rows each table has. Raises LedgerError, or OSError.
    """
    named = time.strftime("ledger-%Y%m%dT%H%M%SZ.sqlite", time.gmtime())
    file = to / named if to.is_dir() else to
    draft = file.with_name(f".{file.name}.new")
    draft.unlink(missing_ok=True)
    try:
        columns, was = copied(path, draft)
        _proven(path, draft, columns, was)
        draft.rename(file)
    except sqlite3.Error as error:
        raise LedgerError(f"{path} can't be copied to {file}: {error}") from None
    finally:
        draft.unlink(missing_ok=True)
    if to.is_dir() and keep:
        for old in sorted(to.glob("ledger-*Z.sqlite"))[:-keep]:
            old.unlink()
    return file, {table: content.rows for table, content in was.items()}


def newest_s(path: Path) -> float:
    """When a copy, or the newest one of a folder, was written, in seconds since 1970; 0: there is none to be seen."""
    try:
        return max((each.stat().st_mtime for each in (path.iterdir() if path.is_dir() else [path])), default=0.0)
    except OSError:
        return 0.0


def noted(path: Path | None) -> dict[str, float | str]:
    """What a tick notes of it for `ironburst status`: each of two heads has its own copies. Nothing where nobody said
    where copies are put.
    """
    return {"copied_s": newest_s(path), "copied_on": socket.gethostname()} if path else {}


def restore(copy: Path, into: Path) -> None:
    """Make a ledger from a copy. One that is there already, with anything in it, is left alone. Raises LedgerError."""
    with closing(schema.opened(copy, read_only=True)) as source:
        if postgresql.is_named_by(into):
            with closing(postgresql.opened(into, read_only=False)) as target:
                if any(content.rows for table, content in contents(target, tables(target)).items() if table != "meta"):
                    raise LedgerError(f"the ledger that {into} names isn't empty: give it an empty database")
                _load(source, target, tables(source))
            return
        if into.exists():
            raise LedgerError(f"there is a ledger at {into} already: move it away first")
        private.parent(into)
        private.file(into)
        with closing(sqlite3.connect(into)) as whole:
            assert isinstance(source, sqlite3.Connection)
            source.backup(whole)
    schema.opened(into, read_only=False).close()  # brought up to date


def tables(db: Database) -> dict[str, tuple[str, ...]]:
    """The columns of each table."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    if not isinstance(db, sqlite3.Connection):
        query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    found = {row[0]: schema.columns(db, row[0]) for row in db.execute(query).fetchall()}
    return {
        name: tuple(sorted({*columns, *(["rowid"] if _NUMBERED.get(name) == "rowid" else [])}))
        for name, columns in sorted(found.items())
    }


def in_use(columns: _Columns) -> _Columns:
    """Without what nothing reads any more."""
    kept = {
        table: tuple(name for name in names if name not in _FORMER.get(table, ())) for table, names in columns.items()
    }
    return {table: names for table, names in kept.items() if names}


def contents(db: Database, columns: _Columns) -> dict[str, Content]:
    """Of these columns of these tables."""
    found = {}
    for table, names in columns.items():
        count = total = 0
        for row in _rows(db, table, names):
            count += 1
            total += int.from_bytes(hashlib.sha256(repr(tuple(row)).encode()).digest())
        found[table] = Content(count, total % 2**256)
    return found


def copied(path: Path, draft: Path) -> tuple[_Columns, dict[str, Content]]:
    """Into a file that isn't there: the columns and the contents of one moment. Raises LedgerError."""
    private.parent(draft)
    private.file(draft)
    with closing(postgresql.database(path, read_only=True)) as source, _one_moment(source):
        columns = tables(source)
        was = contents(source, columns)
        if isinstance(source, sqlite3.Connection):
            with closing(sqlite3.connect(draft)) as target:
                source.backup(target)
        else:
            with closing(schema.opened(draft, read_only=False)) as made:
                _load(source, made, columns)
                made.execute("PRAGMA journal_mode=DELETE")  # one file
    return columns, was


def _proven(path: Path, draft: Path, columns: _Columns, was: dict[str, Content]) -> None:
    with TemporaryDirectory(prefix="ironburst-") as folder:
        again = Path(folder) / "ledger.sqlite"
        restore(draft, again)
        with closing(schema.opened(again, read_only=True)) as restored:
            sound = restored.execute("PRAGMA integrity_check").fetchone()[0]
            now = contents(restored, columns)
    wrong = [table for table, content in was.items() if now[table] != content]
    if wrong or sound != "ok":
        raise LedgerError(
            f"the copy of {path} isn't the same when it is restored ({', '.join(wrong) or sound}): nothing was kept"
        )


@contextmanager
def _one_moment(db: Database) -> Iterator[None]:
    """What is read inside is of one moment, whatever is written meanwhile."""
    db.execute("BEGIN" if isinstance(db, sqlite3.Connection) else "BEGIN ISOLATION LEVEL REPEATABLE READ")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


def _rows(db: Database, table: str, names: tuple[str, ...]) -> Iterator[schema.Row]:
    query = f"SELECT {_listed(names)} FROM {table}"
    return iter(db.stream(query) if isinstance(db, postgresql.Connection) else db.execute(query))


def _load(source: Database, target: Database, columns: _Columns) -> None:
    """All rows, into tables that are there; what they had is gone."""
    there = tables(target)
    target.execute("BEGIN IMMEDIATE")
    for table, names in in_use(columns).items():
        if unknown := set(names) - set(there.get(table, ())):
            raise LedgerError(f"a newer ironburst wrote it: {table} has {', '.join(sorted(unknown))}, take that one")
        target.execute(f"DELETE FROM {table}")
        query = f"INSERT INTO {table} ({_listed(names)}) VALUES ({', '.join('?' * len(names))})"
        target.executemany(query, (tuple(row) for row in _rows(source, table, names)))
        if table in _NUMBERED and not isinstance(target, sqlite3.Connection):
            last = f"(SELECT max({_NUMBERED[table]}) FROM {table})"
            target.execute(f"SELECT setval(pg_get_serial_sequence('{table}', '{_NUMBERED[table]}'), {last})")
    target.execute("COMMIT")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)  # "user" is a word of SQL
