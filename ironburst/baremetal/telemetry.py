"""Temperatures and power of the nodes, as Prometheus' text, beside what the hall allows. Pure.

One sample each: a node's power is its chassis' own figure (EnvironmentMetrics, or the first PowerControl), or the sum
of what its power supplies draw. What a BMC doesn't say has no sample, for 0 W would be a lie.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ironburst.baremetal.documents import Documents
from ironburst.baremetal.hardware import PowerSupply
from ironburst.baremetal.power import power
from ironburst.baremetal.said import dicts, number, text

_INLETS = (
    re.compile(r"ambient|front panel", re.IGNORECASE),
    re.compile(r"inlet|intake", re.IGNORECASE),
)
"""names of the sensor of the air that comes in, the surest first: DGX H100 has inlets of its boards, too"""


@dataclass(frozen=True)
class Telemetry:
    """One look at a node: power in W, temperatures in degrees Celsius by sensor. None: not said."""

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


def readings(documents: Documents) -> Telemetry:
    """What was read by makers.TELEMETRY."""
    temperatures = list(_temperatures(documents))
    celsius: dict[str, float] = {}
    for name, _, reading in temperatures:
        again = sum(re.fullmatch(rf"{re.escape(name)}( \(\d+\))?", known) is not None for known in celsius)
        celsius[f"{name} ({again + 1})" if again else name] = reading
    supplies, _, _ = power(documents)
    return Telemetry(_power(documents), _inlet(temperatures), celsius, supplies)


def _inlet(temperatures: list[tuple[str, str | None, float]]) -> float | None:
    """By name first: Dell's and Supermicro's inlet has the context SystemBoard, and all 120 sensors of a DGX H100 have
    Intake.
    """
    for names in _INLETS:
        if found := [celsius for name, _, celsius in temperatures if names.search(name)]:
            return max(found)
    return max((celsius for _, context, celsius in temperatures if context == "Intake"), default=None)


def _temperatures(documents: Documents) -> Iterator[tuple[str, str | None, float]]:
    """(sensor, its PhysicalContext, degrees Celsius)."""
    for kind, at, reading in (
        ("thermal", "Temperatures", "ReadingCelsius"),
        ("thermal_metrics", "TemperatureReadingsCelsius", "Reading"),
    ):
        for found in documents.of(kind):
            for body in dicts(found.body, at):
                yield from _temperature(body, reading)
    for found in documents.of("sensor"):
        if text(found.body, "ReadingUnits") == "Cel":
            yield from _temperature(found.body, "Reading")
    for found in documents.of("thermal_metrics"):
        celsius = number(found.body, "TemperatureSummaryCelsius/Intake/Reading")
        if celsius is not None:
            yield "Intake", "Intake", celsius


def _temperature(body: dict[str, Any], at: str) -> Iterator[tuple[str, str | None, float]]:
    celsius = number(body, at)
    name = text(body, "Name", "DeviceName", "MemberId", "DataSourceUri")
    if celsius is not None and name:
        yield name, text(body, "PhysicalContext"), celsius


def _power(documents: Documents) -> float | None:
    """A node with several chassis says the whole in one of them."""
    whole = [number(each.body, "PowerWatts/Reading") for each in documents.of("environment")]
    for each in documents.of("power"):
        # 0 W is what Supermicro's X10 says that doesn't measure it
        whole += [number(body, "PowerConsumedWatts") or None for body in dicts(each.body, "PowerControl")[:1]]
    for each in documents.of("sensor"):
        if text(each.body, "ReadingUnits") == "W" and text(each.body, "PhysicalContext") in ("Chassis", "SystemBoard"):
            whole.append(number(each.body, "Reading"))
    said = [watts for watts in whole if watts is not None]
    if said:
        return max(said)
    inputs = [
        watts
        for each in documents.of("power")
        for body in dicts(each.body, "PowerSupplies")
        if (watts := number(body, "PowerInputWatts", "LastPowerOutputWatts")) is not None
    ]
    inputs += [
        watts
        for each in documents.of("psu_metrics")
        if (watts := number(each.body, "InputPowerWatts/Reading")) is not None
    ]
    return sum(inputs) if inputs else None


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
    samples: dict[str, list[str]] = defaultdict(list)

    def add(name: str, value: float | None, **labels: str | None) -> None:
        if value is not None:
            samples[name].append(f"{name}{_labels(labels)} {value:g}")

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
    samples["ironburst_telemetry_timestamp_seconds"] = [f"ironburst_telemetry_timestamp_seconds {now:.3f}"]
    return "".join(_family(name, samples[name]) for name in _HELP if samples[name])


def _family(name: str, lines: Iterable[str]) -> str:
    return f"# HELP {name} {_HELP[name]}\n# TYPE {name} gauge\n" + "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str | None]) -> str:
    said = [f'{name}="{_escaped(value)}"' for name, value in labels.items() if value is not None]
    return "{" + ",".join(said) + "}" if said else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
