"""What changed on a node since it was accepted. Pure.

What was accepted is kept in the resource's state as plain data; a refresh holds the inventory against it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ironburst.baremetal.hardware import Hardware
from ironburst.baremetal.mismatch import Mismatch

LOST = frozenset({"gpus", "memory_modules", "drives", "power_supplies"})
"""`field` of changes that an `up` doesn't accept by itself"""
_LABELS = {"gpus": "GPU", "memory_modules": "memory module", "drives": "drive", "power_supplies": "power supply"}
_NOT_SAID = {"gpus": "gpus", "memory_modules": "dimms", "drives": "drives", "power_supplies": "power_supplies"}


def accepted(hardware: Hardware) -> dict[str, Any]:
    """What of an inventory is expected to stay: parts by their place, and versions. Readings are not in it."""
    return {
        "serial": hardware.serial,
        "serial_of": hardware.serial_of,
        "gpus": {each.id: _part(each.serial, each.health, each.model) for each in hardware.gpu_devices},
        "memory_modules": {each.id: _part(each.serial, each.health, _size(each.gib)) for each in hardware.dimms},
        "drives": {each.id: _part(each.serial, each.health, each.model) for each in hardware.drives},
        "power_supplies": {each.id: _part(None, each.health, None) for each in hardware.power_supplies},
        "firmware": dict(hardware.firmware)
        | {name: version for name, version in _versions(hardware).items() if version},
    }


def changes(before: Mapping[str, Any], hardware: Hardware) -> list[Mismatch]:
    """What is otherwise than `before`, which is what `accepted` once gave, back from a state that knows no None.
    Nothing is compared with another machine's parts.
    """
    now = accepted(hardware)
    was = before.get("serial")
    same_kind = before.get("serial_of", "system") == now["serial_of"]  # a starting BMC may know the chassis' alone
    if was and now["serial"] and was != now["serial"] and same_kind:
        return [Mismatch("machine", now["serial"], f"another machine: its serial number is {now['serial']}, was {was}")]
    found = [_unsaid_serial(was)] if was and not (now["serial"] and same_kind) else []
    for field in sorted(LOST):
        listed = now[field]
        # A BMC lists no parts while its node is off, or where it doesn't say any more.
        if _NOT_SAID[field] in hardware.not_said or (not listed and hardware.power_state != "On"):
            continue
        found += _parts(field, before.get(field) or {}, listed)
    return [*found, *_firmware(before.get("firmware") or {}, now["firmware"])]


def _unsaid_serial(was: str) -> Mismatch:
    return Mismatch("serial", None, f"the BMC no longer says the serial number, which was {was}")


def _part(serial: str | None, health: str | None, what: str | None) -> dict[str, str]:
    said = {"serial": serial, "health": health, "what": what}
    return {name: value for name, value in said.items() if value}


def _size(gib: int | None) -> str | None:
    return f"{gib} GiB" if gib else None


def _versions(hardware: Hardware) -> dict[str, str | None]:
    return {"BIOS": hardware.bios_version, "BMC": hardware.bmc_version}


def _parts(field: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Mismatch]:
    label = _LABELS[field]
    gone = sorted(set(before) - set(now), key=_natural)
    if gone:
        what = sorted({before[place]["what"] for place in gone if before[place].get("what")})
        shown = f" ({', '.join(what)})" if what else ""
        yield Mismatch(field, len(now), f"{label} {', '.join(gone)}{shown} {'is' if len(gone) == 1 else 'are'} gone")
    for place in sorted(now, key=_natural):
        if place not in before:
            yield Mismatch("added", place, f"{label} {place} is new")
            continue
        was, has = before[place], now[place]
        if was.get("serial") and has.get("serial") and was["serial"] != has["serial"]:
            yield Mismatch("replaced", place, f"{label} {place} is another one, serial number {has['serial']}")
        if has.get("health") == "Warning" != was.get("health"):  # Critical is a mismatch, whatever was accepted
            yield Mismatch("health", "Warning", f"{label} {place} is Warning")


def _natural(place: str) -> list[tuple[int, str]]:
    """DIMM2 comes before DIMM10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", place)]


def _firmware(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Mismatch]:
    for name in sorted(now, key=_natural):
        if name in before and before[name] != now[name]:
            yield Mismatch("firmware", now[name], f"firmware of {name} is {now[name]}, accepted was {before[name]}")
