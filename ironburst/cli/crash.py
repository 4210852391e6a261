"""How a verb ends that doesn't return: a bug of ours is one sentence, and its traceback a file."""

from __future__ import annotations

import os
import select
import sys
import tempfile
import traceback
from pathlib import Path

LONGEST = 200
"""characters of an exception's own words"""
STOPPED = 130
"""exit code after Ctrl-C"""


def told(verb: str, error: Exception) -> int:
    """Say what happened and where the traceback is; the exit code."""
    words = " ".join(str(error).split())
    said = f"{type(error).__name__}: {words[:LONGEST]}" if words else type(error).__name__
    lines = "".join(traceback.format_exception(error))
    try:
        where = f"the traceback is in {_written(lines)}: report it with that file"
    except OSError as refused:
        where = f"its traceback can't be written ({refused.strerror}), so it is here:\n{lines}"
    print(f"ironburst {verb}: a bug of ours, {said}; {where}", file=sys.stderr)
    return 1


def _written(lines: str) -> Path:
    """Where a service keeps its state, which its own /tmp doesn't outlive; else where temporary files are."""
    folder = os.environ.get("STATE_DIRECTORY", "").split(":")[0] or tempfile.gettempdir()
    handle, name = tempfile.mkstemp(prefix="ironburst-crash-", suffix=".txt", dir=folder)
    with os.fdopen(handle, "w") as file:
        file.write(lines)
    return Path(name)


def reader_gone() -> bool:
    """Whether nobody reads our stdout any more (`ironburst status | head`)."""
    try:
        watch = select.poll()
        watch.register(sys.stdout.fileno(), select.POLLOUT)
        return any(event & select.POLLERR for _, event in watch.poll(0))
    except (OSError, ValueError):  # no file behind it, or closed
        return False


def silenced() -> None:
    """What is still in stdout's buffer goes nowhere, also at the interpreter's end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
