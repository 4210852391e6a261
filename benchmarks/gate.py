"""Is anything dearer than it was made? python -m benchmarks.gate [NAME ...]     (`make bench-gate`, in CI)

What a tick writes, what a look reads, what a BMC is asked, what `--help` imports: counts, which are the same on every
machine. Each row has its limit, and why it is that; that each fails on the code that it is about is shown in
docs/adr/0124. Exit status 1, and the rows, where one is over its limit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks import bmcs, looks, plays, slurm_queue, tick


@dataclass(frozen=True)
class Gate:
    """`ask` gives what is counted, by its names; `most`: the limit of each."""

    why: str
    ask: Callable[[], Mapping[str, float]]
    most: Mapping[str, float]

    def over(self, found: Mapping[str, float]) -> dict[str, float]:
        """What is over its limit, or has none, or was to be counted and wasn't."""
        names = self.most.keys() | found.keys()
        return {name: found.get(name, -1) for name in names if not 0 <= found.get(name, -1) <= self.most.get(name, -1)}


def help_modules() -> dict[str, int]:
    """What `ironburst --help` imports: modules of ours, and of other packages."""
    return _modules("sys.argv[1:] = ['--help']\nfrom ironburst.cli import main\ntry: main()\nexcept SystemExit: pass")


def status_modules() -> dict[str, int]:
    """What `ironburst status` imports before it looks at anything."""
    return _modules("import ironburst.cli.status")


def _modules(program: str) -> dict[str, int]:
    program = f"import sys\n{program}\nprint('modules', *sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = done.stderr.rpartition("modules ")[2].split()
    tops = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - {"ironburst"}
    others = [name for name in tops if not name.startswith(("_", "cython_"))]  # how it was installed
    return {"of ours": sum(name.startswith("ironburst") for name in modules), "of others": len(others)}


def requests() -> dict[str, int]:
    """Of a BMC that gives whole lists, in the operation that asks it most, whatever is declared."""
    vendors = (vendor for vendor in bmcs.VENDORS if bmcs.gives_lists(vendor))
    return {vendor: max(map(len, bmcs.requests(vendor, bmcs.EVERYTHING).values())) for vendor in vendors}


LISTS = {vendor: bmcs.MOST_REQUESTS for vendor in bmcs.VENDORS if bmcs.gives_lists(vendor)}
GATES = {
    "help": Gate(
        "`ironburst --help` imported every verb: 1.3 s, 89 MB (ADR 114)", help_modules, {"of ours": 10, "of others": 2}
    ),
    "status": Gate(
        "numpy and the catalogue were loaded to be looked at: a fifth of `status` (ADR 130)",
        status_modules,
        {"of ours": 155, "of others": 8},
    ),
    "tick": Gate("a tick looked at every job for every node: quadratic (ADR 114)", tick.reads, tick.MOST_READS),
    "memory": Gate("100,000 jobs took 2.9 GB; 1.3 with each one's JSON (ADR 124, 130)", tick.held, tick.MOST_HELD),
    "slurm": Gate(
        "all that `squeue --json` prints was asked for and read at each tick: 25 MB of 500 nodes (ADR 118)",
        slurm_queue.counts,
        slurm_queue.MOST,
    ),
    "written": Gate("every row was written at every tick: 47 GB a day (ADR 117)", tick.counts, tick.MOST),
    "looks": Gate("`status`, `explain` and the page read a year of jobs: 14 s (ADR 117)", looks.counts, looks.MOST),
    "policy": Gate(
        "alike jobs share offers: without that a decision on 10,000 takes five times as long",
        plays.decided_calls,
        plays.MOST_DECIDED,
    ),
    "simulate": Gate(
        "a fifth of `simulate` wrote sentences that nobody reads: 47 minutes of a million jobs (ADR 123)",
        plays.played_calls,
        plays.MOST_PLAYED,
    ),
    "bmc": Gate("a node's BMC was asked 98 to 106 times (ADR 119)", requests, LISTS),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Print each row; 1 if one is over its limit."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gate", description="Is anything dearer than it was made?"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(GATES)}; default: all")
    given = parser.parse_args(argv)
    if unknown := set(given.names) - GATES.keys():
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(GATES)}")
    failed = False
    for name in given.names or GATES:
        gate = GATES[name]
        found = gate.ask()
        over = gate.over(found)
        figures = ", ".join(f"{key} {value:g} (at most {gate.most.get(key, 0):g})" for key, value in found.items())
        print(f"{'OVER' if over else 'good'} {name}: {figures}")
        if over:
            failed = True
            print(f"     {', '.join(sorted(over))}: {gate.why}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
