"""What a BMC reports of a node, and what of it is not as declared; for programs, and for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from ironburst.baremetal.hardware import Hardware
from ironburst.baremetal.mismatch import Mismatch, Verdict


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
