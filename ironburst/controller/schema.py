"""The ledger's file and tables, also of ledgers that were written before a table or a column was there, or by a newer
ironburst. VERSION counts what an older one couldn't go on with; a table or a column more, it doesn't see.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing
from importlib import resources
from pathlib import Path

from ironburst.controller import private

VERSION = "1"
PAGE = 1024
"""bytes that are written where a row changes: of a large queue the rows that change are on as many pages"""
LOG_BYTES = 32_000_000
"""of changes, until they are put in their places: most pages change again by then"""


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
                _refuse_others(path, db)
        elif read_only:
            raise LedgerError(f"there is no ledger at {path}: give --ledger, or start `ironburst run`")
        if read_only:
            db = _to_read(path)
            complete = db.execute("SELECT 1 FROM meta WHERE key = 'version'").fetchone()  # its last row to be made
            if not complete:
                raise LedgerError(f"{path} is being made: ask again in a moment")
            return db
        private.parent(path)
        for part in (path, *path.parent.glob(f"{path.name}-*")):  # new ones beside it get the ledger's mode
            private.file(part)
        db = _connected(path, "mode=rwc")
        db.execute(f"PRAGMA page_size={PAGE}")  # of a ledger that is there already, it changes nothing
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(f"PRAGMA wal_autocheckpoint={LOG_BYTES // db.execute('PRAGMA page_size').fetchone()[0]}")
        db.execute("PRAGMA synchronous=FULL")  # an intent must survive a power cut
        apply(db)
        db.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('version', ?)", (VERSION,))
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


def _refuse_others(path: Path, db: sqlite3.Connection) -> None:
    """Raises LedgerError for a ledger of another version; one without tables is new."""
    if not columns(db, "meta"):
        return
    row = db.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    if row and row[0] != VERSION:
        raise LedgerError(
            f"{path} is a ledger of version {row[0]}; this ironburst reads version {VERSION}: start the ironburst that "
            "wrote it, or give the copy from before the upgrade; nothing was changed"
        )


def apply(db: sqlite3.Connection) -> None:
    """Make what is missing. It may break off anywhere: the next one goes on."""
    if "instance_type" not in columns(db, "cool_downs") and columns(db, "cool_downs"):
        db.execute("ALTER TABLE cool_downs RENAME TO cool_downs_before")  # SQLite can't change a key
    db.executescript(resources.files(__package__).joinpath("schema.sql").read_text())
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
    db.execute("CREATE INDEX IF NOT EXISTS jobs_by_part ON jobs(called) WHERE called != ''")
    if columns(db, "cool_downs_before"):
        names = ", ".join(columns(db, "cool_downs_before"))
        db.execute(f"INSERT OR IGNORE INTO cool_downs ({names}) SELECT {names} FROM cool_downs_before")
        db.execute("DROP TABLE cool_downs_before")


def columns(db: sqlite3.Connection, table: str) -> list[str]:
    """Of a table; none: it isn't there."""
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
