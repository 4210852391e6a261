"""What a node's sensors read: temperatures and powers, of Thermal, Sensors, ThermalMetrics and Power. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ironburst.baremetal import makers
from ironburst.baremetal.documents import Documents
from ironburst.baremetal.hardware import Sensor
from ironburst.baremetal.said import dicts, number, text


def readings(documents: Documents) -> list[Sensor]:
    """Each reading once: a sensor that several kinds of documents report is the first one's."""
    found: list[Sensor] = []
    for source in (_thermal, _sensors, _metrics, _power_control):
        said = {_key(each) for each in found}
        found += [each for each in source(documents) if _key(each) not in said]
    return found


def inlet_c(found: list[Sensor]) -> float | None:
    """The air that comes in, in degrees Celsius. By name first: Dell's and Supermicro's inlet has the context
    SystemBoard, and all 120 temperatures of a DGX H100, and all of Gigabyte's, have Intake: where that shows nothing
    apart, none is the inlet. GPUs, supplies and boards have inlets of their own, which are warmer.
    """
    of_node = [
        each
        for each in found
        if each.unit == "Cel" and each.context not in makers.PARTS and not makers.OF_A_PART.search(each.name)
    ]
    for names in makers.INLETS:
        if celsius := [each.reading for each in of_node if names.search(each.name)]:
            return max(celsius)
    intakes = [each.reading for each in of_node if each.context == "Intake"]
    return max(intakes) if len(intakes) == 1 or 0 < len(intakes) < len(of_node) else None


def power_w(documents: Documents, found: list[Sensor]) -> float | None:
    """What the node draws, in W. A node with several chassis says the whole in one of them; else it is the sum of what
    its power supplies draw (or give, where they say no more).
    """
    whole = [number(each.body, "PowerWatts/Reading") for each in documents.of("environment")]
    for each in documents.of("power"):
        # 0 W is what Supermicro's X10 says that doesn't measure it
        whole += [number(body, "PowerConsumedWatts") or None for body in dicts(each.body, "PowerControl")[:1]]
    for sensor in found:
        if sensor.unit == "W" and (sensor.context in makers.WHOLE or makers.WHOLE_POWER.search(sensor.name)):
            whole.append(sensor.reading)
    said = [watts for watts in whole if watts is not None]
    if said:
        return max(said)
    supplies = [
        number(body, "PowerInputWatts", "LastPowerOutputWatts")
        for each in documents.of("power")
        for body in dicts(each.body, "PowerSupplies")
    ]
    supplies += [number(each.body, *makers.SUPPLY_WATTS) for each in documents.of("psu_metrics")]
    supplies += [number(each.body, "Reading") for each in documents.of("psu_sensor")]
    metered = [watts for watts in supplies if watts is not None]
    return sum(metered) if metered else None


def _key(sensor: Sensor) -> tuple[str, str]:
    """One sensor is PDB_0_Inlet_Temp_0 in a GB200's metrics, and PDB 0 Inlet Temp 0 among its sensors."""
    return re.sub(r"[\W_]", "", sensor.name.lower()), sensor.unit


def _sensor(body: dict[str, Any], at: str, unit: str) -> Iterator[Sensor]:
    """Empty places say 0 and are listed as Absent."""
    reading = number(body, at)
    name = text(body, "Name", "DeviceName", "MemberId", "DataSourceUri", "Id")
    if reading is not None and name and text(body, "Status/State") != makers.ABSENT:
        yield Sensor(name, reading, unit, text(body, "PhysicalContext"))


def _thermal(documents: Documents) -> Iterator[Sensor]:
    for each in documents.of("thermal"):
        for body in dicts(each.body, "Temperatures"):
            yield from _sensor(body, "ReadingCelsius", "Cel")


def _sensors(documents: Documents) -> Iterator[Sensor]:
    for each in documents.of("sensor"):
        unit = text(each.body, "ReadingUnits") or makers.UNITS.get(text(each.body, "ReadingType") or "")
        if unit and unit in makers.UNITS.values():
            yield from _sensor(each.body, "Reading", unit)


def _metrics(documents: Documents) -> Iterator[Sensor]:
    for each in documents.of("thermal_metrics"):
        for body in dicts(each.body, "TemperatureReadingsCelsius"):
            yield from _sensor(body, "Reading", "Cel")
        celsius = number(each.body, "TemperatureSummaryCelsius/Intake/Reading")
        if celsius is not None:
            yield Sensor("Intake", celsius, "Cel", "Intake")


def _power_control(documents: Documents) -> Iterator[Sensor]:
    for each in documents.of("power"):
        for body in dicts(each.body, "PowerControl"):
            yield from _sensor(body, "PowerConsumedWatts", "W")
