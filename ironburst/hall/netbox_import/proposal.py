"""NetBox's pages as a hall that could be declared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironburst.hall.model import End
from ironburst.hall.netbox import PDU
from ironburst.hall.netbox_import import links, machines, pages, power, scope
from ironburst.hall.netbox_import.ends import Ends
from ironburst.hall.netbox_import.links import Link, Ports
from ironburst.hall.netbox_import.machines import Machine, Platform
from ironburst.hall.netbox_import.notes import Note, Notes
from ironburst.hall.netbox_import.power import Supply
from ironburst.hall.netbox_import.scope import NetboxRack

Compact = Callable[[Sequence[str]], str]
"""names as one expression: dgx[01-04]; those that fit no range have commas between"""
NEVER = (
    ("hall", "cooling_kw, inlet_c, oversubscription; which subnet manager is master: NetBox has no place for them"),
    ("racks", "power_kw, cooling_kw, cooling, depth_mm, airflow_cfm, at_m: NetBox has no place for them"),
)
"""What NetBox never knows of a hall. Its mounting_depth is from rail to rail, and our depth_mm up to the door."""


@dataclass(frozen=True)
class Proposal:
    """`hall`: keys as in a stack file; a value that is None has to be declared."""

    hall: Mapping[str, Any]
    notes: tuple[Note, ...]

    def of(self, which: str) -> list[Note]:
        """Those of one list (declare, look, left)."""
        return [note for note in self.notes if note.list == which]


def proposal(
    files: Mapping[str, str],
    platforms: Mapping[str, Platform],
    compact: Compact,
    *,
    site: str | None = None,
    location: str | None = None,
    roles: Mapping[str, str] | None = None,
) -> Proposal:
    """Of saved pages by their files' names. `roles`: slug of a role of NetBox's: one of machines.KINDS. Raises
    NotUnderstood.
    """
    notes = Notes()
    things = pages.read(files)
    its = scope.chosen(things, site, location, notes)
    for of, what in NEVER:
        notes.declare(of, what)
    racks = scope.racks(its, notes)
    devices = machines.machines(its, racks, roles or {}, platforms, notes)
    ends = Ends(things, notes)
    feeds = power.circuits(its, devices, ends, notes)
    pdus = power.pdus(its, devices, feeds, ends, notes)
    supplies = power.supplies(its, devices, pdus, ends, notes)
    ports = links.ports(things, devices, notes)
    cables = links.links(things, devices, ports, ends, notes)
    groups = _equal(devices, supplies, ports)
    hall = {
        "name": its.name,
        "cidr": _network([each for each in devices.values() if each.is_node], notes),
        "circuits": list(feeds.values()),
        "racks": [_rack(rack, pdus, notes) for rack in racks.values()],
        "switches": [_switches(group, compact, notes) for group in groups if not group[0][0].is_node],
        "cables": [each for group in links.alike(cables) for each in _cables(group, compact, notes)],
        "nodes": [_nodes(group, compact, notes) for group in groups if group[0][0].is_node],
    }
    if not hall["nodes"]:
        notes.declare("nodes", "no device is one: say with --role which are (gpu, head, login)")
    return Proposal({key: value for key, value in hall.items() if value or key in ("cidr", "nodes")}, notes.all())


def _network(nodes: Sequence[Machine], notes: Notes) -> str | None:
    """The one that all nodes' addresses are in, as they say themselves."""
    found = {str(each.address.network) for each in nodes if each.address}
    if len(found) != 1:
        has = f"their addresses are in {', '.join(sorted(found))}" if found else "NetBox has no address of its nodes"
        notes.declare("cidr", f"the network of the nodes: {has}")
        return None
    notes.look("cidr", "is the network that the nodes' addresses say")
    return found.pop()


def _rack(rack: NetboxRack, pdus: Mapping[str, Sequence[Mapping[str, Any]]], notes: Notes) -> dict[str, Any]:
    if rack.max_weight_kg is None:
        notes.declare(rack.name, "max_weight_kg")
    if rack.name not in pdus:
        notes.declare(rack.name, "pdus, and the circuits that they are on")
    known = {"max_weight_kg": rack.max_weight_kg, "pdus": pdus.get(rack.name)}
    return {"name": rack.name, "units": rack.units} | {key: value for key, value in known.items() if value}


Group = list[tuple[Machine, Supply, int]]
"""equal machines, with their supplies and how many ports (HCAs) they have"""


def _equal(devices: Mapping[int, Machine], supplies: Mapping[int, Supply], ports: Ports) -> list[Group]:
    """In their order. A place, a serial number or an address is given for all of a group or for none."""
    found: dict[tuple[object, ...], Group] = defaultdict(list)
    for each in devices.values():
        if each.kind != PDU:
            supply = supplies.get(each.id, Supply())
            count = ports.hcas.get(each.id, 0) + ports.ports.get(each.id, 0)
            its = each.kind, each.rack, each.unit is None, each.height, each.weight_kg, each.model, not each.serial
            found[*its, not each.address, supply, count].append((each, supply, count))
    return list(found.values())


def _nodes(group: Group, compact: Compact, notes: Notes) -> dict[str, Any]:
    first, supply, hcas = group[0]
    its, platform = [machine for machine, *_ in group], first.platform
    names = ", ".join(split(compact([each.name for each in its])))
    said: dict[str, Any] = {"names": _short([each.name for each in its], compact)}
    if first.kind != "gpu":
        said["role"] = first.kind
    else:
        said["platform"] = platform.slug if platform else None
        if not platform:
            notes.declare(names, f"platform: none of the catalogue is called {first.model}")
    said |= _place(its)
    if first.height and first.height != (platform.height if platform else None):
        said["height"] = first.height
    said["addresses"] = None
    if first.address:
        said["addresses"] = _short([str(each.address.ip) for each in its if each.address], compact)
    else:
        notes.declare(names, "addresses")
    if first.serial:
        said["serials"] = [each.serial for each in its]
    if first.kind == "gpu" or hcas:
        said["infiniband_links"] = hcas or None
        if not hcas:
            notes.declare(names, "infiniband_links: NetBox has no InfiniBand interface of it; 0 is none")
    bmcs = [each.bmc for each in its if each.bmc]
    told = f", at {', '.join(split(compact(bmcs)))} in NetBox" if bmcs else ""
    notes.declare(names, f"bmc{told}")
    return said | _chassis(first, supply, names, notes)


def _switches(group: Group, compact: Compact, notes: Notes) -> dict[str, Any]:
    first, supply, ports = group[0]
    its = [machine for machine, *_ in group]
    names = ", ".join(split(compact([each.name for each in its])))
    said: dict[str, Any] = {"names": _short([each.name for each in its], compact)}
    said |= {"kind": first.kind, "ports": ports or None}
    if not ports:
        notes.declare(names, "ports: NetBox has no interface of it")
    said |= _place(its)
    if first.height not in (None, 1):
        said["height"] = first.height
    if first.kind == "leaf":
        notes.declare(names, "rails, if it has some; subnet_manager, if one runs on it")
    return said | _chassis(first, supply, names, notes)


def _place(its: Sequence[Machine]) -> dict[str, Any]:
    return {} if its[0].unit is None else {"rack": its[0].rack, "units": [each.unit for each in its]}


def _chassis(machine: Machine, supply: Supply, names: str, notes: Notes) -> dict[str, Any]:
    """What NetBox says otherwise than the catalogue; the rest of what limits need is to be declared."""
    platform = machine.platform or Platform("", None, None, None, None)
    own = {
        "weight_kg": machine.weight_kg if machine.weight_kg != platform.weight_kg else None,
        "psus": supply.psus if supply.psus != platform.psus else None,
        "psu_w": supply.psu_w if supply.psu_w != platform.psu_w else None,
    }
    if not machine.platform:
        known = {"weight_kg": machine.weight_kg, "psus": supply.psus, "psu_w": supply.psu_w}
        lacking = [key for key in ("power_w", "psus_needed", "depth_mm", "cooling", *known) if not known.get(key)]
        notes.declare(names, f"chassis: {', '.join(lacking)}")
    elif own["psus"]:
        notes.declare(names, f"chassis: psus_needed, for the catalogue's {platform.slug} has {platform.psus} psus")
    given = {key: value for key, value in own.items() if value}
    return ({"chassis": given} if given else {}) | ({"cords": list(supply.cords)} if supply.cords else {})


def _cables(group: Sequence[Link], compact: Compact, notes: Notes) -> Iterator[dict[str, Any]]:
    """One entry: both lists in the same order."""
    first = group[0]
    ends: list[Any] = [_ends([each.a for each in group], compact), _ends([each.b for each in group], compact)]
    for key, value in (("type", first.type), ("speed", first.speed), ("length_m", first.length_m)):
        if value is None:
            for each in group:
                notes.declare(f"{each.a} to {each.b}", f"{key} of its cable")
    yield {"ends": ends, "type": first.type, "speed": first.speed, "length_m": first.length_m}


def _ends(ends: Sequence[End], compact: Compact) -> str | list[str]:
    """dgx[01-04]/ib1, leaf1/[1-4]."""
    port = ends[0].port
    if all(each.port == port for each in ends):
        parts = [f"{name}/{port}" for name in split(compact([each.device for each in ends]))]
    else:
        parts = split(compact([str(each) for each in ends]))
    return parts[0] if len(parts) == 1 else parts


def _short(names: Sequence[str], compact: Compact) -> str | list[str]:
    parts = split(compact(names))
    return parts[0] if len(parts) == 1 else parts


def split(expression: str) -> list[str]:
    """At the commas that aren't in brackets."""
    parts, depth = [""], 0
    for character in expression:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts
