"""Power supplies, and whether one may fail: from PowerSubsystem, or from the older Power."""

from __future__ import annotations

from typing import Any

from ironburst.baremetal import makers
from ironburst.baremetal.documents import Documents
from ironburst.baremetal.hardware import PowerSupply
from ironburst.baremetal.said import dicts, number, text, whole


def power(documents: Documents) -> tuple[tuple[PowerSupply, ...], int | None, bool | None]:
    """(supplies that are plugged in, how many carry the load, whether one may fail now); None: not said."""
    bodies = [each.body for each in documents.of("power_supply")]
    groups = [body for each in documents.of("power_subsystem") for body in dicts(each.body, "PowerSupplyRedundancy")]
    older = [body for each in documents.of("power") for body in dicts(each.body, "PowerSupplies")]
    if bodies:
        bodies = [_with_input(body, older) for body in bodies]
    else:
        bodies = older
        groups = [body for each in documents.of("power") for body in dicts(each.body, "Redundancy")]
    there = [body for body in bodies if text(body, "Status/State") != makers.ABSENT]
    supplies = tuple(_supply(body, n) for n, body in enumerate(there, 1))
    if not supplies:
        return (), None, None
    needed = next((value for body in groups if (value := whole(body, *makers.NEEDED))), None)
    kinds = [text(body, *makers.REDUNDANCY_KINDS) for body in groups]
    return supplies, needed, redundant(supplies, needed, kinds)


def redundant(supplies: tuple[PowerSupply, ...], needed: int | None, kinds: list[str | None]) -> bool | None:
    """Whether one of the supplies may fail now; None: not said. One alone may not."""
    working = sum(each.has_input is not False and each.health != "Critical" for each in supplies)
    if len(supplies) == 1 or "NotRedundant" in kinds:
        return False
    return None if needed is None else working > needed


def _supply(body: dict[str, Any], n: int) -> PowerSupply:
    return PowerSupply(
        text(body, *makers.NAMES) or str(n),
        number(body, "PowerCapacityWatts", "InputRanges/OutputWattage"),
        _has_input(body),
        text(body, "Status/Health"),
    )


def _with_input(body: dict[str, Any], older: list[dict[str, Any]]) -> dict[str, Any]:
    """Dell's and HPE's newer documents of a supply don't say its input; their Power does, of the same serial number."""
    serial = text(body, "SerialNumber")
    same = [each for each in older if serial and text(each, "SerialNumber") == serial]
    return {"LineInputVoltage": same[0].get("LineInputVoltage"), **body} if len(same) == 1 else body


def _has_input(body: dict[str, Any]) -> bool | None:
    said = text(body, "LineInputStatus")
    if said in makers.LINE_INPUT:
        return makers.LINE_INPUT[said]
    volts = number(body, "LineInputVoltage")
    if volts is not None:
        return volts > 0
    return False if text(body, "Status/State") in makers.LOST else None
