"""Files of the controller: its user writes them, its group reads them, nobody else does, whatever the umask is.

Jobs' names, users and money are in them. What exists is tightened, never opened: stricter modes are kept.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

FILE, FOLDER = 0o640, 0o750


def folder(path: Path) -> None:
    """The controller's own folder: made, or tightened. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(FOLDER)
    except FileExistsError:
        _tighten(path, FOLDER)
    else:
        path.chmod(FOLDER)


def parent(path: Path) -> None:
    """The folder of a file, made if it isn't there. One that is there may be anybody's, and stays as it is.
    Raises OSError.
    """
    if not path.parent.exists():
        folder(path.parent)


def file(path: Path) -> None:
    """A file: made empty, or tightened. Raises OSError."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE)
    except FileExistsError:
        if path.is_file():
            _tighten(path, FILE)
    else:
        os.fchmod(handle, FILE)
        os.close(handle)


def _tighten(path: Path, mode: int) -> None:
    now = stat.S_IMODE(path.stat().st_mode)
    allowed = now & (mode | 0o7000)
    if allowed != now:
        with suppress(PermissionError):  # another user's: who may write there may go on
            path.chmod(allowed)
