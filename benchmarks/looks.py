"""How much does a look take? python -m benchmarks.looks [--jobs 10000] [--nodes 2000] [--finished 730000] [--json]

`ironburst status`, `ironburst explain JOB`, `ironburst serve --out FILE`, and a running page's next look, at a site
like benchmarks.tick's, whose ledger has what it keeps of a year: CPU seconds of the process and of what it starts.

Jobs come as on Meta's research clusters (Kokolis et al., arXiv 2410.21680: 4 million jobs in 11 months on 24,000 GPUs,
four in ten on one GPU, nine in ten on no more than a node's eight, 37 GPU-hours each): 8,100 a day on 16,000 GPUs. Of
these the ledger keeps 90 days (ironburst.controller.retention), and of the whole year those that nodes were rented for.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import multiprocessing
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks import figures
from benchmarks.slurm_queue import BURST, printed, programs
from ironburst import cli
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.controller import records
from ironburst.controller.ledger import Ledger
from ironburst.controller.recorder import Recorder
from ironburst.controller.records import QUARTER_S
from ironburst.controller.retention import KEEP_S
from ironburst.controller.tick import Controller
from ironburst.page.history import MONTH_S
from ironburst.page.source import Files, Source
from ironburst.page.view import DECISIONS
from tests.fakes import T0, FakeClock, FakeCloud, FakeSlurm, document

DAY_S, YEAR_S = 86400.0, 365 * 86400.0
A_DAY, GPU_HOURS = 8100, 37.0
GPUS = (1, 1, 1, 1, 2, 4, 8, 8, 8, 32)
RENTED = 0.01  # of the jobs
TASKS = 50  # of an array, which every other job is a part of
FIRST_ID = 10_000_000
FINISHED = round(A_DAY * KEEP_S / DAY_S)


def fill(ledger: Ledger, finished: int, seed: int = 1) -> None:
    """Finished jobs of a season, with one decision each; of the year before it those that nodes were rented for."""
    dice, db = random.Random(seed), ledger._db
    db.execute("PRAGMA synchronous=OFF")
    with ledger.transaction():
        jobs, decided = "INSERT INTO jobs VALUES (?,?,?,?,?,?,?,?,?,?,?,?,0,NULL)", "INSERT INTO decisions"
        rows = list(_finished(dice, finished))
        db.executemany(jobs, rows)
        columns = "(at_s, last_s, job, kind, code, text)"
        told = "predicted to start at home within the wait limit"
        said = ((row[3], row[8] or row[3], row[0], "wait", "home_soon", told) for row in rows)
        db.executemany(f"{decided} {columns} VALUES (?,?,?,?,?,?)", said)
        quarters = ((n, n * QUARTER_S, QUARTER_S, dice.uniform(0, 1e7), 0.0, dice.uniform(0, 1e6)) for n in _kept())
        db.executemany("INSERT INTO gpu_use VALUES (?,?,?,?,?,?)", quarters)
        for n in range(round(finished * RENTED * YEAR_S / KEEP_S)):
            at_s = T0 - dice.uniform(0, YEAR_S)
            _rented(ledger, n, dice.choice(rows)[0], at_s, at_s + 3600 * dice.expovariate(1 / 5))


def _kept() -> range:
    """The quarters of an hour whose use of GPUs the ledger keeps."""
    return range(int((T0 - KEEP_S) // QUARTER_S), int(T0 // QUARTER_S))


def _finished(dice: random.Random, count: int) -> Iterator[tuple[Any, ...]]:
    for n in range(count):
        gpus = dice.choice(GPUS)
        submit_s = T0 - KEEP_S * (1 - n / count)
        start_s = submit_s + dice.expovariate(1 / 3600)
        end_s = min(start_s + 3600 * dice.expovariate(gpus / GPU_HOURS), T0)
        id, nodes = FIRST_ID + n, max(1, gpus // 8)
        called = f"{FIRST_ID + n - n % TASKS}_{n % TASKS}" if n // TASKS % 2 else ""
        on = ",".join(f"dgx{(n + k) % 2000:05}" for k in range(nodes))
        who = (id, f"train{n % 500}", f"user{n % 400}", submit_s, nodes, min(gpus, 8))
        yield (*who, 86400.0, "LEFT_QUEUE", start_s, on, end_s, called)


def _rented(ledger: Ledger, n: int, job: int, from_s: float, to_s: float) -> None:
    db, launch, lease, node = ledger._db, f"launch{n}", f"launch{n}/{BURST[n % 8]}", BURST[n % 8]
    db.execute(
        "INSERT INTO launches VALUES (?,'p5','p5.48xlarge','spot','[]','[]',24.0,'ami',120,'late',?,1)",
        (launch, from_s),
    )
    db.execute(
        "INSERT INTO leases (id, launch, node, pool, instance_type, market, zone, usd_per_hour, state, instance_id,"
        " committed_until_s, made_s, from_s, joined_s, to_s, changed_s)"
        " VALUES (?,?,?,'p5','p5.48xlarge','spot','us-east-1a',24.0,'ended',?,?,?,?,?,?,?)",
        (lease, launch, node, f"i-{n}", to_s, from_s, from_s, from_s + 120, to_s, to_s),
    )
    ledger.rate(lease, 0.0, "", 24.0)
    ledger.assign(job, [lease], from_s)
    for kind in ("launched", "joined", "released", "ended"):
        ledger.event(kind, "as it was decided", from_s, launch=launch, lease=lease, job=job)


def site(folder: Path, jobs: int, nodes: int, finished: int) -> None:
    """A ledger, ticks, a document, and what Slurm prints; `programs` has to be on PATH."""
    child = multiprocessing.Process(target=printed, args=(folder, jobs, nodes, 2))
    child.start()
    child.join()
    clock, ledger = FakeClock(), Ledger(folder / "ledger.sqlite")
    fill(ledger, finished)
    declared = document(nodes=BURST, tick_s=30)
    (folder / "document.json").write_text(declared.model_dump_json())
    cloud, recorder = FakeCloud(clock, FakeSlurm(clock, home=0)), Recorder(folder / "ticks")
    controller = Controller(Slurm(spool=str(folder)), cloud, ledger, clock, recorder)
    for n in range(2):
        (folder / "now").unlink(missing_ok=True)
        (folder / "now").symlink_to(folder / str(n))
        controller.tick(declared)
        clock.wait(30)
    ledger.close()


def verbs(folder: Path) -> dict[str, list[str]]:
    """What is asked, by its name."""
    files = ["--ledger", str(folder / "ledger.sqlite")]
    known = ["--document", str(folder / "document.json"), *files]
    return {
        "status": ["status", *known],
        "status --json": ["status", "--json", *known],
        "explain a job that waits": ["explain", str(waiting(folder)), *files],
        "explain a finished job": ["explain", str(FIRST_ID + 7), *files],
        "explain an array": ["explain", str(FIRST_ID + TASKS), *files],
        "serve --out": ["serve", "--out", str(folder / "page.html"), *known],
    }


def waiting(folder: Path) -> int:
    """A job that waits."""
    ledger = Ledger(folder / "ledger.sqlite", read_only=True)
    job = max(ledger.last_decisions())
    ledger.close()
    return job


def measure(jobs: int, nodes: int, finished: int) -> dict[str, object]:
    """CPU seconds of each look, and MB of memory."""
    with tempfile.TemporaryDirectory(prefix="ironburst-looks-") as name, programs(folder := Path(name)):
        child = multiprocessing.Process(target=site, args=(folder, jobs, nodes, finished))
        child.start()
        child.join()
        took = {}
        for title, verb in verbs(folder).items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([sys.executable, "-m", "ironburst.cli", *verb], capture_output=True, check=False)
            assert done.returncode in (0, 5), done.stderr
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took[title] = round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)
        took["the page's next look"] = next_look(folder)
        size = (folder / "ledger.sqlite").stat().st_size
    return {"jobs": jobs, "nodes": nodes, "finished jobs": finished, "MB of ledger": size // 1_000_000, **took}


def counts(jobs: int = 120, nodes: int = 8, finished: int = 3000) -> dict[str, int]:
    """Rows of the ledger that each verb makes objects of. See `MOST` for what they may be, and why."""
    made = dict[str, int]()
    with tempfile.TemporaryDirectory(prefix="ironburst-looks-") as name, programs(folder := Path(name)):
        site(folder, jobs, nodes, finished)
        for title, verb in verbs(folder).items():
            asked = mock.patch.object(Ledger, "_rows", autospec=True, side_effect=Ledger._rows)
            with count_rows() as count, asked as asks, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                assert cli.main(verb) in (0, 5)
            made[title] = sum(count.values())
            if title in ("status", "serve --out"):
                made[f"queries of {title}"] = asks.call_count
        made["calls of status for each job"] = round(_calls(verbs(folder)["status"]) / jobs)
    return made


MOST = {
    "queries of status": 25,
    "queries of serve --out": 35,  # 49 when each of eight days asked for its leases and their rates
    "calls of status for each job": 1000,  # 760 with 120 jobs; 8,200 when its table was laid out by rich, twice
    "status": 150,  # a decision of each of 120 jobs that wait, and a few rows of money: none of 3,000 finished jobs
    "status --json": 150,
    "explain a job that waits": 10,
    "explain a finished job": 10,
    "explain an array": 3 * TASKS + 10,  # its tasks, found and told of, and what was decided of each
    # and the newest decisions; the month's leases; thirty days of GPUs, by quarters of an hour
    "serve --out": 120 + DECISIONS + 60 + round(MONTH_S / QUARTER_S),
}


def _calls(verb: list[str]) -> int:
    """Of functions, in a verb whose modules are loaded."""
    profile = cProfile.Profile()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        assert profile.runcall(cli.main, verb) in (0, 5)
    return sum(entry.callcount for entry in profile.getstats())


@contextmanager
def count_rows() -> Iterator[Counter[str]]:
    """By their kind, as long as it is open."""
    count, of = Counter[str](), records.of

    def counted(kind: type[Any], row: Any, **read: Any) -> Any:
        count[kind.__name__] += 1
        return of(kind, row, **read)

    with mock.patch.object(records, "of", counted):
        yield count


def next_look(folder: Path) -> float:
    """Of a page that is shown already, a minute later: all of it is looked at again."""
    declared, at = document(nodes=BURST, tick_s=30), FakeClock()
    files = Files(lambda: declared, folder / "ledger.sqlite", folder / "ticks", None)
    source = Source(files, declared, at.now)
    source.page("")
    at.wait(61)
    begun = time.process_time()
    source.now("")
    return round(time.process_time() - begun, 2)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.looks", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=2_000)
    parser.add_argument("--finished", type=int, default=FINISHED)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    figures.show(measure(arguments.jobs, arguments.nodes, arguments.finished), arguments.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
