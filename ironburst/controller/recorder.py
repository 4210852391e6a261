"""Ticks on disk: what was decided from what.
Audit log, bug report and regression test are the same files (`ironburst replay DIR`).

A folder of `ticks-TIME-NNN.jsonl.gz` (UTC, of the first tick in it). A line is a tick: {"at_s", "policy", "snapshot",
"decision"} of what changed (ironburst.controller.changes); in a file's first line {"at_s", "whole": {the same}} of all,
which an older ironburst wrote as it is. A tick that differs from the one before in nothing that matters isn't written;
of a large queue (written.LARGE) a decision is there without its wording and figures, which deciding again gives. Each
is a gzip member of its own: `zcat` reads the file, and a crash costs no more than the tick it hit. A process starts its
own file, as does every hour, so that old ones can be deleted whole: by age, and the oldest ones over a size.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ironburst.burst import Decision, Job, Node, Policy, Snapshot, Wait, from_json, to_json
from ironburst.controller import changes, private
from ironburst.controller.written import LARGE
from ironburst.system.kept import Kept

KEEP_DAYS, KEEP_MB = 30.0, 1000.0
_FILE_S, _FILE_BYTES = 3600.0, 16_000_000
_LEVEL = 6  # of 9, whose files are 2% smaller and take four times as long
_FILES, _TIME = "*.jsonl.gz", "%Y%m%dT%H%M%SZ"  # version 0.1 wrote rounds-TIME-NNN.jsonl.gz


_DAMAGE = (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, IndexError, AttributeError)


class RecordError(Exception):
    """Ticks can't be written or read; the text is one sentence."""


class RecordedTick(NamedTuple):
    """What a tick saw, what it decided, and by which policy."""

    at_s: float
    snapshot: Snapshot
    decision: Decision
    policy: Policy


@dataclass(frozen=True)
class Usage:
    """What a folder of ticks takes on disk."""

    files: int
    bytes: int
    from_s: float | None  # of the first tick and the last one; None: there is none
    to_s: float | None

    @property
    def mb_a_day(self) -> float | None:
        """None: there is no time to measure over."""
        if self.from_s is None or self.to_s is None or self.to_s <= self.from_s:
            return None
        return self.bytes / 1e6 / ((self.to_s - self.from_s) / 86400)


class Recorder:
    """The writer. One process at a time writes to a folder (the controller's lock)."""

    def __init__(self, folder: Path | str, keep_days: float = KEEP_DAYS, keep_mb: float = KEEP_MB):
        for name, value in (("days", keep_days), ("MB", keep_mb)):
            if not value > 0:
                raise RecordError(f"ticks are kept for {value:g} {name}: more than 0 is needed")
        self.folder, self._keep_s, self._keep_bytes = Path(folder), keep_days * 86400, keep_mb * 1e6
        self._matters: tuple[Policy, Snapshot, Decision] | None = None  # of the tick written last
        self._last: dict[str, Any] | None = None  # as it is in the file under way
        self._waits: dict[int, Wait] = {}  # without their wording, of the last tick
        self._file: Path | None = None
        self._began_s = 0.0

    def record(self, policy: Policy, snapshot: Snapshot, decision: Decision) -> bool:
        """Write a tick down if it differs from the last one.
        Raises RecordError; then the next tick begins a new file.
        """
        matters = (policy, replace(snapshot, now_s=0.0, budget=None), self._bare(decision))
        if matters == self._matters:
            return False
        told = matters[2] if len(snapshot.jobs) >= LARGE else decision
        said = {
            "policy": to_json(policy),
            "snapshot": to_json(snapshot, _as_it_is),
            "decision": to_json(told, _as_it_is),
        }
        try:
            self._write(snapshot.now_s, said)
        except OSError as error:
            self._file = self._last = None
            raise RecordError(f"a tick can't be written to {self.folder}: {error.strerror or error}") from None
        self._matters = matters
        return True

    def _write(self, at_s: float, said: dict[str, Any]) -> None:
        over = self._file is None or not 0 <= at_s - self._began_s < _FILE_S or self._file.stat().st_size > _FILE_BYTES
        if over or self._file is None:
            private.folder(self.folder)
            self._file, self._last, self._began_s = _new(self.folder, at_s), None, at_s
            for path in (self._file, *self.folder.glob(_FILES)):
                private.file(path)
            self._prune(at_s)
        before = self._last or {}
        changed = {key: changes.between(before.get(key), value) for key, value in said.items()}
        line = {"at_s": at_s, **changed} if before else {"at_s": at_s, "whole": changed}
        with self._file.open("ab") as file:
            file.write(gzip.compress(json.dumps(line, separators=(",", ":")).encode() + b"\n", _LEVEL, mtime=0))
        os.utime(self._file, (at_s, at_s))
        self._last = said

    def _bare(self, decision: Decision) -> Decision:
        """A decision without what changes as time goes by: wording, money to be set aside, when to look again."""
        names = [field.name for field in fields(Decision) if field.name != "waits"]
        bare = Decision(**{name: tuple(map(_without_wording, getattr(decision, name))) for name in names})
        kept = ((self._waits.get(wait.job), wait) for wait in decision.waits)
        waits = tuple(old if old and old.code == wait.code else Wait(wait.job, wait.code, "") for old, wait in kept)
        self._waits = {wait.job: wait for wait in waits}
        return replace(bare, waits=waits)

    def _prune(self, now_s: float) -> None:
        """Delete files that ended too long ago, then the oldest while all are too large. Never the one under way."""
        files = [(path, path.stat()) for path in sorted(self.folder.glob(_FILES)) if path != self._file]
        total = sum(stat.st_size for _, stat in files)
        for path, stat in files:
            if stat.st_mtime < now_s - self._keep_s or total > self._keep_bytes:
                path.unlink(missing_ok=True)
                total -= stat.st_size


def ticks(folder: Path | str, damaged: Callable[[RecordError], None] | None = None) -> Iterator[RecordedTick]:
    """The ticks of a folder (or of one file), oldest first. Raises RecordError at a damaged one; or calls `damaged`
    and goes on with the next file.
    """
    folder = Path(folder)
    files = [folder] if folder.is_file() else sorted(folder.glob(_FILES))
    if not files:
        where = "give the folder `ticks` beside the controller's ledger, or one of its files"
        raise RecordError(f"there are no ticks in {folder}: {where}")
    for path in files:
        try:
            yield from _read(path)
        except RecordError as error:
            if damaged is None:
                raise
            damaged(error)


class TickObservation(NamedTuple):
    """What a recorded tick saw of the queue and the nodes, and for whose queues it decided."""

    at_s: float
    jobs: tuple[Job, ...]
    nodes: tuple[Node, ...]
    homes: tuple[str, ...]  # home partitions


class Newest:
    """What the newest tick of a folder saw, again and again while a controller writes there: what is new is read."""

    def __init__(self, folder: Path | str):
        self._folder = Path(folder)
        self._path: Path | None = None
        self._read = 0  # bytes of the file
        self._at_s = 0.0
        self._said: dict[str, Any] | None = None  # by the last whole tick in it
        self._job = Kept(partial(from_json, Job))  # one that stayed the same was decoded in the tick before
        self._seen: TickObservation | None = None

    def look(self) -> TickObservation | None:
        """None: there is no tick. One that is being written counts at the next call. Raises RecordError."""
        for path in sorted(self._folder.glob(_FILES))[:-3:-1]:  # the newest one may hold no whole tick yet
            try:
                self._go_on(path)
            except _DAMAGE as error:
                raise RecordError(f"{path} can't be read ({error or type(error).__name__})") from None
            if self._said is not None:
                break
        return self._seen

    def _go_on(self, path: Path) -> None:
        if path != self._path:
            self._path, self._read, self._said = path, 0, None
        with path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        began, new = self._read, False
        with suppress(EOFError):
            for text, end in _members(data):
                self._at_s, self._said = _next(self._said, text)
                self._read, new = began + end, True
        if new and self._said is not None:
            self._seen = self._observed(self._said)

    def _observed(self, said: dict[str, Any]) -> TickObservation:
        self._job.look()
        jobs = tuple(map(self._job, said["snapshot"]["jobs"]))
        nodes = tuple(from_json(Node, item) for item in said["snapshot"]["nodes"])
        homes = (str(said["policy"]["home_partition"]), *map(str, said["policy"].get("other_homes", ())))
        return TickObservation(self._at_s, jobs, nodes, homes)


def usage(folder: Path | str) -> Usage:
    """What the ticks of a folder take on disk."""
    files = [(path, path.stat()) for path in sorted(Path(folder).glob(_FILES))]
    began = [_began(path) for path, _ in files]
    size = sum(stat.st_size for _, stat in files)
    return Usage(len(files), size, min(began, default=None), max((stat.st_mtime for _, stat in files), default=None))


def _read(path: Path) -> Iterator[RecordedTick]:
    count, said = 0, None
    try:
        for text, _ in _members(path.read_bytes()):
            at_s, said = _next(said, text)
            tick = _decoded(at_s, said)
            count += 1
            yield tick
    except _DAMAGE as error:
        good = f"its first {count} ticks are good" if count else "none of its ticks can be read"
        raise RecordError(
            f"{path} is damaged ({error or type(error).__name__}); {good}: move it away to read the others"
        ) from None


def _next(said: dict[str, Any] | None, text: bytes) -> tuple[float, dict[str, Any]]:
    """When the next tick of a file was, and what it says; `said`: what the one before said, None: it is the first."""
    new = json.loads(text)
    at_s = float(new.pop("at_s"))
    if "whole" in new:
        return at_s, {key: changes.applied(None, change) for key, change in new["whole"].items()}
    return at_s, new if said is None else {key: changes.applied(said[key], new[key]) for key in said}


def _decoded(at_s: float, said: dict[str, Any]) -> RecordedTick:
    return RecordedTick(
        at_s,
        from_json(Snapshot, said["snapshot"]),
        from_json(Decision, said["decision"]),
        from_json(Policy, said["policy"]),
    )


def _members(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Each gzip member, checked against its own sum before it is given out, and where it ends."""
    view, at = memoryview(data), 0
    while at < len(view):
        member, parts = zlib.decompressobj(31), []
        while not member.eof and at < len(view):
            chunk = view[at : at + 65536]
            parts.append(member.decompress(chunk))
            at += len(chunk) - len(member.unused_data)
        if not member.eof:
            raise EOFError("it ends in the middle of a tick")
        yield b"".join(parts), at


def _new(folder: Path, at_s: float) -> Path:
    """A file that doesn't exist yet, named after a moment; a second one of the same second sorts behind the first."""
    stamp = datetime.fromtimestamp(at_s, UTC).strftime(_TIME)
    names = (f"ticks-{stamp}-{n:03d}.jsonl.gz" for n in range(1000))
    return next(path for name in names if not (path := folder / name).exists())


def _began(path: Path) -> float:
    try:
        return datetime.strptime(path.name.split("-")[1], _TIME).replace(tzinfo=UTC).timestamp()
    except ValueError:  # named by somebody else
        return path.stat().st_mtime


def _as_it_is(item: Any) -> Any:
    return item


def _without_wording(item: Any) -> Any:
    names = {field.name for field in fields(item)}
    return replace(item, **{name: value for name, value in _WORDING.items() if name in names})


_WORDING: dict[str, Any] = {
    "text": "",
    "reason": "",
    "committed_until_s": 0.0,
    "committed_usd": 0.0,
}
