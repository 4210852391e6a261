"""`ironburst hall metrics STACK_FILE`: one look at every BMC's temperatures and power, as Prometheus' text."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ironburst.adapters.redfish.client import BmcAccess, BmcError, read_telemetry
from ironburst.baremetal import telemetry
from ironburst.baremetal.telemetry import Look, Place
from ironburst.cli import Subparsers, site_options
from ironburst.config import declared_halls, halls
from ironburst.monitoring import rules
from ironburst.system import files
from ironburst.system.bad_input import BadInput
from ironburst.wiring.site_doctor import accesses

EPILOG = """\
Each BMC is read once, with few requests, at most --at-once of them at the same time and each for at most --seconds. \
Run it from a timer with a node exporter's folder; a BMC that doesn't answer is ironburst_bmc_up 0, and has no \
samples: nothing old is told as new.

exit codes:
  0  written; BMCs that were silent are named on stderr
  2  bad input: the declaration, or a file that can't be written

example:
  ironburst hall metrics stacks/Pulumi.prod.yaml --textfile /var/lib/ironburst/metrics/hall.prom"""


def add_parser(verbs: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = verbs.add_parser(
        "metrics",
        help="temperatures and power of the nodes, for Prometheus",
        description="Read every declared BMC's temperatures, power and power supplies once, for Prometheus, beside "
        "what the platforms and the racks allow.",
        epilog=EPILOG,
    )
    option = parser.add_argument
    option("stack_file", type=Path, nargs="?", help="as in stacks/Pulumi.prod.yaml")
    option("--textfile", type=Path, metavar="FILE", help="write there at once (default: stdout)")
    option("--at-once", type=int, default=16, metavar="N", help="BMCs at the same time (default: 16)")
    option("--seconds", type=float, default=20.0, metavar="S", help="for one BMC (default: 20)")
    option("--alerts", action="store_true", help="goes in 0.3: `ironburst monitoring` writes the rules")
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Read, write; the exit code."""
    if arguments.alerts:  # until 0.3
        print(
            "ironburst: --alerts goes in 0.3: `ironburst monitoring STACK_FILE --to FOLDER` writes them",
            file=sys.stderr,
        )
        print(rules.text(), end="")
        return 0
    if arguments.stack_file is None:
        raise BadInput("hall metrics needs a stack file, or --alerts")
    if arguments.at_once < 1 or arguments.seconds <= 0:
        raise BadInput("--at-once is a whole number from 1 on, and --seconds more than 0")
    config = declared_halls.usable(arguments.stack_file)
    declared = halls.declared(config)
    looks = look(accesses(config, arguments.seconds), arguments.at_once)
    if not looks:
        raise BadInput(f"{arguments.stack_file} declares no BMCs, so there is nothing to read")
    text = telemetry.metrics(
        looks,
        {
            device.name: Place(hall.name, device.rack, device.power_w, device.inlet_max_c)
            for hall in declared
            for device in hall.devices
        },
        {(hall.name, rack.name): rack.power_kw * 1000 for hall in declared for rack in hall.racks if rack.power_kw},
        time.time(),
    )
    if arguments.textfile is None:
        print(text, end="")
        return 0
    try:
        files.write(arguments.textfile, text, 0o644)
    except OSError as error:
        raise BadInput(f"{arguments.textfile} can't be written: {error.strerror}") from None
    return 0


def look(access: Mapping[str, BmcAccess | str], at_once: int) -> dict[str, Look]:
    """Every BMC once. `access`: by node; a sentence where its password couldn't be had."""

    def one(node: str) -> Look:
        began, how = time.monotonic(), access[node]
        try:
            said = how if isinstance(how, str) else read_telemetry(how)
        except BmcError as error:
            said = str(error)
        if isinstance(said, str):
            print(said, file=sys.stderr)
        return Look(said, time.monotonic() - began)

    with ThreadPoolExecutor(at_once) as threads:
        return dict(zip(access, threads.map(one, access), strict=True))
