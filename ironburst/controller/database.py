"""The ledger's SQLite file, opened to write or to read."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from ironburst.controller import private, schema


def connect(path: Path, version: str, *, read_only: bool) -> sqlite3.Connection:
    """To write: with every table that is missing. Raises sqlite3.Error or OSError."""
    if read_only:
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return _connect(path, f"mode=ro{'' if _in_use(path) else '&immutable=1'}")
    private.parent(path)
    for part in (path, *path.parent.glob(f"{path.name}-*")):  # new ones beside it get the ledger's mode
        private.file(part)
    db = _connect(path, "mode=rwc")
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")  # an intent must survive a power cut
    schema.apply(db)
    db.execute("INSERT OR IGNORE INTO meta VALUES ('version', ?)", (version,))
    return db


def _in_use(path: Path) -> bool:
    """Whether a controller has it open, or has died with it open. Else SQLite would make the files of its log anew to
    read it: who may not write there couldn't, and whoever may would leave files of another user to the controller.
    """
    return path.with_name(f"{path.name}-wal").exists()


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, timeout=10)
    db.row_factory = sqlite3.Row
    return db
