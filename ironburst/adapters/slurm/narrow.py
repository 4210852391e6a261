"""The queue of a large Slurm, asked for what is read of it: `scontrol show job` (job_text), and `squeue --json` for the
jobs of which that doesn't say enough. What is printed as at the last look is not read again, nor asked about.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from ironburst.adapters.slurm import job_text
from ironburst.adapters.slurm.job_text import Row, Unsure

WIDE = 4_000_000
"""bytes of `squeue --json` from which on the queue is asked for in this way: 600 jobs that wait, or 80 nodes of 112
cores at work"""
MANY = 600
"""jobs from which on it is asked for in this way at once"""
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
        doubtful: dict[int, int] = {}  # places of what may be no job, by id
        for record, whole in self._records(text):
            if not whole:
                if job := _JOB.match(record):
                    doubtful.setdefault(int(job[1]), len(rows))
                    rows.append(None)
                continue
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
        if not now:  # without a job it says so, in words
            raise NoText("it says nothing of a job")
        self._known = now
        self._ask_for(unsure, doubtful, rows, ask)
        return [each for each in rows if each is not None]

    def _ask_for(
        self, unsure: list[tuple[int, bytes, _Key]], doubtful: dict[int, int], rows: list[Row | None], ask: Ask
    ) -> None:
        left: dict[int, tuple[int, _Key]] = {}
        for place, record, which in unsure:
            try:  # again: whether GPUs are counted may have shown itself since
                rows[place] = self._known[which] = self._row(record)
            except Unsure:
                left[_id(record)] = place, which
        sure = {row["job_id"] for row in rows if row} | left.keys() if doubtful else set()
        others = {id: place for id, place in doubtful.items() if id not in sure}
        found = {raw.get("job_id"): raw for raw in ask([*left, *others])} if left or others else {}
        for id, (place, which) in left.items():
            rows[place] = self._known[which] = found.get(id)
            if id not in found:  # it has ended since, or is to be asked for again
                del self._known[which]
        for id, place in others.items():
            rows[place] = found.get(id)

    def _records(self, text: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
        """And whether each is a job's: a user may have written an empty line, so what stands beside a piece of a record
        is none either.
        """
        record, whole, before = b"", True, True
        for piece in chain(_pieces(text), (b"",)):
            after = not piece or self._is_whole(piece)
            if record:
                yield record, before and whole and after
                before = whole
            record, whole = piece, after

    def _is_whole(self, record: bytes) -> bool:
        return bool(_JOB.match(record)) and record.count(b"\n   SubmitTime=" + self._mark) == 1

    def _row(self, record: bytes) -> Row | None:
        return job_text.row(record.decode("utf-8", "replace"), self._mark.decode(), self._counts_gpus)


def _id(record: bytes) -> int:
    job = _JOB.match(record)
    return int(job[1]) if job else 0


def _pieces(text: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in text:
        *whole, rest = (rest + piece).split(b"\n\n")
        yield from filter(None, whole)
    if rest.strip():
        yield rest
