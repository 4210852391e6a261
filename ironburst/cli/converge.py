"""`ironburst converge`: turn the declared hosts into nodes of the cluster."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ironburst.adapters.ansible import REPOSITORY, Ansible
from ironburst.adapters.remote import ask, first_input, shell_prefix
from ironburst.cli import Subparsers
from ironburst.cli.playbook_options import add_declaration, declaration, progress, secrets_of
from ironburst.config.types import unit_seconds
from ironburst.convergence import inputs, watch
from ironburst.convergence.converge import converge
from ironburst.convergence.model import Options, Report, Tools, select
from ironburst.convergence.ports import Connection
from ironburst.convergence.receipts import Store, default_folder
from ironburst.convergence.rolling import share
from ironburst.document import ClusterDocument, DocumentError
from ironburst.ports.service import NodeService
from ironburst.system.signals import handled

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
        help="turn declared hosts into nodes",
        description="Converge the declared hosts with Ansible, rolling, without hurting a job.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
        with handled(_interrupt):
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


def make_tools(
    document: ClusterDocument, path: Path, inventory: Path, state: Path | None, say: Callable[[str], None]
) -> Tools:
    """The real ones. `path`: of the document; `state`: the folder that --state names."""

    # imported at their use: an unchanged host needs neither
    def service(connection: Connection | None) -> NodeService:
        if connection is None:
            from ironburst.wiring.schedulers import nodes_of

            return nodes_of(document)
        from ironburst.adapters.slurm.scheduler import Slurm

        return Slurm(shell_prefix(connection), first=first_input(connection, resolve))

    resolve = secrets_of(document)
    store = Store(state / "receipts" if state else default_folder(document.cluster))
    decoded = document.model_dump(mode="json")
    sources = inputs.Sources(REPOSITORY, inventory.resolve(), decoded, store.salt(), resolve)
    return Tools(
        playbooks=Ansible(inventory, path),
        ask=partial(ask, secret=resolve),
        service=service,
        inputs=sources.of,
        role_watch=role_watch,
        store=store,
        say=say,
        clock=time.time,
        pause=time.sleep,
    )


def role_watch(role: str) -> watch.Watch | None:
    """What a role's meta/watch.yml names; None without one. Raises ValueError."""
    return watch.read_role(REPOSITORY / "playbooks" / "roles" / role)


def duration(text: str) -> float:
    """Seconds of "90s", "30m", "4h" or "2d". Raises ValueError."""
    seconds = unit_seconds(text)
    if seconds is None:
        raise ValueError(f"--drain-timeout {text!r} is no duration: write 30m, 4h or 2d")
    return float(seconds)


def _interrupt(*_: object) -> None:
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
