"""Is what `ironburst fit` says of one part of a trace better than its defaults on the others?

python -m benchmarks.fit [--trace FILE --pool-gpus N] [--cut 3] [--seed 1]

The trace is cut into parts. `fit` gets one of them (with Starburst's waits there as what is wanted), and each other one
is played with what it says, and with the limits that aren't fitted: the same policy, jobs and home, waits that are
wanted as Starburst has them there. `over`: the longest of the five waits over what it may be, which is what is wanted,
or what it is without fitting where that is longer. Where fit says "keep the defaults" both are the same.
`longest_kept`: the same for the longest number with which every part keeps what is wanted, whatever it costs: what
`fit` recommended before (docs/adr/0116).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import pairwise, permutations
from typing import Any

import numpy as np

from benchmarks import burst, peers
from benchmarks.figures import finite, trace_path
from ironburst.burst.limits import WaitTarget
from ironburst.replay import fitting, results, traces
from ironburst.replay.traces import Trace

TRACES = (("philly_first70d.csv.xz", 512), ("chronus_philly_slo.csv.xz", 896), ("openb2023_pods_default.csv.xz", 32))


class _Part:
    """A part to play; every play once."""

    def __init__(self, trace: Trace, pool_gpus: int):
        self.trace, self._gpus = trace, pool_gpus
        starburst = peers.run(trace, pool_gpus, peers.PEERS["starburst"])
        self.starburst_gpu_hours = float(trace.gpu_hours[starburst.rented].sum())
        self.limits = results.waits(trace, starburst.start_s).limits()
        self._played: dict[float | None, tuple[float, results.Waits]] = {}

    def played(self, hours: float | None) -> tuple[float, results.Waits]:
        """(rented GPU-hours, waits)."""
        if hours not in self._played:
            outcome = burst.decided(self.limits, hours)(self.trace, self._gpus)
            rented = float(self.trace.gpu_hours[outcome.rented].sum())
            self._played[hours] = rented, results.waits(self.trace, outcome.start_s)
        return self._played[hours]

    def row(self, hours: float | None) -> dict[str, Any]:
        """With this number, over none and over Starburst."""
        (rented, waits), (unfitted, unfitted_waits) = self.played(hours), self.played(None)
        allowed = fitting.longer(WaitTarget(**vars(self.limits)), unfitted_waits)
        wait, over = fitting.worst(allowed, waits)
        starburst = self.starburst_gpu_hours
        return {
            "hours_per_gpu_hour": hours,
            "rented / not fitted": rented / unfitted if unfitted else None if rented else 1.0,
            "rented / starburst": rented / starburst if starburst else None,
            "not fitted / starburst": unfitted / starburst if starburst else None,
            "over": over,
            "wait": wait,
        }


def measure(trace: Trace, pool_gpus: int, cut: int) -> dict[str, Any]:
    """`rows`: each (fitted to, played on), and the worst of them."""
    cuts = np.linspace(0, len(trace), cut + 1).astype(int).tolist()
    parts = [trace.take(slice(first, end)) for first, end in pairwise(cuts)]
    fits, played, rows = (
        [burst.fitted(part, pool_gpus) for part in parts],
        [_Part(part, pool_gpus) for part in parts],
        [],
    )
    for to, on in permutations(range(cut), 2):
        row = {"fitted_to": to + 1, "played_on": on + 1, "why": fits[to].why, "regret": fits[to].regret}
        row |= played[on].row(fits[to].recommended)
        rows.append(row | {"longest_kept": played[on].row(fits[to].keeping)})
    return {"pool_gpus": pool_gpus, "jobs": len(trace), "rows": rows}


def report(cases: Sequence[tuple[str, Trace, int]], cut: int) -> dict[str, Any]:
    """`cases`: (name, trace, GPUs at home)."""
    said = {name: measure(trace, gpus, cut) for name, trace, gpus in cases}
    rows = [row for each in said.values() for row in each["rows"]]
    return {
        "fit": said,
        "dearest": _worst(row["rented / not fitted"] for row in rows),
        "longest": max(row["over"] for row in rows),
        "recommended": sum(row["hours_per_gpu_hour"] is not None for row in rows),
        "dearest_longest_kept": _worst(row["longest_kept"]["rented / not fitted"] for row in rows),
        "longest_longest_kept": max(row["longest_kept"]["over"] for row in rows),
    }


def _worst(ratios) -> float:
    return max(float("inf") if ratio is None else ratio for ratio in ratios)


def table(said: dict[str, Any]) -> str:
    """For people."""
    lines = []
    for name, case in said["fit"].items():
        lines.append(f"{name}, {case['jobs']:,} jobs, {case['pool_gpus']} GPUs; rent over Starburst's:")
        for row in case["rows"]:
            was, now = row["longest_kept"], row["hours_per_gpu_hour"] or f"keep the defaults ({row['why']})"
            lines.append(
                f"  fitted to {row['fitted_to']}, played on {row['played_on']}: "
                f"not fitted {_figure(row['not fitted / starburst'])}; {now}: {_figure(row['rented / starburst'])}, "
                f"waits {row['over']:.2f}; before: {was['hours_per_gpu_hour']}: {_figure(was['rented / starburst'])}, "
                f"waits {was['over']:.2f}"
            )
    lines.append(f"at worst {said['dearest']:.3f} of the rent without fitting, waits {said['longest']:.3f}")
    return "\n".join(lines)


def _figure(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fit", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--trace", help="file, or its name in the folder of the shared data (all of the benchmark's)")
    add("--pool-gpus", type=int, default=512, help="with --trace: GPUs at home, in nodes of 8")
    add("--cut", type=int, default=3, help="into so many parts")
    add("--seed", type=int, default=1, help="of the jitter")
    add("--json", action="store_true")
    args = parser.parse_args(argv)
    cases = []
    for name, gpus in ((args.trace, args.pool_gpus),) if args.trace else TRACES:
        path = trace_path(name, args.json)
        if not path:
            return 0
        cases.append((path.name, traces.jittered(traces.read(path), args.seed), gpus))
    try:
        said = report(cases, args.cut)
    except ValueError as error:
        print(f"benchmarks.fit: {error}", file=sys.stderr)
        return 2
    print(json.dumps(finite(said | {"cut": args.cut, "seed": args.seed}), indent=1) if args.json else table(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
