"""`ironburst limit`: what one user's jobs may have of rented nodes."""

from __future__ import annotations

import argparse

from ironburst.cli import Subparsers, order, site_options
from ironburst.system.bad_input import BadInput


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "limit",
        description="Rent no more for a user's jobs than this; what they have goes on, and home is not limited. It "
        f"holds until --clear, whatever is restarted or published. {order.WHO}{order.EXIT_CODES}",
        epilog="example: ironburst limit bob --gpus 16 --until 18:00 --why 'deadline of the others'",
    )
    parser.add_argument("user", metavar="USER", help="as `ironburst status` shows it")
    parser.add_argument("--gpus", type=int, metavar="N", help="rented GPUs at a time; 0: nothing is rented for them")
    told = "a month (UTC), spent and set aside; a node counts for whose job it was rented for first"
    parser.add_argument("--usd", type=order.amount, metavar="USD", help=told)
    parser.add_argument("--clear", action="store_true", help="no limit any more")
    site_options.add(parser, needs_scheduler=False, needs_document=False)
    order.add(parser)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Order it."""
    limits = {"gpus": arguments.gpus, "usd": arguments.usd}
    if arguments.clear == any(value is not None for value in limits.values()):
        raise BadInput("say what the user may have: --gpus N, --usd USD, or both; or --clear alone")
    return order.give(arguments, order.request(arguments, "limit", target=arguments.user, **limits))
