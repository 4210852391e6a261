"""Where people put their orders: a folder beside the ledger that the controller's group may write to.

A file's owner says who ordered, which nobody but root can forge; its content says what. It waits there for a controller
that doesn't run.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MODE = 0o1770  # sticky: none of the group may take another one's away
_ENDING = ".json"
_MOST_BYTES = 16_384


@dataclass(frozen=True)
class Found:
    """A file of the spool. `text` None: it is no order, and why."""

    path: Path
    who: str
    root: bool
    text: str | None
    wrong: str = ""

    @property
    def id(self) -> str:
        """Of the order."""
        return self.path.stem


def folder(ledger: Path) -> Path:
    """Beside a ledger."""
    return ledger.with_name("orders")


def prepare(ledger: Path) -> None:
    """Make the folder, as its ledger's folder's owner and group have it. Raises OSError, too for one of another user:
    what is put there couldn't be taken away.
    """
    path, like = folder(ledger), ledger.parent.stat()
    try:
        path.mkdir(0o700)
    except FileExistsError:
        if path.stat().st_uid not in (like.st_uid, os.geteuid()):
            raise PermissionError(errno.EPERM, "the folder is another user's", str(path)) from None
    else:
        if os.geteuid() == 0:
            os.chown(path, like.st_uid, like.st_gid)
        path.chmod(_MODE)


def put(ledger: Path, text: str) -> str:
    """An order for the controller of this ledger; its id. Raises OSError."""
    where, id = folder(ledger), uuid.uuid4().hex
    draft = where / f".{id}"
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        os.fchown(handle, -1, where.stat().st_gid)
        os.fchmod(handle, 0o640)
    draft.rename(where / f"{id}{_ENDING}")
    return id


def waiting(ledger: Path) -> list[Path]:
    """The files of orders that nobody has taken up, the oldest first."""
    try:
        found = [(each.stat(follow_symlinks=False).st_mtime, each.name) for each in os.scandir(folder(ledger))]
    except OSError:  # there is none, or one is gone
        return []
    return [folder(ledger) / name for _, name in sorted(found) if name.endswith(_ENDING)]


def read(ledger: Path) -> Iterator[Found]:
    """Those that wait. Raises OSError."""
    for path in waiting(ledger):
        with suppress(FileNotFoundError):
            yield _read(path)


def _read(path: Path) -> Found:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        owner = path.stat(follow_symlinks=False).st_uid
        return Found(path, _name(owner), False, None, f"it can't be read ({error.strerror})")
    with os.fdopen(handle, "rb") as file:
        seen = os.fstat(handle)
        who, root = _name(seen.st_uid), seen.st_uid == 0
        # with a second link it could be somebody else's file, and its owner never have ordered anything
        if not stat.S_ISREG(seen.st_mode) or seen.st_nlink != 1:
            return Found(path, who, root, None, "it is no file of its own")
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        return Found(path, who, root, None, f"it is longer than {_MOST_BYTES} bytes")
    return Found(path, who, root, data.decode("utf-8", "replace"))


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
