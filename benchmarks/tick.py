"""How much does one tick of the controller take? python -m benchmarks.tick [--jobs 10000] [--nodes 2000] [--json]

A Slurm with so many owned nodes, all of them busy, and so many pending jobs: what `squeue` and `scontrol` print, as
release 24.11 does (benchmarks/slurm_queue.py), is read by the real adapter, decided, written into a ledger and a
recorder's folder on disk. The first tick has everything to read and to write;
between two ticks one job in a hundred starts and another one comes. Every five minutes (Slurm's PriorityCalcPeriod)
what waits has other priorities: by its age, and by its user's fair share. CPU seconds of the process, its memory, bytes
written; with 10 ticks, too, what that is in a day: every tenth one has new priorities, and new wordings to write.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import resource
import sys
import tempfile
import time
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks import figures
from benchmarks.slurm_queue import BURST, PRIORITIES_S, TICK_S, printed, programs
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.controller.ledger import Ledger
from ironburst.controller.ledger_decisions import PARTS
from ironburst.controller.recorder import Recorder
from ironburst.controller.schema import LOG_BYTES
from ironburst.controller.tick import Controller
from ironburst.ports import Job, Node
from tests.fakes import T0, FakeClock, FakeCloud, FakeSlurm, document


@contextmanager
def running(
    folder: Path, jobs: int, nodes: int, ticks: int, text: bool = True, known: bool = False
) -> Iterator[Iterator[Ledger]]:
    """A controller with its files in a folder: each tick's ledger, as soon as it is over. `text`: whether `scontrol
    show job` answers; `known`: it is known beforehand how many jobs there are.
    """
    with programs(folder):
        child = multiprocessing.Process(
            target=printed, args=(folder, jobs, nodes, ticks, text)
        )  # its memory isn't ours
        child.start()
        child.join()
        clock, ledger = FakeClock(), Ledger(folder / "ledger.sqlite")
        cloud, recorder = FakeCloud(clock, FakeSlurm(clock, home=0)), Recorder(folder / "ticks")
        controller = Controller(Slurm(spool=str(folder), jobs=jobs if known else 0), cloud, ledger, clock, recorder)
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


def measure(jobs: int, nodes: int, ticks: int, text: bool = True) -> dict[str, object]:
    """CPU seconds of each tick after the first. `text`: whether `scontrol show job` answers."""
    seconds, held = [], []
    with tempfile.TemporaryDirectory(prefix="ironburst-tick-") as name:
        folder = Path(name)
        with running(folder, jobs, nodes, ticks + 1, text) as all_ticks:
            begun, wrote = time.process_time(), _written_bytes()
            for ledger in all_ticks:
                seconds.append(round(time.process_time() - begun, 2))
                held.append((_written_bytes() - wrote) / 1e6)
                last, begun, wrote = ledger, time.process_time(), _written_bytes()
            last._db.execute("PRAGMA wal_checkpoint")
            placed = (_written_bytes() - wrote) / 1e6
        size = sum((folder / "0" / name).stat().st_size for name in ("queue.json", "nodes.json"))
        asked = sum((folder / "0" / name).stat().st_size for name in ("jobs.txt", "nodes.json")) if text else size
        recorded = [len(line) for path in (folder / "ticks").iterdir() for line, _ in ticks_of(path)]
    results: dict[str, object] = {
        "jobs": jobs,
        "nodes": nodes,
        "MB that Slurm printed in the first tick": round(size / 1e6, 1),
        "MB that it printed in each after it": round(asked / 1e6, 1),
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


def reads(jobs: int = 600, nodes: int = 120) -> dict[str, float]:
    """How often a tick looks at a job and at a node, for each of them; and with four times as many of both."""
    few, many = (_reads_of_each(jobs * times, nodes * times) for times in (1, 4))
    return {f"{kind}, times": round(many[kind] / few[kind], 2) for kind in few}


MOST_READS = dict.fromkeys(("Job, times", "Node, times"), 1.3)  # 1 is linear; of a scan of all for each it is 4


def _reads_of_each(jobs: int, nodes: int) -> dict[str, float]:
    counts = Counter[str]()
    job, node = (mock.patch.object(kind, "__getattribute__", _counted(kind, counts)) for kind in (Job, Node))
    with tempfile.TemporaryDirectory(prefix="ironburst-tick-") as name, running(Path(name), jobs, nodes, 2) as ticks:
        next(ticks)
        with job, node:
            next(ticks)
    return {"Job": counts["Job"] / (jobs + nodes), "Node": counts["Node"] / nodes}


def _counted(kind: type[Any], counts: Counter[str]) -> Callable[[Any, str], Any]:
    def read(self: Any, name: str) -> Any:
        counts[kind.__name__] += 1
        return object.__getattribute__(self, name)

    return read


def held(jobs: int = 3_200, nodes: int = 20) -> dict[str, int]:
    """Memory for each job that waits, in its first ticks: read, decided and written. `bytes`: at most, `objects`: that
    stay. What caches take is the same for twice as many jobs; of fewer jobs the most that is held at once depends on
    when the collector runs.
    """
    few, many = (_held(count, nodes) for count in (jobs, 2 * jobs))
    return {kind: round((many[kind] - few[kind]) / jobs) for kind in few}


MOST_HELD = {
    "objects": 30,  # 22: the job, its row and its decision; 66 with JSON of both
    "bytes": 3_600,  # 3,050; 6,000 with JSON of each that is recorded anew
}


def _held(jobs: int, nodes: int) -> dict[str, int]:
    with tempfile.TemporaryDirectory(prefix="ironburst-tick-") as name:
        gc.collect()
        tracemalloc.start()
        try:
            with running(Path(name), jobs, nodes, 3, known=True) as ticks:
                for _ in ticks:
                    pass
                gc.collect()
                most = tracemalloc.get_traced_memory()[1]
                kept = sum(each.count for each in tracemalloc.take_snapshot().statistics("filename"))
        finally:
            tracemalloc.stop()
    return {"objects": kept, "bytes": most}


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
    parser.add_argument("--no-text", action="store_true", help="scontrol show job says nothing: squeue --json it is")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    figures.show(measure(arguments.jobs, arguments.nodes, arguments.ticks, not arguments.no_text), arguments.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
