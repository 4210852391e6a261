"""Pulumi's property values as Python's own, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.rpc import UNKNOWN

# The SDK (3.272) leaves unknown values as their sentinel text, and cannot send its own
# Computed: so the sentinel is used both ways.
NOT_KNOWN_YET = PropertyValue(UNKNOWN)


def plain(properties: dict[str, PropertyValue]) -> dict[str, Any]:
    """The values as Python's own; whole numbers become int, unknown ones None."""
    return {key: _plain(value) for key, value in properties.items()}


def _plain(value: Any) -> Any:
    raw = value.value if isinstance(value, PropertyValue) else value
    if raw == UNKNOWN:
        return None
    if isinstance(raw, float) and raw.is_integer():
        return int(raw)
    if isinstance(raw, str | bool | float | int | None):
        return raw
    if isinstance(raw, Mapping):
        return {key: _plain(inner) for key, inner in raw.items()}
    if isinstance(raw, Sequence):
        return [_plain(inner) for inner in raw]
    raise TypeError(f"a node has no {type(raw).__name__}")


def values(properties: dict[str, Any]) -> dict[str, PropertyValue]:
    """Python's own values as Pulumi's; keys without a value are left out."""
    return {key: _value(given) for key, given in properties.items() if given is not None}


def _value(raw: Any) -> PropertyValue:
    if isinstance(raw, dict):
        return PropertyValue(values(raw))
    if isinstance(raw, list | tuple):
        return PropertyValue([_value(inner) for inner in raw])
    if isinstance(raw, int) and not isinstance(raw, bool):
        return PropertyValue(float(raw))
    return PropertyValue(raw)


def has_unknown(value: Any) -> bool:
    """Is it, or anything inside it, not known yet (in a preview)?"""
    raw = value.value if isinstance(value, PropertyValue) else value
    if raw == UNKNOWN:
        return True
    if isinstance(raw, Mapping):
        return any(has_unknown(inner) for inner in raw.values())
    return isinstance(raw, list | tuple) and any(has_unknown(inner) for inner in raw)
