"""Power supplies, and whether one may fail: from PowerSubsystem, or from the older Power."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ironburst.baremetal import makers
from ironburst.baremetal.documents import Documents
from ironburst.baremetal.hardware import PowerSupply
from ironburst.baremetal.said import dicts, number, text, whole


def power(documents: Documents) -> tuple[tuple[PowerSupply, ...], int | None, bool | None]:
    """(supplies that are plugged in, how many carry the load, whether one may fail now), by the BMC's word; None: not
    said.
    """
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
    if len(supplies) == 1 or any(text(body, *makers.REDUNDANCY_KINDS) == "NotRedundant" for body in groups):
        return supplies, None, False
    carriers = [(carry, working(_members(body, supplies))) for body in groups if (carry := _carry(body)) is not None]
    if not carriers:
        return supplies, None, None
    return supplies, sum(carry for carry, _ in carriers), all(alive > carry for carry, alive in carriers)


def working(supplies: Iterable[PowerSupply]) -> int:
    """Number of supplies that give power, as far as the BMC reports it."""
    return sum(each.has_input is not False and each.health != "Critical" for each in supplies)


def _carry(group: dict[str, Any]) -> int | None:
    """How many of a group carry the load. By the DMTF the number is how many keep it fault tolerant, as HPE says it (2
    of 2); others say how many carry it.
    """
    needed, most = whole(group, *makers.NEEDED), whole(group, *makers.GROUP_SIZES)
    return None if not needed else max(1, needed - 1) if needed == most else needed


def _members(group: dict[str, Any], supplies: tuple[PowerSupply, ...]) -> tuple[PowerSupply, ...]:
    """Those of a group, which are all where it names none that are known: HPE's GPUs have supplies of their own."""
    links = [text(each, "@odata.id") or "" for at in makers.GROUP_MEMBERS for each in dicts(group, at)]
    ids = {link.rsplit("/", 1)[-1] for link in links}
    return tuple(each for each in supplies if each.id in ids) or supplies


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
