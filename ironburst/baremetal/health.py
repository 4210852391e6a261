"""What a BMC says is broken: every part of every document that it reads, and whole machines. Pure.

Health is a part's own, HealthRollup that of all that is in it: a rollup counts where no part that was read explains it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from ironburst.baremetal import makers
from ironburst.baremetal.documents import Documents, Found
from ironburst.baremetal.hardware import Hardware, Ill
from ironburst.baremetal.mismatch import Mismatch
from ironburst.baremetal.said import dicts, has, number, text

_CRITICAL = "critical"
_FIELDS = {
    "system_health": ("system", "chassis"),
    "memory_health": ("dimm",),
    "drive_health": ("drive", "storage", "storage_controller", "simple_storage"),
    "network_health": ("adapter", "port", "ethernet"),
    "power_health": ("power", "power_subsystem", "power_supply"),
    "cooling_health": ("thermal", "thermal_subsystem", "thermal_metrics", "fan"),
}
FIELD_OF = {kind: field for field, kinds in _FIELDS.items() for kind in kinds}
"""by the kind of document, but for processors; what isn't here is part_health"""
_WHOLE = frozenset(("system", "chassis", "storage", "power", "power_subsystem", "thermal", "thermal_subsystem"))
"""kinds whose health may be that of what is in them"""
LISTS = (
    *("Fans", "Temperatures", "PowerSupplies", "Voltages", "PowerControl", "Redundancy", "StorageControllers"),
    *("Devices", "FanRedundancy", "PowerSupplyRedundancy", "Slots"),
)
"""parts inside a document"""


def ill(documents: Documents, without_input: Collection[str]) -> Iterator[Ill]:
    """All that is Critical or out of order; `without_input`: power supplies whose lack is judged as that."""
    for found in documents.found:
        field = _field(found)
        yield from _of(found.kind, found.body, field, _name(found.body, found.path), without_input)
        for key in LISTS:
            for n, body in enumerate(dicts(found.body, key)):
                yield from _of("", body, field, _name(body, f"{key} {n}"), without_input)


def _of(kind: str, body: dict[str, Any], field: str, name: str, without_input: Collection[str]) -> Iterator[Ill]:
    state = text(body, "Status/State")
    if state == makers.ABSENT:
        return
    if field == "power_health" and name in without_input:
        field = "psu_input"
    if field == "gpu_health" and state in makers.LOST:
        field = "gpu_count"  # it isn't counted, and that is judged where a count is declared
    own, all_in_it = (_critical(body, f"Status/{key}") for key in ("Health", "HealthRollup"))
    if own or (all_in_it and kind not in _WHOLE and not text(body, "Status/Health")):
        yield Ill(field, name, "is Critical")
    elif all_in_it:
        yield Ill(field, name, "is Critical as a whole", rollup=True)
    elif kind == "drive" and has(body, "FailurePredicted", True):
        yield Ill(field, name, "predicts its failure")
    elif kind == "dimm" and state in makers.LOST and any(number(body, key) for key, _ in makers.MEMORY_SIZES):
        yield Ill(field, name, f"is {state}")


def _critical(body: dict[str, Any], at: str) -> bool:
    return (text(body, at) or "").lower() == _CRITICAL


def _field(found: Found) -> str:
    if found.kind == "processor":
        return "gpu_health" if text(found.body, "ProcessorType") == "GPU" else "cpu_health"
    if found.kind == "device" and text(found.body, "DeviceType") in makers.GPU_DEVICES:
        return "gpu_health"
    return FIELD_OF.get(found.kind, "part_health")


def _name(body: dict[str, Any], otherwise: str) -> str:
    return text(body, *makers.NAMES) or otherwise.rsplit("/", 1)[-1]


def check(observed: Hardware, *, gpus_are_counted: bool) -> Iterable[Mismatch]:
    """One mismatch a kind of part, with all that are broken. `gpus_are_counted`: one that is off the bus is missed by
    its count.
    """
    by_field: dict[str, dict[str, str]] = {}
    for each in observed.ill:
        field = each.field
        if field == "gpu_count" and not gpus_are_counted:
            field = "gpu_health"
        if not each.rollup and field not in ("gpu_count", "psu_input"):
            by_field.setdefault(field, {})[each.name] = each.says
    for field, parts in by_field.items():
        listed = ", ".join(f"{name} {says}" for name, says in parts.items())
        yield Mismatch(field, listed, f"by its BMC {listed}")
    wholes = {each.name for each in observed.ill if each.rollup}
    if wholes and all(each.rollup for each in observed.ill):
        listed = ", ".join(sorted(wholes))
        sentence = f"by its BMC {listed} is Critical as a whole, and no part that was read says why: see its log"
        yield Mismatch("system_health", listed, sentence)
