"""`ironburst publish`: put the stack's ClusterDocument where the inventory and the controller read it."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from pathlib import Path

from ironburst import document
from ironburst.cli import Subparsers, site_options
from ironburst.controller.ledger import LedgerError
from ironburst.document import ClusterDocument


class StillRented(Exception):
    """The document would take away what is rented, or nobody can say whether it is; one sentence."""


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "publish",
        help="publish the ClusterDocument of a stack",
        description="Read the stack output `cluster` as JSON from standard input and write it to one place, with the "
        "next serial. A document that takes away a pool, a zone of one or some of its nodes is published when none of "
        "them is rented: the ledger says so. Exit code 0: published; 2: it is not a document, or the place holds "
        "another cluster's; 3: it would take away what is rented.",
        epilog="example: pulumi stack output cluster --json | ironburst publish --to /srv/ironburst/prod.json",
    )
    parser.add_argument("--to", type=Path, required=True, help="path of the published document")
    told = f"looked at where a pool loses something (default: $IRONBURST_LEDGER, or {site_options.LEDGER})"
    parser.add_argument("--ledger", type=Path, default=None, help=told)
    told = "what the document takes away is not rented any more: a person has looked, no ledger is"
    parser.add_argument("--given-back", action="store_true", help=told)
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Publish what stands on standard input."""
    try:
        if sys.stdin.isatty():
            raise document.DocumentError(
                "nothing is piped in: write `pulumi stack output cluster --json | ironburst publish --to PATH`"
            )
        try:
            data = json.load(sys.stdin)
        except ValueError as error:
            raise document.DocumentError(
                f"standard input is not JSON ({error}); pipe `pulumi stack output cluster --json` in"
            ) from None
        wanted = document.parse(data, "standard input")
        if not arguments.given_back and arguments.to.exists():
            _nothing_rented_goes(arguments, document.read(arguments.to), wanted)
        published = document.publish(wanted, arguments.to)
    except (document.DocumentError, StillRented) as error:
        print(f"ironburst publish: {error}", file=sys.stderr)
        return 3 if isinstance(error, StillRented) else 2
    print(f"{arguments.to}: cluster {published.cluster}, serial {published.serial}")
    return 0


def _nothing_rented_goes(arguments: argparse.Namespace, before: ClusterDocument, after: ClusterDocument) -> None:
    """Raises StillRented. A document of another cluster is refused elsewhere."""
    gone = document.removed(before, after)
    if not gone or before.cluster != after.cluster:
        return
    try:
        with closing(site_options.open_ledger(arguments)) as ledger:
            rented = [
                lease for lease in ledger.leases() if not document.has_place(after, lease.pool, lease.node, lease.zone)
            ]
    except LedgerError as error:
        raise StillRented(
            f"the document has {', '.join(gone)} no more, and whether nodes of it are rented can't be seen: {error}; "
            "publish where the ledger is, or with --given-back once `ironburst status` there shows none"
        ) from None
    if rented:
        nodes = ", ".join(f"{lease.node} ({lease.pool}, {lease.zone or 'no zone yet'})" for lease in rented)
        raise StillRented(
            f"the document has {', '.join(gone)} no more, and {nodes} is still rented: publish again when "
            "`ironburst status` shows it given back, which is when its job has ended"
        )
