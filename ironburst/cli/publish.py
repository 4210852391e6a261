"""`ironburst publish`: put the stack's ClusterDocument where the inventory and the controller read it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ironburst import document
from ironburst.cli import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "publish",
        help="publish the ClusterDocument of a stack",
        description="Read the stack output `cluster` as JSON from standard input and write it to one place, with the "
        "next serial. Exit code 0: published; 2: it is not a document, or the place holds another cluster's.",
        epilog="example: pulumi stack output cluster --json | ironburst publish --to /srv/ironburst/prod.json",
    )
    parser.add_argument("--to", type=Path, required=True, help="path of the published document")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Publish what stands on standard input."""
    try:
        try:
            data = json.load(sys.stdin)
        except ValueError as error:
            raise document.DocumentError(
                f"standard input is not JSON ({error}); pipe `pulumi stack output cluster --json` in"
            ) from None
        published = document.publish(document.parse(data, "standard input"), arguments.to)
    except document.DocumentError as error:
        print(f"ironburst publish: {error}", file=sys.stderr)
        return 2
    print(f"{arguments.to}: cluster {published.cluster}, serial {published.serial}")
    return 0
