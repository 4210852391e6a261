"""`ironburst status`: queue, home nodes, leases, and money against the budget."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import suppress
from dataclasses import asdict

from ironburst.cli import Subparsers, site_options
from ironburst.controller import status_report
from ironburst.controller.ledger import LedgerError
from ironburst.controller.recorder import usage
from ironburst.system import collector, terminal
from ironburst.system.bad_input import BadInput
from ironburst.wiring import schedulers

WATCH_S = 2.0


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "status",
        description="Queue, home nodes, leases, and money committed and spent (estimates) against the budget. "
        + site_options.EXIT_CODES
        + "; 5 the controller has not ticked for long",
        epilog="example: ironburst status --json | jq .money",
    )
    site_options.add(parser)
    told = f"again every so many seconds, until Ctrl-C (default: {WATCH_S:g})"
    parser.add_argument("--watch", type=float, nargs="?", const=WATCH_S, default=None, metavar="S", help=told)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Say how things are now; with --watch again and again."""
    if arguments.watch is None:
        return _once(arguments)
    if not 0.5 <= arguments.watch < float("inf"):
        raise BadInput(f"--watch {arguments.watch:g}: write seconds, 0.5 or more")
    with suppress(KeyboardInterrupt):
        while True:
            print(CLEAR if sys.stdout.isatty() else "", end="")
            _once(arguments)
            sys.stdout.flush()
            time.sleep(arguments.watch)
    return 0


CLEAR = "\x1b[H\x1b[2J"


@collector.paused()
def _once(arguments: argparse.Namespace) -> int:
    document = site_options.read_document(arguments)
    try:
        ledger = site_options.open_ledger(arguments)
    except LedgerError:
        if site_options.ledger_path(arguments).exists():
            raise
        ledger = None  # no controller has run yet: there is still a queue
    queue = schedulers.connect(arguments, document, status_report.jobs_at_last(ledger) if ledger else 0)
    said = status_report.gather(document, queue.observe(), ledger, time.time())
    kept = usage(site_options.ticks_path(arguments))
    said["ticks"] = {**asdict(kept), "mb_a_day": kept.mb_a_day}
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(json.dumps(said) if arguments.json else "\n".join(status_report.lines(said, terminal.width(), colour)))
    if said["silent"]:
        print(f"ironburst: {said['unreadable'][0]}", file=sys.stderr)
    if said["late_s"] is not None:
        print(f"ironburst: {status_report.late(said)}", file=sys.stderr)
    return 3 if said["silent"] else 5 if said["late_s"] is not None else 0
