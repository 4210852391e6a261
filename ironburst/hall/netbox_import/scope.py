"""Which of NetBox's objects are the hall's: one site, or a location of it with all below it; and its racks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ironburst.hall.netbox_import.notes import Names, Notes, host
from ironburst.hall.netbox_import.pages import Thing, Things
from ironburst.hall.seen import NotUnderstood

KG = {"kg": 1.0, "g": 0.001, "lb": 0.45359237, "oz": 0.028349523125}
"""of NetBox's units of weight (NIST SP 811, B.8: the avoirdupois pound is exact)"""
NEEDED = ("dcim/racks", "dcim/devices", "dcim/device-types")
READ = {
    *NEEDED,
    "dcim/sites",
    "dcim/locations",
    "dcim/interfaces",
    "dcim/front-ports",
    "dcim/cables",
    "dcim/power-panels",
    "dcim/power-feeds",
    "dcim/power-ports",
    "dcim/power-outlets",
}
NOTHING_IN_THEM = {"dcim/manufacturers", "dcim/device-roles", "dcim/rear-ports", "dcim/virtual-chassis"}
"""what they say is inside the others, too"""


@dataclass(frozen=True)
class NetboxRack:
    """A rack of NetBox's, and its name here. `first`: the number of its lowest-numbered unit; `descending`: units are
    counted from above.
    """

    name: str
    units: int
    first: int
    descending: bool
    max_weight_kg: float | None

    def lowest(self, position: float, height: float) -> float:
        """Where a device begins, counted from below from 1 on; NetBox's position is its least number."""
        if self.descending:
            return self.units + self.first - position - height + 1
        return position - self.first + 1


@dataclass(frozen=True)
class Scope:
    """The site (and location) of the hall."""

    things: Things
    site: Thing
    location: Thing | None
    locations: frozenset[int]

    @property
    def name(self) -> str:
        """Of the hall."""
        return host(_slug(self.location or self.site))

    def holds(self, thing: Thing) -> bool:
        """Whether it is of the site, and in the location where one was asked for."""
        if thing.ref("site") != self.site.id:
            return False
        return self.location is None or thing.ref("location") in self.locations

    def of(self, endpoint: str) -> Iterator[Thing]:
        """All of an endpoint that has sites and locations."""
        return (thing for thing in self.things.get(endpoint, {}).values() if self.holds(thing))


def _slug(thing: Thing) -> str:
    return thing.text("slug") or thing.text("name")


def chosen(things: Things, site: str | None, location: str | None, notes: Notes) -> Scope:
    """The only site that has racks, or the named one. Raises NotUnderstood."""
    missing = [endpoint for endpoint in NEEDED if not things.get(endpoint)]
    if missing:
        raise NotUnderstood(f"no object of {', '.join(missing)}: save their pages, too")
    sites: dict[str, Thing] = {}
    for endpoint in ("dcim/racks", "dcim/devices"):
        for thing in things[endpoint].values():
            sites.setdefault(_slug(thing.of("site")), thing.of("site"))
    if site is None and len(sites) > 1:
        raise NotUnderstood(f"racks and devices of several sites: name one of {', '.join(sorted(sites))} with --site")
    if site is not None and site not in sites:
        raise NotUnderstood(f"--site {site}: racks and devices are of {', '.join(sorted(sites))}")
    its = sites[site or next(iter(sites))]
    for endpoint in sorted(set(things) - READ - NOTHING_IN_THEM):
        notes.left(endpoint, f"{len(things[endpoint])} of them, which aren't read")
    found = Scope(things, its, *_location(things, its, location))
    for endpoint in ("dcim/racks", "dcim/devices", "dcim/power-panels") if location else ():
        for thing in things.get(endpoint, {}).values():
            if thing.ref("site") == its.id and thing.ref("location") is None:
                notes.left(f"{endpoint.split('/')[1]}/{thing.id} {thing.text('name')}", "has no location in NetBox")
    return found


def _location(things: Things, site: Thing, asked: str | None) -> tuple[Thing | None, frozenset[int]]:
    if asked is None:
        return None, frozenset()
    its = {each.id: each for each in things.get("dcim/locations", {}).values() if each.ref("site") == site.id}
    found = next((each for each in its.values() if _slug(each) == asked), None)
    if found is None:
        known = ", ".join(sorted(map(_slug, its.values()))) or "none: save dcim/locations, too"
        raise NotUnderstood(f"--location {asked}: {_slug(site)} has {known}")
    inside = {found.id}
    while more := {each.id for each in its.values() if each.ref("parent") in inside} - inside:
        inside |= more
    return found, frozenset(inside)


def racks(scope: Scope, notes: Notes) -> Mapping[int, NetboxRack]:
    """By their ids, in the order of NetBox."""
    names, found = Names(notes, "rack"), {}
    for thing in scope.of("dcim/racks"):
        units = thing.number("u_height")
        if units is None or units != int(units) or units < 1:
            raise thing.wrong("u_height", thing.get("u_height"), "a whole number")
        location = thing.of("location").text("name") if thing.ref("location") is not None else ""
        name = names.take(thing.text("name") or f"rack {thing.id}", [location])
        first = thing.number_if("starting_unit")  # since 4.0
        rack = NetboxRack(name, int(units), int(first or 1), thing.get("desc_units") is True, kg(thing, "max_weight"))
        found[thing.id] = rack
        if rack.descending:
            notes.look(rack.name, "NetBox counts its units from above; here they are counted from below")
        elif rack.first != 1:
            notes.look(rack.name, f"NetBox counts its units from {rack.first}; here they are counted from 1")
        if thing.choice("status") not in ("active", "planned", ""):
            notes.look(rack.name, f"is {thing.choice('status')} in NetBox")
        custom(thing, rack.name, notes)
    return found


def kg(thing: Thing, key: str) -> float | None:
    """A weight in NetBox's unit beside it. Raises NotUnderstood."""
    weight, unit = thing.number_if(key), thing.choice("weight_unit")
    if weight is None:
        return None
    if unit not in KG:
        raise thing.wrong("weight_unit", thing.values.get("weight_unit"), f"one of {', '.join(KG)}")
    return round(weight * KG[unit], 2)


def custom(thing: Thing, name: str, notes: Notes) -> None:
    """Custom fields with values are reported, and not read."""
    fields = thing.values.get("custom_fields") or {}
    if not isinstance(fields, dict):
        raise thing.wrong("custom_fields", fields, "an object")
    filled = sorted(str(key) for key, value in fields.items() if value not in (None, "", [], False))
    if filled:
        notes.left(name, f"custom fields {', '.join(filled)} aren't read")
