"""`ironburst publish`: put the stack's ClusterDocument where the inventory and the controller read it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from ironburst import document
from ironburst.cli import Subparsers, site_options
from ironburst.controller.ledger import LedgerError
from ironburst.document import ClusterDocument


class StillRented(Exception):
    """The document would take away what is rented, or nobody can say whether it is; one sentence."""


class Older(Exception):
    """What is published is of a newer commit, or nobody can say whether it is; one sentence."""


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "publish",
        description="Read the stack output `cluster` as JSON from standard input and write it to one place, with the "
        "next serial and the commit of the checkout that this is run in. A document of an older commit than the "
        "published one is refused: it would bring back what was. A document that takes away a pool, a zone of one or "
        "some of its nodes is published when none of them is rented: the ledger says so. Exit code 0: published; 2: it "
        "is not a document, or the place holds another cluster's; 3: it is older, or would take away what is rented.",
        epilog="example: pulumi stack output cluster --json | ironburst publish --to /srv/ironburst/prod.json",
    )
    parser.add_argument("--to", type=Path, required=True, help="path of the published document")
    told = f"looked at where a pool loses something (default: $IRONBURST_LEDGER, or {site_options.LEDGER})"
    parser.add_argument("--ledger", type=Path, default=None, help=told)
    told = "what the document takes away is not rented any more: a person has looked, no ledger is"
    parser.add_argument("--given-back", action="store_true", help=told)
    told = "the older commit is wanted, though what is published is of a newer or an unknown one"
    parser.add_argument("--older", action="store_true", help=told)
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
        wanted = _of_this_commit(document.parse(data, "standard input"))
        with document.one_publishes(arguments.to):
            before = document.read(arguments.to) if arguments.to.exists() else None
            if before and before.cluster == wanted.cluster:
                if not arguments.older:
                    _not_older(before, wanted)
                if not arguments.given_back:
                    _nothing_rented_goes(arguments, before, wanted)
            published = document.publish(wanted, arguments.to)
    except (document.DocumentError, StillRented, Older) as error:
        print(f"ironburst publish: {error}", file=sys.stderr)
        return 2 if isinstance(error, document.DocumentError) else 3
    print(f"{arguments.to}: cluster {published.cluster}, serial {published.serial}")
    return 0


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["git", *arguments], capture_output=True, text=True)
    except OSError:  # no git here
        return subprocess.CompletedProcess(arguments, 127, "", "")


def _of_this_commit(made: ClusterDocument) -> ClusterDocument:
    """With the commit of this folder's checkout; unchanged where there is none."""
    said = _git("log", "-1", "--format=%H %ct").stdout.split()
    return made.model_copy(update={"commit": said[0], "committed_s": float(said[1])}) if len(said) == 2 else made


def _not_older(before: ClusterDocument, after: ClusterDocument) -> None:
    """Raises Older. Git says which came first; where it doesn't know both, or they are of two branches, the times."""
    if not before.commit or before.commit == after.commit:
        return
    newer = f"what is published there is of commit {before.commit[:12]}"
    if not after.commit:
        raise Older(
            f"{newer}, and this folder is no checkout, so nobody knows whether that is newer: publish from where "
            "`pulumi up` was run, or with --older"
        )
    if _git("merge-base", "--is-ancestor", before.commit, after.commit).returncode == 0:
        return
    came_first = _git("merge-base", "--is-ancestor", after.commit, before.commit).returncode == 0
    if came_first or (before.committed_s or 0.0) > (after.committed_s or 0.0):
        raise Older(
            f"{newer}, which is newer than {after.commit[:12]}, this checkout's: pull and run `pulumi up` first, or "
            "give --older if the older one is wanted"
        )


def _nothing_rented_goes(arguments: argparse.Namespace, before: ClusterDocument, after: ClusterDocument) -> None:
    """Raises StillRented."""
    gone = document.removed(before, after)
    if not gone:
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
