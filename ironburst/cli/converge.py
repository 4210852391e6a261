"""`ironburst converge`: turn the declared hosts into nodes of the cluster."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from ironburst.adapters.ansible import Ansible
from ironburst.convergence.converge import Receipt, Selection, converge, select
from ironburst.document import DocumentError, read

EXIT_CODES = """exit codes:
  0  every host is converged (with --check: and nothing would change)
  1  a crash, which is a bug
  2  bad input: no document, a document of an unknown version, no such inventory, a limit that names nothing
  3  --check found differences
  4  a host failed, could not be reached, is not what was declared, or can't say whether it runs jobs
  5  nodes were left alone because they run jobs; the others are converged
  130  Ctrl-C or SIGTERM; the hosts are as far as the progress says

example: ironburst converge --document .lab/lab/document.json --inventory inventory/lab --limit dgx01"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser(
        "converge",
        help="turn declared hosts into nodes",
        description="Validate the declared hosts, then converge them with Ansible. Nodes that run jobs are left alone.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--document", type=Path, help="the published ClusterDocument (default: IRONBURST_DOCUMENT)")
    parser.add_argument("--inventory", type=Path, required=True, help="folder of an environment, as in inventory/lab")
    parser.add_argument("--check", action="store_true", help="say what would change, change nothing")
    parser.add_argument("--limit", metavar="WORDS", help="only these: names of hosts, roles, kinds, halls or partitions, comma-separated")
    parser.add_argument("--receipt", type=Path, help="write the receipt (JSON) to this file, too")
    parser.add_argument("--json", action="store_true", help="the receipt as JSON on stdout; progress goes to stderr")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    given = arguments.document or os.environ.get("IRONBURST_DOCUMENT")
    if not given:
        return _refuse("no ClusterDocument is named: give --document PATH or set IRONBURST_DOCUMENT (`ironburst publish` writes one)")
    if not (arguments.inventory / "stack.yml").is_file():
        return _refuse(f"{arguments.inventory} is no inventory of this repository: it has no stack.yml; inventory/lab has one")
    try:
        document = read(given)
        hosts = select(document, arguments.limit)
    except (DocumentError, Selection) as error:
        return _refuse(str(error))
    started = time.monotonic()
    stream = sys.stderr if arguments.json else sys.stdout

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s  {line}", file=stream, flush=True)

    try:
        receipt = converge(document, hosts, Ansible(arguments.inventory, Path(given)), check=arguments.check, say=say)
    except KeyboardInterrupt:
        print("converge: stopped; the hosts are as far as the lines above say: converge again", file=sys.stderr)
        return 130
    text = json.dumps(receipt.as_json(), indent=1)
    if arguments.receipt:
        arguments.receipt.write_text(text + "\n")
    if arguments.json:
        print(text)
    elif receipt.error:
        print(f"converge: {receipt.error}", file=sys.stderr)
    return exit_code(receipt)


def exit_code(receipt: Receipt) -> int:
    """The exit code that EXIT_CODES promises for this receipt."""
    if receipt.error:
        return 2
    if receipt.with_state("failed", "unreachable", "invalid", "unknown"):
        return 4
    if receipt.with_state("busy"):
        return 5
    if receipt.with_state("drifted"):
        return 3
    return 0


def _refuse(sentence: str) -> int:
    print(f"converge: {sentence}", file=sys.stderr)
    return 2
