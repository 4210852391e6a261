"""`ironburst help [VERB]`: what `--help` prints."""

from __future__ import annotations

import argparse

from ironburst import cli
from ironburst.cli import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its argument."""
    parser = subparsers.add_parser("help", description="Help of a verb.")
    parser.add_argument("of", nargs="?", choices=cli.VERBS, metavar="VERB", help="as in validate; none: all of them")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    asked = [arguments.of] if arguments.of else []
    cli.parser(asked).parse_args([*asked, "--help"])  # ends the process
    return 0
