"""Is a hard ceiling ever passed? python -m benchmarks.budget [--scenarios 1000] [--seed 1] [--json]

Random sites with failures (benchmarks.mishaps) through the real controller, on a ledger that outlives its deaths. What
was spent is counted by the fake cloud, from its own instances and the declared prices. Also: ceilings that are broken
on purpose, which must be noticed, and outages that are longer than a ceiling promises to stand.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.mishaps import Outcome, Scenario
from ironburst.burst.headroom import Headroom
from ironburst.controller import ceilings
from ironburst.controller.records import OUTAGE_S, LeaseRow

LONG_S = 3600.0  # outages that no ceiling promises to stand


def play(seeds: Sequence[int], tell: Callable[[int], None] | None = None, **more: Any) -> list[Outcome]:
    """Each seed's scenario; `more` as Scenario takes it."""
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds, 1):
            outcomes.append(Scenario(seed, Path(folder), **more).run())
            Path(folder, f"{seed}.sqlite").unlink()
            if tell:
                tell(number)
    return outcomes


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    seen: Counter = sum((outcome.seen for outcome in outcomes), Counter())
    windows = [window for outcome in outcomes for window in outcome.windows]
    over = [
        {
            "seed": outcome.seed,
            "kind": kind,
            "account": account,
            "spent_usd": round(spent, 2),
            "ceiling_usd": round(usd, 2),
        }
        for outcome in outcomes
        for kind, account, spent, usd in outcome.passed
    ]
    most = [outcome.most for outcome in outcomes]
    return {
        "scenarios": len(outcomes),
        "failures": dict(sorted(seen.items())),
        "failures in all": sum(seen.values()),
        "jobs": sum(outcome.jobs for outcome in outcomes),
        "launches": sum(outcome.launches for outcome in outcomes),
        "scenarios in which a job waited for money": sum(outcome.waited_for_money > 0 for outcome in outcomes),
        "ceilings": len(windows),
        "times a ceiling was passed (0)": len(over),
        "passed": over,
        "worst use of a ceiling": round(max(most, default=0.0), 4),
        "ceilings used to 90% or more": sum(spent >= 0.9 * allowed for _, _, spent, allowed in windows),
        "median of each scenario's worst": round(statistics.median(most), 4) if most else 0.0,
        "instances left over": sum(outcome.left_over for outcome in outcomes),
    }


# ---- ceilings that are broken on purpose


@contextmanager
def no_money_is_asked_for() -> Iterator[None]:
    """Whatever is wanted is rented, and only the brake is left."""
    with mock.patch.object(Headroom, "short", lambda *_: None):
        yield


@contextmanager
def nothing_is_set_aside() -> Iterator[None]:
    """Only what is spent already counts."""
    with mock.patch.object(LeaseRow, "aside", lambda *_: None):
        yield


@contextmanager
def nothing_is_ended() -> Iterator[None]:
    """What goes another way than planned goes on."""
    with mock.patch.object(ceilings, "enforce", lambda *_: False):
        yield


@contextmanager
def no_ceiling() -> Iterator[None]:
    with no_money_is_asked_for(), nothing_is_ended():
        yield


BROKEN = {
    "no money is asked for, nothing is ended": no_ceiling,
    "nothing is set aside": nothing_is_set_aside,
    "nothing is ended": nothing_is_ended,
    "no money is asked for": no_money_is_asked_for,
}


def broken(seeds: Sequence[int], **more: Any) -> dict[str, int]:
    """How many ceilings are passed with each of them broken."""
    passed = {}
    for name, breaks in BROKEN.items():
        with breaks():
            passed[name] = sum(len(outcome.passed) for outcome in play(seeds, **more))
    return passed


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.budget", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--scenarios", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="the first one; scenario n has seed + n")
    parser.add_argument("--ticks", type=int, help="of the controller in each scenario; without it 80 to 200")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.scenarios < 1:
        parser.error(f"--scenarios is {arguments.scenarios}; it must be 1 or more")
    more = {"ticks": arguments.ticks}
    few = range(arguments.seed, arguments.seed + max(1, arguments.scenarios // 20))
    begun = time.perf_counter()

    def tell(done: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {arguments.scenarios}", end="", file=sys.stderr, flush=True)

    results = figures(play(range(arguments.seed, arguments.seed + arguments.scenarios), tell, **more))
    long = play(few, away_s=LONG_S, **more)
    results["broken on purpose: ceilings passed"] = {"scenarios": len(few), **broken(few, **more)}
    results[f"outages of up to {LONG_S / 60:.0f} min (promised: {OUTAGE_S / 60:.0f})"] = {
        "scenarios": len(long),
        "ceilings": sum(len(outcome.windows) for outcome in long),
        "passed": sum(len(outcome.passed) for outcome in long),
        "worst use of a ceiling": round(max(outcome.most for outcome in long), 4),
    }
    results["wall_s"] = round(time.perf_counter() - begun, 1)
    lines = (f"{key:45} {_shown(value)}" for key, value in results.items())
    print(json.dumps(results, indent=1) if arguments.json else "\n".join(lines))
    return 0 if not results["times a ceiling was passed (0)"] else 1


def _shown(value: Any) -> str:
    return "; ".join(f"{name} {count}" for name, count in value.items()) if isinstance(value, dict) else str(value)


if __name__ == "__main__":
    sys.exit(main())
