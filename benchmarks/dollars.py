"""What do the users pay? python -m benchmarks.dollars [--trace FILE] [--pool-gpus 512] [--rows a,b,c] [--seeds N]
Quicker: --days 20-30, or --least-gpu-hours 60 with a smaller pool.

The same jobs, list prices (us-east-1; their dates are printed), whole instances, 10 minutes of boot and gate, minimum
billing, idle time, and offerings without capacity. Ours is `burst.decide`, played by ironburst.replay.simulate; the
peers (benchmarks.dollar_peers) rent the cheapest fitting instance for each job, on demand. Ours is held to the five
waits of Starburst (whole-queue scan) times the wait factor, boots included.

(a) ours too on demand only; (b) 70% of the jobs may be requeued (drawn by the seed), and may use spot: an instance is
taken back at the rate of its band, work since the last checkpoint (30 min) is lost; (c) as b, with reserved instances
beside, paid all the time: as many as `ironburst size` recommends after the first three quarters of the jobs of (b).

`aside`: the same plays, of the last quarter only: the jobs submitted then, and what was rented then.

A wait is all that a job loses: end - submit - run time, with the work that interruptions lose.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.dollar_peers import pay
from benchmarks.figures import WAITS, finite, mean_of, ratios, trace_path, wait_figures
from benchmarks.offers import GPU_MEMORY_GB, ON_DEMAND, REGION, RESERVATION, SPOT, pools, reserved
from ironburst import catalog
from ironburst.burst import Policy, Pool
from ironburst.burst.limits import Limits, WaitTarget
from ironburst.replay import sizing, traces
from ironburst.replay.home import Home
from ironburst.replay.outcome import Played
from ironburst.replay.provider import Shortage, SimulatedCloud
from ironburst.replay.simulate import play
from ironburst.replay.traces import Trace

GPUS_PER_NODE = 8
# the policy looks once a minute: later, and a little dearer, than with the controller's 10 s, and half of the time to
# play
TICK_S = 60.0
ASIDE = 0.25  # of the jobs, the last ones
REQUEUEABLE = 0.7
# assumed, not from data: an offering (type, zone, market) has no capacity for this part of the time, in spells of this
# length
SHORTAGES = {ON_DEMAND: Shortage(0.05, 3600.0), SPOT: Shortage(0.25, 2 * 3600.0)}
# of Starburst's waits, what our policy is told to keep so that it does: choosing what is cheap to rent for leaves the
# dear jobs waiting. On the whole trace 0.9 (on demand) uses at most 0.89 of any wait, 0.65 (with spot) 0.75; jobs of 25
# GPU-hours and more alone need 0.65
PATIENCE = 0.9
ASKED, WANTED = {"a": 0.97, "b": 0.60, "c": 0.50}, {"a": 0.90, "b": 0.50, "c": 0.40}


def recommended(
    played: Played, kinds: Sequence[Pool], from_s: float, until_s: float, part: float = RESERVATION
) -> dict[str, int]:
    """How many instances of each type to reserve, by the rule of `ironburst size`, from the leases of this time that
    weren't prepaid.
    """
    counts = {}
    for pool in kinds:
        leases = [
            (bill.from_s, min(bill.to_s, until_s), pool.usd_per_hour[bill.market] or 0.0)
            for bill in played.bills
            if bill.pool == pool.name and not bill.prepaid and bill.from_s < until_s
        ]
        listed = catalog.price(pool.instance_type, ON_DEMAND, REGION)
        usd = part * listed.usd_per_hour if listed else None
        counts[pool.instance_type], _ = sizing.reservation(leases, (until_s - from_s) / 3600, usd)
    return {kind: count for kind, count in counts.items() if count}


def figures(
    trace: Trace, wait_s: np.ndarray, usd: float, boot_usd: float, idle_usd: float, **counts: Any
) -> dict[str, float]:
    waits = wait_figures(trace, np.maximum(wait_s, 0.0) / 3600)
    return {"usd": usd, "boot_usd": boot_usd, "idle_usd": idle_usd, **waits, **counts}


def ours(
    trace: Trace, pool_gpus: int, target: Mapping[str, float], cloud: SimulatedCloud, progress=None, told: float = 1.0
) -> tuple[Played, dict[str, float], dict[str, float]]:
    """What became of it, its figures, and those of the last quarter. `target`: the figures whose five waits, times
    `told`, the policy is told to keep.
    """
    waits = WaitTarget(*(told * target[name] for name in WAITS))
    policy = Policy("home", 0.0, limits=Limits(waits), spot_max_nodes=4)
    began = time.perf_counter()
    played = play(trace, Home(pool_gpus // GPUS_PER_NODE, GPUS_PER_NODE, tick_s=TICK_S), policy, cloud, progress)
    wait_s = played.end_s - trace.submit_s - trace.duration_s
    said = figures(
        trace,
        wait_s,
        played.total_usd,
        played.boot_usd,
        played.idle_usd,
        prepaid_usd=played.prepaid_usd,
        rented_gpu_hours=float(trace.gpu_hours[played.rented].sum()),
        rented_jobs=float(played.rented.sum()),
        leases=float(len(played.bills)),
        refusals=float(played.refusals),
        interruptions=float(played.interruptions.sum()),
        decisions=float(played.decisions),
        wall_s=time.perf_counter() - began,
    )
    if progress:
        progress(said)
    since_s, began_s, ended_s = aside_from_s(trace), float(trace.submit_s[0]), float(played.end_s.max())
    usd = sum(bill.usd for bill in played.bills if not bill.prepaid and bill.from_s >= since_s)
    usd += played.prepaid_usd * (ended_s - since_s) / (ended_s - began_s)
    return played, said, aside(trace, wait_s, usd)


def aside_from_s(trace: Trace) -> float:
    """When the last quarter of the jobs begins: nothing is tuned on it."""
    return float(traces.split(trace, ASIDE)[1].submit_s[0])


def aside(trace: Trace, wait_s: np.ndarray, usd: float) -> dict[str, float]:
    late = trace.submit_s >= aside_from_s(trace)
    return {"usd": usd, **wait_figures(trace.take(late), np.maximum(wait_s[late], 0.0) / 3600)}


def requeueable(trace: Trace, seed: int, part: float = REQUEUEABLE) -> Trace:
    """The trace with this part of its jobs, drawn by the seed, that may be started again."""
    return replace(trace, requeue=np.random.default_rng([seed, 2]).random(len(trace)) < part)


@dataclass(frozen=True)
class Setting:
    """`reserve`: instances of each type for (c); None: as recommended. `told`: of Starburst's waits, what our policy is
    told to keep.
    """

    pool_gpus: int
    rows: Sequence[str]
    memory_gb: int = GPU_MEMORY_GB
    reserve: Mapping[str, int] | None = None
    told: float = 1.0


def jitter_once(trace: Trace, setting: Setting, seed: int, tell) -> dict[str, dict]:
    """The figures of the peers and of each row, for one jitter of the trace."""
    pool_gpus, rows, reserve, told = setting.pool_gpus, setting.rows, setting.reserve, setting.told
    trace = requeueable(traces.jittered(trace, seed), seed)
    both, dear = pools((SPOT, ON_DEMAND), setting.memory_gb), pools((ON_DEMAND,), setting.memory_gb)
    cloud = SimulatedCloud(both, seed, SHORTAGES)
    said: dict[str, dict] = {}
    for name in ("starburst", "no_wait"):
        began = time.perf_counter()
        paid = pay(trace, pool_gpus, peers.PEERS[name], cloud)
        said[name] = figures(
            trace,
            paid.start_s - trace.submit_s,
            paid.usd,
            paid.boot_usd,
            0.0,
            refusals=float(paid.refusals),
            rented_gpu_hours=float(trace.gpu_hours[paid.rented].sum()),
            rented_jobs=float(paid.rented.sum()),
            wall_s=time.perf_counter() - began,
        )
        said[f"{name} aside"] = aside(
            trace, paid.start_s - trace.submit_s, float(paid.usd_of[paid.start_s >= aside_from_s(trace)].sum())
        )
        tell(name)(said[name])
    target, kinds = said["starburst"], reserve
    if "a" in rows:
        _, said["a"], said["a aside"] = ours(trace, pool_gpus, target, replace(cloud, pools=dear), tell("a"), told)
    if "b" in rows or ("c" in rows and reserve is None):
        played, said["b"], said["b aside"] = ours(trace, pool_gpus, target, cloud, tell("b"), told)
        if reserve is None:
            kinds = recommended(played, both, float(trace.submit_s[0]), aside_from_s(trace))
    if "c" in rows and not kinds and "b" in said:  # nothing to reserve: the same play
        said["c"], said["c aside"] = said["b"], said["b aside"]
    elif "c" in rows:
        with_reserved = replace(cloud, pools=(*reserved(kinds), *both))
        _, said["c"], said["c aside"] = ours(trace, pool_gpus, target, with_reserved, tell("c"), told)
    if kinds is not None:
        said["reserved"] = kinds
    return said


def report(trace: Trace, setting: Setting, seeds: int, tell) -> dict[str, Any]:
    runs = [jitter_once(trace, setting, seed, tell) for seed in range(1, seeds + 1)]
    kinds = [run.pop("reserved") for run in runs if "reserved" in run]
    said: dict[str, Any] = {name: mean_of(run[name] for run in runs) for name in runs[0]}
    if kinds:
        said["reserved"] = kinds  # for (c), of each seed
    to_peers = {}
    for row in (name for name in ASKED if name in said):
        starburst, no_wait = (ratios(said[row], said[peer], "usd") for peer in ("starburst", "no_wait"))
        to_peers[row] = {**starburst, "usd / no_wait": no_wait["usd"], "asked": ASKED[row], "wanted": WANTED[row]}
    of_aside = {row: ratios(said[f"{row} aside"], said["starburst aside"], "usd") for row in to_peers}
    return {**said, "ratios": to_peers, "aside": of_aside}


COLUMNS = {
    "usd": "USD",
    "boot_usd": "boot USD",
    "idle_usd": "idle USD",
    "mean_wait_h": "mean wait h",
    "p50_wait_h": "p50",
    "p99_wait_h": "p99",
    "p999_wait_h": "p99.9",
    "max_wait_h": "max",
    "gpu_hour_weighted_wait_h": "weighted",
    "rented_gpu_hours": "rented GPU-h",
    "rented_jobs": "jobs",
    "refusals": "refusals",
}
HOURS = (*WAITS, "p50_wait_h")


def table(said: Mapping[str, Any], prices: str) -> str:
    """The report for people."""
    lines = [prices, f"{'':12}" + "".join(f"{head:>13}" for head in COLUMNS.values())]
    for row in ("starburst", "no_wait", "a", "b", "c"):
        if row in said:
            cells = (f"{said[row][name]:{',.3f' if name in HOURS else ',.0f'}}" for name in COLUMNS)
            name = row if len(row) > 1 else f"ours ({row})"
            lines.append(f"{name:12}" + "".join(f"{cell:>13}" for cell in cells))
    for row, ratio in said["ratios"].items():
        waits = " ".join("-" if ratio[name] is None else f"{ratio[name]:.2f}" for name in WAITS)
        usd = "-" if ratio["usd"] is None else f"{ratio['usd']:.3f}"
        lines.append(
            f"({row}) {usd} x what Starburst pays (asked {ratio['asked']}, wanted {ratio['wanted']}); waits {waits} x"
        )
    for row, ratio in said["aside"].items():
        waits = " ".join("-" if ratio[name] is None else f"{ratio[name]:.2f}" for name in WAITS)
        lines.append(f"({row}) aside: {'-' if ratio['usd'] is None else format(ratio['usd'], '.3f')}; waits {waits} x")
    if "reserved" in said:
        lines.append(f"reserved for (c): {said['reserved']}")
    return "\n".join(lines)


def _counts(text: str) -> dict[str, int]:
    """Of --reserved. Raises ValueError."""
    kinds, counts = {pool.instance_type for pool in pools((ON_DEMAND,))}, {}
    for part in text.split(","):
        kind, _, count = part.strip().partition("=")
        if kind not in kinds or not count.isdigit():
            allowed = f"TYPE=N, with commas between, of {', '.join(sorted(kinds))}"
            raise ValueError(f"--reserved is {text!r}; allowed is {allowed}")
        counts[kind] = int(count)
    return counts


def _progress(row: str):
    def tell(jobs: int | Mapping[str, float], of: int = 0) -> None:
        if isinstance(jobs, Mapping):
            print(f"({row}) {json.dumps(finite(jobs))}", file=sys.stderr)
        elif jobs == of or jobs % max(1, of // 20) == 0:
            print(f"({row}) {jobs} of {of} jobs", file=sys.stderr)

    return tell


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.dollars", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--trace", default="philly_first70d.csv.xz", help="file, or its name in the folder of the shared data")
    add("--pool-gpus", type=int, default=512, help="GPUs at home, in nodes of 8")
    add("--rows", default="a,b,c", help="which of a, b, c to play; separated by commas")
    add("--seeds", type=int, default=1, help="jitters, draws and providers to average over")
    add("--wait-factor", type=float, default=1.0, help="waits may be so many times Starburst's")
    add("--patience", type=float, default=PATIENCE, help="our policy is told so many times the waits that count")
    add("--least-gpu-hours", type=float, default=0.0, help="only jobs of at least this size, where the money is")
    add("--days", metavar="FROM-TO", help="only the jobs submitted on these days of the trace")
    add("--gpu-memory-gb", type=int, default=GPU_MEMORY_GB, help="GPUs that are rented have at least so much memory")
    add("--reserved", metavar="TYPE=N,...", help="for (c): so many instances of these types; else as recommended")
    add("--json", action="store_true")
    return parser


def chosen_jobs(trace: Trace, days: str | None, least_gpu_hours: float) -> Trace:
    """Those of --days and --least-gpu-hours. Raises ValueError."""
    if days:
        if not re.fullmatch(r"\d+(\.\d+)?-\d+(\.\d+)?", days):
            raise ValueError(f"--days is {days}; allowed are two days of the trace, such as 20-30")
        first, last = (float(day) * 86400 for day in days.split("-"))
        since_s = trace.submit_s - trace.submit_s[0]
        trace = trace.take((since_s >= first) & (since_s < last))
    trace = trace.take(trace.gpu_hours >= least_gpu_hours)
    if not len(trace):
        raise ValueError("--days and --least-gpu-hours leave no job of the trace")
    return trace


def prices_told() -> str:
    listed, spot = catalog.instance_types("aws"), catalog.interruptions("g6.xlarge", REGION)
    dates = ", ".join(sorted({str(kind.prices_as_of) for kind in listed.values()}))
    return (
        f"{REGION}: list prices of {dates}; spot prices and bands of {spot.as_of if spot else '?'}; "
        f"a reservation costs {RESERVATION} of the on-demand price for the whole period (declared, not from data)"
    )


def main(argv: Sequence[str] | None = None) -> int:
    args = options().parse_args(argv)
    path = trace_path(args.trace, args.json)
    if not path:
        return 0
    rows = tuple(args.rows.split(","))
    try:
        if args.seeds < 1 or not set(rows) <= set(ASKED):
            told = f"--seeds is {args.seeds} and --rows {args.rows}"
            raise ValueError(f"{told}; allowed are 1 or more, and some of {', '.join(ASKED)}")
        trace = chosen_jobs(traces.read(path), args.days, args.least_gpu_hours)
        reserve = None if args.reserved is None else _counts(args.reserved)
        setting = Setting(args.pool_gpus, rows, args.gpu_memory_gb, reserve, args.wait_factor * args.patience)
        said = report(trace, setting, args.seeds, _progress)
    except ValueError as error:
        print(f"benchmarks.dollars: {error}", file=sys.stderr)
        return 2
    prices = prices_told()
    what = {"trace": path.name, "jobs": len(trace), "gpu_hours": float(trace.gpu_hours.sum()), "prices": prices}
    names = ("pool_gpus", "seeds", "days", "wait_factor", "patience", "least_gpu_hours", "gpu_memory_gb")
    asked = {name: getattr(args, name) for name in names}
    print(json.dumps(finite({**what, **asked, **said}), indent=1) if args.json else table(said, prices))
    return 0


if __name__ == "__main__":
    sys.exit(main())
