"""A large Slurm that only prints: what `squeue` and `scontrol` of release 24.11 say (tests/adapters/slurm_fixtures,
tests/fakes/scontrol.py) at each of many ticks, between which one job in a hundred starts and another one comes.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from ironburst.adapters.slurm import fields
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.adapters.slurm.stream import Streamed
from tests.fakes import T0, scontrol

FIXTURES = Path(__file__).parents[1] / "tests" / "adapters" / "slurm_fixtures" / "24.11"
CORES = 112  # of a node, each of which squeue shows of a running job
CHANGES = 0.01  # of the jobs, from tick to tick
USERS = 50
GPUS = (1, 1, 1, 2, 4, 8)  # of a job that waits
TICK_S, PRIORITIES_S = 30.0, 300.0
AGE = 43  # more of 100,000 for a wait of five minutes, by PriorityMaxAge's default of 7 days
SHARES = (0, 0, 0, 1, -3, 12)  # what a user's fair share makes of it
KEPT = ("job_id", "user_name", "submit_time", "eligible_time", "priority", "time_limit")  # of a job that starts
BURST = [f"p5-{n}" for n in range(1, 9)]
STATES = ("RUNNING", "PENDING")
_VALUE = re.compile('"@([a-z_]+)@"')
MARK = "@@"  # in jobs.txt, what SLURM_TIME_FORMAT has before %s
PROGRAMS = {
    "squeue": 'cat "{folder}/now/queue.json"',
    "scontrol": """case "$*" in
"show node"*) cat "{folder}/now/nodes.json";;
"show job") [ ! -e "{folder}/now/jobs.txt" ] || sed "s/@@/${{SLURM_TIME_FORMAT%\\%s}}/g" "{folder}/now/jobs.txt";;
*) cat >/dev/null;; esac""",
    "find": "true",
    "touch": "true",
    "sh": "echo 0",
}


class Site:
    """What Slurm would print, tick after tick. A job is its template, and what differs from it."""

    def __init__(self, jobs: int, nodes: int, seed: int = 1, text: bool = True):
        """`text`: whether it has `scontrol show job`, too."""
        rows, shown = (json.loads((FIXTURES / f"{name}.json").read_text()) for name in ("squeue", "nodes"))
        self._random, self._next, self._at_s, self._text = random.Random(seed), 1, 0.0, text
        self._queue, self._templates = rows, {state: self._template(rows["jobs"], state) for state in STATES}
        by_name = {row["name"]: row for row in shown["nodes"]}
        names = [f"dgx{n:05}" for n in range(nodes)]
        shown["nodes"] = [
            *(by_name["gpu2"] | {"name": name, "partitions": ["home"], "hostname": name} for name in names),
            # of a pool that a person keeps: the same is decided at each tick, and nothing launched
            *(by_name["gpu8"] | {"name": name, "partitions": ["burst-p5"], "reason": "a fan"} for name in BURST),
        ]
        self._nodes = json.dumps(shown, indent=2)
        self._jobs = [*(self._runs(name) for name in names), *(self._waits() for _ in range(jobs))]

    def moves_on(self) -> None:
        """Some running jobs end, as many pending ones start there, and others come."""
        self._at_s += TICK_S
        running, pending = ([n for n, job in enumerate(self._jobs) if job.state == state] for state in STATES)
        count = max(1, int(min(len(running), len(pending)) * CHANGES))
        for ended, starts in zip(self._random.sample(running, count), self._random.sample(pending, count), strict=True):
            self._jobs[ended] = self._starts(self._jobs[starts], self._jobs[ended])
            self._jobs[starts] = self._waits()
        if self._at_s % PRIORITIES_S == 0:
            shares = [self._random.choice(SHARES) for _ in range(USERS)]
            for job in self._jobs:
                if job.state == "PENDING":
                    job.values["priority"] += AGE + shares[job.values["job_id"] % USERS]

    def write(self, folder: Path) -> None:
        (folder / "nodes.json").write_text(self._nodes)
        head, tail = json.dumps(self._queue | {"jobs": ["@jobs@"]}, indent=2).split('    "@jobs@"')
        with (folder / "queue.json").open("w") as file:
            file.write(head)
            for n, job in enumerate(self._jobs):
                file.write((",\n" if n else "") + self._templates[job.state].filled(job.values))
            file.write(tail)
        if self._text:
            with (folder / "jobs.txt").open("w") as file:
                for job in self._jobs:
                    row = _filled(self._templates[job.state].row, job.values)
                    file.write(scontrol.show_job(row, "24.11", MARK) + "\n\n")

    def _template(self, rows: Sequence[dict[str, Any]], state: str) -> Template:
        row = next(row for row in rows if state in row["job_state"] and not row["array_job_id"]["number"])
        row |= {key: f"@{key}@" for key in ("job_id", "user_name", "tres_req_str")}
        for key in ("submit_time", "eligible_time", "priority", "time_limit"):
            row[key] = {"set": True, "infinite": False, "number": f"@{key}@"}
        row |= {"partition": "home", "job_state": [state]}
        if state == "PENDING":
            row |= {
                "excluded_nodes": "",
                "dependency": "",
                "tres_per_node": "@tres_per_node@",
                "state_reason": "Priority",
            }
            return Template(row, _indented(row))
        row |= {"nodes": "@nodes@", "tres_alloc_str": "@tres_req_str@"}
        row["node_count"] = {"set": True, "infinite": False, "number": 1}
        row["start_time"], row["end_time"] = (
            {"set": True, "infinite": False, "number": number} for number in ("@start_time@", "@end_time@")
        )
        cores = [{"index": n, "status": ["ALLOCATED"]} for n in range(CORES)]
        node = {"index": 0, "name": "@nodes@", "sockets": [{"index": 0, "cores": cores}]}
        where = {"count": 1, "list": "@nodes@", "allocation": [node]}
        return Template(row, _indented(row | {"job_resources": {"select_type": ["CR_CORE"], "nodes": where}}))

    def _job(self, state: str, id: int, gpus: int, **more: Any) -> Job:
        since_s = int(T0 + self._at_s - self._random.expovariate(1 / 7200))
        minutes = self._random.randint(10, 1500)
        values = {"job_id": id, "user_name": f"user{id % USERS}", "time_limit": minutes, "priority": 1 + id % 1000}
        tres = f"cpu=1,mem=1000M,node=1,billing=1,gres/gpu={gpus}"
        return Job(state, values | {"submit_time": since_s, "eligible_time": since_s, "tres_req_str": tres} | more)

    def _waits(self) -> Job:
        gpus = self._random.choice(GPUS)
        return self._job("PENDING", self._id(), gpus, tres_per_node=f"gres/gpu:{gpus}")

    def _starts(self, waited: Job, before: Job) -> Job:
        job = self._runs(before.values["nodes"])
        kept = {key: waited.values[key] for key in KEPT}
        return Job(job.state, job.values | kept | {"start_time": int(T0 + self._at_s)})

    def _runs(self, node: str) -> Job:
        end_s = int(T0 + self._random.expovariate(1 / 20_000))
        return self._job("RUNNING", self._id(), 8, nodes=node, start_time=int(T0 - 3600), end_time=end_s)

    def _id(self) -> int:
        self._next += 1
        return self._next - 1


class Job(NamedTuple):
    """One in the queue: what it has where its template has `@key@`."""

    state: str
    values: dict[str, Any]


class Template(NamedTuple):
    """A row, and the same as squeue prints it."""

    row: dict[str, Any]
    text: str

    def filled(self, values: dict[str, Any]) -> str:
        """As squeue prints it with these."""
        return _VALUE.sub(lambda match: json.dumps(values[match[1]]), self.text)


def _indented(row: dict[str, Any]) -> str:
    return textwrap.indent(json.dumps(row, indent=2), "    ")


def _filled(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, str) and (match := _VALUE.fullmatch(f'"{value}"')):
        return values[match[1]]
    if isinstance(value, dict):
        return {key: _filled(each, values) for key, each in value.items()}
    return value


@contextmanager
def programs(folder: Path) -> Iterator[None]:
    """What the adapter calls, on PATH."""
    for name, does in PROGRAMS.items():
        path = folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{does.format(folder=folder)}\n")
        path.chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{folder / 'bin'}:{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


def printed(folder: Path, jobs: int, nodes: int, ticks: int, text: bool = True) -> None:
    """What Slurm prints at each tick, in folders 0, 1, ..."""
    site = Site(jobs, nodes, text=text)
    for n in range(ticks):
        (folder / str(n)).mkdir()
        site.write(folder / str(n))
        site.moves_on()


# of `counts`, and why
MOST = {
    "fields kept of a job": 60,  # of 136: one more is to be read by something (tests/adapters/test_slurm_fields.py)
    "bytes asked for, of squeue --json's": 0.2,  # 0.14 with a node of 112 cores for ten jobs that wait; 1 before
    "rows read of an unchanged queue": 0,  # all before ADR 114; then, on a real Slurm, each that it had looked at
    "commands about jobs in each look": 1,
    "bytes read in the first look, of squeue --json's": 0.8,  # WIDE of it, and the text; 1 before ADR 130
}


def counts(jobs: int = 1000, nodes: int = 100) -> dict[str, float]:
    """What a third look at an unchanged queue costs, in things that are counted; each is at most MOST's."""
    with tempfile.TemporaryDirectory(prefix="ironburst-tick-") as name, programs(folder := Path(name)):
        (folder / "now").mkdir()
        Site(jobs, nodes).write(folder / "now")
        slurm, asked = Slurm(spool=name), list[str]()
        run, first, streamed = slurm._run, list[int](), Streamed.run
        slurm._run = lambda *command, **more: asked.append(shlex.join(command)) or run(*command, **more)  # type: ignore

        def counted(self: Streamed, *argv: Any, **more: Any) -> Any:
            try:
                return streamed(self, *argv, **more)
            finally:
                first.append(self.bytes if "job" in " ".join(argv[0]) or "squeue" in argv[0] else 0)

        with mock.patch.object(Streamed, "run", counted):
            slurm.observe()
        slurm.observe()
        asked.clear()
        before = slurm.rows_read
        slurm.observe()
        sizes = {path.name: path.stat().st_size for path in (folder / "now").iterdir()}
    printed = [
        sizes["queue.json" if "squeue" in line else "jobs.txt"] for line in asked if "squeue" in line or "job" in line
    ]
    return {
        "fields kept of a job": len(fields.JOB),
        "bytes asked for, of squeue --json's": round(sum(printed) / sizes["queue.json"], 2),
        "rows read of an unchanged queue": slurm.rows_read - before,
        "commands about jobs in each look": len(printed),
        "bytes read in the first look, of squeue --json's": round(sum(first) / sizes["queue.json"], 2),
    }
