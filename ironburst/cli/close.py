"""`ironburst close`: launch nothing in a pool, a zone, or of an instance type."""

from __future__ import annotations

import argparse

from ironburst.cli import Subparsers, order, site_options


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "close",
        description="Launch nothing there; what is rented there goes on. It holds until `ironburst open`, whatever is "
        f"restarted or published. {order.WHO}{order.EXIT_CODES}",
        epilog="example: ironburst close us-east-1b --until 2026-12-01 --why 'its network is slow'",
    )
    parser.add_argument("place", metavar="POOL|ZONE|TYPE", help="as the stack file names it; a NodePool, too")
    site_options.add(parser, needs_scheduler=False, needs_document=False)
    order.add(parser)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Order it."""
    return order.give(arguments, order.request(arguments, "close", target=arguments.place))
