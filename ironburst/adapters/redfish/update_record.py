"""What is remembered of firmware updates: one file beside the stack file, written before anything is sent.

It is only ever a reason to do less. Without it a BMC's own tasks and versions are all that is known.
"""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ironburst.adapters.redfish.client import BmcError
from ironburst.baremetal.updates import UpdateNote
from ironburst.system import files
from ironburst.system.bad_input import BadInput


class NotWritten(BmcError):
    """The record can't be written, so nothing is sent. A BmcError, for an open session lets those through as they
    are.
    """


class UpdateRecord:
    """All of the file, {node: {component: note}}."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock, self._notes = path, threading.Lock(), _read(path)

    def of(self, node: str) -> NodeNotes:
        """One node's notes."""
        return NodeNotes(self, node)

    def all(self, node: str) -> dict[str, UpdateNote]:
        """Those of a node."""
        with self._lock:
            return dict(self._notes.get(node, {}))

    def change(self, node: str, key: str, note: UpdateNote | None) -> None:
        """Set one, or (None) forget it; it is on the disk then. Raises NotWritten."""
        with self._lock:
            kept = {name: each for name, each in self._notes.get(node, {}).items() if name != key}
            its = kept | ({key: note} if note else {})
            notes = {name: each for name, each in (self._notes | {node: its}).items() if each}
            told = {name: {each: asdict(one) for each, one in many.items()} for name, many in notes.items()}
            try:
                files.write(self._path, json.dumps(told, indent=1) + "\n")
            except OSError as error:
                reason = error.strerror or error
                raise NotWritten(f"{node}: {self._path} can't be written ({reason}): nothing is sent without") from None
            self._notes = notes


class NodeNotes:
    """ironburst.baremetal.updating.Notes of one node."""

    def __init__(self, record: UpdateRecord, node: str) -> None:
        self._record, self._node = record, node

    def all(self) -> Mapping[str, UpdateNote]:
        """Every one."""
        return self._record.all(self._node)

    def put(self, key: str, note: UpdateNote) -> None:
        """In the place of what there was."""
        self._record.change(self._node, key, note)

    def drop(self, key: str) -> None:
        """It has ended."""
        if key in self.all():
            self._record.change(self._node, key, None)


@contextmanager
def held(path: Path) -> Iterator[UpdateRecord]:
    """The record, for one run at a time. Raises BadInput."""
    try:
        file = path.with_name(path.name + ".lock").open("a")
    except OSError as error:
        raise BadInput(f"{error.filename}: {error.strerror or error}: give another --record") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"another update runs by {path}: wait for its end") from None
        yield UpdateRecord(path)


def _read(path: Path) -> dict[str, dict[str, UpdateNote]]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {getattr(error, 'strerror', None) or error}: give another --record") from None
    try:
        return {node: {key: _note(each) for key, each in notes.items()} for node, notes in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError, KeyError):
        raise BadInput(
            f"{path} is no record of firmware updates: bring back its backup, or move it away when no BMC is updating"
        ) from None


def _note(given: dict[str, Any]) -> UpdateNote:
    return UpdateNote(**(given | {"others": tuple(given["others"])}))
