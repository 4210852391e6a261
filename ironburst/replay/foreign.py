"""Traces that are no tables with one line of columns: JSON (Slurm's sacct --json, Philly's job log), and the Standard
Workload Format. Their jobs become rows of names and texts, or jobs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from ironburst.replay import formats
from ironburst.replay.formats import NO_GPU, NOT_STARTED, RUNNING, TraceError, TraceJob, TraceRow

SWF = (
    *("job", "submit", "wait", "run_time", "allocated", "cpu_time", "memory", "requested", "requested_time"),
    *("requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding", "think_time"),
)
"""fields of a line, from the Parallel Workloads Archive; -1: unknown"""
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
PART = "part of a job that has a line of its own"
NO_RUN_TIME = "its run time isn't known"
NO_TIMES = "a run of it has no times"


def is_swf(line: str) -> bool:
    """A comment of the Standard Workload Format, or 18 numbers."""
    values = line.split()
    return line.startswith(";") or (
        len(values) == len(SWF) and all(v.lstrip("-").replace(".", "", 1).isdigit() for v in values)
    )


def swf(path: Path, first: str, rest: TextIO) -> Iterator[TraceJob | str]:
    """Jobs of the Standard Workload Format. It knows processors and no GPUs: each counts as one."""
    seen = set()
    for number, line in enumerate(chain([first], rest), 1):
        values = line.split()
        if not values or line.lstrip().startswith(";"):
            continue
        if len(values) != len(SWF):
            raise TraceError(
                f"{path}, line {number} has {len(values)} values; the Standard Workload Format has {len(SWF)}"
            )
        if odd := [value for value in values if not _NUMBER.fullmatch(value)]:
            raise TraceError(f"{path}, line {number} has {odd[0]!r}, and the Standard Workload Format only numbers")
        if (same := hash(tuple(values))) in seen:
            yield formats.TWICE
            continue
        seen.add(same)
        known = {name: value for name, value in zip(SWF, values, strict=True) if not value.startswith("-")}
        yield _of_swf(TraceRow(path, number, {"run_time": "", "submit": "", **known}))


def _of_swf(row: TraceRow) -> TraceJob | str:
    said = row.values
    if said.get("status") in ("2", "3", "4"):
        return PART
    size = "allocated" if said.get("allocated", "0") != "0" else "requested"
    if not said.get(size) or not (gpus := row.whole(size)):
        return NO_GPU
    if not said["run_time"] or not row.number("run_time"):
        return NOT_STARTED if said.get("status") in ("0", "5") else NO_RUN_TIME
    submit = row.number("submit")
    start = submit + row.number("wait") if "wait" in said else math.nan
    limit = row.optional("requested_time") or math.nan
    queue, user = said.get("queue", said.get("partition", "")), said.get("user", "")
    return TraceJob(submit, row.number("run_time"), gpus, queue, user, limit, start_s=start)


def of_json(path: Path, text: str) -> Iterator[TraceJob | str | None]:
    """Jobs of `sacct --json`, or of Philly's cluster_job_log. Raises TraceError."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path} is no JSON that can be read ({error}): save it again, whole") from None
    slurms = isinstance(answer, dict)
    jobs = answer.get("jobs") if slurms else answer
    if not isinstance(jobs, list):
        raise TraceError(f"{path} has no list of jobs: give what `sacct --json` prints, or Philly's cluster_job_log")
    for number, raw in enumerate(jobs, 1):
        try:
            yield formats.sacct(_of_slurm(path, number, raw)) if slurms else _of_philly(path, number, raw)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, TraceError):
                raise
            raise TraceError(
                f"{path}, job {number} has a shape that isn't known ({error!r}): {str(raw)[:80]}"
            ) from None


def _of_slurm(path: Path, number: int, raw: dict[str, Any]) -> TraceRow:
    """A job of `sacct --json` (data_parser v0.0.38 to v0.0.45) in the words of `sacct --parsable2`."""
    time, state = raw["time"], raw["state"]["current"]
    values = {
        "JobIDRaw": str(raw["job_id"]),
        "Submit": _moment(time["submission"]),
        "Start": _moment(time["start"]),
        "End": _moment(time["end"]),
        "ElapsedRaw": str(_number(time["elapsed"]) or 0),
        "TimelimitRaw": str(_number(time.get("limit")) or ""),
        "AllocTRES": _tres(raw["tres"].get("allocated")),
        "ReqTRES": _tres(raw["tres"].get("requested")),
        "User": str(raw.get("user") or (raw.get("association") or {}).get("user") or ""),
        "Partition": str(raw.get("partition") or ""),
        "Account": str(raw.get("account") or ""),
        "State": str(state[0] if isinstance(state, list) else state),
    }
    return TraceRow(path, number, values, "job")


def _number(value: Any) -> int | None:
    """A number, or {set, infinite, number}; None: not set, or infinite."""
    if isinstance(value, dict):
        return int(value["number"]) if value.get("set", True) and not value.get("infinite") else None
    return None if value is None else int(value)


def _moment(value: Any) -> str:
    return str(_number(value) or "")


def _tres(listed: Any) -> str:
    names = [(f"{each['type']}/{each['name']}" if each.get("name") else each["type"], each) for each in listed or []]
    return ",".join(f"{name}={_number(each['count']) or 0}" for name, each in names)


def _of_philly(path: Path, number: int, raw: dict[str, Any]) -> TraceJob | str:
    """A job of Philly: all of its attempts one after the other, on the GPUs of the largest. UTC: only differences
    count.
    """
    row = TraceRow(path, number, {key: str(value) for key, value in raw.items()}, "job")
    runs = [(_clock(each.get("start_time")), _clock(each.get("end_time"))) for each in raw["attempts"]]
    begun = [(start, end) for start, end in runs if start is not None and end is not None]
    if not any(start is not None for start, _ in runs):
        return NOT_STARTED
    if runs[-1][1] is None:
        return RUNNING
    if len(begun) < len(runs):  # "this could be the result of a logging error"
        return NO_TIMES
    gpus = max(sum(len(set(host["gpus"])) for host in each["detail"]) for each in raw["attempts"])
    if not gpus:
        return NO_GPU
    submit = _clock(raw["submitted_time"])
    if submit is None:
        raise row.bad("submitted_time", "a time such as 2017-10-09 07:01:55")
    duration = sum(end - start for start, end in begun)
    if duration < 0:
        raise row.bad("attempts", "a list of runs that end after they start")
    return TraceJob(submit, duration, gpus, str(raw.get("vc") or ""), str(raw.get("user") or ""), start_s=begun[0][0])


def _clock(text: Any) -> float | None:
    if text in (None, "", "None"):
        return None
    return datetime.fromisoformat(str(text).removesuffix(" PST").removesuffix(" PDT")).replace(tzinfo=UTC).timestamp()
