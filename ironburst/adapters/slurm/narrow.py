"""The queue of a large Slurm, asked for what is read of it: `scontrol show job` (job_text), and `squeue --json` for the
jobs of which that doesn't say enough. What is printed as at the last look is not read again, nor asked about.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable
from typing import Any

from ironburst.adapters.slurm import job_text
from ironburst.adapters.slurm.job_text import Row, Unsure

WIDE = 4_000_000
"""bytes of `squeue --json` from which on the queue is asked for in this way: 600 jobs that wait, or 80 nodes of 112
cores at work"""
AGAIN = 60
"""looks after which it is tried again where the answer was no such text"""
# they change from look to look, and nobody reads them
_VOLATILE = re.compile(rb"\n   (?:RunTime=\S+|SuspendTime=[^\n]*)")
_JOB = re.compile(rb"JobId=(\d+) ")
_COUNTED = re.compile(rb"\n   (?:Req|Alloc)TRES=\S*gres/gpu")
Ask = Callable[[list[int]], list[Any]]
_Key = tuple[int, int]


class NoText(ValueError):
    """It isn't what `scontrol show job` says."""


class Narrow:
    """Its answers, look after look."""

    def __init__(self) -> None:
        # Slurm writes it before each time, so that nobody else can write a job's record (its environment is root's)
        self._mark = f"{secrets.token_hex(10)}@".encode()
        self._known: dict[_Key, Row | None] = {}  # by their text's hash and length
        self._counts_gpus = False  # what jobs are given has GPUs in it
        self.made = 0  # records that were read since the start

    @property
    def command(self) -> tuple[str, ...]:
        """What is asked."""
        return ("env", f"SLURM_TIME_FORMAT={self._mark.decode()}%s", "scontrol", "show", "job")

    def read(self, text: Iterable[bytes], ask: Ask) -> list[Row]:
        """Rows as of `squeue --json`, of the text piece by piece; not to be written to. `ask`: gives such rows of jobs,
        and of others. Raises NoText.
        """
        known, now, rows = self._known, dict[_Key, Row | None](), list[Row | None]()
        unsure: list[tuple[int, bytes, _Key]] = []
        for record in _records(text):
            steady = _VOLATILE.sub(b"", record)
            which = hash(steady), len(steady)
            row = known.get(which)
            if row is None and which not in known:
                self.made += 1
                self._counts_gpus = self._counts_gpus or bool(_COUNTED.search(record))
                try:
                    row = self._row(record)
                except Unsure:
                    unsure.append((len(rows), record, which))
            now[which] = row
            rows.append(row)
        if not rows:  # without a job it says so, in words
            raise NoText("it says nothing")
        self._known = now
        self._ask_for(unsure, rows, ask)
        return [each for each in rows if each is not None]

    def _ask_for(self, unsure: list[tuple[int, bytes, _Key]], rows: list[Row | None], ask: Ask) -> None:
        left: dict[int, tuple[int, _Key]] = {}
        for place, record, which in unsure:
            try:  # again: whether GPUs are counted may have shown itself since
                rows[place] = self._known[which] = self._row(record)
            except Unsure:
                left[self._id(record)] = place, which
        found = {raw.get("job_id"): raw for raw in ask([*left])} if left else {}
        for id, (place, which) in left.items():
            rows[place] = self._known[which] = found.get(id)
            if id not in found:  # it has ended since, or is to be asked for again
                del self._known[which]

    def _row(self, record: bytes) -> Row | None:
        self._id(record)
        return job_text.row(record.decode("utf-8", "replace"), self._mark.decode(), self._counts_gpus)

    def _id(self, record: bytes) -> int:
        if not (job := _JOB.match(record)) or record.count(b"\n   SubmitTime=" + self._mark) != 1:
            raise NoText(f"a record isn't a job's: {record[:80]!r}")
        return int(job[1])


def _records(text: Iterable[bytes]) -> Iterable[bytes]:
    rest = b""
    for piece in text:
        *whole, rest = (rest + piece).split(b"\n\n")
        yield from whole
    if rest.strip():
        yield rest
