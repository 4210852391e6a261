"""What Slurm shows an ordinary user of jobs: squeue of those in the queue, sacct of those that have ended; of both with
the administrator's comment, which the controller writes.

Columns: sacct(1) of Slurm 24.11.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from ironburst.adapters.slurm import answers as slurm_json
from ironburst.adapters.slurm import asked as slurm_asked
from ironburst.adapters.slurm import comments as slurm_comments
from ironburst.adapters.slurm.values import expand
from ironburst.ports import SchedulerError, WrongShape

Ask = Callable[..., str]
"""Runs a command that changes nothing and gives what it says, as Slurm.show. Raises SchedulerError."""
_COLUMNS = "JobID,User,State,Start,End,ElapsedRaw,AllocTRES,NodeList,AdminComment,JobName"
_BETWEEN = "\x1f"  # names of jobs have anything else


@dataclass(frozen=True)
class OwnJob:
    """A job, or one of its tries. `end_s` None: it hasn't ended; `on`: the nodes that it is or was on."""

    called: str
    name: str
    user: str
    state: str
    gpus: int
    on: tuple[str, ...]
    start_s: float | None
    end_s: float | None
    elapsed_s: float
    comment: str


def queue(ask: Ask, now_s: float, *options: str) -> list[OwnJob]:
    """Those in the queue, by squeue's options; none where it knows no such job. Raises SchedulerError."""
    try:
        answer = json.loads(ask("squeue", "--json", *options))
    except ValueError:
        raise WrongShape("`squeue --json` answered something other than JSON") from None
    except SchedulerError as error:
        if "Invalid job id" in str(error):
            return []
        raise
    jobs, (said, _) = slurm_json.jobs(answer), slurm_comments.comments(answer)
    return [
        OwnJob(
            called=job.called or str(job.id),
            name=job.name,
            user=job.user,
            state=job.state,
            gpus=job.nodes * job.each.gpus,
            on=job.on,
            start_s=job.start_s,
            end_s=None,
            elapsed_s=max(now_s - job.start_s, 0.0) if job.start_s else 0.0,
            comment=said.get(job.id, ""),
        )
        for job in jobs
    ]


def accounted(ask: Ask, *options: str) -> list[OwnJob]:
    """Those that have ended, each try, the oldest first, by sacct's options. Raises SchedulerError."""
    told = ask(
        *("env", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "sacct", "--allocations", "--duplicates", "--noheader"),
        *("--parsable2", f"--delimiter={_BETWEEN}", f"--format={_COLUMNS}", *options),
    )
    found = [_row(line) for line in told.splitlines() if line]
    return sorted((seen for seen in found if seen.end_s is not None), key=lambda seen: seen.end_s or 0.0)


def since(at_s: float) -> str:
    """sacct's option: nothing that ended before."""
    return f"--starttime={datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%S}"


def _row(line: str) -> OwnJob:
    values = line.split(_BETWEEN)
    try:
        called, user, state, start, end, elapsed, tres, nodes, comment = values[:9]
        return OwnJob(
            called=called,
            name=values[9],
            user=user,
            state=state.split(" ")[0],
            gpus=slurm_asked.tres(tres).gpus,
            on=() if nodes in ("", "None assigned", "None") else tuple(expand(nodes)),
            start_s=float(start) if start.isdigit() else None,
            end_s=float(end) if end.isdigit() else None,
            elapsed_s=float(elapsed or 0),
            comment=comment,
        )
    except (ValueError, IndexError):
        raise WrongShape(f"sacct answered a line of another shape: {line[:80]!r}") from None
