"""`ironburst logs NODE|LEASE|JOB`: what its hosts said, by the site's log centre, or else by their own journals."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict

from ironburst.adapters import host_journal, log_centre
from ironburst.cli import Subparsers, site_options
from ironburst.controller import log_query
from ironburst.controller.ledger import LedgerError
from ironburst.convergence.receipts import Store, default_folder
from ironburst.document import ClusterDocument
from ironburst.ports.logs import LogLine, LogQuery, LogsError
from ironburst.system import local_time, secrets
from ironburst.system.bad_input import BadInput
from ironburst.wiring.convergence import secrets_of

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
EPILOG = """\
The site's log centre (`monitoring.logs`) is asked. Where there is none, or it gives no answer, each node's own journal
is, by ssh as `ironburst converge` has reached it; what rented nodes said is in the head's journal, also when they have
gone: run it there.

exit codes: 0 done, also without a line; 2 bad input; 3 neither the log centre nor a journal could be asked

examples:
  ironburst logs dgx01 --since 30m
  ironburst logs 4711
  ironburst logs i-0abc --json | jq -r 'select(.severity == "err").message'"""


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "logs",
        description="Lines of the journals of a node, of a rented node by its lease or instance (also when it no "
        "longer exists), or of a job's nodes while it ran.",
        epilog=EPILOG,
    )
    parser.add_argument("what", metavar="NODE|LEASE|JOB", help="a node's name, a lease or its instance, or a job")
    told = "lines that are at most that old, such as 30m or 2h (default: a node's of 2 h, all of a lease or job)"
    parser.add_argument("--since", metavar="TIME", help=told)
    parser.add_argument(
        "--lines", type=int, default=1000, metavar="N", help=f"the last N, {log_centre.MOST} at most (default: 1000)"
    )
    site_options.add(parser, needs_scheduler=False)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Print them, the oldest first."""
    if not 0 < arguments.lines <= log_centre.MOST:
        raise BadInput(f"--lines {arguments.lines}: give a number from 1 to {log_centre.MOST}")
    since_s = site_options.duration("--since", arguments.since, "30m or 2h") if arguments.since else None
    document = site_options.read_document(arguments)
    queries = _queries(arguments, document, since_s)
    try:
        found = _asked(document, queries, arguments.lines)
    except LogsError as error:
        print(f"ironburst: {error}", file=sys.stderr)
        return 3
    for line in found:
        print(json.dumps(asdict(line)) if arguments.json else _text(line))
    if len(found) == arguments.lines:
        print(f"ironburst: only the last {len(found)} lines: --lines N gives more", file=sys.stderr)
    if not found:
        when = f"{local_time.at(queries[0].from_s)} to {local_time.at(queries[-1].to_s)}" if queries else "that time"
        print(f"ironburst: no line of {arguments.what} from {when}", file=sys.stderr)
    return 0


def _queries(arguments: argparse.Namespace, document: ClusterDocument, since_s: float | None) -> list[LogQuery]:
    asked, now_s = arguments.what, time.time()
    try:
        ledger = site_options.open_ledger(arguments)
    except (LedgerError, PermissionError):
        if arguments.ledger:
            raise
        return log_query.queries(asked, document, None, now_s, since_s)  # a site that rents nothing has none
    with closing(ledger):
        return log_query.queries(asked, document, ledger, now_s, since_s)


def _asked(document: ClusterDocument, queries: list[LogQuery], count: int) -> list[LogLine]:
    """Raises LogsError."""
    away = "the document has no monitoring.logs"
    if declared := document.monitoring.logs:
        try:
            word = secrets.resolve_in(declared.password, document.regions) if declared.password else ""
        except secrets.SecretError as error:
            raise BadInput(f"monitoring.logs.password: {error}") from None
        way = log_centre.way(declared.url, declared.user or "", word.strip(), declared.ca or "")
        centre = log_centre.KINDS[declared.kind](way)
        try:
            return _last((line for query in queries for line in centre.newest(query, count)), count)
        except LogsError as error:
            away = str(error)
    found, silent = list[LogLine](), list[str]()
    for query in queries:
        try:
            found += _journals(document, query, count)
        except LogsError as error:
            silent.append(str(error))
    if silent and not found:
        raise LogsError(f"{away}; {'; '.join(dict.fromkeys(silent))}")
    for text in [away, *dict.fromkeys(silent)]:
        print(f"ironburst: {text}{': these are from journals' if text == away else ''}", file=sys.stderr)
    return _last(found, count)


def _journals(document: ClusterDocument, query: LogQuery, count: int) -> list[LogLine]:
    rented = {node for pool in document.pools for node in pool.nodes}
    if query.lease or rented.intersection(query.hosts):
        return host_journal.relayed(query, count, subprocess.run)
    store = Store(default_folder(document.cluster))
    ways = {host: store.read(host, document.cluster).connection for host in query.hosts}
    if unknown := sorted(host for host, way in ways.items() if way is None):
        raise LogsError(
            f"how {', '.join(unknown)} is reached isn't known here: run it where `ironburst converge` runs, or "
            f"`journalctl --since '{local_time.at(query.from_s)}'` there"
        )
    connections = {host: way for host, way in ways.items() if way}
    return host_journal.lines(connections, query, count, secrets_of(document))


def _last(lines: Iterable[LogLine], count: int) -> list[LogLine]:
    """Each once, in their order."""
    found = {line.id or str(n): line for n, line in enumerate(lines)}
    return sorted(found.values(), key=lambda line: line.at_s)[-count:]


def _text(line: LogLine) -> str:
    """Without what would move the cursor: users and rented nodes write such lines."""
    said = _CONTROL.sub("�", line.message).replace("\n", "\n    ")
    mark = "" if line.severity in ("notice", "info", "debug") else f" {line.severity}:"
    return f"{local_time.at(line.at_s)} {_CONTROL.sub('�', f'{line.host} {line.program}')}:{mark} {said}"
