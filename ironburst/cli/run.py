"""`ironburst run`: the controller, tick after tick, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
from pathlib import Path

from ironburst import document
from ironburst.burst import explain
from ironburst.cli import Subparsers, site_options
from ironburst.cli.tick import as_json, lines
from ironburst.controller import loop, order_spool, ownership, recorder, records, retention
from ironburst.controller.ledger import Ledger
from ironburst.controller.loop import SystemClock
from ironburst.controller.shadow import Shadow
from ironburst.controller.tick import Controller, Report
from ironburst.document import ClusterDocument, DocumentError, of_stack
from ironburst.ports import SchedulerError
from ironburst.system.bad_input import BadInput
from ironburst.system.signals import handled
from ironburst.wiring import clouds, schedulers

_STALE = explain.duration(ownership.STALE_S)


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "run",
        help="the controller: tick after tick until SIGTERM",
        description="The controller: tick after tick, at the document's burst.tick, until SIGTERM or Ctrl-C; the tick "
        "under way is finished. Prints the ticks in which something happened. The ledger keeps what money was spent "
        "on, and why, for good; other jobs "
        f"{retention.KEEP_S / 86400:.0f} days. {site_options.EXIT_CODES}",
        epilog="example: ironburst run --document /var/lib/ironburst/cluster.json "
        "--ledger /var/lib/ironburst/ledger.sqlite",
    )
    site_options.add(parser)
    told = "what was decided from what is kept in the folder `ticks` beside the ledger"
    parser.add_argument(
        "--keep-days", type=float, default=recorder.KEEP_DAYS, help=f"{told}, for so long (default: %(default)g)"
    )
    parser.add_argument(
        "--keep-mb", type=float, default=recorder.KEEP_MB, help="and up to this size (default: %(default)g)"
    )
    told = (
        "decide, write down and explain, and rent nothing: no call of a cloud, no change in the queue. Its ledger is "
    )
    told += "its own (default: shadow/ledger.sqlite beside the controller's); what comes of it: `ironburst report`"
    parser.add_argument("--shadow", action="store_true", help=told)
    told = "with --shadow: decide for this file's cluster; no document, and no `pulumi up`, is needed"
    parser.add_argument("--config", type=Path, metavar="STACK_FILE", help=told)
    parser.set_defaults(func=run)


class Declaration:
    """A stack file as a document, for as long as nothing of it exists: read once."""

    stale = ""

    def __init__(self, path: Path):
        self._document = of_stack.document(path)

    def __call__(self) -> ClusterDocument:
        """The same at each call."""
        return self._document


def _left(ledger: Ledger) -> str:
    """What goes on without a controller; empty: nothing."""
    left = [lease for lease in ledger.leases() if lease.state not in (records.TERMINATED, records.ENDED)]
    if not left:
        return ""
    usd = explain.usd(sum(lease.usd_per_hour for lease in left))
    nodes = explain.listed(lease.node for lease in left)
    return (
        f"it has stopped, and stays rented at {usd} an hour, with nobody to give it back: {nodes}; start it again, or "
        "`ironburst stop --now` ends them"
    )


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Tick until a signal asks to stop."""
    if arguments.config and not arguments.shadow:
        raise BadInput("--config is for --shadow: what is rented is declared by a published document")
    if arguments.shadow:
        arguments.ledger = site_options.shadow_ledger_path(arguments)
    reader: document.Reader | Declaration
    reader = Declaration(arguments.config) if arguments.config else site_options.document_reader(arguments)
    declared, clock = reader(), SystemClock()
    connection, cloud = schedulers.SchedulerConnection(arguments), clouds.CloudConnection()
    queue = connection.follow(declared)

    def told(report: Report | Exception) -> None:
        if isinstance(report, Exception):
            print(f"ironburst: {loop.said(report)}", file=sys.stderr, flush=True)
        elif arguments.json:
            print(json.dumps(as_json(report)), flush=True)
        elif report.events:
            print("\n".join(lines(report)), flush=True)

    ticks = recorder.Recorder(site_options.ticks_path(arguments), arguments.keep_days, arguments.keep_mb)
    with handled(lambda *_: clock.stop()), site_options.own_ledger(arguments) as ledger:
        if arguments.shadow:
            if ledger.leases(open_only=False):
                wrong = "is the ledger of a controller that rents: give another --ledger, or none"
                raise BadInput(f"{arguments.ledger} {wrong}")
            controller: Controller | Shadow = Shadow(queue, ledger, clock, ticks)
            print(f"ironburst: shadow: nothing is rented or changed; {arguments.ledger}", file=sys.stderr, flush=True)
        else:
            order_spool.prepare(ledger.path)
            controller = Controller(queue, cloud.follow(declared), ledger, clock, ticks)

        def read() -> ClusterDocument:
            declared = reader()
            if reader.stale:
                controller.tell("stale", reader.stale)
            try:
                controller.scheduler = connection.follow(declared)
                if isinstance(controller, Controller):
                    controller.cloud, controller.karpenter = cloud.follow(declared), connection.karpenter
            except BadInput as error:  # who is rented for already goes on
                controller.tell("needs_a_person", f"the schedulers of before count on: {error}")
            return declared

        loop.run(controller, clock, read, told)
        if isinstance(controller, Controller):
            try:
                controller.stopped(reader())
                if left := _left(ledger):
                    print(f"ironburst: {left}", file=sys.stderr)
            except (SchedulerError, DocumentError, sqlite3.Error) as error:
                print(f"ironburst: {error}; another controller waits for {_STALE}", file=sys.stderr)
    return 0
