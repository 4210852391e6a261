"""`ironburst node show`: what a node's BMC reports, and what of it is not as declared. It changes nothing."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from ironburst.adapters.redfish import client as redfish
from ironburst.baremetal import shown
from ironburst.baremetal.verify import examine
from ironburst.catalog.hardware import gpus
from ironburst.cli import Subparsers, waiting
from ironburst.cli.site_options import guarded
from ironburst.wiring import owned_nodes

EXIT_CODES = """exit codes:
  0  the node is as declared (what the BMC doesn't say is listed, and counts as such)
  1  a crash, which is a bug
  2  bad input: no such node, or a password that can't be had
  3  the BMC can't be read
  4  something is not as declared, and nobody answers for it (`allow` of rule hardware)

example: ironburst node show dgx03 stacks/Pulumi.prod.yaml"""
TIMEOUT_S = 300.0
"""sensors take long: a BMC has some hundreds"""


def add_parser(verbs: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = verbs.add_parser(
        "show",
        help="what its BMC reports, and what of it is not as declared",
        description="Read a node's inventory and sensors over Redfish, and compare with the declaration, the platform "
        "and the minimums. It changes nothing; a password is tried once.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("node", metavar="NODE")
    parser.add_argument("stack_file", type=Path, metavar="STACK_FILE", help="as in stacks/Pulumi.prod.yaml")
    parser.add_argument("--json", action="store_true", help="all of it as JSON")
    parser.set_defaults(func=run)


@guarded
def run(arguments: argparse.Namespace) -> int:
    """Read, compare, print; the exit code."""
    redfish.hush()
    node = owned_nodes.one(arguments.stack_file, arguments.node)
    access = owned_nodes.access(node.model_copy(update={"timeout_seconds": TIMEOUT_S}))
    try:
        with waiting.told(f"reading the BMC of {node.name}"):
            hardware = redfish.read_hardware(access, sensors=True)
    except redfish.BmcError as error:
        print(f"ironburst: {error}", file=sys.stderr)
        return 3
    today = datetime.now(UTC).date()
    verdict = examine(node.declaration(), hardware, gpus().values(), allowed=node.allowances(), today=today)
    if arguments.json:
        print(json.dumps(shown.as_json(node.name, node.bmc_address, hardware, verdict), indent=1))
    else:
        print("\n".join(shown.lines(node.name, node.bmc_address, hardware, verdict)))
    return 4 if verdict.mismatches else 0
