"""One controller at a time: a lock file beside the ledger, held as long as the process lives."""

from __future__ import annotations

import fcntl
import functools
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ironburst.controller import private


class LockedError(Exception):
    """Another controller runs; the text says which."""


class Lost(LockedError):
    """The ledger that this controller held may be another head's by now: this process may do nothing more."""


class Fenced:
    """A port of which each call is made only while the controller holds its ledger: `check` raises Lost before."""

    def __init__(self, port: object, check: Callable[[], None]):
        self._port, self._check = port, check

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return found

        @functools.wraps(found)
        def call(*values: Any, **named: Any) -> Any:
            self._check()
            return found(*values, **named)

        return call


@contextmanager
def held(ledger: Path | str) -> Iterator[None]:
    """Hold the controller's lock of a ledger. Raises LockedError.
    The kernel drops it with the process, however that ends.
    """
    path = Path(f"{ledger}.lock")
    private.parent(path)
    private.file(path)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise LockedError(f"another controller holds {path} ({_who(file.read())}): stop it first") from None
        file.truncate(0)
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since_s": round(time.time())}
        with suppress(OSError):  # a full disk: the lock holds without its name
            os.write(file.fileno(), json.dumps(holder).encode())
        try:
            yield
        finally:
            file.truncate(0)


def is_held(ledger: Path | str) -> bool:
    """Whether a controller runs with this ledger. One that may not be looked at is believed to."""
    try:
        with Path(f"{ledger}.lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _who(text: str) -> str:
    try:
        holder = json.loads(text)
        return f"process {holder['pid']} on {holder['host']}"
    except (ValueError, KeyError, TypeError):
        return "its name isn't written down"
