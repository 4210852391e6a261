"""What else a hall can take, what its nodes must be capped to, and in which order they are powered on."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ironburst.hall import power, racks
from ironburst.hall.model import Device, Hall, Rack, Violation

MOST = 60
"""machines that are tried in one rack"""


@dataclass(frozen=True)
class Room:
    """How many more of a platform a rack takes; `then`: what is full with one more."""

    rack: str
    platform: str
    count: int
    then: str

    def __str__(self) -> str:
        what = f"more {self.platform} in {self.rack}"
        return f"{self.count} {what}, then {self.then}" if self.count else f"no {what}: {self.then}"


@dataclass(frozen=True)
class Placement:
    """Where that many more machines of a platform would stand, all of them at once. `rooms`: rack by rack, with what is
    full where not all could stand (`then`; empty: no more were wanted); `left`: how many have no room; `unlimited`:
    racks of which no limit and no PDU is declared, so that nobody can say.
    """

    platform: str
    rooms: tuple[Room, ...]
    left: int
    unlimited: tuple[str, ...]


@dataclass(frozen=True)
class Cap:
    """The most that a node may draw so that nothing is overloaded, also with a feed lost. `gpu_w`: what is left for
    each of its GPUs, if the rest of it draws what it does at most; None: less than nothing, or unknown.
    """

    node: str
    cap_w: float
    power_w: float
    gpu_w: float | None
    because: str


@dataclass(frozen=True)
class Step:
    """What is powered on together, that many seconds after the start."""

    at_s: int
    nodes: tuple[str, ...]


def more(hall: Hall) -> tuple[Room, ...]:
    """For each rack with a limit or a PDU, and each platform of the hall's GPU nodes. Places of cords are planned."""
    limited = [rack for rack in hall.racks if _is_limited(rack)]
    return tuple(_more(_part(hall, rack), rack, like)[0] for rack in limited for like in platforms(hall).values())


def platforms(hall: Hall) -> Mapping[str, Device]:
    """Platform of GPU nodes: one of them."""
    return {str(device.platform): device for device in hall.devices if device.kind == "gpu" and device.platform}


def _is_limited(rack: Rack) -> bool:
    return bool(rack.pdus) or any(each.limit(rack) is not None for each in racks.LIMITS)


def place(hall: Hall, like: Device, count: int) -> Placement:
    """The number of further machines, rack by rack: what one takes of a circuit or of the room's cooling is gone for
    the next rack. Cables, and places of cords, are planned by nobody.
    """
    rooms, left = [], count
    for rack in hall.racks:
        if left and _is_limited(rack):
            room, new = _more(_part(hall, rack), rack, like, left)
            rooms.append(room)
            hall = replace(hall, devices=(*hall.devices, *new))
            left -= room.count
    unlimited = tuple(rack.name for rack in hall.racks if not _is_limited(rack))
    return Placement(str(like.platform), tuple(rooms), left, unlimited)


def _part(hall: Hall, rack: Rack) -> Hall:
    """The rack, and those that share a circuit with it."""
    circuits = {pdu.circuit for pdu in rack.pdus}
    near = [each for each in hall.racks if each is rack or circuits & {pdu.circuit for pdu in each.pdus}]
    names, all_of_them = {each.name for each in near}, {pdu.circuit for each in near for pdu in each.pdus}
    return replace(
        hall,
        racks=tuple(near),
        circuits=tuple(each for each in hall.circuits if each.name in all_of_them),
        devices=tuple(device for name in hall.in_rack if name in names for device in hall.in_rack[name]),
        cables=(),
        # the room's heat is of all racks: what the others leave of it
        cooling_kw=_left_of_room(hall, names),
    )


def _left_of_room(hall: Hall, names: set[str]) -> float | None:
    if hall.cooling_kw is None:
        return None
    return hall.cooling_kw - sum(kw for rack, kw in _heat_kw(hall).items() if rack not in names)


@functools.lru_cache(maxsize=8)
def _heat_kw(hall: Hall) -> Mapping[str | None, float]:
    """By rack; None: of what stands in none."""
    found: dict[str | None, list[Device]] = defaultdict(list)
    for device in hall.devices:
        found[device.rack].append(device)
    return {rack: racks.total(racks.HEAT, devices) for rack, devices in found.items()}


def _more(hall: Hall, rack: Rack, like: Device, most: int | None = None) -> tuple[Room, tuple[Device, ...]]:
    """How many more fit, up to `most`, and they. None: until something is full."""
    platform, new = str(like.platform), tuple[Device, ...]()

    def room(then: str) -> tuple[Room, tuple[Device, ...]]:
        return Room(rack.name, platform, len(new), then), new

    unknown = next((each for each in racks.unknown(replace(hall, devices=(replace(like, rack=rack.name),)))), None)
    if unknown or like.height is None:
        return room("a figure of it is unknown: " + (unknown.text if unknown else "its height"))
    before = _full(hall)
    for count in range(MOST if most is None else min(most, MOST)):
        unit = _free(hall, rack, like.height)
        if unit is None:
            return room(f"{rack.name} has no {like.height} free units in a row")
        one = replace(like, name=f"+{rack.name}-{count}", rack=rack.name, unit=unit, cords=(), where=())
        hall = replace(hall, devices=(*hall.devices, one))
        full = next((words for key, words in _full(hall).items() if key not in before), None)
        if full:
            return room(full)
        new = (*new, one)
    return room("nobody looked further" if most is None or most > MOST else "")


def _full(hall: Hall) -> dict[tuple[str, str], str]:
    """What stops one more machine: (rule, subject) -> in words."""
    found: list[Violation] = [*power.circuits(hall), *racks.totals(hall), *racks.room(hall), *power.plugs(hall)]
    found += [*racks.depth(hall), *racks.cooling_kind(hall)]
    new = {(each.rule, each.subject if not each.subject.startswith("+") else "it"): each for each in found}
    return {key: _words(key[1], each) for key, each in new.items()}


def _words(subject: str, found: Violation) -> str:
    if subject == "it":
        return f"it {found.text}"
    room = found.where == ("cooling_kw",)  # of it, a part of the hall has what the others leave (_part)
    return f"{subject} is full: {'of what its other racks leave, ' if room else ''}it {found.text}"


def _free(hall: Hall, rack: Rack, height: int) -> int | None:
    taken = {
        unit
        for device in hall.in_rack[rack.name]
        if device.unit is not None
        for unit in range(device.unit, device.unit + (device.height or 1))
    }
    starts = range(1, rack.units - height + 2)
    return next((unit for unit in starts if not taken & set(range(unit, unit + height))), None)


def caps(hall: Hall) -> tuple[Cap, ...]:
    """Of the GPU nodes that can't draw all that they want: what is overloaded is shared out among its GPU nodes by
    their power, and switches and heads keep theirs.
    """
    least: dict[str, tuple[float, str]] = {}
    for name, watts, because in _limits(hall):
        if watts < least.get(name, (math.inf, ""))[0]:
            least[name] = watts, because
    return tuple(_cap(hall.device[name], *found) for name, found in least.items())


def _cap(node: Device, watts: float, because: str) -> Cap:
    rest = (node.power_w or 0.0) - node.gpus * (node.gpu_w or 0.0)
    of_gpu = (watts - rest) / node.gpus if node.gpus and node.gpu_w else None
    known = of_gpu if of_gpu is not None and of_gpu > 0 else None
    return Cap(node.name, math.floor(watts), node.power_w or 0.0, known and math.floor(known), because)


def _limits(hall: Hall) -> Iterator[tuple[str, float, str]]:
    """(node, what it may draw, why)."""
    by_device: dict[str, list[power.Cord]] = defaultdict(list)
    for cord in power.cords(hall):
        by_device[cord.device].append(cord)
    for state in power.states(hall):
        for name, its in by_device.items():
            alive, device = [cord for cord in its if cord.feed != state.lost], hall.device[name]
            most = power.supplied_w(device, len(alive))
            if device.kind == "gpu" and alive and device.power_w is not None and most < device.power_w:
                yield name, most, f"{len(alive)} supplies carry it {power.when(state.lost)}"
        yield from _of_circuits(hall, state, by_device)
    for rack in hall.racks:
        if rack.power_kw is not None:
            there = hall.in_rack[rack.name]
            of_all = sum(device.power_w or 0.0 for device in there)
            draws = {device.name: device.power_w or 0.0 for device in there if device.kind == "gpu"}
            yield from _shared(hall, draws, of_all, rack.power_kw * 1000, f"rack {rack.name}")


def _of_circuits(
    hall: Hall, state: power.Load, by_device: Mapping[str, list[power.Cord]]
) -> Iterator[tuple[str, float, str]]:
    draws: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for name, its in by_device.items():
        alive = [cord for cord in its if cord.feed != state.lost]
        device = hall.device[name]
        for cord in alive:
            if device.kind == "gpu":
                part = power.supplied_w(device, len(alive)) / len(alive)
                key = cord.circuit, cord.phase
                draws[key][name] = draws[key].get(name, 0.0) + part
    for (circuit, phase), its_draws in draws.items():
        most = hall.circuit[circuit].capacity_w / hall.circuit[circuit].phases
        because = f"circuit {circuit}{' ' + phase if phase else ''} {power.when(state.lost)}"
        yield from _shared(hall, its_draws, state.by_phase[circuit, phase], most, because)


def _shared(
    hall: Hall, draws: Mapping[str, float], of_all: float, most: float, because: str
) -> Iterator[tuple[str, float, str]]:
    of_gpus = sum(draws.values())
    if of_all > most + 0.5 and of_gpus > 0:
        share = max(0.0, (most - (of_all - of_gpus)) / of_gpus)
        yield from ((name, share * (hall.device[name].power_w or 0.0), because) for name in draws)


def power_on(hall: Hall) -> tuple[Step, ...]:
    """One node of each rack at a time, from below; racks go together. GPU nodes begin when the others are all on."""
    waves: dict[int, list[str]] = defaultdict(list)
    for gpu in (False, True):
        begin = len(waves)
        for devices in hall.in_rack.values():
            its = [device for device in devices if not device.is_switch and (device.kind == "gpu") is gpu]
            for n, device in enumerate(its):
                waves[begin + n].append(device.name)
    return tuple(Step(n * hall.power_on_gap_s, tuple(nodes)) for n, nodes in waves.items())


def resume_rate(hall: Hall) -> Mapping[str, int]:
    """Slurm's ResumeRate, nodes a minute, that keeps the declared gap in each rack. Slurm has one for the cluster and
    knows no racks: the least is always safe.
    """
    with_nodes = [name for name, devices in hall.in_rack.items() if any(each.kind == "gpu" for each in devices)]
    return dict.fromkeys(with_nodes, max(1, 60 // max(1, hall.power_on_gap_s)))
