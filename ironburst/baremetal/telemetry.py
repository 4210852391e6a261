"""Temperatures and power of the nodes, as Prometheus' text, beside what the hall allows. Pure.

One sample each: a node's power is its chassis' own figure (EnvironmentMetrics, the first PowerControl, or a sensor of
the whole), or the sum of what its power supplies draw. What a BMC doesn't say has no sample, for 0 W would be a lie.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ironburst.baremetal import makers, sensors
from ironburst.baremetal.documents import Documents, Get, Several, one_by_one, read, remembered
from ironburst.baremetal.hardware import PowerSupply
from ironburst.baremetal.power import power
from ironburst.system import exposition


@dataclass(frozen=True)
class Telemetry:
    """One look at a node: power in W, temperatures in degrees Celsius by sensor. None: not reported."""

    power_w: float | None
    inlet_c: float | None
    celsius: Mapping[str, float]
    supplies: tuple[PowerSupply, ...]


@dataclass(frozen=True)
class Place:
    """Where a node stands, and what is allowed there. None: not declared."""

    hall: str
    rack: str | None = None
    max_power_w: float | None = None
    inlet_max_c: float | None = None


@dataclass(frozen=True)
class Look:
    """What came of one BMC: its telemetry or a sentence, and how many seconds it took."""

    said: Telemetry | str
    seconds: float


def look(get: Get, several: Several | None = None) -> Telemetry:
    """One look, in few requests: only where a BMC doesn't say its power at the usual places, others are asked, too.
    Raises documents.Incomplete, and what `get` and `several` raise.
    """
    get = cache(get)
    ask = remembered(several or one_by_one(get))
    found = read(get, links=makers.TELEMETRY, several=ask)
    said = readings(found)
    if said.power_w is not None:
        return said
    more = read(get, links=makers.POWER_ELSEWHERE, several=ask)
    known = {each.path for each in found.found}
    return readings(Documents([*found.found, *(each for each in more.found if each.path not in known)]))


def readings(documents: Documents) -> Telemetry:
    """What these documents say."""
    found = sensors.readings(documents)
    celsius: dict[str, float] = {}
    for each in found:
        if each.unit == "Cel":
            again = sum(re.fullmatch(rf"{re.escape(each.name)}( \(\d+\))?", known) is not None for known in celsius)
            celsius[f"{each.name} ({again + 1})" if again else each.name] = each.reading
    supplies, _, _ = power(documents)
    return Telemetry(sensors.power_w(documents, found), sensors.inlet_c(found), celsius, supplies)


# ---- Prometheus' text

_HELP = {
    "ironburst_bmc_up": "Whether the node's BMC told its readings at this look",
    "ironburst_bmc_seconds": "How long the BMC took",
    "ironburst_node_power_watts": "Power that the node draws, by its BMC",
    "ironburst_node_power_limit_watts": "Most power that its platform draws",
    "ironburst_node_inlet_celsius": "Air at the node's inlet, by its BMC",
    "ironburst_node_inlet_limit_celsius": "Warmest inlet that its platform allows",
    "ironburst_node_celsius": "Temperature of one sensor",
    "ironburst_node_psu_input": "Whether a power supply has input",
    "ironburst_rack_power_watts": "Power of the rack's nodes whose BMCs told it",
    "ironburst_rack_power_unknown_nodes": "Nodes of the rack whose power isn't known at this look",
    "ironburst_rack_power_limit_watts": "Power that the rack may draw, as declared",
    "ironburst_telemetry_timestamp_seconds": "When this look ended",
}


def metrics(
    looks: Mapping[str, Look], places: Mapping[str, Place], rack_limits_w: Mapping[tuple[str, str], float], now: float
) -> str:
    """The samples of one look at all nodes, in Prometheus' text format; `now`: seconds of Unix time.
    `rack_limits_w` by (hall, rack).
    """
    samples: dict[str, list[tuple[Mapping[str, str | None], float]]] = defaultdict(list)

    def add(name: str, value: float | None, **labels: str | None) -> None:
        if value is not None:
            samples[name].append((labels, value))

    racks: dict[tuple[str, str], list[float | None]] = defaultdict(list)
    for node, look in looks.items():
        place = places[node]
        where = {"hall": place.hall, "rack": place.rack, "node": node}
        said = None if isinstance(look.said, str) else look.said
        add("ironburst_bmc_up", float(said is not None), **where)
        add("ironburst_bmc_seconds", round(look.seconds, 3), **where)
        add("ironburst_node_power_limit_watts", place.max_power_w, **where)
        add("ironburst_node_inlet_limit_celsius", place.inlet_max_c, **where)
        if place.rack:
            racks[place.hall, place.rack].append(said.power_w if said else None)
        if said:
            add("ironburst_node_power_watts", said.power_w, **where)
            add("ironburst_node_inlet_celsius", said.inlet_c, **where)
            for sensor, celsius in sorted(said.celsius.items()):
                add("ironburst_node_celsius", celsius, **where, sensor=sensor)
            for supply in said.supplies:
                has_input = None if supply.has_input is None else float(supply.has_input)
                add("ironburst_node_psu_input", has_input, **where, psu=supply.id)
    for (hall, rack), watts in sorted(racks.items()):
        add("ironburst_rack_power_watts", sum(each for each in watts if each is not None), hall=hall, rack=rack)
        add("ironburst_rack_power_unknown_nodes", watts.count(None), hall=hall, rack=rack)
        add("ironburst_rack_power_limit_watts", rack_limits_w.get((hall, rack)), hall=hall, rack=rack)
    add("ironburst_telemetry_timestamp_seconds", round(now, 3))
    return exposition.text(exposition.Family(name, "gauge", told, samples[name]) for name, told in _HELP.items())
