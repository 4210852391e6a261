"""Devices of NetBox's as nodes, switches and PDUs. What a device is its role says, if it has a name of ours or one that
was given with --role; else its type, if that is a platform of the catalogue; power outlets make a PDU. Nothing else.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ironburst.hall.model import SWITCHES
from ironburst.hall.netbox import PDU, slug
from ironburst.hall.netbox_import.notes import Names, Notes
from ironburst.hall.netbox_import.pages import Thing, Things
from ironburst.hall.netbox_import.scope import NetboxRack, Scope, custom, kg

NODES = ("gpu", "head", "login")
KINDS = (*NODES, *SWITCHES, PDU)
AWAY = ("inventory", "decommissioning")
"""states of devices that don't stand there, or won't for long"""


@dataclass(frozen=True)
class Platform:
    """What the catalogue says of a platform, as far as NetBox says it, too. None: unknown."""

    slug: str
    height: int | None
    weight_kg: float | None
    psus: int | None
    psu_w: float | None


@dataclass(frozen=True)
class Machine:
    """A device that is taken over. `rack`, `unit` None: it has no place of its own; `height` None: unknown."""

    id: int
    name: str
    kind: str
    rack: str | None
    unit: int | None
    height: int | None
    weight_kg: float | None
    platform: Platform | None
    model: str
    serial: str
    address: ipaddress.IPv4Interface | None
    bmc: str | None

    @property
    def is_node(self) -> bool:
        """No switch, no PDU."""
        return self.kind in NODES


def machines(
    scope: Scope,
    racks: Mapping[int, NetboxRack],
    roles: Mapping[str, str],
    platforms: Mapping[str, Platform],
    notes: Notes,
) -> Mapping[int, Machine]:
    """By their ids, nodes and switches in the order of their racks and units. `roles`: slug of a role: one of KINDS."""
    with_outlets = {each.ref("device") for each in scope.things.get("dcim/power-outlets", {}).values()}
    names, labels = Names(notes, "device"), Names(notes, "device", label=True)
    found, unknown = {}, defaultdict(list)
    for device in scope.of("dcim/devices"):
        name, kind_of = device.text("name"), _type(scope.things, device)
        platform = _platform(kind_of, platforms)
        role = device.of("role", "device_role")  # 3.6 gave it its shorter name
        role_slug = role.text("slug") or slug(role.text("name"))
        kind = roles.get(role_slug) or (PDU if device.id in with_outlets else role_slug)
        kind = "gpu" if kind not in KINDS and platform else kind
        shown = name or f"{kind_of.text('model')} without a name (devices/{device.id})"
        if device.choice("status") in AWAY:
            notes.left(shown, f"is {device.choice('status')} in NetBox")
        elif kind not in KINDS:
            unknown[role_slug].append(shown)
        elif not name:
            notes.left(shown, "has no name: give it one in NetBox")
        else:
            taken = (labels if kind == PDU else names).take(name, [_tenant(device)])
            machine = _machine(device, kind_of, kind, taken, notes)
            found[device.id] = _placed(machine, device, kind_of, racks, notes)
            found[device.id] = replace(found[device.id], platform=platform if kind == "gpu" else None)
    for role_slug, its in unknown.items():
        for shown in its:
            text = f"is of role {role_slug}, which isn't ours, so its units are free here: --role {role_slug}=KIND"
            notes.left(shown, f"{text} if it is a node, switch or PDU")
    return _apart(found, notes)


def _type(things: Things, device: Thing) -> Thing:
    brief = device.of("device_type")
    whole = things["dcim/device-types"].get(brief.id)
    if whole is None:
        raise device.wrong("device_type", brief.values.get("display"), "one of dcim/device-types that were saved")
    return whole


def _platform(kind_of: Thing, platforms: Mapping[str, Platform]) -> Platform | None:
    """Of the same name, with or without its maker's; "(2)" is our own export's."""
    model = re.sub(r" \(\d+\)$", "", kind_of.text("model"))
    maker = kind_of.of("manufacturer").text("name")
    return platforms.get(slug(model).replace("_", "-")) or platforms.get(slug(f"{maker} {model}").replace("_", "-"))


def _tenant(device: Thing) -> str:
    """Names are unique in a site and tenant."""
    return device.of("tenant").text("name") if device.values.get("tenant") else ""


def _machine(device: Thing, kind_of: Thing, kind: str, name: str, notes: Notes) -> Machine:
    status, chassis = device.choice("status"), device.values.get("virtual_chassis")
    if status not in ("active", "planned", ""):
        notes.look(name, f"is {status} in NetBox")
    if chassis:
        notes.look(name, f"is of virtual chassis {device.of('virtual_chassis').text('name')}: a switch of its own here")
    custom(device, name, notes)
    return Machine(
        id=device.id,
        name=name,
        kind=kind,
        rack=None,
        unit=None,
        height=None,
        weight_kg=kg(kind_of, "weight"),
        platform=None,
        model=kind_of.text("model"),
        serial=device.text("serial"),
        address=_address(device),
        bmc=device.of("oob_ip").text("address").split("/")[0] if device.values.get("oob_ip") else None,  # since 3.6
    )


def _address(device: Thing) -> ipaddress.IPv4Interface | None:
    """With the length of its network."""
    if not device.values.get("primary_ip4"):
        return None
    text = device.of("primary_ip4").text("address")
    try:
        return ipaddress.IPv4Interface(text)
    except ValueError:
        raise device.wrong("primary_ip4", text, "an IPv4 address with the length of its network") from None


def _placed(machine: Machine, device: Thing, kind_of: Thing, racks: Mapping[int, NetboxRack], notes: Notes) -> Machine:
    """Its rack and lowest unit. Half units are whole ones here: all that it takes a part of."""
    height, position, rack_id = kind_of.number("u_height") or 0.0, device.number("position"), device.ref("rack")
    own = replace(machine, height=math.ceil(height) or None)
    if device.values.get("parent_device"):
        parent = device.of("parent_device").text("display")
        notes.declare(machine.name, f"its place: NetBox has it in a bay of {parent}, which has the units")
        return own
    rack = racks.get(rack_id) if rack_id is not None else None
    if rack_id is not None and rack is None:
        raise device.wrong("rack", device.get("rack"), "one of the site's dcim/racks that were saved")
    if rack is None:
        if machine.kind != PDU:
            notes.declare(machine.name, "rack and units: it has no rack in NetBox")
        return own
    if machine.kind == PDU:
        if position is not None:
            notes.look(machine.name, f"takes unit {position:g} of {rack.name} in NetBox; here a PDU takes none")
        return replace(own, rack=rack.name)
    if position is None or not height:
        notes.declare(machine.name, f"units in {rack.name}: it has no position there in NetBox")
        return own
    bottom = rack.lowest(position, height)
    lowest, top = math.floor(bottom), math.ceil(bottom + height)
    if (lowest, top - lowest) != (bottom, height):
        notes.look(machine.name, f"takes half units in NetBox ({height:g} from {position:g}); here all of each")
    if not (lowest >= 1 and top - 1 <= rack.units):
        raise device.wrong("position", device.get("position"), f"a unit inside {rack.name} with {rack.units} units")
    if device.choice("face") == "rear":
        notes.look(machine.name, "is at the rear in NetBox; here a unit is taken whole")
    return replace(own, rack=rack.name, unit=lowest, height=top - lowest)


def _apart(found: Mapping[int, Machine], notes: Notes) -> Mapping[int, Machine]:
    """No two in one unit: NetBox has room for one at the front and one at the rear, and for halves."""
    taken: dict[tuple[str | None, int], str] = {}
    placed = {}
    for machine in sorted(found.values(), key=lambda each: (each.kind == PDU, each.rack or "~", each.unit or 0)):
        units = range(machine.unit, machine.unit + (machine.height or 1)) if machine.unit else ()
        others = {taken[machine.rack, unit] for unit in units if (machine.rack, unit) in taken}
        if others:
            text = f"units: in NetBox it shares unit {machine.unit} of {machine.rack} with {', '.join(sorted(others))}"
            notes.declare(machine.name, text)
            machine = replace(machine, rack=None, unit=None)
        else:
            taken |= {(machine.rack, unit): machine.name for unit in units}
        placed[machine.id] = machine
    return placed
