"""`ironburst fit TRACE`: how long jobs may wait, from one's history, where that is better than the defaults."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from functools import partial

from ironburst.burst.limits import Limits, WaitTarget
from ironburst.cli import Subparsers, site_options, trials, workers
from ironburst.controller import declared_site
from ironburst.replay import fit_report, fitting, simulation_report
from ironburst.replay.declared import Declared
from ironburst.replay.fitting import PlayedPart
from ironburst.replay.traces import Trace
from ironburst.system.bad_input import BadInput

JOBS = 10_000
DESCRIPTION = (
    "How many hours a job may wait for each GPU-hour that it runs before it is rented for (burst.hours_per_gpu_hour), "
    "or that the defaults are better kept. Which it is depends on the workload: parts of your own history are played, "
    "and each gives the longest number with which its waits are no longer than burst.wait_target, or than with the "
    "defaults. A number is recommended only if it wins on parts that it wasn't fitted to; what it cost there, over the "
    f"defaults, is printed. {site_options.EXIT_CODES}"
)


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "fit",
        description=DESCRIPTION,
        epilog="example: ironburst fit jobs.txt --config stacks/Pulumi.prod.yaml --out fitted",
    )
    trials.add_inputs(parser, config_help="the cluster, and its burst.wait_target", trace_help="as for simulate")
    newest = "of the history, the newest, at most (default: %(default)s)"
    parser.add_argument("--jobs", type=int, default=JOBS, metavar="N", help=newest)
    workers.add(parser)
    trials.add_outputs(parser, "fit")
    parser.set_defaults(func=run)


def play(declared: Declared, part: Trace, target: WaitTarget, hours: float | None) -> PlayedPart:
    """What counts of a part of a history, with these waits wanted and this number."""
    policy = replace(declared.policy, limits=Limits(target, hours_per_gpu_hour=hours))
    return PlayedPart.of(simulation_report.played_on(part, replace(declared, policy=policy), None))


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Play the history, and print or write what it gives."""
    if arguments.jobs < fitting.LEAST_JOBS:
        raise BadInput(f"--jobs is {arguments.jobs}; allowed is {fitting.LEAST_JOBS} or more")
    declared = declared_site.declared(arguments.config, arguments.scheduler)
    limits = declared.policy.limits
    if limits is None:
        raise BadInput(
            f"{arguments.config}: it has no burst.wait_target, and its waits are what is fitted to: give one"
        )
    whole = trials.read(arguments.trace)
    trace = whole.take(slice(max(0, len(whole) - arguments.jobs), None))
    trials.make(arguments.out)
    try:
        parts = fitting.parts_of(trace)
    except ValueError as error:
        raise BadInput(f"{arguments.trace}: {error}") from None

    with workers.workers(arguments.on) as where:
        targets, tell = [limits.target] * len(parts), trials.bar(sys.stderr, "plays")
        fitted = fitting.fit(parts, targets, partial(where.run, play, declared), tell, where.map)
    said = {"trace": arguments.trace.name, "config": str(arguments.config), "jobs": len(whole), "played": len(trace)}
    said["days"] = float(trace.submit_s[-1] - trace.submit_s[0]) / 86400
    said |= fit_report.as_json(fitted, limits.target) | {"declared_hours_per_gpu_hour": limits.hours_per_gpu_hour}
    if arguments.out:
        trials.write(arguments.out, "fit", said, fit_report.picture(fitted, limits.target), fit_report.lines(said))
    print(json.dumps(said) if arguments.json else "\n".join(fit_report.lines(said)))
    return 0
