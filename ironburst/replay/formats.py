"""The formats of traces: how a line of each becomes a job, or the reason why it doesn't.
A file's format is known by its columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ironburst.burst.explain import FAR_S
from ironburst.nodes.gpus import whole

MOST_GPUS = 1_000_000  # of one job; more is a damaged line
NO_GPU, NOT_STARTED, RUNNING = "wants no GPU", "never started", "still running"
SLICES = "has parts of GPUs (MIG) alone"


TWICE = "the same line is there twice"


class TraceError(ValueError):
    """A trace that can't be used: one sentence that says where, what was found and what is allowed."""


class TraceJob(NamedTuple):
    """One job as it was recorded; NaN and the empty string where the file doesn't have it."""

    submit_s: float
    duration_s: float
    gpus: int
    queue: str = ""
    user: str = ""
    limit_s: float = math.nan
    deadline_s: float = math.nan
    start_s: float = math.nan
    saves_s: float = math.nan


@dataclass(frozen=True)
class TraceRow:
    """One line of a file; every complaint names the file, the line, the column and the value."""

    path: Path
    line: int
    values: Mapping[str, str]
    what: str = "line"  # that `line` counts

    def bad(self, name: str, allowed: str) -> TraceError:
        """The complaint about the value of this column."""
        given = self.values.get(name)
        return TraceError(f"{self.path}, {self.what} {self.line}: {name} is {given!r}; allowed is {allowed}")

    def number(self, name: str) -> float:
        """A finite number of 0 or more. Raises TraceError."""
        try:
            value = float(self.values[name])
        except ValueError:
            value = math.nan
        if not 0.0 <= value <= FAR_S:
            most = f", up to {FAR_S:.0f} (the year 9999)" if value > FAR_S else ""
            raise self.bad(name, f"a number of 0 or more{most}")
        return value

    def optional(self, name: str) -> float:
        """NaN where the column or the value isn't there (an empty value, or nan)."""
        return math.nan if self.values.get(name, "").strip().lower() in ("", "nan") else self.number(name)

    def whole(self, name: str) -> int:
        """A whole number from 0 to MOST_GPUS. Raises TraceError."""
        value = self.number(name)
        if value != int(value) or value > MOST_GPUS:
            raise self.bad(name, f"a whole number from 0 to {MOST_GPUS}")
        return int(value)


def plain(row: TraceRow) -> TraceJob | str:
    """Seconds and whole GPUs, as they stand."""
    if not (gpus := row.whole("num_gpus")):
        return NO_GPU
    return TraceJob(
        row.number("submit_s"),
        row.number("duration_s"),
        gpus,
        row.values.get("vc", row.values.get("queue", "")),
        row.values.get("user", ""),
        row.optional("limit_s") or math.nan,  # 0: none, as Slurm has it
        row.optional("deadline_s"),
        row.optional("start_s"),
        row.optional("checkpoint_s"),
    )


def sacct(row: TraceRow) -> TraceJob | str | None:
    """Slurm's accounting. None for a step (JobIDRaw has a dot): its job's own line counts. Queue: partition, else
    account. As this command prints it; UTC and seconds keep an hour from vanishing when clocks change:

    TZ=UTC SLURM_TIME_FORMAT=%s sacct --allusers --allocations --parsable2 --starttime=2026-01-01
    --format=JobIDRaw,Submit,Start,End,ElapsedRaw,TimelimitRaw,AllocTRES,ReqTRES,User,Partition,Account,State
    """
    if "." in (row.values.get("JobIDRaw") or row.values.get("JobID", "")):
        return None
    state = row.values.get("State", "").split(" ")[0]  # "CANCELLED by 1001"
    start = sacct_time(row, "Start")
    if state == "PENDING" or start is None:
        return NOT_STARTED
    if state in ("RUNNING", "SUSPENDED", "RESIZING"):
        return RUNNING
    gpus = tres_gpus(row, "AllocTRES") or (tres_gpus(row, "ReqTRES") if row.values.get("ReqTRES") else 0)
    if not gpus:
        return SLICES if "gres/gpu:" in row.values["AllocTRES"] + row.values.get("ReqTRES", "") else NO_GPU
    submit, elapsed = sacct_time(row, "Submit"), _elapsed(row, start)
    if submit is None:
        raise row.bad("Submit", "a time such as 2026-03-01T12:00:00, or seconds since 1970")
    if not elapsed:
        return NOT_STARTED
    queue = row.values.get("Partition") or row.values.get("Account", "")
    return TraceJob(submit, elapsed, gpus, queue, row.values.get("User", ""), _limit(row), start_s=start)


def _elapsed(row: TraceRow, start: float) -> float:
    """Seconds: as they stand, as [D-]HH:MM:SS, or from Start to End."""
    if "ElapsedRaw" in row.values:
        return row.number("ElapsedRaw")
    if "Elapsed" in row.values:
        return _span(row, "Elapsed")
    end = sacct_time(row, "End")
    if end is None or end < start:
        raise row.bad("End", "a time behind Start")
    return end - start


def _limit(row: TraceRow) -> float:
    """Seconds; TimelimitRaw is in minutes. NaN: one of Slurm's words for "none of its own"."""
    name = "TimelimitRaw" if "TimelimitRaw" in row.values else "Timelimit"
    if row.values.get(name, "") in ("", "UNLIMITED", "Partition_Limit"):
        return math.nan
    return (60 * row.number(name) if name == "TimelimitRaw" else _span(row, name)) or math.nan


def _span(row: TraceRow, name: str) -> float:
    """Slurm's [D-]HH:MM:SS, in seconds."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?", row.values[name])
    if not found:
        raise row.bad(name, "a span such as 1-02:03:04 (days, hours, minutes, seconds)")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def sacct_time(row: TraceRow, name: str) -> float | None:
    """Seconds since 1970; None for what hasn't happened. A time without zone is UTC: only differences count."""
    text = row.values[name]
    if text in ("", "Unknown", "None"):
        return None
    try:
        if text.isdigit():
            return float(text)
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        raise row.bad(name, "a time such as 2026-03-01T12:00:00, or seconds since 1970") from None


def tres_gpus(row: TraceRow, name: str) -> int:
    """Whole GPUs of Slurm's list of resources."""
    try:
        return whole(row.values[name])
    except ValueError:
        raise row.bad(name, "Slurm's list of resources, such as cpu=8,gres/gpu=4,node=1") from None


def chronus(row: TraceRow) -> TraceJob | str:
    """Chronus. Its authors state no unit of time: minutes by all appearances, for then the submits span two weeks
    (20,150 of 20,160 minutes) and the shortest job runs 20.
    The deadline counts from submit (it is never below 1.1 x the run time).
    """
    if not (gpus := row.whole("num_gpu")):
        return NO_GPU
    submit = 60 * row.number("submit_time")
    deadline = submit + 60 * row.number("expect_time_list")
    return TraceJob(submit, 60 * row.number("duration"), gpus, user=row.values.get("user", ""), deadline_s=deadline)


def openb(row: TraceRow) -> TraceJob | str:
    """Alibaba's openb pods. One that wants a part of a GPU (38% of them) counts as one whole GPU:
    nothing here shares a GPU, so the trace is heavier than it was. It ran from scheduled_time to deletion_time
    (its recorded wait is dropped). Queue: QoS.
    """
    if not (gpus := row.whole("num_gpu")):
        return NO_GPU
    if not row.values["scheduled_time"]:
        return NOT_STARTED
    scheduled, ended = row.number("scheduled_time"), row.number("deletion_time")
    if ended < scheduled:
        raise row.bad("deletion_time", f"a time that isn't before scheduled_time ({scheduled:g})")
    return TraceJob(row.number("creation_time"), ended - scheduled, gpus, row.values.get("qos", ""))


def helios(row: TraceRow) -> TraceJob | str:
    """SenseTime's Helios, and Acme with the same columns. `queue` is how long a job waited; its virtual cluster is what
    a queue is here.
    """
    if not (gpus := row.whole("gpu_num")):
        return NO_GPU
    submit, start = sacct_time(row, "submit_time"), sacct_time(row, "start_time")
    if submit is None:
        raise row.bad("submit_time", "a time such as 2020-04-01 12:00:00")
    if start is None:
        return NOT_STARTED
    if row.values.get("state", "").upper() == "RUNNING":
        return RUNNING
    return TraceJob(
        submit, row.number("duration"), gpus, row.values.get("vc", ""), row.values.get("user", ""), start_s=start
    )


FORMATS: tuple[tuple[str, tuple[str, ...], Callable[[TraceRow], TraceJob | str | None]], ...] = (
    ("plain", ("submit_s", "duration_s", "num_gpus"), plain),
    ("sacct", ("JobIDRaw", "Submit", "Start", "ElapsedRaw", "AllocTRES"), sacct),
    ("sacct", ("JobID", "Submit", "Start", "Elapsed", "AllocTRES"), sacct),
    ("sacct", ("JobID", "Submit", "Start", "End", "AllocTRES"), sacct),
    ("helios", ("gpu_num", "submit_time", "start_time", "duration"), helios),
    ("chronus", ("submit_time", "duration", "num_gpu", "expect_time_list"), chronus),
    ("openb", ("num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"), openb),
)
