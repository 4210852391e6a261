"""`ironburst report --from …`: GPU-hours and dollars by account, user, job, pool, cloud or day; the bill beside the
estimates.

What is shown and how it looks: ironburst.cost.gathered and .shown
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from ironburst.adapters.prometheus import Prometheus
from ironburst.adapters.slurm import accounting as slurm_accounting
from ironburst.cli import site_options
from ironburst.controller import energy, job_report, karpenter_store, money
from ironburst.controller.energy import Places
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import LeaseRow
from ironburst.cost import bill, gathered, reconcile, shown
from ironburst.cost.accounted import JobRun, Window
from ironburst.cost.leases import Priced, priced
from ironburst.cost.reconcile import Compared, Stack
from ironburst.cost.report import BY
from ironburst.document import ClusterDocument, of_stack
from ironburst.ports.measured import MeasuredError
from ironburst.replay.formats import TraceError
from ironburst.system import terminal
from ironburst.system.bad_input import BadInput
from ironburst.wiring import schedulers


def add_options(parser: argparse.ArgumentParser) -> None:
    """What belongs to the money, not to --shadow."""
    group = parser.add_argument_group("the money, without --shadow")
    told = "{} of the window: a date such as 2026-03-01 or a time, here's unless it names a zone (default: {})"
    group.add_argument("--from", dest="begin", metavar="DATE", help=told.format("the beginning", "this month's"))
    group.add_argument("--to", dest="end", metavar="DATE", help=told.format("the end, itself outside,", "now"))
    group.add_argument("--by", choices=BY, default="account", help="what a row is of (default: %(default)s)")
    told = "the bill to hold the estimates against: FOCUS or a Cost and Usage Report, CSV (.gz); repeatable"
    group.add_argument("--bill", type=Path, action="append", default=[], metavar="FILE", help=told)
    group.add_argument("--jobs", type=Path, metavar="FILE", help="a saved answer of sacct instead of asking Slurm")
    shape = group.add_mutually_exclusive_group()
    shape.add_argument("--csv", action="store_true", help="rows as CSV; with --bill, its differences")
    shape.add_argument("--html", action="store_true", help="a page of its own")


def check(arguments: argparse.Namespace) -> None:
    """Raises BadInput for an option of the other report."""
    ours = {name: getattr(arguments, name) for name in ("bill", "jobs", "csv", "html")}
    ours |= {"from": arguments.begin, "to": arguments.end, "by": arguments.by != "account"}
    if arguments.shadow and (wrong := [f"--{name}" for name, given in ours.items() if given]):
        raise BadInput(f"{wrong[0]} is of the money: leave --shadow out")
    theirs = {"DIR": arguments.folder, "--out": arguments.out, "--scheduler": arguments.scheduler}
    if not arguments.shadow and (wrong := [name for name, given in theirs.items() if given]):
        raise BadInput(f"{wrong[0]} is of the jobs that were seen: give --shadow, too")


def run(arguments: argparse.Namespace) -> int:
    """Print the report of a window."""
    if arguments.json and (arguments.csv or arguments.html):
        raise BadInput("--json, --csv and --html are three shapes of one report: give one of them")
    where = arguments.config or arguments.document or "the document"
    document = of_stack.document(arguments.config) if arguments.config else site_options.read_document(arguments)
    now_s = time.time()
    window, compared = _window(arguments, now_s), None
    with closing(site_options.open_ledger(arguments)) as ledger:
        rows, rates = _leases(ledger)
        decisions, places = ledger.decisions(), Places.of(document, ledger)
    leases = priced(rows, rates, now_s)
    if arguments.bill:
        compared = _compared(arguments, document, leases, window)
        window = compared.window
    window = window or Window(_month(now_s), now_s)
    runs = _runs(arguments, document, window, now_s)
    said = gathered.gather(document, rows, leases, runs, arguments.by, window, decisions, now_s)
    said["config"] = str(where)
    with closing(site_options.open_ledger(arguments)) as ledger:
        measured = energy.of_runs(ledger.runs_between(window.from_s, window.to_s), places)
    said["energy"] = measured.as_json() if measured.kwh else None
    if compared:
        said["bill"] = shown.of_bill(compared, [str(path) for path in arguments.bill])
    if arguments.json:
        print(json.dumps(said))
    elif arguments.csv:
        print("\n".join(shown.csv_lines(said)))
    elif arguments.html:
        print(shown.page(said, gathered.by_day(document, rows, leases, runs, window, now_s)))
    else:
        print("\n".join(shown.lines(said, min(terminal.width(), shown.COLUMNS))))
    return 0


def efficiency(arguments: argparse.Namespace) -> int:
    """Print what the jobs that ended in a window made of their GPUs, by account."""
    given = {"--bill": arguments.bill, "--jobs": arguments.jobs, "--csv": arguments.csv, "--html": arguments.html}
    given |= {"--shadow": arguments.shadow, "--by": arguments.by != "account"}
    if wrong := [name for name, value in given.items() if value]:
        raise BadInput(f"{wrong[0]} is of another report than --efficiency: give one of them")
    now_s = time.time()
    window = _window(arguments, now_s) or Window(_month(now_s), now_s)
    declared = of_stack.document(arguments.config) if arguments.config else site_options.document_if_any(arguments)
    with closing(site_options.open_ledger(arguments)) as ledger:
        runs, places = ledger.runs_between(window.from_s, window.to_s), Places.of(declared, ledger)
    rows, halls = job_report.by_account(runs, places), _halls(declared, places, window)
    idle = job_report.idle(rows)
    if arguments.json:
        said = {"from_s": window.from_s, "to_s": window.to_s, "accounts": rows, "idle": idle, "halls": halls}
        print(json.dumps(said))
        return 0
    print("\n".join(job_report.account_lines(rows, terminal.width(), sys.stdout.isatty())))
    print("\n".join(terminal.wrapped([*job_report.idle_lines(idle), *energy.hall_lines(halls)], terminal.width())))
    return 0


def _halls(declared: ClusterDocument | None, places: Places, window: Window) -> list[dict[str, Any]]:
    """What the halls' nodes took; empty where nobody knows."""
    if declared is None or not declared.monitoring.url:
        return []
    try:
        return energy.of_halls(Prometheus(declared.monitoring.url), places, window.from_s, window.to_s)
    except MeasuredError as error:
        print(f"ironburst: what the halls took isn't known: {error}", file=sys.stderr)
        return []


# ---- what goes in


def _window(arguments: argparse.Namespace, now_s: float) -> Window | None:
    """As asked for; None: nothing was asked. Raises BadInput."""
    if arguments.begin is None and arguments.end is None:
        return None
    from_s = _month(now_s) if arguments.begin is None else _moment("--from", arguments.begin)
    to_s = now_s if arguments.end is None else _moment("--to", arguments.end)
    if to_s <= from_s:
        raise BadInput(f"--to {arguments.end or 'now'} is not after --from {arguments.begin or 'this month'}")
    return Window(from_s, to_s)


def _moment(option: str, text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()  # without a zone: here's
    except (ValueError, OverflowError, OSError):
        raise BadInput(f"{option} {text!r}: write a date such as 2026-03-01, or 2026-03-01T12:00Z") from None


def _month(now_s: float) -> float:
    return datetime.fromtimestamp(now_s).replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp()


def _leases(ledger: Ledger) -> tuple[list[LeaseRow], money.Paid]:
    """Ours and Karpenter's, and their prices."""
    others, their_rates = karpenter_store.rows(ledger)
    return [*ledger.leases(open_only=False), *others], ledger.rates_paid_after(0.0) | their_rates


def _runs(arguments: argparse.Namespace, document: ClusterDocument, window: Window, now_s: float) -> list[JobRun]:
    """What Slurm has accounted, or the file. Raises BadInput, or SchedulerError."""
    if arguments.jobs is None:
        slurm = schedulers.slurm(arguments, document)
        text = slurm.show(*slurm_accounting.command(window.from_s, min(window.to_s, now_s)))
        path = Path("sacct")
    else:
        path, text = arguments.jobs, "".join(_text(arguments.jobs))
    try:
        return slurm_accounting.runs(text.splitlines(), path)
    except TraceError as error:
        raise BadInput(str(error)) from None


def _text(path: Path) -> Iterator[str]:
    """Raises BadInput."""
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield from file
    except (OSError, EOFError) as error:
        raise BadInput(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is no text: of a bill, export text/csv (gzip), not Parquet") from None


def _compared(
    arguments: argparse.Namespace, document: ClusterDocument, leases: Sequence[Priced], window: Window | None
) -> Compared:
    """Raises BadInput."""
    pools = {pool.name for pool in document.pools} | {lease.lease.pool for lease in leases}
    karpenter = frozenset(pool.node_pool for pool in document.karpenter)
    groups = frozenset(host.name.rpartition("-")[0] for host in document.hosts if host.kind == "cloud")
    gpus = {pool.name: pool.gpu.count for pool in document.pools}
    stack = Stack(document.cluster, frozenset(pools - {""}) - karpenter, groups, karpenter, gpus)
    lines = (line for path in arguments.bill for line in bill.read(_text(path), str(path)))
    try:
        compared = reconcile.compare(lines, leases, stack, window)
    except ValueError as error:
        raise BadInput(str(error)) from None
    if compared.left_out:
        count = f"{compared.left_out:,} leases are"
        print(f"ironburst: {count} in clouds of which no bill was given, and left out of it", file=sys.stderr)
    if not compared.lines:
        what_to_do = "are its tags active for cost allocation, and is it the right account's bill? (ironburst doctor)"
        print(f"ironburst: no line of the bill is of {document.cluster}: {what_to_do}", file=sys.stderr)
    return compared
