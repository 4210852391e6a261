"""Frozen dataclasses to and from JSON values. Unknown fields are ignored; fields with a default may be absent."""

from __future__ import annotations

import dataclasses
import types
import typing
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
_PLAIN = frozenset((str, int, float, bool, type(None)))


def to_json(value: Any) -> Any:
    """Plain dicts, lists and scalars of a dataclass (or a container of them)."""
    if (kind := type(value)) in _PLAIN:
        return value
    if (names := _fields(kind)) is not None:
        return {name: to_json(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {str(key): to_json(each) for key, each in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        return [to_json(each) for each in value]
    return value


def from_json(kind: type[T], data: Any) -> T:
    """`data` as the dataclass `kind`. Raises ValueError, with the path, for what doesn't fit."""
    return _decode(kind, data, kind.__name__)


@cache
def _fields(kind: type) -> tuple[str, ...] | None:
    """The names of a dataclass's fields; None: it is none."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _decode(kind: Any, data: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if data is None and type(None) in arguments:
            return None
        return _decode(next(one for one in arguments if one is not type(None)), data, where)
    if dataclasses.is_dataclass(kind):
        if not isinstance(data, dict):
            raise ValueError(f"{where}: a mapping is needed, not {data!r}")
        hints = _hints(kind)
        try:
            return kind(**{k: _decode(hints[k], v, f"{where}.{k}") for k, v in data.items() if k in hints})
        except TypeError as error:  # a field without default is absent
            raise ValueError(f"{where}: {error}") from None
    if origin is tuple:
        return tuple(_decode(arguments[0], each, f"{where}[{n}]") for n, each in enumerate(data))
    if origin is dict:
        return {key: _decode(arguments[1], each, f"{where}[{key}]") for key, each in data.items()}
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if not isinstance(data, kind):
        raise ValueError(f"{where}: {kind.__name__} is needed, not {data!r}")
    return data
