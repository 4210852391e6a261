"""What Slurm has accounted: `sacct`, as the cost report asks for it, and its lines as tries of jobs.

Columns: sacct(1) of Slurm 24.11. `--duplicates`: a job that was requeued has one line a try, and each try's Submit is
the moment of its requeue. Without `--state`, all jobs are shown that were pending or ran at any time in the window.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from ironburst.adapters.slurm import values as slurm_values
from ironburst.cost.accounted import JobRun
from ironburst.nodes import naming
from ironburst.replay import formats
from ironburst.replay.formats import TraceError, TraceRow

COLUMNS = (
    "JobIDRaw",
    "JobID",
    "Submit",
    "Start",
    "End",
    "ElapsedRaw",
    "AllocTRES",
    "User",
    "Account",
    "NodeList",
    "State",
)
_RUNS_STILL = ("RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING")


def command(from_s: float, to_s: float) -> tuple[str, ...]:
    """What prints the jobs of a window. In UTC and seconds, no hour vanishes when clocks change."""
    begin, end = (datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S") for at in (from_s, to_s))
    return (
        *("env", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "sacct", "--allusers", "--allocations", "--duplicates"),
        *("--parsable2", f"--starttime={begin}", f"--endtime={end}", f"--format={','.join(COLUMNS)}"),
    )


def runs(lines: Iterable[str], path: Path) -> list[JobRun]:
    """Tries of jobs, steps left out, in the order of the lines. `path`: named in complaints. Raises TraceError."""
    numbered = enumerate(csv.reader(lines, delimiter="|", quoting=csv.QUOTE_NONE), 1)
    columns = next((values for _, values in numbered), [])
    if missing := [name for name in COLUMNS if name not in columns]:
        raise TraceError(
            f"{path}, line 1: it has no column {missing[0]}; as sacct --parsable2 prints them, these are needed: "
            f"{','.join(COLUMNS)}"
        )
    found, said = [], set()
    for number, values in numbered:
        if not values or tuple(values) in said:  # the same try of the same job: two answers of sacct in one file
            continue
        said.add(tuple(values))
        if len(values) != len(columns):
            raise TraceError(f"{path}, line {number} has {len(values)} values; the first line names {len(columns)}")
        if run := _run(TraceRow(path, number, dict(zip(columns, values, strict=True)))):
            found.append(run)
    return found


def _run(row: TraceRow) -> JobRun | None:
    """None: a step."""
    raw = row.values["JobIDRaw"]
    if "." in raw:
        return None
    submit = formats.sacct_time(row, "Submit")
    if submit is None:
        raise row.bad("Submit", "a time such as 2026-03-01T12:00:00, or seconds since 1970")
    start, end, elapsed = formats.sacct_time(row, "Start"), formats.sacct_time(row, "End"), row.number("ElapsedRaw")
    if start is not None and end is None and row.values["State"].split(" ")[0] not in _RUNS_STILL:
        end = start + elapsed  # slurmctld lost it: slurmdbd never heard of an end
    return JobRun(
        job=_job(row),
        called=row.values["JobID"],
        user=row.values["User"],
        account=row.values["Account"],
        nodes=_nodes(row),
        gpus=formats.tres_gpus(row, "AllocTRES"),
        submit_s=submit,
        start_s=start,
        end_s=end,
        elapsed_s=elapsed,
    )


def _job(row: TraceRow) -> int:
    """As the ledger has it: a task of an array by the array's number and its own."""
    array, _, task = row.values["JobID"].partition("_")
    if array.isdigit() and task.isdigit():
        return naming.task_of_array(int(array), int(task))
    if not row.values["JobIDRaw"].isdigit():
        raise row.bad("JobIDRaw", "a job's number")
    return int(row.values["JobIDRaw"])


def _nodes(row: TraceRow) -> tuple[str, ...]:
    text = row.values["NodeList"]
    try:
        return () if text in ("", "None assigned", "None") else _expanded(text)
    except ValueError:
        raise row.bad("NodeList", "Slurm's list of hosts, such as gpu[01-04]") from None


@lru_cache(maxsize=4096)
def _expanded(text: str) -> tuple[str, ...]:
    return tuple(slurm_values.expand(text))
