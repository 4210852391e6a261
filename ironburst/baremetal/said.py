"""Reads a property of a Redfish document that may be missing, null, or of another type than it should be."""

from __future__ import annotations

import math
from typing import Any

LONGEST = 200
"""characters of a text that are kept"""
MOST = 1000
"""entries of a list"""
NOTHING = frozenset({"n/a", "na", "not available", "not specified", "default string", "to be filled by o.e.m."})
"""what makers write where they have nothing to say"""


def dig(document: Any, at: str) -> Any:
    """The property at a path such as "Links/Chassis"; None: not reported."""
    for name in at.split("/"):
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def text(document: Any, *places: str) -> str | None:
    """The first text reported at one of the places, without the padding that some add; numbers are texts, too."""
    for at in places:
        value = dig(document, at)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if isinstance(value, str):
            clean = "".join(character for character in value[: 4 * LONGEST] if character.isprintable()).strip()
            if clean and clean.lower() not in NOTHING:
                return clean[:LONGEST]
    return None


def number(document: Any, *places: str) -> float | None:
    """The first number reported; texts such as "2048" count. None: none, or one that can't be (negative, 1e300)."""
    for at in places:
        value = dig(document, at)
        if isinstance(value, bool):
            continue
        if isinstance(value, str):
            try:
                value = float(value[:40])
            except ValueError:
                continue
        if isinstance(value, int | float) and 0 <= value <= 1e18 and math.isfinite(value):
            return float(value)
    return None


def whole(document: Any, *places: str) -> int | None:
    """The first number, rounded."""
    value = number(document, *places)
    return None if value is None else round(value)


def dicts(document: Any, at: str, most: int = MOST) -> list[dict[str, Any]]:
    """The objects of a list, up to the most that a node may have; other values are left out."""
    value = dig(document, at)
    return [each for each in value[:most] if isinstance(each, dict)] if isinstance(value, list) else []


def has(document: Any, at: str, value: Any) -> bool:
    """Whether the document has this property."""
    return bool(dig(document, at) == value)
