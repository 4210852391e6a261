"""`ironburst resume`: rent again after `pause` or `stop`."""

from __future__ import annotations

import argparse

from ironburst.cli import Subparsers, order, site_options


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "resume",
        description=f"Lift a pause or a stop, whoever ordered it. {order.WHO}{order.EXIT_CODES}",
        epilog="example: ironburst resume --why 'the array is cancelled'",
    )
    site_options.add(parser, needs_scheduler=False, needs_document=False)
    order.add(parser, until=False)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Order it."""
    return order.give(arguments, order.request(arguments, "resume"))
