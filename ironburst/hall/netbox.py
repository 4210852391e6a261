"""A hall as the CSV files that NetBox imports, in the order of their numbers: columns and choices of NetBox 4.x
(netbox/dcim/forms/bulk_import.py, netbox/dcim/choices.py). The hall is a site; all is `planned`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ironburst.hall.model import Device, Hall
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
    "10GbE": "10gbase-t",
    "1GbE": "1000base-t",
}
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


def tables(hall: Hall) -> Mapping[str, Table]:
    """Name of each file: its columns and rows. Interfaces are those that have a cable."""
    devices = hall.devices
    makers = dict.fromkeys(_maker(each) for each in devices)
    roles = dict.fromkeys(each.kind for each in devices)
    models = dict.fromkeys((_maker(each), _model(each), slug(_model(each)), each.height or 1) for each in devices)
    kinds = {end: cable.speed for cable in hall.cables for end in (cable.a, cable.b)}
    ends = [(cable, cable.a, cable.b) for cable in hall.cables]
    end = ("device", "type", "name")
    return {
        "1-sites": (("name", "slug", "status"), [(hall.name, slug(hall.name), "planned")]),
        "2-manufacturers": (("name", "slug"), [(name, slug(name)) for name in makers]),
        "3-device-roles": (("name", "slug", "color"), [(name, slug(name), "9e9e9e") for name in roles]),
        "4-device-types": (("manufacturer", "model", "slug", "u_height"), list(models)),
        "5-racks": (
            ("site", "name", "status", "width", "u_height", "max_weight", "weight_unit"),
            [(hall.name, rack.name, "planned", 19, rack.units, *_weight(rack.max_weight_kg)) for rack in hall.racks],
        ),
        "6-devices": (
            ("name", "role", "manufacturer", "device_type", "status", "site", "rack", "position", "face"),
            [(each.name, each.kind, _maker(each), _model(each), "planned", *_place(hall, each)) for each in devices],
        ),
        "7-interfaces": (
            ("device", "name", "type"),
            [(place.device, place.port, INTERFACES[speed]) for place, speed in kinds.items()],
        ),
        "8-cables": (
            (*(f"side_{side}_{key}" for side in "ab" for key in end), "type", "status", "length", "length_unit"),
            [
                (a.device, IS, a.port, b.device, IS, b.port, CABLES[cable.type], "planned", cable.length_m, "m")
                for cable, a, b in ends
            ],
        ),
    }


IS = "dcim.interface"


def _maker(device: Device) -> str:
    return device.vendor or MAKER


def _model(device: Device) -> str:
    """Two machines of one kind and other heights are two models."""
    return device.platform or f"{device.kind} {device.height or 1}U"


def _place(hall: Hall, device: Device) -> tuple[object, ...]:
    return hall.name, device.rack, device.unit, "front" if device.rack and device.unit else None


def _weight(kg: float | None) -> tuple[object, object]:
    return (None, None) if kg is None else (int(kg), "kg")


def slug(name: str) -> str:
    """As NetBox wants it: small letters, digits, - and _."""
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")
