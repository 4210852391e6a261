"""`ironburst node firmware`: the firmware of nodes beside the least that is declared of it. It changes nothing but with
--update.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironburst.adapters.redfish import client as redfish
from ironburst.adapters.redfish.client import BmcAccess, BmcError
from ironburst.baremetal import firmware
from ironburst.baremetal.firmware import FirmwareComparison
from ironburst.baremetal.node import NodeInputs
from ironburst.cli import Subparsers, node_update, waiting
from ironburst.cli.site_options import guarded
from ironburst.system.bad_input import BadInput
from ironburst.wiring import owned_nodes

EXIT_CODES = """Versions are compared only where both are in one known form of a maker; of others it is said that they
can't be compared, and a person decides.

With --update: the nodes of allow_update are taken from below their minimums to their images, one component at a time.
All nodes of a rack at once, each drained first; the next rack only when all of this one are reached. Nothing is sent
twice, whatever happens in between.

exit codes:
  0  every declared minimum is reached; with --update, every one that can be compared
  1  a crash, which is a bug
  2  bad input: no such node, no permission, or a password that can't be had
  3  a BMC or the scheduler can't be asked; a report tells of the others all the same
  4  something is below its minimum, or can't be compared with it; or its update waits, failed or is unsure
  5  the time ran out: give the same command again

examples:
  ironburst node firmware stacks/Pulumi.prod.yaml dgx03 dgx04
  ironburst node firmware stacks/Pulumi.prod.yaml dgx03 --update --restart"""
AT_ONCE = 16


@dataclass(frozen=True)
class FirmwareReport:
    """One node's firmware; `error`: why its BMC wasn't read."""

    node: str
    rows: tuple[FirmwareComparison, ...] = ()
    installed: tuple[tuple[str, str], ...] = ()
    error: str | None = None


def add_parser(verbs: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = verbs.add_parser(
        "firmware",
        help="the firmware of nodes beside its declared minimums",
        description="Read the firmware inventory of nodes over Redfish, and compare with the declared minimums. It "
        "changes nothing without --update; a password is tried once.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("stack_file", type=Path, metavar="STACK_FILE", help="as in stacks/Pulumi.prod.yaml")
    parser.add_argument("nodes", nargs="*", metavar="NODE", help="none: every node with a BMC")
    parser.add_argument("--json", action="store_true", help="all of it as JSON, with what else is installed")
    node_update.add_options(parser)
    parser.set_defaults(func=run)


@guarded
def run(arguments: argparse.Namespace) -> int:
    """Read, compare, print; the exit code."""
    redfish.hush()
    if arguments.update:
        return node_update.run(arguments)
    if arguments.restart or arguments.again:
        raise BadInput("--restart and --again are for --update: without it nothing is changed")
    chosen = owned_nodes.chosen(arguments.stack_file, arguments.nodes)
    asked = [(node, owned_nodes.access(node)) for node in chosen]  # every password first: BadInput ends it all
    with waiting.told(f"reading {len(asked)} BMCs"), ThreadPoolExecutor(AT_ONCE) as threads:
        reports = list(threads.map(lambda each: _read(*each), asked))
    if arguments.json:
        print(json.dumps([as_json(each) for each in reports], indent=1))
    else:
        print("\n".join(line for each in reports for line in _lines(each)))
    for each in reports:
        if each.error:
            print(f"ironburst: {each.error}", file=sys.stderr)
    if any(each.error for each in reports):
        return 3
    return 0 if all(row.order == "reached" for each in reports for row in each.rows) else 4


def _read(node: NodeInputs, access: BmcAccess) -> FirmwareReport:
    try:
        hardware = redfish.read_hardware(access)
    except BmcError as error:
        return FirmwareReport(node.name, error=str(error))
    return FirmwareReport(node.name, tuple(firmware.rows(node.firmware or (), hardware.components)), hardware.firmware)


def as_json(report: FirmwareReport) -> dict[str, Any]:
    """All that is known, for programs."""
    return {
        "node": report.node,
        "error": report.error,
        "minimums": [
            {
                "pattern": row.minimum.component,
                "component": row.component.id if row.component else None,
                "version": row.component.version if row.component else None,
                "at_least": row.minimum.at_least,
                "source": row.minimum.source,
                "as_of": row.minimum.as_of,
                "verdict": row.order,
            }
            for row in report.rows
        ],
        "installed": dict(report.installed),
    }


def _lines(report: FirmwareReport) -> Sequence[str]:
    """The same, for people."""
    if report.error:
        return [f"{report.node}: not read"]
    if not report.rows:
        return [f"{report.node}: no minimum is declared", *(f"  {name}: {said}" for name, said in report.installed)]
    return [f"{report.node}:", *(f"  {row.order:14} {row.sentence}" for row in report.rows)]
