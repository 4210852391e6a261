"""Traces of jobs, read from files: what was submitted, when, how large, and how long it ran.

A file's format is known by its columns (ironburst.replay.formats):

- plain: submit_s, duration_s, num_gpus; if there: vc (or queue), user, limit_s, deadline_s,
  checkpoint_s. It is taken as it stands.
- sacct: JobIDRaw, Submit, Start, ElapsedRaw, AllocTRES, split by a bar. Slurm's accounting (`formats.sacct`).
- chronus: submit_time, duration, num_gpu, expect_time_list. Minutes, by all appearances.
- helios: gpu_num, submit_time, start_time, duration. Helios and Acme, as published.
- openb: num_gpu, gpu_milli, creation_time, deletion_time, scheduled_time. A part of a GPU counts as one.

Without columns (ironburst.replay.foreign): `sacct --json`, Philly's cluster_job_log, and the Standard Workload Format,
whose processors count as GPUs. Each may be packed (.xz).
Jobs that can't be played again (no GPU, never started, still running) are left out, counted by reason.
"""

from __future__ import annotations

import csv
import lzma
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ironburst.replay import foreign, formats
from ironburst.replay.formats import TraceError

JITTER_S = 0.5
TORN = "a bar or a line end in one of its texts"
_IDS = frozenset(("JobIDRaw", "JobID", "job_id"))  # where jobs have numbers, two lines that are alike are one job's
_MANY = 20  # columns: with free texts among them, as `sacct -o ALL` has
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Trace:
    """Jobs in order of submit; every array has one value a job.

    `submit_s`, `duration_s` (float64, seconds) and `gpus` (int64, at least 1) are always known. The others are None
    where the trace knows them for no job; `limit_s` (the time limit that the user gave) and `deadline_s` (on the clock
    of `submit_s`) are NaN where it doesn't know them for one job, as are `start_s`, when it began there, and `saves_s`,
    how often it saves its work; `requeue` (bool): the user allows that it is started again (None: all do). `left_out`:
    how many jobs of the file aren't here, by reason; `note`: what else was done to it.
    """

    submit_s: Floats
    duration_s: Floats
    gpus: Integers
    queue: tuple[str, ...] | None = None
    user: tuple[str, ...] | None = None
    limit_s: Floats | None = None
    deadline_s: Floats | None = None
    requeue: Flags | None = None
    start_s: Floats | None = None
    saves_s: Floats | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        for name in ("submit_s", "duration_s", "limit_s", "deadline_s", "start_s", "saves_s"):
            if (values := getattr(self, name)) is not None:
                object.__setattr__(self, name, np.asarray(values, float))
        object.__setattr__(self, "gpus", np.asarray(self.gpus, np.int64))
        lengths = {name: len(values) for name in _PER_JOB if (values := getattr(self, name)) is not None}
        if len(set(lengths.values())) > 1:
            raise TraceError(f"a trace has one value a job in each array, but the lengths are {lengths}")
        if not (
            np.isfinite(self.submit_s).all() and np.isfinite(self.duration_s).all() and (self.duration_s >= 0).all()
        ):
            raise TraceError("a trace's submit_s and duration_s are finite and duration_s is not negative")
        if (self.gpus < 1).any():
            raise TraceError("a job of a trace has 1 GPU or more")
        if (np.diff(self.submit_s) < 0).any():
            raise TraceError("a trace is in order of submit_s: sort it first, with `in_order`")

    def __len__(self) -> int:
        return len(self.submit_s)

    @property
    def gpu_hours(self) -> Floats:
        """GPUs x hours that each job ran."""
        hours: Floats = self.gpus * self.duration_s / 3600
        return hours

    def take(self, jobs: slice | Integers | Flags) -> Trace:
        """The trace of these jobs only (positions or a mask, in order of submit)."""
        chosen = np.arange(len(self))[jobs]
        return replace(
            self,
            submit_s=self.submit_s[chosen],
            duration_s=self.duration_s[chosen],
            gpus=self.gpus[chosen],
            queue=_picked(self.queue, chosen),
            user=_picked(self.user, chosen),
            limit_s=None if self.limit_s is None else self.limit_s[chosen],
            deadline_s=None if self.deadline_s is None else self.deadline_s[chosen],
            requeue=None if self.requeue is None else np.asarray(self.requeue)[chosen],
            start_s=None if self.start_s is None else self.start_s[chosen],
            saves_s=None if self.saves_s is None else self.saves_s[chosen],
        )


_PER_JOB = ("submit_s", "duration_s", "gpus", "queue", "user", "limit_s", "deadline_s", "requeue", "start_s", "saves_s")


def _picked(names: tuple[str, ...] | None, positions: Integers) -> tuple[str, ...] | None:
    return None if names is None else tuple(names[position] for position in positions)


def in_order(
    submit_s: ArrayLike,
    duration_s: ArrayLike,
    gpus: ArrayLike,
    *,
    queue: Sequence[str] | None = None,
    user: Sequence[str] | None = None,
    limit_s: ArrayLike | None = None,
    deadline_s: ArrayLike | None = None,
    requeue: ArrayLike | None = None,
    start_s: ArrayLike | None = None,
    saves_s: ArrayLike | None = None,
    left_out: Mapping[str, int] | None = None,
    note: str = "",
) -> Trace:
    """A Trace of these columns, sorted by submit; jobs of the same instant keep their order."""
    order = np.argsort(np.asarray(submit_s, float), kind="stable")
    return Trace(
        submit_s=np.asarray(submit_s)[order],
        duration_s=np.asarray(duration_s)[order],
        gpus=np.asarray(gpus)[order],
        queue=None if queue is None else _picked(tuple(queue), order),
        user=None if user is None else _picked(tuple(user), order),
        limit_s=None if limit_s is None else np.asarray(limit_s)[order],
        deadline_s=None if deadline_s is None else np.asarray(deadline_s)[order],
        requeue=None if requeue is None else np.asarray(requeue)[order],
        start_s=None if start_s is None else np.asarray(start_s)[order],
        saves_s=None if saves_s is None else np.asarray(saves_s)[order],
        left_out=left_out or {},
        note=note,
    )


def jittered(trace: Trace, seed: int) -> Trace:
    """The trace with every submit later and every duration longer by a random part of half a second.

    Many recorded jobs share a second, and packing is chaotic: without this the order of ties decides a per
    cent of the result. Drawn as the reference figures of the peers were:
    `default_rng(seed)`, first all submits, then all durations.
    """
    random = np.random.default_rng(seed)
    submit = trace.submit_s + random.uniform(0, JITTER_S, len(trace))
    duration = trace.duration_s + random.uniform(0, JITTER_S, len(trace))
    return in_order(**(vars(trace) | {"submit_s": submit, "duration_s": duration}))


def split(trace: Trace, fraction: float) -> tuple[Trace, Trace]:
    """(the first jobs, the last `fraction` of the jobs in order of submit):
    one part to tune on, one kept aside. Times stay.
    """
    if not 0 < fraction < 1:
        raise TraceError(f"the part of a trace to keep aside is more than 0 and less than 1, not {fraction}")
    kept = len(trace) - math.ceil(len(trace) * fraction)
    return trace.take(slice(None, kept)), trace.take(slice(kept, None))


def read(path: Path | str) -> Trace:
    """The trace in a file of any format above.
    Raises TraceError, one sentence, for a file that isn't one or is damaged.
    """
    path = Path(path)
    try:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
            first_line = file.readline()
            if first_line.lstrip()[:1] in ("{", "["):
                return _of_jobs(path, foreign.of_json(path, first_line + file.read()), slurms=first_line[:1] == "{")
            if foreign.is_swf(first_line):
                return replace(_of_jobs(path, foreign.swf(path, first_line, file)), note="processors count as GPUs")
            dialect = _Barred if "|" in first_line else csv.excel
            columns = next(csv.reader([first_line], dialect), [])
            lines = csv.reader(file, dialect)
            numbered = ((lines.line_num + 1, values) for values in lines)  # the first line was read before
            return _trace(path, [name.strip() for name in columns], numbered)
    except FileNotFoundError:
        raise TraceError(f"there is no trace {path}") from None
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise TraceError(f"{path} can't be read as a trace: {why or error}") from None


class _Barred(csv.excel):
    """As sacct --parsable2 prints: nothing is quoted."""

    delimiter = "|"
    quoting = csv.QUOTE_NONE


def _trace(path: Path, columns: list[str], lines: Iterator[tuple[int, list[str]]]) -> Trace:
    """The trace of these (number, values) of lines. Raises TraceError."""
    to_job = next((to_job for _, needs, to_job in formats.FORMATS if set(needs) <= set(columns)), None)
    if not to_job:
        known = "; or ".join(f"{', '.join(needs)} ({name})" for name, needs, _ in formats.FORMATS)
        has = ", ".join(columns) or "nothing"
        raise TraceError(f"{path} is no known trace: its first line has {has}; known are the columns {known}")
    is_sacct = to_job is formats.sacct
    return _of_jobs(path, _jobs(path, columns, lines, to_job, told_apart=not is_sacct), slurms=is_sacct)


def _jobs(
    path: Path,
    columns: list[str],
    lines: Iterable[tuple[int, list[str]]],
    to_job: Callable[[formats.TraceRow], formats.TraceJob | str | None],
    told_apart: bool,
) -> Iterator[formats.TraceJob | str | None]:
    """`told_apart`: texts with the sign between columns in them are quoted; sacct quotes nothing, and its job names and
    comments may have bars and line ends in them.
    """
    has_ids, seen = not _IDS.isdisjoint(columns), set()
    for number, values in lines:
        if not values:
            continue
        line = hash(tuple(values)) if has_ids else None
        if len(values) == len(columns) and line in seen:
            yield formats.TWICE
        elif len(values) == len(columns):
            seen |= {line} - {None}
            yield to_job(formats.TraceRow(path, number, dict(zip(columns, values, strict=True))))
        elif told_apart or len(columns) < _MANY:
            but = f"has {len(values)} values, but the first line names {len(columns)}"
            raise TraceError(f"{path}, line {number} {but}: {','.join(values)[:80]!r}")
        else:
            yield TORN


def _of_jobs(path: Path, found: Iterable[formats.TraceJob | str | None], slurms: bool = False) -> Trace:
    """The trace of jobs, and of reasons why some are left out. Raises TraceError."""
    jobs: list[formats.TraceJob] = []
    left_out: Counter[str] = Counter()
    for job in found:
        if isinstance(job, str):
            left_out[job] += 1
        elif job:
            jobs.append(job)
    if left_out[TORN] > max(1, len(jobs)):
        raise TraceError(f"{path} has {left_out[TORN]} lines with another number of values than its first line names")
    if not jobs:
        why = "".join(f"; left out: {count} ({reason})" for reason, count in left_out.items())
        if slurms and formats.NO_GPU in left_out:
            why += "; sacct knows GPUs only of jobs that ran while slurm.conf had AccountingStorageTRES=gres/gpu"
        raise TraceError(f"{path} has no job that could be played again{why}")
    submit, duration, gpus, queue, user, limit, deadline, start, saves = zip(*jobs, strict=True)
    return in_order(
        submit,
        duration,
        gpus,
        queue=queue if any(queue) else None,
        user=user if any(user) else None,
        limit_s=limit if not np.isnan(limit).all() else None,
        deadline_s=deadline if not np.isnan(deadline).all() else None,
        start_s=start if not np.isnan(start).all() else None,
        saves_s=saves if not np.isnan(saves).all() else None,
        left_out=dict(left_out),
    )
