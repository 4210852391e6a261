"""Cables of a hall: ends that exist, lengths that are made and that reach."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from ironburst.hall import switch_ports
from ironburst.hall.model import SPEEDS, UNIT_MM, Cable, Device, End, Hall, Violation

REACHES = ("dac", "acc", "aoc", "twisted-pair", "multimode", "single-mode")
"""types of cables, the cheapest first"""
FAST_GB_S = 100.0
"""NET-008: less between nodes that compute together is slow"""


def hca(port: str) -> int | None:
    """3 of ib3; None: it is none of the compute fabric."""
    number = re.fullmatch(r"ib(\d+)", port)
    return int(number[1]) if number else None


def lengths(hall: Hall) -> Iterator[Violation]:
    """HAL-006: a cable of its type is made for its speed, and so long."""
    for cable in hall.cables:
        if _reaches(hall, cable.speed, cable.type, cable.length_m):
            continue
        limit = hall.cable_limits.get((cable.speed, cable.type))
        subject, kind = f"cable {cable.a} to {cable.b}", f"{cable.speed} {cable.type}"
        others = [each for each in REACHES if _reaches(hall, cable.speed, each, cable.length_m)]
        ways = (f"take {' or '.join(others)}",) if others else ("move one of its ends nearer",)
        if limit is not None and not limit.exists:
            yield Violation("HAL-006", cable.where, subject, f"is {kind}, which isn't made", {}, ways)
        elif limit is None or limit.max_m is None:
            text = f"is {kind}, of which the catalogue doesn't know how long it may be, so its length isn't checked"
            yield Violation("HAL-006", cable.where, subject, text, {}, ("look it up with its maker",), "warning")
        else:
            text = f"is {cable.length_m:g} m of {kind}, which works up to {limit.max_m:g} m"
            numbers = {"length_m": cable.length_m, "limit_m": limit.max_m}
            yield Violation("HAL-006", cable.where, subject, text, numbers, (*ways, "move one of its ends nearer"))


def _reaches(hall: Hall, speed: str, kind: str, length_m: float) -> bool:
    limit = hall.cable_limits.get((speed, kind))
    return bool(limit and limit.exists and limit.max_m and limit.max_m >= length_m)


def way_m(hall: Hall, a: Device, b: Device) -> float | None:
    """The least length between two devices, along the racks' edges and the floor's; None: their places aren't known."""
    rack_a, rack_b = hall.rack.get(a.rack or ""), hall.rack.get(b.rack or "")
    if a.unit is None or b.unit is None or rack_a is None or rack_b is None:
        return None
    apart = abs(a.unit - b.unit) * UNIT_MM / 1000
    if rack_a is rack_b:
        return apart
    here, there = rack_a.at_m, rack_b.at_m
    return None if here is None or there is None else apart + abs(here[0] - there[0]) + abs(here[1] - there[1])


def reach(hall: Hall) -> Iterator[Violation]:
    """HAL-007: no cable is shorter than the way between its ends."""
    for cable in hall.cables:
        a, b = hall.device.get(cable.a.device), hall.device.get(cable.b.device)
        least = way_m(hall, a, b) if a and b else None
        if least is not None and cable.length_m < least:
            text = f"is {cable.length_m:g} m long and its ends are {least:.1f} m apart"
            numbers = {"length_m": cable.length_m, "needed_m": round(least, 2)}
            subject = f"cable {cable.a} to {cable.b}"
            yield Violation("HAL-007", cable.where, subject, text, numbers, ("take a longer one",))


def ports(hall: Hall) -> Iterator[Violation]:
    """HAL-008: both ends of a cable are ports that exist and have no other cable."""
    taken: dict[End, Cable] = {}
    ends = ((end, other, cable) for cable in hall.cables for end, other in ((cable.a, cable.b), (cable.b, cable.a)))
    for end, other, cable in sorted(ends, key=lambda each: "/" in each[0].port):  # parts of ports behind whole ones
        wrong = _no_port(hall, end)
        if not wrong and end in taken:
            before = taken[end]
            wrong = f"has the cable to {other} and the one to {before.b if before.a == end else before.a}"
        elif not wrong and (port := End(end.device, switch_ports.whole(end.port))) in taken:
            wrong = f"is a part of {port}, which has a cable as a whole"
        taken.setdefault(end, cable)
        if wrong:
            yield Violation("HAL-008", cable.where, str(end), wrong, {}, ("take another port",))


def _no_port(hall: Hall, end: End) -> str:
    device = hall.device.get(end.device)
    if device is None:
        return f"is of no node or switch of {hall.name}"
    if not end.port:
        return "names no port (write NAME/PORT)"
    number = switch_ports.whole(end.port)
    least = 0 if device.kind in ("ethernet", "management") else 1  # Juniper's et-0/0/0
    if device.is_switch and not (number.isdecimal() and least <= int(number) <= device.ports):
        return f"is no port: {device.name} has ports 1 to {device.ports}, and parts of them, as in {device.name}/1/2"
    n = hca(end.port)
    if not device.is_switch and n is not None and device.hcas is not None and not 1 <= n <= device.hcas:
        return f"is no port: {device.name} has {device.hcas} HCAs (infiniband_links)"
    return ""


def networks(hall: Hall) -> Iterator[Violation]:
    """HAL-012: InfiniBand cables end at InfiniBand switches, Ethernet's at the others."""
    for cable in hall.cables:
        for end in (cable.a, cable.b):
            device = hall.device.get(end.device)
            if device is None or not device.is_switch:
                continue
            wanted = "ethernet" if device.kind in ("ethernet", "management") else "infiniband"
            if SPEEDS[cable.speed].network != wanted:
                text = f"is {cable.speed} and ends at {end}, a switch of {wanted}"
                subject = f"cable {cable.a} to {cable.b}"
                yield Violation("HAL-012", cable.where, subject, text, {}, ("cable it to another switch",))


def bare_hcas(hall: Hall) -> Iterator[Violation]:
    """HAL-009: where a node's fabric is cabled, each of its HCAs is."""
    found: dict[str, set[int]] = defaultdict(set)
    for cable in hall.cables:
        for end in (cable.a, cable.b):
            if (number := hca(end.port)) is not None:
                found[end.device].add(number)
    if not found:
        return
    for device in hall.devices:
        bare = [n for n in range(1, (device.hcas or 0) + 1) if n not in found[device.name]]
        if device.is_switch or not bare:
            continue
        text = f"has no cable at {', '.join(f'ib{n}' for n in bare)} of {device.hcas} HCAs"
        numbers = {"cabled": (device.hcas or 0) - len(bare), "hcas": device.hcas or 0}
        ways = ("cable them", "lower infiniband_links")
        yield Violation("HAL-009", device.where, device.name, text, numbers, ways, "warning")


def node_ports(hall: Hall) -> Iterator[Violation]:
    """NET-007: a node has two ports of networks at least; NET-008: its fabric has 100 Gb/s at least. Asked where the
    node's cables are declared.
    """
    found: dict[str, list[tuple[str, Cable]]] = defaultdict(list)
    for cable in hall.cables:
        found[cable.a.device].append((cable.a.port, cable))
        found[cable.b.device].append((cable.b.port, cable))
    for name, its in found.items():
        device = hall.device.get(name)
        if device is None or device.is_switch:
            continue
        if len(its) < 2:
            text = "has one cable, and wants one for the cluster's traffic and one for the world"
            yield Violation("NET-007", device.where, name, text, {"ports": 1}, ("cable a second port",), "warning")
        slow = [cable.speed for port, cable in its if hca(port) and SPEEDS[cable.speed].gb_s < FAST_GB_S]
        if slow:
            text = f"has a fabric of {slow[0]}, less than 100 Gb/s between nodes that compute together"
            numbers = {"gb_s": SPEEDS[slow[0]].gb_s, "least_gb_s": FAST_GB_S}
            yield Violation("NET-008", device.where, name, text, numbers, ("take faster links",), "warning")
