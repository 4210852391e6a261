"""What every room of the lab stands on: where it lies, how it fails; commands, waiting and locks on this machine."""

import contextlib
import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

CHECKOUT = Path(__file__).resolve().parents[1]
LAB_ROOT = CHECKOUT / ".lab"
T = TypeVar("T")


class LabError(Exception):
    """One sentence for the person at the keyboard: what failed, where, and what to do."""


def run(argv: Sequence[str], *, stdin: str | None = None, **kwargs: Any) -> str:
    """Run a command to its end and return its output; LabError with its last error line if it fails."""
    done: subprocess.CompletedProcess[str] = subprocess.run(argv, input=stdin, text=True, capture_output=True, **kwargs)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise LabError(f"{' '.join(argv[:4])} ... failed with exit code {done.returncode}: {lines[-1]}")
    return done.stdout


def wait_for(condition: Callable[[], T], seconds: float, what: str, pause: float = 0.02) -> T:
    """Poll `condition` until it returns something true, which is returned; LabError after `seconds`."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise LabError(f"{what}: not within {seconds:g} s")
        time.sleep(pause)
    return value


@contextlib.contextmanager
def locked(path: Path, remove: bool = False) -> Iterator[None]:
    """An exclusive lock on `path` (created if absent), also against other threads and processes; `remove` removes the
    file at the end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                if not os.path.samestat(path.stat(), os.fstat(handle.fileno())):
                    continue
            except FileNotFoundError:
                continue  # its last owner removed it meanwhile
            try:
                yield
            finally:
                if remove:
                    path.unlink()
            return
