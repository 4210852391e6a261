"""The ledger's tables, also in ledgers that were written before a table or a column was there."""

from __future__ import annotations

import sqlite3
from importlib import resources


def apply(db: sqlite3.Connection) -> None:
    """Make what is missing. It may break off anywhere: the next one goes on."""
    if "instance_type" not in _columns(db, "cool_downs") and _columns(db, "cool_downs"):
        db.execute("ALTER TABLE cool_downs RENAME TO cool_downs_before")  # SQLite can't change a key
    db.executescript(resources.files(__package__).joinpath("schema.sql").read_text())
    for table, column, kind in (
        ("decisions", "figures", "TEXT NOT NULL DEFAULT ''"),
        ("leases", "seen_s", "REAL"),
        ("jobs", "called", "TEXT NOT NULL DEFAULT ''"),
    ):
        if column not in _columns(db, table):
            db.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    if _columns(db, "cool_downs_before"):
        names = ", ".join(_columns(db, "cool_downs_before"))
        db.execute(f"INSERT OR IGNORE INTO cool_downs ({names}) SELECT {names} FROM cool_downs_before")
        db.execute("DROP TABLE cool_downs_before")


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    """Of a table; none: it isn't there."""
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
