"""The ledger's file and tables, those of PostgreSQL too; also of ledgers that were written before a table or a column
was there, or by a newer ironburst. VERSION counts what an older one couldn't go on with; a table or a column more, it
doesn't see.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from ironburst.controller import private

VERSION = "1"
PAGE = 1024
"""bytes that are written where a row changes: of a large queue the rows that change are on as many pages"""
LOG_BYTES = 32_000_000
"""of changes, until they are put in their places: most pages change again by then"""
CACHE_KIB = 8000
"""of pages in memory: decisions come by priority, so each is put anywhere in the index by job, which is 2 MB of 100,000
jobs, as much as SQLite's own cache"""


class Row(Protocol):
    """Of an answer, as sqlite3.Row."""

    def __getitem__(self, key: Any) -> Any:
        """A value by its column's name or number."""

    def __iter__(self) -> Iterator[Any]:
        """Its values."""

    def keys(self) -> Iterable[str]:
        """Its columns."""


class Database(Protocol):
    """What the ledger needs of a database: the part of sqlite3.Connection that controller.postgresql has, too, with
    `?` and `?1` for values, and with sqlite3's errors.
    """

    @property
    def in_transaction(self) -> bool:
        """Whether BEGIN was executed, and neither COMMIT nor ROLLBACK."""

    def execute(self, sql: str, values: Any = (), /) -> Any:
        """A cursor: fetchall, fetchone, rowcount, and its rows."""

    def executemany(self, sql: str, rows: Any, /) -> Any:
        """Once for each row of values."""

    def executescript(self, sql: str, /) -> Any:
        """Statements without values."""

    def close(self) -> None:
        """No call after this."""


class LedgerError(Exception):
    """The ledger can't be used; the text is one sentence."""


class NotForYou(LedgerError):
    """The caller may not read it."""


def opened(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """The ledger's file; made, or brought up to date, unless it is only read. Of another version nothing is changed.
    Raises LedgerError.
    """
    try:
        if path.exists():
            with closing(_to_read(path)) as db:
                refuse_others(path, db)
        elif read_only:
            raise LedgerError(f"there is no ledger at {path}: give --ledger, or start `ironburst run`")
        if read_only:
            db = _to_read(path)
            refuse_half(path, db)
            return db
        private.parent(path)
        for part in (path, *path.parent.glob(f"{path.name}-*")):  # new ones beside it get the ledger's mode
            private.file(part)
        db = _connected(path, "mode=rwc")
        db.execute(f"PRAGMA page_size={PAGE}")  # of a ledger that is there already, it changes nothing
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(f"PRAGMA wal_autocheckpoint={LOG_BYTES // db.execute('PRAGMA page_size').fetchone()[0]}")
        db.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        db.execute("PRAGMA synchronous=FULL")  # an intent must survive a power cut
        apply(db)
        return db
    except PermissionError:
        raise NotForYou(f"{path} is for the controller's group alone: ask somebody of it") from None
    except (sqlite3.Error, OSError) as error:
        raise LedgerError(f"{path} can't be used as a ledger: {error}") from None


def _to_read(path: Path) -> sqlite3.Connection:
    """Raises PermissionError. Where no controller has it open, nor died with it open, SQLite would make the files of
    its log again to read it: who may not write there couldn't, and whoever may would leave the controller another
    user's.
    """
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    in_use = path.with_name(f"{path.name}-wal").exists()
    return _connected(path, "mode=ro" if in_use else "mode=ro&immutable=1")


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, timeout=10)
    db.row_factory = sqlite3.Row
    return db


def refuse_others(path: Path, db: Database) -> None:
    """Raises LedgerError for a ledger of another version; one without tables is new."""
    if not columns(db, "meta"):
        return
    row = db.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    if row and row[0] != VERSION:
        raise LedgerError(
            f"{path} is a ledger of version {row[0]}; this ironburst reads version {VERSION}: start the ironburst that "
            "wrote it, or give the copy from before the upgrade; nothing was changed"
        )


def refuse_half(path: Path, db: Database) -> None:
    """Raises LedgerError for one whose tables aren't made yet."""
    if not columns(db, "meta") or not db.execute("SELECT 1 FROM meta WHERE key = 'version'").fetchone():
        raise LedgerError(f"{path} is being made: ask again in a moment")


def apply(db: Database) -> None:
    """Make what is missing, in one transaction: each would be written to the disk by itself."""
    script = "BEGIN IMMEDIATE;\n"  # in it: a script ends the transaction before it
    if "instance_type" not in columns(db, "cool_downs") and columns(db, "cool_downs"):
        script += "ALTER TABLE cool_downs RENAME TO cool_downs_before;\n"  # SQLite can't change a key
    db.executescript(script + resources.files(__package__).joinpath("schema.sql").read_text())
    for table, column, kind in (
        ("decisions", "figures", "TEXT NOT NULL DEFAULT ''"),
        ("leases", "seen_s", "REAL"),
        ("leases", "address", "TEXT NOT NULL DEFAULT ''"),
        ("jobs", "called", "TEXT NOT NULL DEFAULT ''"),
        ("jobs", "spot_losses", "INTEGER NOT NULL DEFAULT 0"),
        ("jobs", "lost_start_s", "REAL"),
    ):
        if column not in columns(db, table):
            db.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    for index in (
        "jobs_by_part ON jobs(called) WHERE called != ''",
        "open_leases ON leases(state) WHERE state != 'ended'",
        "leases_by_end ON leases(to_s)",
    ):
        db.execute(f"CREATE INDEX IF NOT EXISTS {index}")
    if columns(db, "cool_downs_before"):
        names = ", ".join(columns(db, "cool_downs_before"))
        db.execute(
            f"INSERT INTO cool_downs ({names}) SELECT {names} FROM cool_downs_before WHERE true ON CONFLICT DO NOTHING"
        )
        db.execute("DROP TABLE cool_downs_before")
    db.execute("INSERT INTO meta (key, value) VALUES ('version', ?) ON CONFLICT DO NOTHING", (VERSION,))
    db.execute("COMMIT")


def columns(db: Database, table: str) -> list[str]:
    """Of a table; none: it isn't there."""
    if not isinstance(db, sqlite3.Connection):
        query = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped"
        return [row[0] for row in db.execute(f"{query} ORDER BY attnum", (table,))]
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
