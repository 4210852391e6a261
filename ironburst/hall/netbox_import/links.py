"""Interfaces as ports, and cables between them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ironburst.hall import switch_ports
from ironburst.hall.cabling import hca
from ironburst.hall.model import SPEEDS, End
from ironburst.hall.netbox import IS, KBPS, PDU
from ironburst.hall.netbox_import.ends import Cable, Ends
from ironburst.hall.netbox_import.machines import KINDS, Machine
from ironburst.hall.netbox_import.notes import Notes, natural
from ironburst.hall.netbox_import.pages import Thing, Things

TYPES = {
    "dac-passive": "dac",
    "dac-active": "acc",
    "aoc": "aoc",
    "mmf": "multimode",
    "smf": "single-mode",
    "cat": "twisted-pair",
}
"""beginning of NetBox's type of cable: ours"""
GENERATIONS = {"infiniband-xdr": "XDR", "infiniband-ndr": "NDR", "infiniband-hdr": "HDR", "infiniband-edr": "EDR"}
NOT_PHYSICAL = ("virtual", "bridge", "lag", "ieee802", "other-wireless")
"""beginnings of types of interfaces that no cable is plugged into"""


@dataclass(frozen=True)
class Ports:
    """Interfaces of the machines that are taken, by id: their places and speeds. By machine: a switch's ports, a node's
    HCAs.
    """

    end: Mapping[int, End]
    speed: Mapping[int, str | None]
    ports: Mapping[int, int]
    hcas: Mapping[int, int]


@dataclass(frozen=True)
class Link:
    """A cable between two ports; None: NetBox doesn't say."""

    a: End
    b: End
    type: str | None
    speed: str | None
    length_m: float | None


def ports(things: Things, machines: Mapping[int, Machine], notes: Notes) -> Ports:
    """Of all interfaces that a cable can be plugged into."""
    of_machine: dict[int, list[Thing]] = defaultdict(list)
    for interface in things.get("dcim/interfaces", {}).values():
        if not interface.choice("type").startswith(NOT_PHYSICAL):
            of_machine[interface.of("device").id].append(interface)
    end: dict[int, End] = {}
    counts, hcas = {}, {}
    for machine in machines.values():
        its = sorted(of_machine[machine.id], key=lambda each: natural(each.text("name")))
        if machine.is_node:
            names, hcas[machine.id] = _of_node(machine, its, notes)
        elif machine.kind != PDU:
            names, counts[machine.id] = _of_switch(machine, its, notes)
        else:
            continue
        end |= {id_: End(machine.name, name) for id_, name in names.items()}
    speed = {each.id: _speed(each) for its in of_machine.values() for each in its if each.id in end}
    return Ports(end, speed, counts, hcas)


def _of_node(machine: Machine, interfaces: Sequence[Thing], notes: Notes) -> tuple[dict[int, str], int]:
    """The nth InfiniBand interface is ibn, in the order of their numbers (as `hall verify` counts HCAs); those that are
    called so already keep their names.
    """
    named = [each for each in interfaces if (hca(each.text("name")) or 0) >= 1]
    fabric = [each for each in interfaces if each.choice("type").startswith("infiniband-") or each in named]
    names = {each.id: re.sub(r"[^A-Za-z0-9._/-]+", "-", each.text("name")) for each in interfaces}
    if len(named) == len(fabric):
        return names, max((hca(each.text("name")) or 0 for each in named), default=0)
    order = ", ".join(each.text("name") for each in fabric)
    notes.look(machine.name, f"{order} are ib1 to ib{len(fabric)} here: are all of them of the compute fabric?")
    return names | {each.id: f"ib{n}" for n, each in enumerate(fabric, 1)}, len(fabric)


def _of_switch(machine: Machine, interfaces: Sequence[Thing], notes: Notes) -> tuple[dict[int, str], int]:
    """By the numbers of their names (7, 7/1 of a split port), where each has another one from 1 on. Its management port
    is none of them.
    """
    own = [each for each in interfaces if each.get("mgmt_only") is not True]
    numbers = {each.id: switch_ports.number(each.text("name")) for each in own}
    wholes = [switch_ports.whole(number) for number in numbers.values()]
    known = [int(whole) for whole in wholes if whole.isdecimal()]
    if len(known) == len(own) == len(set(numbers.values())) and all(known):
        return numbers, max(known, default=0)
    shown = ", ".join(each.text("name") for each in own[:3])
    notes.declare(machine.name, f"numbers of its ports: {shown}, ... of NetBox don't end in a number each, from 1 on")
    return {each.id: re.sub(r"[^A-Za-z0-9._/-]+", "-", each.text("name")) for each in own}, len(own)


def _speed(interface: Thing) -> str | None:
    """Of its type, and of its speed (in Kbps) where that is given: a port may be slower than it could be."""
    kind, kbps = interface.choice("type"), interface.number("speed")
    gb_s = kbps / KBPS if kbps else None
    if kind.startswith("infiniband-"):
        name = GENERATIONS.get(kind)
        name = "HDR100" if name == "HDR" and gb_s == 100 else name
        return name if name and gb_s in (None, SPEEDS[name].gb_s) else None
    stated = re.match(r"(\d+)(g?)base", kind)
    if gb_s is None and stated:
        gb_s = int(stated[1]) if stated[2] else int(stated[1]) / 1000
    return next((name for name, each in SPEEDS.items() if each.network == "ethernet" and each.gb_s == gb_s), None)


def links(things: Things, machines: Mapping[int, Machine], ports_of: Ports, ends: Ends, notes: Notes) -> list[Link]:
    """Each cable once, panels left out. What isn't between two ports of ours is reported."""
    found, seen = [], set()
    rank = {each.name: KINDS.index(each.kind) for each in machines.values()}  # nodes first, then from leaves upwards

    def order(each: tuple[int, End]) -> tuple[object, ...]:
        return rank[each[1].device], natural(each[1].device), natural(each[1].port)

    for id_, a in sorted(ports_of.end.items(), key=order):
        path = ends.path((IS, id_))
        if path is None or id_ in seen:
            continue
        cable = f"cable {', '.join(str(each.thing.id) for each in path.cables)} of {a}"
        if path.end is None:
            notes.left(cable, path.why)
        elif path.end[0] == IS and path.end[1] in ports_of.end:
            seen.add(path.end[1])
            b = ports_of.end[path.end[1]]
            speed = _of_both(a, b, ports_of.speed[id_], ports_of.speed[path.end[1]], notes)
            found.append(Link(a, b, _type(path.cables, a, notes), speed, _whole_length(path.cables)))
            if len(path.cables) > 1:
                notes.look(f"{a} to {b}", "goes through a patch panel: its length is that of all its cables")
        else:
            notes.left(cable, f"ends at {_told(ends.thing(path.end), path.end[0], machines)}")
    if things.get("dcim/cables") and not things.get("dcim/interfaces"):
        notes.left(f"{len(ends.cables)} cables", "no dcim/interfaces were saved")
    return found


def _told(thing: Thing, of: str, machines: Mapping[int, Machine]) -> str:
    device = thing.of("device") if thing.values.get("device") else None
    if device is None:
        return f"{of} {thing.id}"
    name = machines[device.id].name if device.id in machines else device.text("name") or device.text("display")
    why = "which is no port here" if device.id in machines else "which isn't taken over"
    return f"{name} {thing.text('name')}, {why}"


def _type(cables: Sequence[Cable], a: End, notes: Notes) -> str | None:
    """One for all of its cables."""
    types = {each.type for each in cables if each.type}
    ours = {next((name for start, name in TYPES.items() if each.startswith(start)), None) for each in types}
    if len(ours) != 1 or None in ours:
        if types:
            notes.declare(f"cable of {a}", f"its type: NetBox says {' and '.join(sorted(types))}")
        return None
    return ours.pop()


def _whole_length(cables: Sequence[Cable]) -> float | None:
    lengths = [each.length_m for each in cables if each.length_m is not None]
    return round(sum(lengths), 2) if len(lengths) == len(cables) else None


def _of_both(a: End, b: End, one: str | None, other: str | None, notes: Notes) -> str | None:
    """The slower one, of the same network."""
    if one is None or other is None or one == other:
        return one or other
    if SPEEDS[one].network != SPEEDS[other].network:
        notes.declare(f"cable of {a}", f"its speed: {one} in NetBox, and {other} at {b}")
        return None
    notes.look(f"cable of {a}", f"is {one} in NetBox, and {other} at {b}: the slower one is taken")
    return min(one, other, key=lambda each: SPEEDS[each].gb_s)


def alike(found: Sequence[Link]) -> Iterator[list[Link]]:
    """Those that can be written as ranges: equal, and between the same port of nodes (or one switch) and one device."""
    groups: dict[tuple[object, ...], list[Link]] = defaultdict(list)
    for link in found:
        numbered = switch_ports.whole(link.a.port).isdecimal()
        near = link.a.device if numbered else link.a.port
        groups[numbered, near, link.b.device, link.type, link.speed, link.length_m].append(link)
    yield from groups.values()
