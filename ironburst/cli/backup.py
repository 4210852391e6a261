"""`ironburst backup`: a copy of the ledger, proven by restoring it, and a ledger from a copy."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from ironburst.cli import Subparsers, site_options
from ironburst.controller import copies, lock, postgresql
from ironburst.controller.ledger import LedgerError
from ironburst.system.bad_input import BadInput


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "backup",
        description="Copy the ledger into one file of SQLite, wherever it is, while its controller runs. The copy is "
        "restored into an empty ledger and compared with what was copied, row by row, before it gets its name. exit "
        "codes: 0 done; 1 a bug; 2 bad input, or a copy that wasn't the same; 4 a controller runs (--restore)",
        epilog="example: ironburst backup /srv/backups/ironburst --keep 14",
    )
    site_options.add(parser, needs_scheduler=False, needs_document=False)
    told = "a file, or a folder that is there (default: $IRONBURST_BACKUP)"
    parser.add_argument("to", type=Path, nargs="?", metavar="PATH", help=told)
    told = "how many copies stay in the folder (default: all)"
    parser.add_argument("--keep", type=int, default=0, metavar="COUNT", help=told)
    told = "make the ledger from this copy instead; it must not be there yet, or be an empty database"
    parser.add_argument("--restore", type=Path, metavar="FILE", help=told)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Copy, or restore."""
    path = site_options.ledger_path(arguments)
    if arguments.restore:
        if arguments.to or arguments.keep:
            raise BadInput("--restore FILE makes the ledger from a copy: leave PATH and --keep out")
        _restore(arguments.restore, path)
        print(json.dumps({"ledger": str(path)}) if arguments.json else f"{path} is made of {arguments.restore}")
        return 0
    given = arguments.to or (Path(name) if (name := os.environ.get("IRONBURST_BACKUP")) else None)
    if given is None:
        raise BadInput("where to? give PATH, a file or a folder, or set IRONBURST_BACKUP")
    if arguments.keep < 0 or (arguments.keep and not given.is_dir()):
        raise BadInput(f"--keep {arguments.keep} is for the copies of a folder, 1 or more; {given} is none")
    if not given.is_dir() and given.suffix == postgresql.SUFFIX:
        raise BadInput(f"{given} would name a database: copies are files of SQLite, as in ledger.sqlite")
    try:
        file, rows = copies.save(path, given, arguments.keep)
    except OSError as error:
        raise LedgerError(f"{given} can't be written: {error.strerror}") from None
    told = f"{file}: {sum(rows.values())} rows of {len(rows)} tables, the same when restored"
    print(json.dumps({"file": str(file), "rows": rows}) if arguments.json else told)
    return 0


def _restore(copy: Path, path: Path) -> None:
    if postgresql.is_named_by(path):
        copies.restore(copy, path)  # its lock is the database's
        return
    with lock.held(path):
        copies.restore(copy, path)
