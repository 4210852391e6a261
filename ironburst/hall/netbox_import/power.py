"""Power feeds as circuits, devices with outlets as PDUs, cables of power ports as cords."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironburst.hall.model import CONTINUOUS
from ironburst.hall.netbox import FEED, LEGS, OUTLET, PDU, PORT, SIDES
from ironburst.hall.netbox_import.ends import Ends
from ironburst.hall.netbox_import.machines import Machine
from ironburst.hall.netbox_import.notes import Names, Notes, natural
from ironburst.hall.netbox_import.pages import Thing
from ironburst.hall.netbox_import.scope import Scope, custom

DEFAULTS = (120, 15)
"""volts and amperes that NetBox writes where nobody gave any"""


@dataclass(frozen=True)
class Supply:
    """Power supplies of a machine: how many, watts of one, and where they are plugged in; None: unknown."""

    psus: int | None = None
    psu_w: float | None = None
    cords: tuple[str, ...] = ()


def circuits(scope: Scope, machines: Mapping[int, Machine], ends: Ends, notes: Notes) -> Mapping[int, dict[str, Any]]:
    """Feed: its circuit, as it is declared. Those of the site's (location's) panels, and those of its PDUs."""
    names, found = Names(notes, "power feed", label=True), {}
    panels = scope.things.get("dcim/power-panels", {})
    for feed in scope.things.get("dcim/power-feeds", {}).values():
        panel = panels.get(feed.of("power_panel").id)
        far = [thing for of, thing in ends.far(FEED, feed.id) if of == PORT]
        if not any(thing.ref("device") in machines for thing in far) and (panel is None or not scope.holds(panel)):
            continue
        name = feed.text("name")
        if feed.choice("supply") == "dc":
            notes.left(name, "is a feed of DC, and circuits here are of AC")
            continue
        volts, amperes, percent = (_positive(feed, key) for key in ("voltage", "amperage", "max_utilization"))
        circuit = names.take(name, [feed.of("power_panel").text("name")])
        kind = feed.choice("type")
        side = next((ours for ours, theirs in SIDES.items() if theirs == kind), None)
        if side is None:
            raise feed.wrong("type", feed.values.get("type"), f"one of {', '.join(SIDES.values())}")
        if (volts, amperes) == DEFAULTS:
            notes.look(circuit, "has NetBox's own 120 V and 15 A: has anybody given them?")
        if percent < 100 * CONTINUOUS:
            notes.look(
                circuit, f"may be used to {percent:g} % in NetBox: its breaker_a is lower here, to the same watts"
            )
            amperes = round(amperes * percent / (100 * CONTINUOUS), 1)
        elif percent > 100 * CONTINUOUS:
            notes.look(circuit, f"may be used to {percent:g} % in NetBox, and to 80 % here")
        if feed.choice("status") not in ("active", "planned", ""):
            notes.look(circuit, f"is {feed.choice('status')} in NetBox")
        custom(feed, circuit, notes)
        phases = 3 if feed.choice("phase") == "three-phase" else 1
        found[feed.id] = {"name": circuit, "feed": side, "phases": phases, "volts": volts, "breaker_a": amperes}
    if not found:
        notes.declare("circuits", "NetBox has no power feeds of it, or they weren't saved")
    elif all(each["feed"] == "A" for each in found.values()):
        notes.look("circuits", "all of them are primary in NetBox, so all are of feed A: is there a second feed?")
    return found


def _positive(feed: Thing, key: str) -> float:
    value = feed.number(key)
    if value is None or value <= 0:
        raise feed.wrong(key, feed.get(key), "a number above zero")
    return value


def pdus(
    scope: Scope,
    machines: Mapping[int, Machine],
    feeds: Mapping[int, dict[str, Any]],
    ends: Ends,
    notes: Notes,
) -> Mapping[str, list[dict[str, Any]]]:
    """By rack."""
    inlets, outlets = _by_device(scope, "dcim/power-ports"), _by_device(scope, "dcim/power-outlets")
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for machine in machines.values():
        if machine.kind != PDU:
            continue
        far = [(of, thing) for inlet in inlets[machine.id] for of, thing in ends.far(PORT, inlet.id)]
        fed = [feeds[thing.id]["name"] for of, thing in far if of == FEED and thing.id in feeds]
        if machine.rack is None:
            notes.left(machine.name, "is a PDU without a rack")
        elif len(fed) != 1 or len(far) != 1:
            count = "no cable" if not far else f"cables to {', '.join(fed) or 'what is no power feed'}"
            notes.left(machine.name, f"has {count} at its inputs, and a PDU here is on one circuit")
        else:
            pdu: dict[str, Any] = {"name": machine.name, "circuit": fed[0]}
            found[machine.rack].append(pdu | ({"outlets": n} if (n := len(outlets[machine.id])) else {}))
    return found


def supplies(
    scope: Scope,
    machines: Mapping[int, Machine],
    racks: Mapping[str, list[dict[str, Any]]],
    ends: Ends,
    notes: Notes,
) -> Mapping[int, Supply]:
    """Machine: its supplies, in the order of their names."""
    known = {pdu["name"] for its in racks.values() for pdu in its}
    ports, found = _by_device(scope, "dcim/power-ports"), {}
    for machine in machines.values():
        its = ports[machine.id]
        if machine.kind == PDU or not its:
            continue
        cords = []
        for port in its:
            for of, thing in ends.far(PORT, port.id):
                pdu = machines.get(thing.ref("device") or 0) if of == OUTLET else None
                if pdu is None or pdu.name not in known:
                    what = pdu.name if pdu else f"a {of.partition('.')[2]} that isn't taken over"
                    notes.left(f"{machine.name} {port.text('name')}", f"is cabled to {what}")
                    continue
                leg = thing.choice("feed_leg")
                cords.append(pdu.name + next((f"/{phase}" for phase, theirs in LEGS.items() if theirs == leg), ""))
        if cords and len(cords) < len(its):
            notes.look(machine.name, f"{len(cords)} of its {len(its)} power ports have cords in NetBox")
        watts = {port.number("maximum_draw") for port in its}
        psu_w = watts.pop() if len(watts) == 1 else None
        allocated = sum(port.number_if("allocated_draw") or 0 for port in its)
        if allocated:
            notes.look(machine.name, f"NetBox allocates {allocated:g} W to it; power_w is the most that it draws")
        found[machine.id] = Supply(len(its), psu_w, tuple(cords))
    if any(each.psu_w for each in found.values()):
        notes.look("psu_w", "is NetBox's maximum_draw of a power port: is it what one supply gives?")
    return found


def _by_device(scope: Scope, endpoint: str) -> defaultdict[int, list[Thing]]:
    """In the order of their names."""
    found: defaultdict[int, list[Thing]] = defaultdict(list)
    for thing in scope.things.get(endpoint, {}).values():
        found[thing.of("device").id].append(thing)
    for its in found.values():
        its.sort(key=lambda each: natural(each.text("name")))
    return found
