"""`ironburst open`: launch again where a person, or refusals, had closed."""

from __future__ import annotations

import argparse

from ironburst.cli import Subparsers, order, site_options


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "open",
        description="Lift `ironburst close` of the same place; of a pool, too, what had closed it because launches "
        f"were refused or nodes didn't join: their cause is cured. {order.WHO}{order.EXIT_CODES}",
        epilog="example: ironburst open p5 --why 'baked a new image'",
    )
    parser.add_argument("place", metavar="POOL|ZONE|TYPE", help="as it was closed")
    site_options.add(parser, needs_scheduler=False, needs_document=False)
    order.add(parser, until=False)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Order it."""
    return order.give(arguments, order.request(arguments, "open", target=arguments.place))
