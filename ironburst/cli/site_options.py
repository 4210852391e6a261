"""What the verbs of the controller have in common: options, how they are read, exit codes.

Exit codes of status, explain, tick, run and reap: 0 done; 1 a crash, which is a bug; 2 bad input (an option, the
document, the ledger, a job that nobody knows); 3 the scheduler or the cloud can't be reached or refused; 4 another
controller holds the lock; only of status 5: the controller hasn't ticked for long.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ironburst import document
from ironburst.config.types import unit_seconds
from ironburst.controller import copies, lock, postgresql
from ironburst.controller.ledger import Ledger, LedgerError
from ironburst.controller.lock import LockedError
from ironburst.controller.recorder import RecordError
from ironburst.document import ClusterDocument, DocumentError
from ironburst.ports import CloudError, SchedulerError
from ironburst.system.bad_input import BadInput

LEDGER = "/var/lib/ironburst/ledger.sqlite"
TURN_S = 5.0
"""between two tries of a second head to become the first"""
EXIT_CODES = (
    "exit codes: 0 done; 1 a bug; 2 bad input; 3 the scheduler or the cloud can't be reached; 4 another controller runs"
)


def add(
    parser: argparse.ArgumentParser,
    *,
    needs_scheduler: bool = True,
    needs_document: bool = True,
    prints_json: bool = True,
) -> None:
    """Add the common options."""
    if needs_document:
        parser.add_argument(
            "--document", type=Path, default=None, help="the ClusterDocument (default: $IRONBURST_DOCUMENT)"
        )
    parser.add_argument(
        "--ledger", type=Path, default=None, help=f"the ledger (default: $IRONBURST_LEDGER, or {LEDGER})"
    )
    if needs_scheduler:
        told = "what to put before Slurm's commands, such as 'ssh root@head' "
        told += "(default: $IRONBURST_SLURM_PREFIX, or nothing)"
        parser.add_argument("--slurm-prefix", default=None, metavar="COMMAND", help=told)
        told = "how to get into a Kubernetes cluster (default: $IRONBURST_KUBECONFIG, or what the document names)"
        parser.add_argument("--kubeconfig", type=Path, default=None, metavar="FILE", help=told)
    if prints_json:
        parser.add_argument("--json", action="store_true", help="machine-readable")


def ledger_path(arguments: argparse.Namespace) -> Path:
    """As given, or of the environment, or where it is on a head node: a file, or beside it the one that names what two
    heads share.
    """
    if given := arguments.ledger or os.environ.get("IRONBURST_LEDGER"):
        return Path(given)
    shared = Path(LEDGER).with_suffix(postgresql.SUFFIX)
    return shared if shared.exists() else Path(LEDGER)


def shadow_ledger_path(arguments: argparse.Namespace) -> Path:
    """The ledger of a controller that rents nothing: as given, or in a folder of its own beside the real one's."""
    return arguments.ledger or ledger_path(arguments).parent / "shadow" / "ledger.sqlite"


def ticks_path(arguments: argparse.Namespace) -> Path:
    """The folder of what was decided from what, beside the ledger."""
    return ledger_path(arguments).with_name("ticks")


def read_document(arguments: argparse.Namespace) -> ClusterDocument:
    """Once. Raises BadInput or DocumentError."""
    return document.read(_document_path(arguments))


def document_if_any(arguments: argparse.Namespace) -> ClusterDocument | None:
    """For what is told as well as it can be. None: none is named, or the one of the environment can't be used. Raises
    BadInput or DocumentError for one that the command names.
    """
    try:
        return read_document(arguments)
    except (BadInput, DocumentError):
        if arguments.document:
            raise
        return None


def _document_path(arguments: argparse.Namespace) -> Path | str:
    path: Path | str | None = arguments.document or os.environ.get("IRONBURST_DOCUMENT")
    if not path:
        raise BadInput("no ClusterDocument: give --document PATH or set IRONBURST_DOCUMENT")
    return path


def document_reader(arguments: argparse.Namespace) -> document.Reader:
    """For the loop: reads again each time, with a last good copy beside the ledger."""
    path = _document_path(arguments)
    return document.Reader(path, ledger_path(arguments).with_name("document.last-good.json"))


def open_ledger(arguments: argparse.Namespace) -> Ledger:
    """To read, while the controller may be writing. Raises LedgerError."""
    return Ledger(ledger_path(arguments), read_only=True)


@contextmanager
def own_ledger(arguments: argparse.Namespace, wait: Callable[[float], bool] | None = None) -> Iterator[Ledger]:
    """To write, as the only one. Raises LockedError or LedgerError; of one that heads share only when `wait`, for some
    seconds, was ended (True).
    """
    path = ledger_path(arguments)
    if not postgresql.is_named_by(path):
        with lock.held(path), closing(Ledger(path)) as ledger:
            yield ledger
        return
    with closing(_turn(path, wait or (lambda _: True))) as ledger:  # it holds its lock itself
        yield ledger


def _turn(path: Path, wait: Callable[[float], bool]) -> Ledger:
    said = ""
    while True:
        try:
            return Ledger(path)
        except (LockedError, postgresql.Unreachable) as error:
            if wait(TURN_S):
                raise
            if str(error) != said:
                said = str(error)
                print(f"ironburst: waits: {said}", file=sys.stderr, flush=True)


def is_owned(path: Path) -> bool:
    """Whether a controller runs with this ledger, on whichever head. Raises LedgerError."""
    return bool(postgresql.holder(path)) if postgresql.is_named_by(path) else lock.is_held(path)


@contextmanager
def copied_ledger(arguments: argparse.Namespace) -> Iterator[Ledger]:
    """A copy to try things on, also beside a controller that runs: nothing is kept. Raises LedgerError."""
    with TemporaryDirectory(prefix="ironburst-") as folder:
        copy = Path(folder) / "ledger.sqlite"
        if ledger_path(arguments).exists():
            copies.copied(ledger_path(arguments), copy)
        with closing(Ledger(copy)) as ledger:
            yield ledger


def guarded(verb: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Expected errors as one sentence on stderr and their exit code."""

    def run(arguments: argparse.Namespace) -> int:
        try:
            return verb(arguments)
        except (BadInput, DocumentError, LedgerError, RecordError) as error:
            code, text = 2, str(error)
        except PermissionError as error:
            code, text = 2, f"{error.filename or 'the ledger'} is for the controller's group alone: ask somebody of it"
        except (SchedulerError, CloudError) as error:
            code, text = 3, str(error)
        except LockedError as error:
            code, text = 4, str(error)
        print(f"ironburst: {text}", file=sys.stderr)
        return code

    return run


def duration(option: str, text: str, like: str, least: int = 1) -> int:
    """Seconds of an option, of at least that many; `like`: what to write. Raises BadInput."""
    seconds = unit_seconds(text)
    if seconds is None or seconds < least:
        raise BadInput(f"{option} {text!r} is no duration: write {like}")
    return seconds
