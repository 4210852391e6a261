"""`ironburst budget set|clear`: a lower ceiling than the declared one, for a time."""

from __future__ import annotations

import argparse

from ironburst.cli import Subparsers, order, site_options


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "budget",
        description="A ceiling for what is rented, in the place of the declared one where it is lower: what it can't "
        "pay for ends as under a declared one. A higher one is the stack's to declare. It holds until `budget clear`, "
        f"whatever is restarted or published. {order.WHO}{order.EXIT_CODES}",
        epilog="example: ironburst budget set 5000 --until 2026-12-01 --why 'until the grant is renewed'",
    )
    verbs = parser.add_subparsers(dest="what", required=True, metavar="set|clear")
    lower = verbs.add_parser("set", help="at most so much a month, of what the month has cost already, too")
    lower.add_argument("usd", type=order.amount, metavar="USD", help="a month, in UTC")
    lower.add_argument("--day", action="store_true", help="USD is for a day, in UTC")
    clear = verbs.add_parser("clear", help="the declared ceilings count again")
    for each in (lower, clear):
        site_options.add(each, needs_scheduler=False, needs_document=False)
        order.add(each, until=each is lower)
        each.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Order it."""
    asked = {"usd": arguments.usd, "per": "day" if arguments.day else "month"} if arguments.what == "set" else {}
    return order.give(arguments, order.request(arguments, "budget", **asked))
