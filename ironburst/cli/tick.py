"""`ironburst tick`: one tick of the controller."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from ironburst.cli import Subparsers, site_options
from ironburst.controller import order_spool
from ironburst.controller.loop import SystemClock
from ironburst.controller.recorder import Recorder
from ironburst.controller.tick import Controller, Report
from ironburst.nodes import naming
from ironburst.system import local_time
from ironburst.system.bad_input import BadInput
from ironburst.wiring import clouds, schedulers


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "tick",
        description=f"One tick of the controller: observe, decide, re-check, apply, record. {site_options.EXIT_CODES}",
        epilog="example: ironburst tick --document /var/lib/ironburst/cluster.json --slurm-prefix 'ssh root@head'",
    )
    site_options.add(parser)
    parser.add_argument("--reopen", metavar="POOL", help="first forget what closed this pool: its cause is cured")
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """One tick, and what it did."""
    read = site_options.document_reader(arguments)
    document = read()
    if read.stale:
        print(f"ironburst: {read.stale}", file=sys.stderr)
    if arguments.reopen and arguments.reopen not in {pool.name for pool in document.pools}:
        pools = ", ".join(pool.name for pool in document.pools) or "none"
        raise BadInput(f"--reopen {arguments.reopen}: there is no such pool; the document has: {pools}")
    connection = schedulers.SchedulerConnection(arguments)
    queue = connection.follow(document)
    with site_options.own_ledger(arguments) as ledger:
        if arguments.reopen:
            ledger.reopen(arguments.reopen)
        order_spool.prepare(ledger.path)
        cloud = clouds.connect(document)
        ticks = Recorder(site_options.ticks_path(arguments))
        report = Controller(queue, cloud, ledger, SystemClock(), ticks, connection.karpenter).tick(document)
    print(json.dumps(as_json(report)) if arguments.json else "\n".join(lines(report)))
    return 0


def as_json(report: Report) -> dict[str, Any]:
    """A report as JSON values."""
    return asdict(report)


def lines(report: Report) -> list[str]:
    """One line for the tick, one for each thing that happened in it."""
    leases = ", ".join(f"{count} {state}" for state, count in sorted(report.leases.items())) or "none"
    out = [f"{local_time.at(report.at_s)}  pending {report.pending}, on nodes {report.running}, leases: {leases}"]
    for event in report.events:
        about = ""
        if event.job is not None:
            about = f"job {report.called.get(event.job) or naming.called(event.job)} "
        out.append(f"  {event.kind}: {about}{local_time.local(event.text)}")
    return out
