"""What a rack and the room can hold: weight, depth, power, heat, air."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ironburst.hall.model import BTU_H_PER_W, Device, Hall, Rack, Violation


@dataclass(frozen=True)
class RackLimit:
    """One total of a rack that has a limit. `of` gives a device's part, `factor` brings it into the limit's unit."""

    rule: str
    key: str
    of: Callable[[Device], float | None]
    factor: float
    unit: str
    what: str
    declare: str
    """key by which an unknown part is declared"""
    ways_out: tuple[str, ...]

    def limit(self, rack: Rack) -> float | None:
        """Of this rack; None: there is none."""
        value: float | None = getattr(rack, self.key)
        return value


LIMITS = (
    RackLimit(
        "HW-004",
        "power_kw",
        lambda device: device.power_w,
        1e-3,
        "kW",
        "power",
        "power_w",
        ("move a node to another rack", "cap the nodes' power (`caps` of the plan)"),
    ),
    RackLimit(
        "HW-005",
        "cooling_kw",
        lambda device: device.heat,
        1e-3 / BTU_H_PER_W,
        "kW",
        "heat",
        "power_w",
        ("move a node to another rack", "add cooling"),
    ),
    RackLimit(
        "HW-006",
        "max_weight_kg",
        lambda device: device.weight_kg,
        1,
        "kg",
        "weight",
        "weight_kg",
        ("move a node to another rack", "take a rack that carries more"),
    ),
    RackLimit(
        "HW-005",
        "airflow_cfm",
        lambda device: device.airflow_cfm,
        1,
        "CFM",
        "airflow",
        "airflow_cfm",
        ("move a node to another rack", "open more perforated tiles"),
    ),
)
HEAT = next(limit for limit in LIMITS if limit.what == "heat")


def total(limit: RackLimit, devices: Sequence[Device]) -> float:
    """Of all whose part is known, in the limit's unit."""
    return sum(limit.of(device) or 0.0 for device in devices) * limit.factor


def totals(hall: Hall) -> Iterator[Violation]:
    """HW-004, HW-005, HW-006: no rack is over its limits."""
    for rack in hall.racks:
        for limit in LIMITS:
            most, there = limit.limit(rack), total(limit, hall.in_rack[rack.name])
            if most is not None and there > most + 1e-6:
                yield _over(limit, f"rack {rack.name}", (*rack.where, limit.key), there, most)


def _over(limit: RackLimit, subject: str, where: tuple[str | int, ...], there: float, most: float) -> Violation:
    text = f"has {there:.1f} {limit.unit} of {limit.what} and may have {most:g} {limit.unit}"
    if limit.what == "heat":
        text += f" ({there * 1000 * BTU_H_PER_W:.0f} of {most * 1000 * BTU_H_PER_W:.0f} BTU/h)"
    numbers = {"total": round(there, 3), "limit": most}
    return Violation(limit.rule, where, subject, text, numbers, limit.ways_out)


def room(hall: Hall) -> Iterator[Violation]:
    """HW-005: the room's cooling carries the heat of everything in it."""
    there = total(HEAT, hall.devices)
    if hall.cooling_kw is not None and there > hall.cooling_kw + 1e-6:
        yield _over(HEAT, f"hall {hall.name}", ("cooling_kw",), there, hall.cooling_kw)


def unknown(hall: Hall) -> Iterator[Violation]:
    """HAL-001: what a declared limit or circuit is compared with is known of every device; nothing is guessed."""
    for rack in hall.racks:
        keys = {limit.declare for limit in LIMITS if limit.limit(rack) is not None}
        keys |= {"power_w"} if hall.cooling_kw is not None else set()
        keys |= {"power_w", "psus"} if rack.pdus else set()
        keys |= {"depth_mm"} if rack.depth_mm is not None else set()
        for device in hall.in_rack[rack.name]:
            absent = sorted(key for key in keys if getattr(device, key) is None and not _told(device, key))
            if absent:
                source = f"platform {device.platform} in the catalogue" if device.platform else "it"
                text = (
                    f"stands in {rack.name}, whose limits need its {' and '.join(absent)}, which {source} doesn't say"
                )
                ways = tuple(f"declare chassis.{key}" for key in absent)
                yield Violation("HAL-001", device.where, device.name, text, {}, (" and ".join(ways),))

    if hall.cooling_kw is not None:
        for device in hall.devices:
            if device.rack not in hall.in_rack and device.heat is None:
                text = f"stands in {hall.name}, whose cooling_kw needs its power, which nobody says"
                yield Violation("HAL-001", device.where, device.name, text, {}, ("declare chassis.power_w",))


def _told(device: Device, key: str) -> bool:
    """Heat alone is known where power isn't, air isn't asked of what is cooled by liquid."""
    return key == "airflow_cfm" and device.cooling == "liquid"


def depth(hall: Hall) -> Iterator[Violation]:
    """HW-006: nothing is deeper than its rack."""
    for rack in hall.racks:
        for device in hall.in_rack[rack.name]:
            if rack.depth_mm is not None and (device.depth_mm or 0.0) > rack.depth_mm:
                text = f"is {device.depth_mm:g} mm deep and rack {rack.name} takes {rack.depth_mm:g} mm"
                numbers = {"depth_mm": device.depth_mm or 0.0, "limit_mm": rack.depth_mm}
                yield Violation("HW-006", device.where, device.name, text, numbers, ("take a deeper rack",))


def cooling_kind(hall: Hall) -> Iterator[Violation]:
    """HAL-005: what needs liquid stands in a rack that has it, what needs air in one with air."""
    for rack in hall.racks:
        for device in hall.in_rack[rack.name]:
            if rack.cooling and device.cooling and rack.cooling != device.cooling:
                text = f"is cooled by {device.cooling} and rack {rack.name} by {rack.cooling}"
                yield Violation("HAL-005", device.where, device.name, text, {}, ("move it to a rack that fits",))


def inlet(hall: Hall) -> Iterator[Violation]:
    """HW-006: the air at the racks is within what each device takes; a node of whom that isn't known: warning, one for
    all of its kind.
    """
    if hall.inlet_c is None:
        return
    unknown = [device for device in hall.devices if device.platform and device.inlet_max_c is None]
    for device in {each.where: each for each in reversed(unknown)}.values():
        text = f"is a {device.platform}, and how warm its air may be isn't known: {hall.inlet_c:g} °C isn't judged"
        yield Violation(
            "HW-006", device.where, device.name, text, {}, ("write chassis: {inlet_max_c: ...}",), "warning"
        )
    for device in hall.devices:
        low, high = device.inlet_min_c, device.inlet_max_c
        if (low is not None and hall.inlet_c < low) or (high is not None and hall.inlet_c > high):
            takes = [f"from {low:g}" if low is not None else "", f"up to {high:g}" if high is not None else ""]
            text = f"takes air {' '.join(filter(None, takes))} °C and the hall's is {hall.inlet_c:g} °C"
            known = {"inlet_c": hall.inlet_c, "min_c": low, "max_c": high}
            numbers = {key: value for key, value in known.items() if value is not None}
            ways = ("change the set point of the cooling",)
            yield Violation("HW-006", device.where, device.name, text, numbers, ways)
