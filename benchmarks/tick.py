"""How much does one tick of the controller take? python -m benchmarks.tick [--jobs 10000] [--nodes 2000] [--json]

A Slurm with so many owned nodes, all of them busy, and so many pending jobs: what `squeue` and `scontrol` print, as
release 24.11 does (tests/adapters/slurm_fixtures), is read by the real adapter, decided, written into a ledger and a
recorder's folder on disk. The first tick has everything to write; measured are the ones after it, between which one job
in a hundred starts and another one comes. CPU seconds of the process, its memory, bytes written.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.controller.ledger import Ledger
from ironburst.controller.recorder import Recorder
from ironburst.controller.tick import Controller
from tests.fakes import T0, FakeClock, FakeCloud, FakeSlurm, document

FIXTURES = Path(__file__).parents[1] / "tests" / "adapters" / "slurm_fixtures" / "24.11"
CORES = 112  # of a node, each of which squeue shows of a running job
CHANGES = 0.01  # of the jobs, from tick to tick
GPUS = (1, 1, 1, 2, 4, 8)  # of a job that waits
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
        self._random, self._next = random.Random(seed), 1
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
        jobs = self.queue["jobs"]
        running = [n for n, row in enumerate(jobs) if row["job_state"] == ["RUNNING"]]
        pending = [n for n, row in enumerate(jobs) if row["job_state"] == ["PENDING"]]
        count = max(1, int(min(len(running), len(pending)) * CHANGES))
        for ended, starts in zip(self._random.sample(running, count), self._random.sample(pending, count), strict=True):
            node = jobs[ended]["nodes"]
            jobs[ended] = self._runs(node, jobs[starts]["job_id"])
            jobs[starts] = self._waits()

    def write(self, folder: Path) -> None:
        for name, answer in (("queue", self.queue), ("nodes", self.shown)):
            (folder / f"{name}.json").write_text(json.dumps(answer, indent=2))

    def _node(self, like: dict[str, Any], name: str, partition: str) -> dict[str, Any]:
        return like | {"name": name, "partitions": [partition], "hostname": name}

    def _job(self, like: dict[str, Any], id: int) -> dict[str, Any]:
        row = copy.deepcopy(like)
        age = self._random.expovariate(1 / 7200)
        for key, value in (("submit_time", T0 - age), ("eligible_time", T0 - age), ("priority", 1 + id % 1000)):
            row[key] = {"set": True, "infinite": False, "number": int(value)}
        minutes = self._random.randint(10, 1500)
        return row | {
            "job_id": id,
            "user_name": f"user{id % 50}",
            "time_limit": {"set": True, "infinite": False, "number": minutes},
        }

    def _id(self) -> int:
        self._next += 1
        return self._next - 1

    def _waits(self) -> dict[str, Any]:
        row = self._job(self._pending, self._id()) | {"partition": "home", "excluded_nodes": "", "dependency": ""}
        gpus = self._random.choice(GPUS)
        return row | {"tres_req_str": _tres(gpus), "tres_per_node": f"gres/gpu:{gpus}", "state_reason": "Priority"}

    def _runs(self, node: str, id: int = 0) -> dict[str, Any]:
        row = self._job(self._running, id or self._id())
        row |= {"nodes": node, "partition": "home", "job_state": ["RUNNING"]}
        row |= {
            "tres_req_str": _tres(8),
            "tres_alloc_str": _tres(8),
            "node_count": row["array_max_tasks"] | {"number": 1},
        }
        for key, at_s in (("start_time", T0 - 3600), ("end_time", T0 + self._random.expovariate(1 / 20_000))):
            row[key] = {"set": True, "infinite": False, "number": int(at_s)}
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


def measure(jobs: int, nodes: int, ticks: int) -> dict[str, object]:
    """CPU seconds of each tick after the first."""
    seconds, held, clock = [], [], FakeClock()
    with tempfile.TemporaryDirectory(prefix="ironburst-tick-") as name, programs(folder := Path(name)):
        child = multiprocessing.Process(target=printed, args=(folder, jobs, nodes, ticks + 1))  # its memory isn't ours
        child.start()
        child.join()
        ledger = Ledger(folder / "ledger.db")
        controller = Controller(
            Slurm(spool=name),
            FakeCloud(clock, FakeSlurm(clock, home=0)),
            ledger,
            clock,
            Recorder(folder / "ticks"),
        )
        declared, now = document(nodes=BURST), folder / "now"
        for n in range(ticks + 1):
            now.unlink(missing_ok=True)
            now.symlink_to(folder / str(n))
            begun, wrote = time.process_time(), _written_bytes()
            report = controller.tick(declared)
            seconds.append(round(time.process_time() - begun, 2))
            held.append(round((_written_bytes() - wrote) / 1e6, 2))
            assert report.pending == jobs
            clock.wait(30)
        size = sum(path.stat().st_size for path in (folder / "0").iterdir())
        recorded = sum(path.stat().st_size for path in (folder / "ticks").iterdir())
    return {
        "jobs": jobs,
        "nodes": nodes,
        "MB that Slurm printed": round(size / 1e6, 1),
        "CPU seconds of the first tick": seconds[0],
        "CPU seconds of each after it": seconds[1:],
        "MB of memory": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "MB written in the first tick": held[0],
        "MB written in each after it": held[1:],
        "MB recorded": round(recorded / 1e6, 2),
    }


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
