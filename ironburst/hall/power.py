"""Power of a hall: where each supply is plugged in, what every circuit carries with both feeds and with one lost."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ironburst.hall.model import Circuit, Device, Hall, Pdu, Rack, Violation

FEEDS = ("A", "B")
IMBALANCE = 0.2
"""of a phase's capacity, by which the loads of a circuit's phases may differ: our own figure"""


@dataclass(frozen=True)
class Cord:
    """A power supply of a device, counted from 1, and where it is plugged in. `phase` is empty on a single one."""

    device: str
    supply: int
    pdu: str
    circuit: str
    feed: str
    phase: str


@dataclass(frozen=True)
class Load:
    """Watts on each circuit's phases, in one state of the feeds (`lost`: the feed without power, empty: none)."""

    lost: str
    by_phase: Mapping[tuple[str, str], float]
    down: tuple[str, ...]
    """devices that have no power at all"""

    def of(self, circuit: Circuit) -> float:
        """Of all its phases."""
        return sum(self.by_phase.get((circuit.name, phase), 0.0) for phase in circuit.phase_names)


@functools.lru_cache(maxsize=8)
def cords(hall: Hall) -> tuple[Cord, ...]:
    """Every power supply's place: as declared, else by turns on both feeds, on the circuit and phase with least so far.
    What has no PDU that is known has no cord.
    """
    so_far: dict[tuple[str, str], float] = defaultdict(float)
    return tuple(cord for rack in hall.racks for cord in _of_rack(hall, rack, so_far))


def _of_rack(hall: Hall, rack: Rack, so_far: dict[tuple[str, str], float]) -> Iterator[Cord]:
    pdus = {pdu.name: pdu for pdu in rack.pdus if pdu.circuit in hall.circuit}
    sides = [[pdu for pdu in pdus.values() if hall.circuit[pdu.circuit].feed == feed] for feed in FEEDS]
    sides = [side for side in sides if side]
    if not sides:
        return
    for device in hall.in_rack[rack.name]:
        each_w = (device.power_w or 0.0) / (device.psus or 1)
        for n in range(device.psus or 0):
            if n < len(device.cords):
                name, _, phase = device.cords[n].partition("/")
                pdu = pdus.get(name)
            else:
                pdu, phase = None if device.cords else _emptiest(hall, sides[n % len(sides)], so_far), ""
            if pdu is not None:
                circuit = hall.circuit[pdu.circuit]
                phase = phase if phase in circuit.phase_names else _least(circuit, so_far)
                so_far[circuit.name, phase] += each_w
                yield Cord(device.name, n + 1, pdu.name, circuit.name, circuit.feed, phase)


def _emptiest(hall: Hall, side: Sequence[Pdu], so_far: Mapping[tuple[str, str], float]) -> Pdu:
    def used(pdu: Pdu) -> float:
        circuit = hall.circuit[pdu.circuit]
        return sum(so_far.get((circuit.name, phase), 0.0) for phase in circuit.phase_names) / circuit.capacity_w

    return min(side, key=used)


def _least(circuit: Circuit, so_far: Mapping[tuple[str, str], float]) -> str:
    return min(circuit.phase_names, key=lambda phase: so_far.get((circuit.name, phase), 0.0))


def supplied_w(device: Device, alive: int) -> float:
    """What a device draws with that many supplies alive: no more than they give."""
    most = alive * device.psu_w if device.psu_w is not None else float("inf")
    return min(device.power_w or 0.0, most)


def load(hall: Hall, plugged: Iterable[Cord], lost: str = "") -> Load:
    """What each phase carries while feed `lost` is dead; a device draws the same from each of its live supplies."""
    by_device: dict[str, list[Cord]] = defaultdict(list)
    for cord in plugged:
        by_device[cord.device].append(cord)
    by_phase: dict[tuple[str, str], float] = defaultdict(float)
    down = []
    for name, its in by_device.items():
        alive = [cord for cord in its if cord.feed != lost]
        if not alive:
            down.append(name)
            continue
        each_w = supplied_w(hall.device[name], len(alive)) / len(alive)
        for cord in alive:
            by_phase[cord.circuit, cord.phase] += each_w
    return Load(lost, by_phase, tuple(down))


@functools.lru_cache(maxsize=8)
def states(hall: Hall) -> tuple[Load, ...]:
    """In normal operation, then with each of the hall's feeds lost."""
    its = cords(hall)
    there = sorted({circuit.feed for circuit in hall.circuits})
    return tuple(load(hall, its, lost) for lost in ("", *(there if len(there) > 1 else ())))


def when(lost: str) -> str:
    """A state in words."""
    return f"with feed {lost} lost" if lost else "in normal operation"


def circuits(hall: Hall) -> Iterator[Violation]:
    """HW-004: 80 % of every breaker carries what hangs on it, also with one feed lost; so does each of its phases."""
    of_states = states(hall)
    for circuit in hall.circuits:
        for state in of_states:
            watts = state.of(circuit)
            phase = max(circuit.phase_names, key=lambda each: state.by_phase.get((circuit.name, each), 0.0))
            of_phase = state.by_phase.get((circuit.name, phase), 0.0)
            most = circuit.capacity_w / circuit.phases
            if watts > circuit.capacity_w + 0.5:
                yield _overload(circuit, "", watts, circuit.capacity_w, state.lost)
            elif of_phase > most + 0.5:
                yield _overload(circuit, phase, of_phase, most, state.lost)


def _overload(circuit: Circuit, phase: str, watts: float, most: float, lost: str) -> Violation:
    what = f"circuit {circuit.name}" + (f" {phase}" if phase else "")
    text = f"carries {watts / 1000:.1f} kW {when(lost)} and may carry {most / 1000:.1f} kW"
    text += f" (80 % of {circuit.breaker_a:g} A)"
    numbers = {"load_w": round(watts), "limit_w": round(most)}
    ways = ["move a node to another circuit", "take a larger breaker", "cap the nodes' power (`caps` of the plan)"]
    ways = ["plug supplies into another phase", ways[0]] if phase else ways
    return Violation("HW-004", circuit.where, what, text, numbers, tuple(ways))


def balance(hall: Hall) -> Iterator[Violation]:
    """HAL-002: the phases of a circuit carry about the same."""
    normal = states(hall)[0]
    for circuit in hall.circuits:
        if circuit.phases == 1:
            continue
        loads = {phase: normal.by_phase.get((circuit.name, phase), 0.0) for phase in circuit.phase_names}
        high, low = max(loads, key=lambda each: loads[each]), min(loads, key=lambda each: loads[each])
        apart, most = loads[high] - loads[low], circuit.capacity_w / 3
        if apart > IMBALANCE * most:
            text = (
                f"carries {loads[high] / 1000:.1f} kW on {high} and {loads[low] / 1000:.1f} kW on {low}, "
                f"which differ by {apart / most:.0%} of a phase's {most / 1000:.1f} kW (at most {IMBALANCE:.0%})"
            )
            numbers = {f"{phase.lower()}_w": round(watts) for phase, watts in loads.items()}
            ways = (f"plug a supply from {high} into {low}",)
            yield Violation("HAL-002", circuit.where, f"circuit {circuit.name}", text, numbers, ways, "warning")


def supplies(hall: Hall) -> Iterator[Violation]:
    """HW-003: a node's supplies carry it with the planned redundancy, and so do those of a single feed."""
    by_device: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for cord in cords(hall):
        by_device[cord.device][cord.feed] += 1
    for device in hall.devices:
        if device.power_w is None or device.psu_w is None or device.psus is None:
            continue
        needed = device.psus_needed or device.psus
        gives = needed * device.psu_w
        if device.power_w > gives:
            text = (
                f"draws {device.power_w:g} W and {needed} of its {device.psus} supplies give {gives:g} W: "
                "there is less redundancy than stated"
            )
            ways = ("take larger supplies", "declare the power that it is capped to (chassis.power_w)")
            yield Violation(
                "HW-003", device.where, device.name, text, {"load_w": device.power_w, "limit_w": gives}, ways
            )
        yield from _one_feed_alone(device, by_device[device.name])


def _one_feed_alone(device: Device, by_feed: Mapping[str, int]) -> Iterator[Violation]:
    if len(by_feed) < 2 or device.power_w is None or device.psu_w is None:
        return
    feed = min(by_feed, key=lambda each: by_feed[each])
    gives = by_feed[feed] * device.psu_w
    other = next(each for each in by_feed if each != feed)
    if device.power_w > gives:
        text = f"draws {device.power_w:g} W; with feed {other} lost {by_feed[feed]} supplies give {gives:g} W"
        ways = (f"cap it to {gives:g} W (`caps` of the plan)", f"let it throttle while feed {other} is lost")
        numbers = {"load_w": device.power_w, "limit_w": gives}
        yield Violation("HW-003", device.where, device.name, text, numbers, ways, "warning")


def feeds(hall: Hall) -> Iterator[Violation]:
    """HAL-003: what has two supplies or more has them on both feeds; what has one goes off with its feed."""
    if len({circuit.feed for circuit in hall.circuits}) < 2:
        return
    by_device: dict[str, set[str]] = defaultdict(set)
    for cord in cords(hall):
        by_device[cord.device].add(cord.feed)
    for name, its in by_device.items():
        device = hall.device[name]
        if len(its) == 1:
            (feed,) = its
            several = (device.psus or 1) > 1
            text = f"has all {device.psus} supplies on feed {feed}" if several else f"has one supply, on feed {feed}"
            ways = ("plug half of them into the other feed",) if several else ("give it a second supply",)
            text += " and goes off with it"
            severity = "error" if several else "warning"
            yield Violation("HAL-003", device.where, name, text, {"supplies": device.psus or 1}, ways, severity)


def plugs(hall: Hall) -> Iterator[Violation]:
    """HAL-004: cords go to PDUs of the rack and phases that they have, one a supply; outlets suffice."""
    for rack in hall.racks:
        for pdu in rack.pdus:
            if pdu.circuit not in hall.circuit:
                text = f"is on circuit {pdu.circuit}, which isn't declared"
                ways = (f"declare it under circuits (there: {', '.join(hall.circuit) or 'none'})",)
                yield Violation("HAL-004", pdu.where, f"PDU {pdu.name}", text, {}, ways)
        its = {pdu.name: pdu for pdu in rack.pdus}
        for device in hall.in_rack[rack.name]:
            yield from _cords_of(hall, rack, device, its)
    used: dict[str, int] = defaultdict(int)
    for cord in cords(hall):
        used[cord.pdu] += 1
    for _, pdu in hall.pdus:
        if pdu.outlets is not None and used[pdu.name] > pdu.outlets:
            text = f"has {pdu.outlets} outlets for {used[pdu.name]} cords"
            numbers = {"cords": used[pdu.name], "outlets": pdu.outlets}
            yield Violation("HAL-004", pdu.where, f"PDU {pdu.name}", text, numbers, ("add a PDU", "move a node"))


def _cords_of(hall: Hall, rack: Rack, device: Device, pdus: Mapping[str, Pdu]) -> Iterator[Violation]:
    if pdus and device.psus == 0:
        text = f"has no supply of its own (a busbar's?), so its {device.power_w or 0:g} W are on no circuit here"
        own = ("declare chassis.psus, the supplies of the rack's shelf that are its own", "reckon with it yourself")
        yield Violation("HAL-004", device.where, device.name, text, {}, own, "warning")
    if device.cords and device.psus is not None and len(device.cords) != device.psus:
        text = f"has {device.psus} supplies and {len(device.cords)} cords"
        numbers = {"cords": len(device.cords), "supplies": device.psus}
        yield Violation("HAL-004", device.where, device.name, text, numbers, ("give one cord a supply",))
    for cord in device.cords:
        name, _, phase = cord.partition("/")
        if name not in pdus:
            text = f"is plugged into {name}, which is no PDU of rack {rack.name}"
            ways = (f"take one of {', '.join(pdus)}" if pdus else f"declare PDUs of {rack.name}",)
            yield Violation("HAL-004", device.where, device.name, text, {}, ways)
            return
        circuit = hall.circuit.get(pdus[name].circuit)
        if circuit and phase and phase not in circuit.phase_names:
            text = f"is plugged into {cord}, and circuit {circuit.name} has one phase"
            yield Violation("HAL-004", device.where, device.name, text, {}, (f"write {name}",))
            return
