"""`ironburst run`: the controller, tick after tick, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from ironburst import document
from ironburst.adapters.prometheus import Prometheus
from ironburst.burst import explain
from ironburst.cli import Subparsers, site_options
from ironburst.cli.arguments import address
from ironburst.cli.tick import as_json, lines
from ironburst.controller import loop, order_spool, ownership, recorder, records, retention
from ironburst.controller.idle_gpus import IdleGpus
from ironburst.controller.job_runs import JobRuns
from ironburst.controller.ledger import Ledger
from ironburst.controller.lock import LockedError
from ironburst.controller.loop import SystemClock
from ironburst.controller.metrics import Metrics
from ironburst.controller.postgresql import Unreachable
from ironburst.controller.shadow import Shadow
from ironburst.controller.teams import Teams
from ironburst.controller.tick import Controller, Report
from ironburst.document import ClusterDocument, DocumentError, of_stack
from ironburst.document.monitoring import CONTROLLER_PORT
from ironburst.ports import SchedulerError
from ironburst.system import exposition
from ironburst.system.bad_input import BadInput
from ironburst.system.signals import handled
from ironburst.wiring import clouds, schedulers

METRICS = f"127.0.0.1:{CONTROLLER_PORT}"
_STALE = explain.duration(ownership.STALE_S)


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "run",
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
    told = "where Prometheus scrapes /metrics, an address of this host or of the site's own network; none: nowhere "
    told += "(default: $IRONBURST_METRICS, or where `monitoring.server` scrapes it, or "
    told += f"{METRICS}; with --shadow none)"
    parser.add_argument("--metrics", metavar="ADDRESS:PORT", help=told)
    told = "where copies of the ledger are put, a file or a folder: how old the newest one is is a metric "
    parser.add_argument("--backup", type=Path, metavar="PATH", help=told + "(default: $IRONBURST_BACKUP)")
    told = "whose end is a metric, PEM; repeatable (default: those of $IRONBURST_CERTIFICATES, with colons between)"
    parser.add_argument("--certificate", type=Path, action="append", metavar="FILE", help=told)
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


def _metrics_at(arguments: argparse.Namespace, declared: ClusterDocument) -> tuple[str, int] | None:
    """Where to; None: nowhere. Raises BadInput."""
    its = declared.monitoring.controllers or [METRICS]
    site = next((at for at in its if len(its) == 1 or _is_here(at)), METRICS)
    default = "none" if arguments.shadow else os.environ.get("IRONBURST_METRICS") or site
    return _address(arguments.metrics or default)


def _is_here(at: str) -> bool:
    """Whether this host has the address."""
    ip, _ = address("monitoring.controller", at, METRICS)
    try:
        socket.create_server((str(ip), 0), family=socket.AF_INET6 if ip.version == 6 else socket.AF_INET).close()
    except OSError:
        return False
    return True


def _address(given: str) -> tuple[str, int] | None:
    if given == "none":
        return None
    ip, port = address("--metrics", given, METRICS)
    if ip.is_unspecified or ip.is_global:
        why = "anybody could read what is rented and what it costs: write 127.0.0.1, or this host's address there"
        raise BadInput(f"--metrics {given}: {why}")
    return str(ip), port


@contextmanager
def _served(
    at: tuple[str, int] | None, ledger: Ledger, teams: Teams, arguments: argparse.Namespace
) -> Iterator[Metrics]:
    """What is scraped meanwhile. A port that is taken costs the metrics, not the controller."""
    named = os.environ.get("IRONBURST_CERTIFICATES", "").split(":")
    certificates = arguments.certificate or [Path(name) for name in named if name]
    metrics, server = Metrics(ledger, _backup(arguments), certificates, teams), None
    try:
        server = exposition.Server(*at, lambda: metrics.text) if at else None
    except OSError as error:
        print(f"ironburst: no metrics: {':'.join(map(str, at or ()))}: {error.strerror}", file=sys.stderr, flush=True)
    try:
        yield metrics
    finally:
        if server:
            server.close()


def _backup(arguments: argparse.Namespace) -> Path | None:
    named = os.environ.get("IRONBURST_BACKUP")
    return cast("Path | None", arguments.backup) or (Path(named) if named else None)


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


def _of_a_shadow(ledger: Ledger) -> Ledger:
    """Raises BadInput for one of a controller that rents."""
    if ledger.leases(open_only=False):
        raise BadInput(f"{ledger.path} is the ledger of a controller that rents: give another --ledger, or none")
    print(f"ironburst: shadow: nothing is rented or changed; {ledger.path}", file=sys.stderr, flush=True)
    return ledger


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Tick until a signal asks to stop; before, where heads share the ledger, wait until it is this one's turn."""
    clock = SystemClock()
    try:
        _run(arguments, clock)
    except (LockedError, Unreachable):
        if not clock.stopped:
            raise
    return 0


def _run(arguments: argparse.Namespace, clock: SystemClock) -> None:
    if arguments.config and not arguments.shadow:
        raise BadInput("--config is for --shadow: what is rented is declared by a published document")
    _address(arguments.metrics or "none")  # before anything else is looked for
    if arguments.shadow:
        arguments.ledger = site_options.shadow_ledger_path(arguments)
    reader: document.Reader | Declaration
    reader = Declaration(arguments.config) if arguments.config else site_options.document_reader(arguments)
    declared = reader()
    metrics_at = _metrics_at(arguments, declared)
    connection, cloud = schedulers.SchedulerConnection(arguments), clouds.CloudConnection()
    queue, job_runs = connection.follow(declared), JobRuns(Prometheus)

    def told(report: Report | Exception) -> None:
        metrics.ended(declared, report)
        if isinstance(report, Exception):
            print(f"ironburst: {loop.said(report)}", file=sys.stderr, flush=True)
        elif arguments.json:
            print(json.dumps(as_json(report)), flush=True)
        elif report.events:
            print("\n".join(lines(report)), flush=True)

    ticks = recorder.Recorder(site_options.ticks_path(arguments), arguments.keep_days, arguments.keep_mb)
    with (
        handled(lambda *_: clock.stop()),
        site_options.own_ledger(arguments, clock.wait) as ledger,
        _served(metrics_at, ledger, job_runs.teams, arguments) as metrics,
    ):
        if arguments.shadow:
            controller: Controller | Shadow = Shadow(queue, _of_a_shadow(ledger), clock, ticks)
        else:
            order_spool.prepare(ledger.path)
            controller = Controller(queue, cloud.follow(declared), ledger, clock, ticks)
            controller.job_runs, controller.idle_gpus = job_runs, IdleGpus(Prometheus)
            controller.backup = _backup(arguments)

        def read() -> ClusterDocument:
            nonlocal declared
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
