"""`ironburst explain` for users who may not read the ledger, or have none: what Slurm shows them of jobs, with what the
controller wrote beside each.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ironburst.adapters.slurm import own as slurm_own
from ironburst.adapters.slurm.own import Ask, OwnJob
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.burst import explain
from ironburst.controller import comments
from ironburst.ports import SchedulerError
from ironburst.system import local_time, terminal
from ironburst.system.bad_input import BadInput

DAYS = 30  # of one's own jobs that have ended
ROWS = 50  # of those that are shown
_NUMBER = re.compile(r"([0-9]{1,10})([_+][0-9]+|_\[.*\])?")
_DOES = {
    "RUNNING": "it runs on",
    "COMPLETING": "it completes on",
    "CONFIGURING": "it was just given",
    "SUSPENDED": "it is suspended on",
    "STOPPED": "it was stopped on",
}
_NOTHING = "nothing is said of it yet: it came or changed just now, or nobody rents for its partition"


def one(asked: str, as_json: bool) -> int:
    """Print the state of a job, or of all parts of one, or of one's own of that name. Raises BadInput or
    SchedulerError.
    """
    ask, now_s = Slurm().show, time.time()
    number = _NUMBER.fullmatch(asked)
    found = _numbered(ask, now_s, asked, number) if number else _named(ask, now_s, asked)
    if as_json:
        print(json.dumps(_said(found[0]) if len(found) == 1 else {"jobs": list(map(_said, found))}))
    else:
        print("\n".join(terminal.wrapped([f"Job {seen.called}: {text(seen)}." for seen in found], terminal.width())))
    return 0


def mine(as_json: bool) -> int:
    """One's own jobs, those of the last days, too, and what was rented for them. Raises SchedulerError."""
    ask, now_s = Slurm().show, time.time()
    waiting = slurm_own.queue(ask, now_s, "--me")
    try:
        ended, why = slurm_own.accounted(ask, *_own(now_s)), ""
    except SchedulerError as error:  # a Slurm without accounting
        ended, why = [], str(error)
    total = sum(usd(seen) or 0.0 for seen in (*waiting, *ended))
    if as_json:
        print(json.dumps({"jobs": [_said(seen) for seen in (*waiting, *ended)], "usd": total, "unknown": why}))
        return 0
    told = [*waiting, *ended[: -ROWS - 1 : -1]]  # the newest first
    rows = [[seen.called, seen.state, str(seen.gpus), _usd(seen), text(seen)] for seen in told]
    titles = ("job", "state", "GPUs", "rented", "what is known")
    table = (
        terminal.table(titles, rows, columns=terminal.width(), colour=False, right=("GPUs", "rented")) if rows else []
    )
    print("\n".join(table or ["  no job"]))
    if len(ended) > ROWS:
        print(f"  and {len(ended) - ROWS:,} more that have ended: `--json` has all")
    print(f"rented for them: {explain.usd(total)} (estimate; the time that they ran) in the last {DAYS} days")
    if why:
        print(f"jobs that have ended aren't known: {why}")
    return 0


def text(seen: OwnJob) -> str:
    """What is so, as a sentence without its end."""
    said = seen.comment.removeprefix(comments.OURS) if seen.comment.startswith(comments.OURS) else ""
    if seen.end_s is None and not seen.on:
        return said if said and not said.startswith(comments.ON) else _NOTHING
    paid, nodes = usd(seen), explain.listed(seen.on)
    if seen.end_s is None:
        rented = "" if paid is None else f"; rented for about {explain.usd(paid)} so far"
        since = f" since {local_time.at(seen.start_s)}" if seen.start_s else ""
        return f"{_DOES.get(seen.state, f'it is {seen.state} on')} {nodes}{since}{rented}"
    if not seen.on:
        return f"it ended ({seen.state}) at {local_time.at(seen.end_s)} without a start"
    rented = "" if paid is None else f"; rented for about {explain.usd(paid)}"
    times = f"from {local_time.at(seen.start_s)} to {local_time.at(seen.end_s)}"
    return f"it was on {nodes} {times} ({seen.state}){rented}"


def usd(seen: OwnJob) -> float | None:
    """What its nodes cost while it was on them; None: they weren't rented, as far as Slurm knows."""
    hourly = comments.usd_per_hour(seen.comment, seen.on) if seen.on and seen.start_s else None
    return None if hourly is None else hourly * seen.elapsed_s / 3600


def _usd(seen: OwnJob) -> str:
    paid = usd(seen)
    return "" if paid is None else explain.usd(paid)


def _said(seen: OwnJob) -> dict[str, Any]:
    return {**asdict(seen), "text": text(seen), "usd": usd(seen)}


def _own(now_s: float) -> tuple[str, ...]:
    return f"--user={os.getuid()}", slurm_own.since(now_s - DAYS * 86400)


def _numbered(ask: Ask, now_s: float, asked: str, number: re.Match[str]) -> Sequence[OwnJob]:
    whole, part = number[1], number[2] or ""
    part = "" if part.startswith("_[") else part  # as squeue writes the tasks that wait together
    parts = slurm_own.queue(ask, now_s, f"--jobs={whole}")
    if found := [seen for seen in parts if not part or seen.called == whole + part]:
        return found
    if found := slurm_own.accounted(ask, f"--jobs={whole}{part}"):
        return found
    if parts:
        raise BadInput(
            f"Slurm shows no {asked} among the tasks of {whole} that have started, or are next: of an array that waits "
            "the next 100 are looked at"
        )
    raise BadInput(f"Slurm shows no job {asked}: check the number")


def _named(ask: Ask, now_s: float, asked: str) -> Sequence[OwnJob]:
    found = [seen for seen in slurm_own.queue(ask, now_s, "--me") if seen.name == asked]
    found = found or [seen for seen in slurm_own.accounted(ask, *_own(now_s)) if seen.name == asked]
    if not found:
        raise BadInput(
            f"none of your jobs of the last {DAYS} days is called {asked!r}: write a number, or see `--mine`"
        )
    return found[-1:]
