"""Runs the benchmarks and writes benchmarks/results.md: python -m benchmarks.all [--full] [--processes 2]

Each result is kept as benchmarks/results/NAME.json with the command, commit, date and machine; one whose data is
missing, or that fails, leaves the file of the last run as it is. Without --full they run on one seed, and dollars on
ten days: less than an hour on two cores; with it they take a night. `--only` runs some of them; an empty one only
writes the report anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import report
from ironburst.system import files

ROOT = Path(__file__).parents[1]
PHILLY, CHRONUS, OPENB = "philly_first70d.csv.xz", "chronus_philly_slo.csv.xz", "openb2023_pods_default.csv.xz"
# of the other traces: so many that Starburst rents about the part of the GPU-hours that it rents of the first one on
# 512, 16%
CHRONUS_GPUS, OPENB_GPUS = 896, 32


def benchmarks(full: bool) -> dict[str, list[str]]:
    """What to run, by the name of its result."""
    bound = ["--bound-seconds", "180" if full else "45"]

    def burst(name: str, *more: str, seeds: int = 3) -> list[str]:
        return ["benchmarks.burst", "--trace", name, "--seeds", str(seeds if full else 1), *bound, *more]

    commands = {
        "decide": ["benchmarks.decide"],
        "hosts": ["benchmarks.hosts"],
        "fit": ["benchmarks.fit"],
        "idle": ["benchmarks.idle"],
        "spot": ["benchmarks.spot"],
        "budget": ["benchmarks.budget", "--scenarios", "1000" if full else "200"],
        "days": ["benchmarks.days", "--days", "1000" if full else "50"],
        "days-dead": ["benchmarks.days", "--days", "1000" if full else "50", "--dead"],
        "days-lasting": ["benchmarks.days", "--days", "200" if full else "50", "--only", "a state lasts"],
        "cloud-days": ["benchmarks.cloud_days", "--days", "1000" if full else "10", "--hours", "24" if full else "6"],
        "kube-days": ["benchmarks.kube_days", "--days", "100" if full else "10"],
        "kube-never": ["benchmarks.kube_days", "--days", "100" if full else "10", "--only", "a pod that never starts"],
        "full-days": ["benchmarks.full_days", "--days", "20" if full else "6", "--processes", "2"],
        "mix": ["benchmarks.mix"],
        "plays": ["benchmarks.plays", *(["--jobs", "1000000"] if full else [])],
        "pending-pods": ["benchmarks.pending_pods"],
        "schedulers": ["benchmarks.schedulers", *([] if full else ["--jobs", "5000"])],
        "shares": ["benchmarks.shares"],
        "shares-kubernetes": ["benchmarks.shares", "--kubernetes", "--sequences", "200" if full else "40"],
        "shares-table": ["benchmarks.share_table"],
        "watch": ["benchmarks.watch"],
        "mix-x86": ["benchmarks.mix", "--without", "g5g", "--no-karpenter"],
    }
    kept = ("--limits", "kept")  # rows that count only with Starburst's waits, also where keeping them costs more
    for gpus in (512, 384, 640):
        commands[f"burst-{gpus}"] = burst(PHILLY, "--pool-gpus", str(gpus), seeds=20)
        commands[f"burst-{gpus}-aside"] = burst(PHILLY, "--pool-gpus", str(gpus), *kept, "--part", "aside")
    # with a patience of 1 the 99th percentile is 1.05 of what it may be at 1.5 times the waits
    for factor, patience in (("1.5", "0.9"), ("2", "1")):
        frontier = burst(PHILLY, "--pool-gpus", "512", "--wait-factor", factor, "--patience", patience)
        commands[f"burst-512-x{factor}"] = frontier
    for told in ("limits", "limits-by-queue"):
        unknown = burst(PHILLY, "--pool-gpus", "512", "--run-times", told)
        commands[f"burst-512-{told}"], commands[f"burst-512-{told}-aside"] = (
            unknown,
            [*unknown, *kept, "--part", "aside"],
        )
    chronus = burst(CHRONUS, "--pool-gpus", str(CHRONUS_GPUS), *kept)
    commands["burst-chronus"], commands["burst-chronus-aside"] = chronus, [*chronus, "--part", "aside"]
    # Its last quarter asks for no rent. With so many times the waits its first part's are kept, with a tenth to spare;
    # limits that keep them rent 1.001 there.
    commands["burst-openb"] = burst(OPENB, "--pool-gpus", str(OPENB_GPUS), "--patience", "2.56")
    # one jitter takes 5 to 30 minutes
    commands["dollars"] = ["benchmarks.dollars", *([] if full else ["--days", "40-50"])]
    return commands


def run(name: str, command: Sequence[str], folder: Path) -> str:
    """Run one and keep its result. Returns a line that says how it went."""
    began, before, measured = datetime.now(UTC), machine(), commit()  # another commit may come while it runs
    done = subprocess.run(
        [sys.executable, "-m", *command, "--json"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    took = f"{(datetime.now(UTC) - began).total_seconds():.0f} s"
    try:
        result = json.loads(done.stdout)
    except ValueError:
        return f"{name}: failed after {took} (exit code {done.returncode}); it said why above"
    if "skipped" in result:
        return f"{name}: {result['skipped']}"
    ran = {
        "command": " ".join(["python -m", *command]),
        "commit": measured,
        "date": f"{began:%Y-%m-%d}",
        "machine": before,
    }
    folder.mkdir(parents=True, exist_ok=True)
    files.write(folder / f"{name}.json", json.dumps(result | {"run": ran}, indent=1) + "\n", 0o644)
    return f"{name}: {took}"


def commit() -> str:
    """Of the code that is measured; `+` behind it: with changes that aren't committed."""
    git, measured = ["git", "-C", str(ROOT)], ("ironburst", "benchmarks/*.py")
    try:
        head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", *measured], check=False)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.stdout.strip() + "+" * (changed.returncode > 0)


def machine() -> str:
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f} before"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.all", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="whole traces, more seeds")
    parser.add_argument("--only", metavar="NAME,...", help="these results; empty: none")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--results", type=Path, default=report.RESULTS, metavar="DIR", help="where results are kept")
    arguments = parser.parse_args(argv)
    chosen = benchmarks(arguments.full)
    if arguments.only is not None:
        names = [name for name in arguments.only.split(",") if name]
        if unknown := [name for name in names if name not in chosen]:
            parser.error(f"--only {unknown[0]}: there is no such result; there are {', '.join(chosen)}")
        chosen = {name: chosen[name] for name in names}
    if arguments.processes < 1:
        parser.error(f"--processes is {arguments.processes}; allowed is 1 or more")
    with ThreadPoolExecutor(arguments.processes) as pool:
        for line in pool.map(lambda name: run(name, chosen[name], arguments.results), chosen):
            print(line, flush=True)
    page = report.write(arguments.results)
    print(f"written: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
