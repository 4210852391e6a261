"""`ironburst converge`: turn the declared hosts into nodes of the cluster."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ironburst.cli import Subparsers
from ironburst.cli.playbook_options import add_declaration, declaration, progress
from ironburst.config.types import unit_seconds
from ironburst.convergence.converge import converge
from ironburst.convergence.model import Options, Report, select
from ironburst.convergence.rolling import share
from ironburst.document import DocumentError
from ironburst.system.signals import handled
from ironburst.wiring.convergence import make_tools

EXIT_CODES = """exit codes:
  0  every host is converged, or proved unchanged (with --check: and nothing would change)
  1  a crash, which is a bug
  2  bad input: no document, a document of an unknown version, no such inventory, a limit that names nothing, \
a secret that does not resolve
  3  --check found differences
  4  a host failed, could not be reached, is not what was declared, or can't say whether it runs jobs; \
a rolling change stops there
  5  nodes were left alone: their jobs did not end in time, or they are the last of a partition; \
the others are converged
  130  Ctrl-C or SIGTERM; the hosts are as far as the progress says

A host whose inputs (playbooks, inventory, document, secrets) and state are as its receipt says is proved unchanged \
by one ssh round trip;
Ansible is not run for it. A node that has joined the scheduler is drained only for a change that needs it.

example: ironburst converge --document .lab/lab/document.json --inventory inventory/lab --limit dgx01"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `converge` to the command line."""
    parser = subparsers.add_parser(
        "converge",
        description="Converge the declared hosts with Ansible, rolling, without hurting a job.",
        epilog=EXIT_CODES,
    )
    add_declaration(parser)
    parser.add_argument("--check", action="store_true", help="say what would change, change nothing")
    parser.add_argument(
        "--limit",
        metavar="WORDS",
        help="only these: names of hosts, roles, kinds, halls or partitions, comma-separated",
    )
    parser.add_argument(
        "--share", default="1", help="nodes of each rack and partition drained at once: 2 or 25%% (default: 1)"
    )
    parser.add_argument(
        "--drain-timeout",
        default="1d",
        metavar="DURATION",
        help="how long the jobs of a drained node may take (default: 1d)",
    )
    parser.add_argument("--always", action="store_true", help="run Ansible also on hosts that are proved unchanged")
    parser.add_argument(
        "--state",
        type=Path,
        help="folder of the receipts (default: $IRONBURST_STATE, or below ~/.local/state/ironburst)",
    )
    parser.add_argument("--receipt", type=Path, help="write what was done (JSON) to this file, too")
    parser.add_argument("--json", action="store_true", help="what was done as JSON on stdout; progress goes to stderr")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Converge; the exit code is of EXIT_CODES."""
    say = progress(arguments)
    try:
        path, document = declaration(arguments)
        hosts = select(document, arguments.limit)
        options = Options(
            check=arguments.check,
            always=arguments.always,
            share=share(arguments.share),
            drain_timeout=duration(arguments.drain_timeout),
        )
        tools = make_tools(document, path, arguments.inventory, arguments.state, say)
        with handled(interrupt):
            report = converge(document, hosts, tools, options)
    except (DocumentError, ValueError) as error:
        return _refuse(str(error))
    except KeyboardInterrupt as stopped:
        more = f"; {stopped}" if str(stopped) else ""
        print(f"converge: stopped; the hosts are as far as the lines above say: converge again{more}", file=sys.stderr)
        return 130
    text = json.dumps(report.as_json(), indent=1)
    if arguments.receipt:
        arguments.receipt.write_text(text + "\n")
    if arguments.json:
        print(text)
    elif report.error:
        print(f"converge: {report.error}", file=sys.stderr)
    return exit_code(report)


def duration(text: str, option: str = "--drain-timeout") -> float:
    """Seconds of "90s", "30m", "4h" or "2d". Raises ValueError."""
    seconds = unit_seconds(text)
    if seconds is None:
        raise ValueError(f"{option} {text!r} is no duration: write 30m, 4h or 2d")
    return float(seconds)


def interrupt(*_: object) -> None:
    """A signal, as Ctrl-C."""
    raise KeyboardInterrupt


def exit_code(report: Report) -> int:
    """The exit code that EXIT_CODES promises for this report."""
    if report.error:
        return 2
    if report.with_state("failed", "unreachable", "invalid", "unknown", "not started"):
        return 4
    if report.with_state("busy", "waiting"):
        return 5
    if report.with_state("drifted"):
        return 3
    return 0


def _refuse(sentence: str) -> int:
    print(f"converge: {sentence}", file=sys.stderr)
    return 2
