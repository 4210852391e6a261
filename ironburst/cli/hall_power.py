"""`ironburst hall power on STACK_FILE`: the nodes of a hall after a black-out, in the planned order."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from ironburst.adapters.redfish import boot as redfish_boot
from ironburst.adapters.redfish.client import BmcAccess, BmcError
from ironburst.baremetal.declared import allowed_mismatches
from ironburst.cli import Subparsers, site_options
from ironburst.config import declared_halls, halls
from ironburst.hall import capacity
from ironburst.wiring.site_doctor import accesses

AT_ONCE = 16
EPILOG = """\
Nodes that are on stay as they are; those in declared maintenance are left off, for a person works on them. A BMC that
fails is named, and holds up no other node: give the same command again.

exit codes:
  0  every node is on, or is to be
  2  bad input
  3  a BMC can't be reached, or refused

example:
  ironburst hall power on stacks/Pulumi.prod.yaml --hall hall-a"""


def add_parser(verbs: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = verbs.add_parser(
        "power",
        help="switch a hall's nodes on, in the planned order",
        description="Switch the nodes of a hall on in the order and with the gaps of `hall plan`: one node of each "
        "rack at a time, heads first.",
        epilog=EPILOG,
    )
    parser.add_argument("to", choices=["on"])
    parser.add_argument("stack_file", type=Path, metavar="STACK_FILE", help="as in stacks/Pulumi.prod.yaml")
    parser.add_argument("--hall", metavar="NAME", help="needed where several halls are declared")
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Switch on, wave by wave; the exit code."""
    config = declared_halls.usable(arguments.stack_file)
    hall = declared_halls.one(halls.declared(config), arguments.hall)
    today = datetime.now(UTC).date().isoformat()
    allowed = allowed_mismatches(config.allow)
    aside = {name for name, given in allowed.items() if given.get("maintenance", "") >= today}
    reached, failed, switched = accesses(config), 0, False
    for step in capacity.power_on(hall):
        due = [name for name in step.nodes if name in reached and name not in aside]
        if switched and due:
            time.sleep(hall.power_on_gap_s)
        switched = False
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for name, was in zip(due, threads.map(lambda name: _on(reached[name]), due), strict=True):
                failed += isinstance(was, BmcError)
                switched |= was != "on"
                print(f"{name}: not switched on: {was}" if isinstance(was, BmcError) else f"{name}: was {was}, is on")
        for name in step.nodes:
            if name not in due:
                why = "in maintenance" if name in aside else "no BMC is declared of it"
                print(f"{name}: left as it is: {why}", file=sys.stderr)
    return 3 if failed else 0


def _on(access: BmcAccess | str) -> str | BmcError:
    """What its power was."""
    if isinstance(access, str):
        return BmcError(access)
    try:
        with redfish_boot.console(access) as console:
            was = console.look().power
            if was != "on":
                console.power_on()
            return was
    except BmcError as error:
        return error
