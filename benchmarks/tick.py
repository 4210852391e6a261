"""How much does one tick of the controller take? python -m benchmarks.tick [--jobs 10000] [--nodes 2000] [--json]

A Slurm with so many owned nodes, all of them busy, and so many pending jobs: what `squeue` and `scontrol` print, as
release 24.11 does (tests/adapters/slurm_fixtures), is read by the real adapter, decided, written into a ledger and a
recorder's folder on disk. The first tick has everything to write; measured are the ones after it, between which one job
in a hundred starts and another one comes. Every five minutes (Slurm's PriorityCalcPeriod) what waits has other
priorities: by its age, and by its user's fair share. CPU seconds of the process, its memory, bytes written; with 10
ticks, too, what that is in a day: every tenth one has new priorities, and new wordings to write.
"""

from __future__ import annotations

import argparse
import copy
import json
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.controller.ledger import Ledger
from ironburst.controller.ledger_decisions import PARTS
from ironburst.controller.recorder import Recorder
from ironburst.controller.schema import LOG_BYTES
from ironburst.controller.tick import Controller
from tests.fakes import T0, FakeClock, FakeCloud, FakeSlurm, document

FIXTURES = Path(__file__).parents[1] / "tests" / "adapters" / "slurm_fixtures" / "24.11"
CORES = 112  # of a node, each of which squeue shows of a running job
USERS = 50
CHANGES = 0.01  # of the jobs, from tick to tick
GPUS = (1, 1, 1, 2, 4, 8)  # of a job that waits
TICK_S, PRIORITIES_S = 30.0, 300.0
AGE = 43  # more of 100,000 for a wait of five minutes, by PriorityMaxAge's default of 7 days
SHARES = (0, 0, 0, 1, -3, 12)  # what a user's fair share makes of it
KEPT = ("job_id", "user_name", "submit_time", "eligible_time", "priority", "time_limit")  # of a job that starts
BURST = [f"p5-{n}" for n in range(1, 9)]
# SQUEUE and NODES are files
PROGRAMS = {
    "squeue": 'cat "{folder}/now/queue.json"',
    "scontrol": 'case "$*" in "show node"*) cat "{folder}/now/nodes.json";; *) cat >/dev/null;; esac',
    "find": "true",
    "touch": "true",
    "sh": "echo 0",
}


class Site:
    """What Slurm would print, tick after tick."""

    def __init__(self, jobs: int, nodes: int, seed: int = 1):
        rows, shown = (json.loads((FIXTURES / f"{name}.json").read_text()) for name in ("squeue", "nodes"))
        self.queue, self.shown = rows, shown
        self._running, self._pending = (
            next(row for row in rows["jobs"] if state in row["job_state"] and not row["array_job_id"]["number"])
            for state in ("RUNNING", "PENDING")
        )
        self._random, self._next, self._at_s = random.Random(seed), 1, 0.0
        by_name = {row["name"]: row for row in shown["nodes"]}
        names = [f"dgx{n:05}" for n in range(nodes)]
        shown["nodes"] = [
            *(self._node(by_name["gpu2"], name, "home") for name in names),
            # of a pool that a person keeps: the same is decided at each tick, and nothing launched
            *(self._node(by_name["gpu8"], name, "burst-p5") | {"reason": "a fan"} for name in BURST),
        ]
        rows["jobs"] = [*(self._runs(name) for name in names), *(self._waits() for _ in range(jobs))]

    def moves_on(self) -> None:
        """Some running jobs end, as many pending ones start there, and others come."""
        jobs, self._at_s = self.queue["jobs"], self._at_s + TICK_S
        running = [n for n, row in enumerate(jobs) if row["job_state"] == ["RUNNING"]]
        pending = [n for n, row in enumerate(jobs) if row["job_state"] == ["PENDING"]]
        count = max(1, int(min(len(running), len(pending)) * CHANGES))
        for ended, starts in zip(self._random.sample(running, count), self._random.sample(pending, count), strict=True):
            jobs[ended] = self._starts(jobs[starts], jobs[ended])
            jobs[starts] = self._waits()
        if self._at_s % PRIORITIES_S == 0:
            shares = [self._random.choice(SHARES) for _ in range(USERS)]
            for row in jobs:
                if row["job_state"] == ["PENDING"]:
                    more = AGE + shares[row["job_id"] % USERS]
                    row["priority"] = row["priority"] | {"number": row["priority"]["number"] + more}

    def write(self, folder: Path) -> None:
        for name, answer in (("queue", self.queue), ("nodes", self.shown)):
            (folder / f"{name}.json").write_text(json.dumps(answer, indent=2))

    def _node(self, like: dict[str, Any], name: str, partition: str) -> dict[str, Any]:
        return like | {"name": name, "partitions": [partition], "hostname": name}

    def _job(self, like: dict[str, Any], id: int) -> dict[str, Any]:
        row = copy.deepcopy(like)
        age = self._random.expovariate(1 / 7200) - self._at_s
        for key, value in (("submit_time", T0 - age), ("eligible_time", T0 - age), ("priority", 1 + id % 1000)):
            row[key] = _number(value)
        minutes = self._random.randint(10, 1500)
        return row | {
            "job_id": id,
            "user_name": f"user{id % USERS}",
            "time_limit": _number(minutes),
        }

    def _id(self) -> int:
        self._next += 1
        return self._next - 1

    def _waits(self) -> dict[str, Any]:
        row = self._job(self._pending, self._id()) | {"partition": "home", "excluded_nodes": "", "dependency": ""}
        gpus = self._random.choice(GPUS)
        return row | {"tres_req_str": _tres(gpus), "tres_per_node": f"gres/gpu:{gpus}", "state_reason": "Priority"}

    def _starts(self, waited: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
        row = self._runs(before["nodes"])
        return row | {key: waited[key] for key in KEPT} | {"start_time": _number(T0 + self._at_s)}

    def _runs(self, node: str) -> dict[str, Any]:
        row = self._job(self._running, self._id())
        row |= {"nodes": node, "partition": "home", "job_state": ["RUNNING"]}
        row |= {
            "tres_req_str": _tres(8),
            "tres_alloc_str": _tres(8),
            "node_count": row["array_max_tasks"] | {"number": 1},
        }
        for key, at_s in (("start_time", T0 - 3600), ("end_time", T0 + self._random.expovariate(1 / 20_000))):
            row[key] = _number(at_s)
        cores = [{"index": n, "status": ["ALLOCATED"]} for n in range(CORES)]
        row["job_resources"] = {
            "select_type": ["CR_CORE"],
            "nodes": {
                "count": 1,
                "list": node,
                "allocation": [{"index": 0, "name": node, "sockets": [{"index": 0, "cores": cores}]}],
            },
        }
        return row


def _number(value: float) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": int(value)}


def _tres(gpus: int) -> str:
    return f"cpu=1,mem=1000M,node=1,billing=1,gres/gpu={gpus}"


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


def printed(folder: Path, jobs: int, nodes: int, ticks: int) -> None:
    """What Slurm prints at each tick, in folders 0, 1, ..."""
    site = Site(jobs, nodes)
    for n in range(ticks):
        (folder / str(n)).mkdir()
        site.write(folder / str(n))
        site.moves_on()


@contextmanager
def running(folder: Path, jobs: int, nodes: int, ticks: int) -> Iterator[Iterator[Ledger]]:
    """A controller with its files in a folder: each tick's ledger, as soon as it is over."""
    with programs(folder):
        child = multiprocessing.Process(target=printed, args=(folder, jobs, nodes, ticks))  # its memory isn't ours
        child.start()
        child.join()
        clock, ledger = FakeClock(), Ledger(folder / "ledger.sqlite")
        cloud, recorder = FakeCloud(clock, FakeSlurm(clock, home=0)), Recorder(folder / "ticks")
        controller = Controller(Slurm(spool=str(folder)), cloud, ledger, clock, recorder)
        declared, now = document(nodes=BURST, tick_s=TICK_S), folder / "now"

        def ticked() -> Iterator[Ledger]:
            for n in range(ticks):
                now.unlink(missing_ok=True)
                now.symlink_to(folder / str(n))
                assert controller.tick(declared).pending == jobs
                yield ledger
                clock.at = T0 + (n + 1) * TICK_S

        yield ticked()
        ledger.close()


def measure(jobs: int, nodes: int, ticks: int) -> dict[str, object]:
    """CPU seconds of each tick after the first."""
    seconds, held = [], []
    with tempfile.TemporaryDirectory(prefix="ironburst-tick-") as name:
        folder = Path(name)
        with running(folder, jobs, nodes, ticks + 1) as all_ticks:
            begun, wrote = time.process_time(), _written_bytes()
            for ledger in all_ticks:
                seconds.append(round(time.process_time() - begun, 2))
                held.append((_written_bytes() - wrote) / 1e6)
                last, begun, wrote = ledger, time.process_time(), _written_bytes()
            last._db.execute("PRAGMA wal_checkpoint")
            placed = (_written_bytes() - wrote) / 1e6
        size = sum(path.stat().st_size for path in (folder / "0").iterdir())
        recorded = [len(line) for path in (folder / "ticks").iterdir() for line, _ in ticks_of(path)]
    results: dict[str, object] = {
        "jobs": jobs,
        "nodes": nodes,
        "MB that Slurm printed": round(size / 1e6, 1),
        "CPU seconds of the first tick": seconds[0],
        "CPU seconds of each after it": seconds[1:],
        "MB of memory": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "MB written in the first tick": round(held[0], 2),
        "MB written in each after it": [round(each, 2) for each in held[1:]],
        "KB recorded in each": [round(each / 1e3, 1) for each in recorded],
    }
    if ticks >= PRIORITIES_S / TICK_S:
        a_day = 86400 / TICK_S
        kept = sum(recorded[1:]) / ticks * a_day + 24 * recorded[0]  # each hour's file begins with a whole tick
        log = (
            sum(held[1:]) / ticks * a_day
        )  # each LOG_BYTES of it put no more pages in their places than all that changed
        results["GB written in a day"] = round(log * (1 + 1e6 * placed / LOG_BYTES) / 1e3, 2)
        results["MB recorded in a day"] = round(kept / 1e6, 1)
    return results


def counts(jobs: int = 1200, nodes: int = 40) -> dict[str, int]:
    """Of a large queue, by what changes: rows of the ledger and bytes of the recorder that a tick writes.
    See `MOST` for what they may be, and why.
    """
    ticks = round(PRIORITIES_S / TICK_S) + 1
    rows, before = [], 0
    with tempfile.TemporaryDirectory(prefix="ironburst-tick-") as name:
        folder = Path(name)
        with running(folder, jobs, nodes, ticks) as all_ticks:
            for ledger in all_ticks:
                rows.append(ledger._db.total_changes - before)
                before += rows[-1]
        recorded = [len(line) for path in (folder / "ticks").iterdir() for line, _ in ticks_of(path)]
    return {"rows": max(rows[1:-1]), "rows with new wordings": rows[-1], "bytes recorded": max(recorded[1:-1])}


MOST = {
    "rows": 30,  # one of 40 running jobs ends, one starts, one comes: two rows each; and what a tick notes
    "rows with new wordings": 30 + 2 * PARTS,  # not one for each of 1,200 jobs
    "bytes recorded": 2000,  # of 1,200 jobs, whole ones are 60,000
}


def ticks_of(path: Path) -> Iterator[tuple[bytes, int]]:
    """Each tick of a recorder's file as it is compressed, and how long it is when it isn't."""
    data = path.read_bytes()
    while data:
        member = zlib.decompressobj(31)
        text = member.decompress(data)
        yield data[: len(data) - len(member.unused_data)], len(text)
        data = member.unused_data


def _written_bytes() -> int:
    """Of this process: what it made the kernel write to disks."""
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["write_bytes"])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tick", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=2_000)
    parser.add_argument("--ticks", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    results = measure(arguments.jobs, arguments.nodes, arguments.ticks)
    lines = (f"{key:32} {value}" for key, value in results.items())
    print(json.dumps(results, indent=1) if arguments.json else "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
