"""`ironburst node show`: what a node's BMC reports, and what of it is not as declared. It changes nothing."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from ironburst.adapters.redfish import client as redfish
from ironburst.baremetal.hardware import Hardware
from ironburst.baremetal.mismatch import Mismatch, Verdict
from ironburst.baremetal.verify import examine
from ironburst.catalog.hardware import gpus
from ironburst.cli import Subparsers, owned_nodes, waiting
from ironburst.cli.site_options import guarded

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
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
        print(json.dumps(as_json(node.name, node.bmc_address, hardware, verdict), indent=1))
    else:
        print("\n".join(lines(node.name, node.bmc_address, hardware, verdict)))
    return 4 if verdict.mismatches else 0


def as_json(name: str, bmc: str, hardware: Hardware, verdict: Verdict) -> dict[str, object]:
    """All that is known, for programs."""

    def told(found: tuple[Mismatch, ...]) -> list[dict[str, str]]:
        return [{"mismatch": each.field, "sentence": each.sentence} for each in found]

    return {
        "node": name,
        "bmc": bmc,
        "hardware": asdict(hardware),
        "mismatches": told(verdict.mismatches),
        "allowed": told(verdict.allowed),
        "not_said": told(verdict.not_said),
    }


def lines(name: str, bmc: str, hardware: Hardware, verdict: Verdict) -> Iterator[str]:
    """The same, for people."""
    serial = f"serial {hardware.serial or '?'}" if hardware.serial_of == "system" else _borrowed(hardware)
    serial += f", service tag {hardware.service_tag}" if hardware.service_tag else ""
    yield f"{name}: {hardware.manufacturer or '?'} {hardware.model or '?'}, {serial}, BMC {bmc}"
    for label, value in _parts(hardware):
        yield f"  {label:15} {value}"
    for title, found in (
        ("not as declared", verdict.mismatches),
        ("not as declared, allowed", verdict.allowed),
        ("not said", verdict.not_said),
    ):
        if found:
            yield f"{title}:"
            yield from (f"  - {each.sentence} ({each.field})" for each in found)
    if hardware.unread:
        yield "not read:"
        yield from (f"  - {each}" for each in hardware.unread)


def _borrowed(hardware: Hardware) -> str:
    return f"serial {hardware.serial} of its {hardware.serial_of} (the system says none)"


def _parts(hardware: Hardware) -> Iterator[tuple[str, str]]:
    yield "power", hardware.power_state or "?"
    yield "BIOS, BMC", f"{hardware.bios_version or '?'}, {hardware.bmc_version or '?'}"
    yield "CPU sockets", str(hardware.cpu_count or "?")
    modules = f" in {len(hardware.dimms)} modules" if hardware.dimms else ""
    modules += f", {hardware.free_sockets} sockets free" if hardware.free_sockets else ""
    yield "memory", f"{hardware.memory_gib} GiB{modules}" if hardware.memory_gib else "?"
    yield "GPUs", ", ".join(f"{group.count} x {group.model or 'unnamed'}" for group in hardware.gpus) or "none"
    for gpu in hardware.gpu_devices:
        lanes = f"x{gpu.lanes or gpu.max_lanes}" if gpu.lanes or gpu.max_lanes else "x?"
        yield "", f"{gpu.id}: {lanes}, {gpu.health or 'health ?'}, serial {gpu.serial or '?'}"
    for port in hardware.ports:
        speed = f"{port.gbps:g} Gb/s" if port.gbps else "speed ?"
        yield "port", f"{port.id}: {port.mac or 'no MAC'}, {speed}, {port.link or 'link ?'}"
    for drive in hardware.drives:
        yield "drive", f"{drive.id}: {drive.model or '?'}, {drive.gb or '?'} GB, {drive.health or 'health ?'}"
    for supply in hardware.power_supplies:
        power = {True: "has input", False: "NO INPUT", None: "input ?"}[supply.has_input]
        yield "power supply", f"{supply.id}: {f'{supply.watts:g} W' if supply.watts else '? W'}, {power}"
    if hardware.psus_needed:
        yield "", f"{hardware.psus_needed} of them carry the load"
    if hardware.slots:
        lanes = ", ".join(f"{slot.id} x{slot.lanes or '?'}{'' if slot.filled else ' free'}" for slot in hardware.slots)
        yield "slots", lanes
    if hardware.height_u:
        yield "height", f"{hardware.height_u} rack units{f', {hardware.chassis_type}' if hardware.chassis_type else ''}"
    for sensor in hardware.sensors:
        yield "sensor", f"{sensor.name}: {sensor.reading:g} {sensor.unit}"
    for name, version in hardware.firmware:
        yield "firmware", f"{name}: {version}"
