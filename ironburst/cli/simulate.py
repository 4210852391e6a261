"""`ironburst simulate TRACE`: a trace of jobs on a declared cluster, through the policy that the controller runs."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ironburst.cli import Subparsers, site_options, trials, workers
from ironburst.controller import declared_site
from ironburst.replay import carbon, simulation_report, spot_trace
from ironburst.system.bad_input import BadInput

BOUND_S = 30.0


DESCRIPTION = (
    "Play a trace of jobs (Slurm's accounting, or a CSV with submit_s, duration_s, num_gpus; also .xz) through the "
    "controller's own decision on the home nodes and pools of a stack file: the waits as they were recorded (Slurm's "
    "Start, a CSV's start_s), with home alone, and with rent; money; for which late jobs nothing was rented, and why; "
    "and how far the rent is from what no policy can beat within the same waits. Boots, whole instances, minimum "
    "billing, idle leases and spot interruptions count, and deadlines (deadline_s) of jobs that save their work "
    "(checkpoint_s) where the stack file has burst.deadline_spare; the monthly budget stops nothing here, and is said "
    f"where it would be passed. `size` counts some things otherwise, and says which. {site_options.EXIT_CODES}"
)


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "simulate",
        description=DESCRIPTION,
        epilog="example: ironburst simulate jobs.csv --config stacks/Pulumi.prod.yaml --out simulated",
    )
    trials.add_inputs(parser, config_help="the cluster and its policy")
    parser.add_argument(
        "--bound-seconds",
        type=float,
        default=BOUND_S,
        metavar="S",
        help="how long to search for a good bound; 0: no bound (default: %(default)g)",
    )
    parser.add_argument(
        "--spot",
        type=Path,
        metavar="FILE",
        help="when spot was to be had: a CSV with at_s (on the clock of TRACE), available (1 or 0, from then on) and, "
        "where it differs, zone; in the place of the pools' rates of interruptions",
    )
    workers.add(parser)
    trials.add_outputs(parser, "simulation")
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Play the trace, and print or write what it comes to."""
    if not 0 <= arguments.bound_seconds < float("inf"):
        raise BadInput(f"--bound-seconds is {arguments.bound_seconds:g}; allowed is 0 or more")
    declared = declared_site.declared(arguments.config, arguments.scheduler)
    if arguments.spot:
        declared = replace(declared, cloud=replace(declared.cloud, spot=spot_trace.read(arguments.spot)))
    trace = trials.read(arguments.trace)
    if spot := declared.cloud.spot:
        zones = {zone for pool in declared.cloud.pools if "spot" in pool.markets for zone in pool.zones}
        spot_trace.fits(spot, zones, float(trace.submit_s[0]), float(trace.submit_s[-1]))
    trials.make(arguments.out)
    began = time.monotonic()
    with workers.workers(arguments.on) as where:
        tell = None if arguments.on else trials.bar(sys.stderr, "jobs")
        plays: tuple[Callable[..., Any], ...] = (
            simulation_report.played_on,
            carbon.unweighed,
            simulation_report.home_only,
        )
        played, unweighed, home_only = where.map(lambda play: where.run(play, trace, declared, tell), plays)
    wall_s = time.monotonic() - began
    said = simulation_report.gather(trace, declared, played)
    said["carbon"] = carbon.gather(trace, declared, played, unweighed)
    said["home_only"] = home_only
    said |= {"trace": arguments.trace.name, "config": str(arguments.config), "wall_s": wall_s}
    said["spot"] = arguments.spot.name if arguments.spot else None
    said["bound"] = (
        simulation_report.bounded(trace, declared, played, arguments.bound_seconds) if arguments.bound_seconds else None
    )
    if arguments.out:
        trials.write(
            arguments.out,
            "simulation",
            said,
            simulation_report.picture(trace, declared, played),
            simulation_report.lines(said),
        )
    print(json.dumps(said) if arguments.json else "\n".join(simulation_report.lines(said)))
    return 0
