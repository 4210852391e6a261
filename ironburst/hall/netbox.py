"""A hall as the CSV files that NetBox imports, in the order of their numbers: columns and choices of NetBox 4.x
(netbox/dcim/forms/bulk_import.py, choices.py, models/). The hall is a site; all is `planned`.

What NetBox refuses, and how it is kept from that: two types of one maker with the same model or slug (numbered);
lengths and weights of more than two decimals, volts and amperes that aren't whole (cut, never up); a unit without a
rack; a type of half depth (NetBox's own default for a column that isn't there).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from ironburst.hall import power, switch_ports
from ironburst.hall.model import PHASES, SPEEDS, Cable, Circuit, Device, End, Hall
from ironburst.hall.tables import Table

INTERFACES = {
    "XDR": "infiniband-xdr",
    "NDR": "infiniband-ndr",
    "HDR": "infiniband-hdr",
    "HDR100": "infiniband-hdr",
    "EDR": "infiniband-edr",
    "400GbE": "400gbase-x-osfp",
    "200GbE": "200gbase-x-qsfp56",
    "100GbE": "100gbase-x-qsfp28",
    "25GbE": "25gbase-x-sfp28",
    "10GbE": "10gbase-x-sfpp",
    "1GbE": "1000base-x-sfp",
}
TWISTED = {"10GbE": "10gbase-t", "1GbE": "1000base-t"}
"""the same for a cable of twisted pairs"""
FREE = "other"
"""type of a port without a cable: its speed isn't declared"""
KBPS = 1_000_000
"""of 1 Gb/s: NetBox counts speeds in Kbps"""
CABLES = {
    "dac": "dac-passive",
    "acc": "dac-active",
    "aoc": "aoc",
    "multimode": "mmf-om4",
    "single-mode": "smf-os2",
    "twisted-pair": "cat6a",
}
MAKER = "unknown"
"""of machines without a platform: NetBox wants one"""
PDU = "pdu"
INLET = "input"
SIDES = {"A": "primary", "B": "redundant"}
"""NetBox's type of a power feed"""
LEGS = dict(zip(PHASES, "ABC", strict=True))
"""NetBox's feed leg of an outlet"""
IS = "dcim.interface"
PORT, OUTLET, FEED = "dcim.powerport", "dcim.poweroutlet", "dcim.powerfeed"
ENDS = tuple(f"side_{side}_{key}" for side in "ab" for key in ("device", "type", "name"))


def tables(hall: Hall) -> Mapping[str, Table]:
    """Name of each file: its columns and rows. The last one is for NetBox 4.6 and newer: others can't import it."""
    models, cords = _models(hall), _plugged(hall)
    on_circuit = Counter(pdu.circuit for _, pdu in hall.pdus)
    makers = dict.fromkeys((*(_maker(each) for each in hall.devices), *([MAKER] if hall.pdus else [])))
    roles = dict.fromkeys((*(each.kind for each in hall.devices), *([PDU] if hall.pdus else [])))
    return {
        "01-sites": (("name", "slug", "status"), [(hall.name, slug(hall.name), "planned")]),
        "02-manufacturers": (("name", "slug"), [(name, slug(name)) for name in makers]),
        "03-device-roles": (("name", "slug", "color"), [(name, slug(name), "9e9e9e") for name in roles]),
        "04-device-types": (
            ("manufacturer", "model", "slug", "u_height", "is_full_depth", "weight", "weight_unit"),
            [*_types(hall, models), *([(MAKER, PDU, PDU, 0, "False", None, None)] if hall.pdus else [])],
        ),
        "05-racks": (
            ("site", "name", "status", "width", "u_height", "max_weight", "weight_unit"),
            [(hall.name, rack.name, "planned", 19, rack.units, *_whole_kg(rack.max_weight_kg)) for rack in hall.racks],
        ),
        "06-power-panels": (("site", "name"), [(hall.name, feed) for feed in _feeds(hall)]),
        "07-power-feeds": (
            ("site", "power_panel", "name", "status", "type", "supply", "phase", "voltage", "amperage"),
            [
                (hall.name, each.feed, each.name, "planned", SIDES[each.feed], "ac", *_electrical(each))
                for each in hall.circuits
            ],
        ),
        "08-devices": (
            ("name", "role", "manufacturer", "device_type", "status", "site", "rack", "position", "face"),
            list(_devices(hall, models)),
        ),
        "09-power-ports": (("device", "name", "maximum_draw"), list(_power_ports(hall))),
        "10-power-outlets": (("device", "name", "power_port", "feed_leg"), list(_outlets(hall, cords))),
        "11-interfaces": (("device", "name", "type", "speed"), list(_interfaces(hall))),
        "12-cables": (
            (*ENDS, "type", "status", "length", "length_unit"),
            [
                (*_side(cable.a), *_side(cable.b), CABLES[cable.type], "planned", round(cable.length_m, 2), "m")
                for cable in hall.cables
            ]
            + [
                (device, PORT, f"PSU{supply}", pdu, OUTLET, outlet, "power", "planned", None, None)
                for (pdu, outlet), (device, supply, _) in cords.items()
            ],
        ),
        "13-feed-cables": (
            ("side_a_power_panel", *ENDS[1:], "type", "status"),
            [
                (hall.circuit[pdu.circuit].feed, FEED, pdu.circuit, pdu.name, PORT, INLET, "power", "planned")
                for _, pdu in hall.pdus
                if pdu.circuit in hall.circuit and on_circuit[pdu.circuit] == 1  # a feed of NetBox's has one cable
            ],
        ),
    }


def _feeds(hall: Hall) -> list[str]:
    return list(dict.fromkeys(circuit.feed for circuit in hall.circuits))


def _electrical(circuit: Circuit) -> tuple[object, ...]:
    phase = "three-phase" if circuit.phases == 3 else "single-phase"
    return phase, math.floor(circuit.volts), max(1, math.floor(circuit.breaker_a))


def _maker(device: Device) -> str:
    return device.vendor or MAKER


def _models(hall: Hall) -> Mapping[str, str]:
    """Device: its model. Machines of one platform that are otherwise (height, weight) are models with a number."""
    kinds: dict[tuple[str, str], list[tuple[object, ...]]] = defaultdict(list)
    names = {}
    for each in hall.devices:
        base = each.platform or f"{each.kind} {each.height or 1}U"
        kinds_of, its = kinds[slug(_maker(each)), slug(base)], (base, each.height or 1, each.weight_kg)
        if its not in kinds_of:
            kinds_of.append(its)
        at = kinds_of.index(its)
        names[each.name] = f"{base} ({at + 1})" if at else base
    return names


def _types(hall: Hall, models: Mapping[str, str]) -> list[tuple[object, ...]]:
    kinds = {(_maker(each), models[each.name]): each for each in hall.devices}
    return [
        (maker, model, slug(model), each.height or 1, "True", *_kg(each.weight_kg))
        for (maker, model), each in kinds.items()
    ]


def _devices(hall: Hall, models: Mapping[str, str]) -> Iterator[tuple[object, ...]]:
    for each in hall.devices:
        yield each.name, each.kind, _maker(each), models[each.name], "planned", hall.name, *_place(each)
    for rack, pdu in hall.pdus:
        yield pdu.name, PDU, MAKER, PDU, "planned", hall.name, rack.name, None, None


def _place(device: Device) -> tuple[object, ...]:
    """NetBox refuses a unit without a rack, and one without a face."""
    unit = device.unit if device.rack else None
    return device.rack, unit, "front" if unit else None


def _whole_kg(kg: float | None) -> tuple[object, object]:
    return (None, None) if kg is None else (int(kg), "kg")


def _kg(kg: float | None) -> tuple[object, object]:
    return (None, None) if kg is None else (round(kg, 2), "kg")


def _side(end: End) -> tuple[str, str, str]:
    return end.device, IS, end.port


def _interfaces(hall: Hall) -> Iterator[tuple[object, ...]]:
    """Every port that is declared, cabled or not: so NetBox knows how many a switch has."""
    cabled: dict[str, dict[str, Cable]] = defaultdict(dict)
    for cable in hall.cables:
        for end in (cable.a, cable.b):
            cabled[end.device].setdefault(end.port, cable)
    for device in hall.devices:
        split = {switch_ports.whole(port) for port in cabled[device.name] if "/" in port}
        own = [str(n) for n in range(1, device.ports + 1) if str(n) not in split]
        own = own or [f"ib{n}" for n in range(1, (device.hcas or 0) + 1)]
        for port in dict.fromkeys((*own, *cabled[device.name])):
            its = cabled[device.name].get(port)
            yield device.name, port, *((_interface(its), int(SPEEDS[its.speed].gb_s * KBPS)) if its else (FREE, None))


def _interface(cable: Cable) -> str:
    return (TWISTED if cable.type == "twisted-pair" else {}).get(cable.speed) or INTERFACES[cable.speed]


def _power_ports(hall: Hall) -> Iterator[tuple[object, ...]]:
    for device in hall.devices:
        for n in range(1, (device.psus or 0) + 1):
            yield device.name, f"PSU{n}", math.floor(device.psu_w) if device.psu_w else None
    for _, pdu in hall.pdus:
        yield pdu.name, INLET, None


def _plugged(hall: Hall) -> Mapping[tuple[str, str], tuple[str, int, str]]:
    """(PDU, outlet): device, its supply and the phase, as the plan deals them out. PDUs whose outlets aren't counted
    have none: NetBox would take those for all that there are.
    """
    counted = {pdu.name: pdu.outlets or 0 for _, pdu in hall.pdus}
    used: Counter[str] = Counter()
    found = {}
    for cord in power.cords(hall):
        used[cord.pdu] += 1
        if used[cord.pdu] <= counted[cord.pdu]:
            found[cord.pdu, str(used[cord.pdu])] = cord.device, cord.supply, cord.phase
    return found


def _outlets(hall: Hall, taken: Mapping[tuple[str, str], tuple[str, int, str]]) -> Iterator[tuple[object, ...]]:
    for _, pdu in hall.pdus:
        for outlet in map(str, range(1, (pdu.outlets or 0) + 1)):
            *_, phase = taken.get((pdu.name, outlet), ("",))
            yield pdu.name, outlet, INLET, LEGS.get(str(phase))


def slug(name: str) -> str:
    """As NetBox wants it: small letters, digits, - and _."""
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")
