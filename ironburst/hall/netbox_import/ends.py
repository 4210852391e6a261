"""NetBox's cables: what is at the other end, also through patch panels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ironburst.hall.netbox_import.notes import Notes
from ironburst.hall.netbox_import.pages import Thing, Things

METRES = {"km": 1000.0, "m": 1.0, "cm": 0.01, "mi": 1609.344, "ft": 0.3048, "in": 0.0254}
"""of NetBox's units of length (NIST SP 811, B.8; all exact)"""
ENDPOINTS = {
    "dcim.interface": "dcim/interfaces",
    "dcim.powerport": "dcim/power-ports",
    "dcim.poweroutlet": "dcim/power-outlets",
    "dcim.powerfeed": "dcim/power-feeds",
    "dcim.frontport": "dcim/front-ports",
    "dcim.rearport": "dcim/rear-ports",
}
FRONT, REAR = "dcim.frontport", "dcim.rearport"
Port = tuple[str, int]
"""type and id of what a cable ends at"""
Position = tuple[int, int]
"""a port of a patch panel, and which of its positions"""


@dataclass(frozen=True)
class Cable:
    """Both ends of one cable. `type` empty, `length_m` None: NetBox doesn't know."""

    thing: Thing
    a: tuple[Port, ...]
    b: tuple[Port, ...]
    type: str
    length_m: float | None

    def other(self, port: Port) -> tuple[Port, ...]:
        """What is at the end that isn't this one's."""
        return self.b if port in self.a else self.a


@dataclass(frozen=True)
class Path:
    """From a port over one or more cables to `end`; None: it ends nowhere, `why`."""

    end: Port | None
    cables: tuple[Cable, ...]
    why: str = ""


class Ends:
    """All cables by what they end at."""

    def __init__(self, things: Things, notes: Notes) -> None:
        self._things = things
        self.cables: list[Cable] = []
        self._at: dict[Port, Cable] = {}
        self._brief: dict[Port, Thing] = {}
        for thing in things.get("dcim/cables", {}).values():
            if thing.choice("status") == "decommissioning":
                notes.left(f"cable {thing.id}", "is decommissioning in NetBox")
                continue
            a, b = (tuple(self._ends(thing, f"{side}_terminations")) for side in "ab")
            cable = Cable(thing, a, b, thing.choice("type"), _length(thing))
            self.cables.append(cable)
            for port in (*a, *b):
                self._at[port] = cable
        self._rear, self._front = _panels(things)

    def _ends(self, cable: Thing, key: str) -> Iterator[Port]:
        for end in cable.every(key):
            of, id_, brief = end.get("object_type"), end.get("object_id"), end.get("object")
            if not isinstance(of, str) or not isinstance(id_, int):
                raise cable.wrong(key, end, "a list of {object_type, object_id}")
            if isinstance(brief, dict):
                self._brief[of, id_] = Thing(f"{cable.where}, {key},", id_, brief)
            yield of, id_

    def thing(self, port: Port) -> Thing:
        """The whole object, or what its cable says of it."""
        of, id_ = port
        whole = self._things.get(ENDPOINTS.get(of, ""), {}).get(id_)
        return whole or self._brief.get(port) or Thing(f"{of} {id_}", id_, {})

    def far(self, of: str, id_: int) -> list[tuple[str, Thing]]:
        """(type, object) at the other end of a port's one cable; empty: it has none."""
        cable = self._at.get((of, id_))
        return [(port[0], self.thing(port)) for port in cable.other((of, id_))] if cable else []

    def path(self, port: Port) -> Path | None:
        """Through patch panels as NetBox traces it (CablePath.from_origin): into a rear port the position is kept, and
        taken again where a rear port is left to the front. None: no cable.
        """
        cables: list[Cable] = []
        positions: list[int] = []
        here: Port = port
        while (cable := self._at.get(here)) and cable not in cables:
            cables.append(cable)
            there = cable.other(here)
            if len(there) != 1 or len(cable.other(there[0])) != 1:
                count = f"{len(cable.a)} and {len(cable.b)} ends"
                return Path(None, tuple(cables), f"has {count} in NetBox, and a cable here has two")
            if there[0][0] not in (FRONT, REAR):
                return Path(there[0], tuple(cables))
            through = self._through(there[0], positions)
            if through is None:
                return Path(None, tuple(cables), "ends in a patch panel, where it can't be followed (dcim/front-ports)")
            here = through
        return Path(None, tuple(cables), "ends in a patch panel") if cables else None

    def _through(self, port: Port, positions: list[int]) -> Port | None:
        of, id_ = port
        if of == FRONT:
            its = self._rear.get(id_, [])
            if len(its) != 1:
                return None
            rear, position = its[0]
            positions.append(position)
            return REAR, rear
        fronts = self._front.get(id_, {})
        if not positions and len(fronts) != 1:
            return None
        front = fronts.get(positions.pop() if positions else next(iter(fronts)))
        return None if front is None else (FRONT, front)


def _panels(things: Things) -> tuple[Mapping[int, list[Position]], Mapping[int, Mapping[int, int]]]:
    """Front port: its rear ports with positions. Rear port: its front ports by position. Before 4.5 a front port had
    one rear port, and no list.
    """
    rear: dict[int, list[Position]] = defaultdict(list)
    front: dict[int, dict[int, int]] = defaultdict(dict)
    for port in things.get("dcim/front-ports", {}).values():
        if "rear_ports" in port.values:
            ends = [(each.get("rear_port"), each.get("rear_port_position")) for each in port.every("rear_ports")]
        else:
            ends = [(port.ref("rear_port"), port.values.get("rear_port_position") or 1)]
        for id_, position in ends:
            if not isinstance(id_, int) or not isinstance(position, int):
                raise port.wrong("rear_ports", ends, "a list of {rear_port, rear_port_position}")
            rear[port.id].append((id_, position))
            front[id_][position] = port.id
    return rear, front


def _length(cable: Thing) -> float | None:
    length, unit = cable.number("length"), cable.choice("length_unit")
    if not length:
        return None
    if unit not in METRES or length < 0:
        raise cable.wrong("length_unit", cable.values.get("length_unit"), f"one of {', '.join(METRES)} of a length")
    return round(length * METRES[unit], 2)
