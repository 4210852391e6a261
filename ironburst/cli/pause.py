"""`ironburst pause`: nothing is launched; what is rented goes on."""

from __future__ import annotations

import argparse

from ironburst.cli import Subparsers, order, site_options


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "pause",
        description="Nothing is launched; what is rented goes on, takes jobs, and is given back as ever. It holds "
        f"until `ironburst resume`, whatever is restarted or published. {order.WHO}{order.EXIT_CODES}",
        epilog="example: ironburst pause --until 8h --why 'prices are odd, Ann looks in the morning'",
    )
    site_options.add(parser, needs_scheduler=False, needs_document=False)
    order.add(parser)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Order it."""
    return order.give(arguments, order.request(arguments, "pause"))
