"""What does a burst policy rent? python -m benchmarks.burst --trace FILE --pool-gpus 512 [--seeds 20]

One run, the same jobs for all: the published policies (peers), and the certified bound under which no policy can rent
while its five waits are no longer than Starburst's (whole-queue scan) times the wait factor. FILE: any trace that
ironburst.replay.traces reads, also by its name in the folder of the shared data (IRONBURST_DATA). Figures are means
over seeds 1 to N of the jitter; the bound is for the times as recorded. Peers know run times. Ours is `burst.decide`,
played by ironburst.replay.simulate with Starburst's waits times the wait factor (and times the patience) as its target.
Its limits are those that were found for such a target on one trace (`--limits told`); or what `ironburst fit` says of
the first part of the trace, where Starburst's waits are wanted (`--limits fitted`; it may say that they are better
told); or the longest number of hours for each GPU-hour that keeps those waits on the first part, whatever it costs,
with a home that takes the jobs in the peers' order (`--limits kept`). Nothing is found on the part kept aside.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.figures import Outcome, figures, finite, mean_of, ratios, trace_path
from ironburst.burst import Policy as BurstPolicy
from ironburst.burst.limits import Limits, WaitTarget
from ironburst.replay import fitting, results, traces
from ironburst.replay.bound import WaitLimits
from ironburst.replay.bound_search import lower_bound
from ironburst.replay.fitting import Fit
from ironburst.replay.home import Home
from ironburst.replay.simulate import play
from ironburst.replay.traces import Trace

GPUS_PER_NODE = 8
ASIDE = 0.25  # the last part of a trace that nothing is tuned on
# patience where none is given and limits are told: run times that are learned need some room
ROOM = {"known": 1.0, "limits": 0.95, "limits-by-queue": 0.95}
ASKED = ("pool_gpus", "run_times", "seeds", "wait_factor", "patience", "limits", "hours_per_gpu_hour")
LIMIT_FACTORS = (2.0, 5.0)  # a user's time limit over the run time, where the trace knows no limits
Policy = Callable[[Trace, int], Outcome]  # when each job starts, at home or rented, in a pool of so many GPUs
Ours = Callable[..., Policy]  # of WaitLimits, and decided's settings
Figures = Mapping[str, float]


def measure(policy: Policy, runs: Mapping[int, Trace], pool_gpus: int) -> dict[str, float]:
    """The mean of the policy's figures over traces (the same one with several jitters)."""
    measured = []
    for trace in runs.values():
        began = time.perf_counter()
        outcome = policy(trace, pool_gpus)
        measured.append(figures(trace, outcome, pool_gpus, time.perf_counter() - began))
    return mean_of(measured)


def wait_limits(of: Figures, factor: float = 1.0) -> WaitLimits:
    """The five waits of some figures, times a factor."""
    return WaitLimits(
        mean_h=factor * of["mean_wait_h"],
        gpu_hour_weighted_h=factor * of["gpu_hour_weighted_wait_h"],
        p99_h=factor * of["p99_wait_h"],
        p999_h=factor * of["p999_wait_h"],
        max_h=factor * of["max_wait_h"],
    )


def bound_figures(trace: Trace, pool_gpus: int, limits: WaitLimits, budget_s: float) -> dict[str, float | None]:
    """The bound, in the same shape; its waits are the limits under which it holds (of p50 there is none)."""

    def tell(line: str) -> None:
        print(f"bound: {line}", file=sys.stderr)

    bound = lower_bound(trace, pool_gpus, limits, budget_s=budget_s, tell=tell)
    return {
        "rented_gpu_hours": bound.gpu_hours,
        "mean_wait_h": limits.mean_h,
        "p50_wait_h": None,
        "p99_wait_h": limits.p99_h,
        "p999_wait_h": limits.p999_h,
        "max_wait_h": limits.max_h,
        "gpu_hour_weighted_wait_h": limits.gpu_hour_weighted_h,
        "wall_s": bound.wall_s,
        "jobs_per_s": len(trace) / bound.wall_s,
    }


def with_time_limits(trace: Trace, seed: int, by_queue: bool = False) -> Trace:
    """The trace with a user's time limit for each job that has none: its run time x a factor from 2 to 5, drawn for
    each job, or for each queue (then a job's own part is a tenth up or down).
    """
    random = np.random.default_rng([seed, 1])
    factor = random.uniform(*LIMIT_FACTORS, len(trace))
    if by_queue and trace.queue:
        _, number = np.unique(trace.queue, return_inverse=True)
        factor = random.uniform(*LIMIT_FACTORS, number.max() + 1)[number] * random.uniform(0.9, 1.1, len(trace))
    drawn = trace.duration_s * factor
    known = np.full(len(trace), np.nan) if trace.limit_s is None else trace.limit_s
    return replace(trace, limit_s=np.where(np.isnan(known), drawn, known))


def jitters(trace: Trace, seeds: int) -> dict[int, Trace]:
    return {seed: traces.jittered(trace, seed) for seed in range(1, seeds + 1)}


def as_known(runs: Mapping[int, Trace], run_times: str) -> Mapping[int, Trace]:
    """What our policy is played on, by --run-times."""
    if run_times == "known":
        return runs
    return {seed: with_time_limits(run, seed, by_queue=run_times == "limits-by-queue") for seed, run in runs.items()}


def report(
    trace: Trace,
    pool_gpus: int,
    seeds: int = 1,
    wait_factor: float = 1.0,
    run_times: str = "known",
    bound_s: float = 180.0,
    ours: Ours | None = None,
    patience: float = 1.0,
) -> dict[str, Any]:
    """All that the benchmark prints. `ours` makes our policy for the waits that it should keep; it is told `patience`
    times those that count. If run times aren't known, its trace has `limit_s` for each job, and `duration_s` only says
    when a job ends.
    """
    runs = jitters(trace, seeds)
    theirs = {name: measure(partial(peers.run, peer=peer), runs, pool_gpus) for name, peer in peers.PEERS.items()}
    limits = wait_limits(theirs["starburst"], wait_factor)
    said: dict[str, Any] = {}
    if ours:
        policy = ours(wait_limits(theirs["starburst"], wait_factor * patience))
        said["ours"] = measure(policy, as_known(runs, run_times), pool_gpus)
    said["peers"] = theirs
    said["bound"] = bound_figures(trace, pool_gpus, limits, bound_s) if bound_s else None
    said["ratios"] = {f"ours / {name}": ratios(said["ours"], peer) for name, peer in theirs.items()} if ours else {}
    if said["bound"]:
        policies = {"starburst": theirs["starburst"], **({"ours": said["ours"]} if ours else {})}
        said["ratios"] |= {f"{name} / bound": ratios(policy, said["bound"]) for name, policy in policies.items()}
    return said


def decided(limits: WaitLimits | WaitTarget, hours_per_gpu_hour: float | None = None, in_order: bool = False) -> Policy:
    """`burst.decide` with these waits as its target, and these hours for each GPU-hour; `in_order`: home's jobs are."""
    policy = BurstPolicy("home", 0.0, limits=Limits(WaitTarget(**vars(limits)), hours_per_gpu_hour=hours_per_gpu_hour))

    def run(trace: Trace, pool_gpus: int) -> Outcome:
        home = Home(pool_gpus // GPUS_PER_NODE, GPUS_PER_NODE)
        if in_order:
            home = replace(home, step_back_s=_in_order, reserved=0)
        played = play(trace, home, policy)
        return Outcome(played.start_s, played.rented)

    return run


def _in_order(_gpu_hours: float) -> float:
    """No job steps back in the queue."""
    return 0.0


def _parts(first: Trace, pool_gpus: int, run_times: str) -> tuple[list[Trace], list[WaitLimits]]:
    """Those that are fitted to, as our policy sees them, and the waits that Starburst had on each."""
    run = traces.jittered(first, 1)
    starburst = [(part, peers.run(part, pool_gpus, peers.PEERS["starburst"])) for part in fitting.parts_of(run)]
    had = [results.waits(part, each.start_s).limits() for part, each in starburst]
    return fitting.parts_of(as_known({1: run}, run_times)[1]), had


def fitted(first: Trace, pool_gpus: int, run_times: str = "known") -> Fit:
    """What `ironburst fit` says of the first part, where Starburst's waits are wanted; GPU-hours are its USD."""
    parts, had = _parts(first, pool_gpus, run_times)

    def played(part: Trace, target: WaitTarget, hours: float | None) -> fitting.PlayedPart:
        outcome = decided(target, hours)(part, pool_gpus)
        return fitting.PlayedPart(outcome.start_s, float(part.gpu_hours[outcome.rented].sum()), 0)

    return fitting.fit(parts, [WaitTarget(**vars(limits)) for limits in had], played)


def kept_hours(first: Trace, pool_gpus: int, run_times: str) -> float:
    """For each GPU-hour: the longest with which our policy keeps Starburst's waits on each part of the first part."""
    parts, had = _parts(first, pool_gpus, run_times)
    quiet_first = sorted(range(len(parts)), key=lambda number: had[number].mean_h)  # the quickest says no

    def keeps(hours: float, number: int) -> bool:
        started = decided(had[number], hours, in_order=True)(parts[number], pool_gpus).start_s
        return fitting.kept(WaitTarget(**vars(had[number])), results.waits(parts[number], started))

    return fitting.longest(lambda hours: all(keeps(hours, number) for number in quiet_first)) or fitting.HOURS[0]


def _positive(text: str) -> float:
    """argparse names the option and what was given."""
    if not 0 < float(text) < float("inf"):
        raise argparse.ArgumentTypeError(f"it is {text}; allowed is a number above 0")
    return float(text)


def table(said: Mapping[str, Any]) -> str:
    """The report for people."""
    rows = {**({"ours": said["ours"]} if "ours" in said else {}), **said["peers"]}
    if said["bound"]:
        rows["bound"] = said["bound"]
    head = ("rented GPU-h", "mean wait h", "p50", "p99", "p99.9", "max", "weighted", "seconds", "jobs/s")
    whole = ("rented_gpu_hours", "jobs_per_s")  # the others have decimals
    lines = [f"{'':16}" + "".join(f"{name:>14}" for name in head)]
    for name, row in rows.items():
        cells = [
            "-" if value is None else f"{value:,.0f}" if figure in whole else f"{value:,.3f}"
            for figure, value in row.items()
        ]
        lines.append(f"{name:16}" + "".join(f"{cell:>14}" for cell in cells))
    for name, ratio in said["ratios"].items():
        value = ratio["rented_gpu_hours"]
        lines.append(f"{name}: {'-' if value is None else f'{value:.3f}'} x the rented GPU-hours")
    return "\n".join(lines)


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.burst", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--trace", default="philly_first70d.csv.xz", help="file, or its name in the folder of the shared data")
    add("--pool-gpus", type=int, default=512, help="GPUs at home, in nodes of 8")
    add("--run-times", choices=tuple(ROOM), default="known", help="what our policy knows")
    add("--seeds", type=int, default=1, help="jitters to average over")
    add("--wait-factor", type=float, default=1.0, help="waits may be so many times Starburst's")
    patience = (
        f"our policy is told so many times the waits that count ({ROOM['known']:g}, or {ROOM['limits']:g} where run "
        "times aren't known and its limits aren't fitted)"
    )
    add("--patience", type=_positive, metavar="X", help=patience)
    add("--limits", choices=("told", "fitted", "kept"), help="by the first part (told; for the part kept aside fitted)")
    part = f"aside: the last {100 * ASIDE:g}%% of the jobs"  # argparse formats it again
    add("--part", choices=("all", "first", "aside"), default="all", help=part)
    add("--bound-seconds", type=float, default=180.0, help="time to search for a good bound; 0: no bound")
    add("--json", action="store_true")
    return parser


def main(argv: list[str] | None = None, ours: Ours = decided) -> int:
    args = options().parse_args(argv)
    args.limits = args.limits or ("fitted" if args.part == "aside" else "told")
    args.hours_per_gpu_hour = None
    path = trace_path(args.trace, args.json)
    if not path:
        return 0
    try:
        trace = traces.read(path)
        first, aside = traces.split(trace, ASIDE)
        trace = {"all": trace, "first": first, "aside": aside}[args.part]
        if args.seeds < 1:
            raise ValueError(f"--seeds is {args.seeds}; allowed is 1 or more")
        if args.patience is None:
            args.patience = ROOM[args.run_times] if args.limits == "told" else 1.0
        if args.limits == "fitted":
            args.hours_per_gpu_hour = fitted(first, args.pool_gpus, args.run_times).recommended
            ours = partial(ours, hours_per_gpu_hour=args.hours_per_gpu_hour)
        if args.limits == "kept":
            args.hours_per_gpu_hour = kept_hours(first, args.pool_gpus, args.run_times)
            ours = partial(ours, hours_per_gpu_hour=args.hours_per_gpu_hour, in_order=True)
        said = report(
            trace, args.pool_gpus, args.seeds, args.wait_factor, args.run_times, args.bound_seconds, ours, args.patience
        )
    except ValueError as error:
        print(f"benchmarks.burst: {error}", file=sys.stderr)
        return 2
    what = {"trace": path.name, "part": args.part, "jobs": len(trace), "gpu_hours": float(trace.gpu_hours.sum())}
    asked = {name: getattr(args, name) for name in ASKED}
    print(json.dumps(finite({**what, **asked, **said}), indent=1) if args.json else table(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
