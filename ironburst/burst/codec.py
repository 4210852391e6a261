"""Frozen dataclasses to and from JSON values. Unknown fields are ignored; fields with a default may be absent.

Written are what JSON has names for, and Infinity (a limit that is none). NaN is never a value: reading refuses it.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")


class DataError(ValueError):
    """JSON values that are no such dataclass; the text is one sentence with the path."""


MOST = 2**63  # of a whole number: what databases and other languages hold
IF_SAID = {"if_said": True}  # metadata of a field that is written only where it isn't empty
_PLAIN = frozenset((str, int, float, bool, type(None)))


def to_json(value: Any, item: Callable[[Any], Any] | None = None) -> Any:
    """Plain dicts, lists and scalars of a dataclass (or a container of them). `item`: what makes them of the items of
    its lists; None: this.
    """
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if (names := fields_of(kind)) is not None:
        values = zip(names, _values(kind)(value), strict=True)
        said = {name: each if type(each) in _PLAIN else to_json(each, item) for name, each in values}
        for name in _if_said(kind):
            if not said[name]:
                del said[name]
        return said
    if isinstance(value, dict):
        return {str(key): to_json(each) for key, each in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        return [*map(item or to_json, value)]
    return value


def names_said(value: Any) -> tuple[str, ...]:
    """The names that `to_json` gives of a dataclass."""
    kind: Any = type(value)
    return _names(kind, *map(bool, _optional(kind)(value)))


@cache
def _names(kind: Any, *said: bool) -> tuple[str, ...]:
    unsaid = {name for name, each in zip(_if_said(kind), said, strict=True) if not each}
    return tuple(name for name in fields_of(kind) or () if name not in unsaid)


def column(values: Sequence[Any]) -> list[Any]:
    """`to_json` of each; of one object that is there often it is asked once."""
    if _PLAIN.issuperset(map(type, values)):
        return [*values]
    said = {id(value): to_json(value) for value in {id(value): value for value in values}.values()}
    return [said[id(value)] for value in values]


def from_json(kind: type[T], data: Any) -> T:
    """`data` as the dataclass `kind`. Raises DataError, with the path, for what doesn't fit."""
    try:
        decoded: T = _decoder(typing.cast(Any, kind))(data)
    except (TypeError, ValueError):
        decoded = _decode(kind, data, kind.__name__)  # slower, and says where
    return decoded


@cache
def fields_of(kind: Any) -> tuple[str, ...] | None:
    """The names of a dataclass's fields; None: it is none."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


@cache
def _values(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Those of a dataclass's fields."""
    return _getter(fields_of(kind) or ())


@cache
def _optional(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Those of its fields that are written only where they aren't empty."""
    return _getter(_if_said(kind))


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    return attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)


@cache
def _if_said(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.metadata.get("if_said"))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


@cache
def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """What a type is made of: its origin, and its arguments."""
    return typing.get_origin(kind), typing.get_args(kind)


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """What `_decode` gives of what fits at first sight. Raises TypeError or ValueError for the rest."""
    origin, arguments = _parts(kind)
    if origin in (typing.Union, types.UnionType):
        other = _decoder(next(argument for argument in arguments if argument is not type(None)))
        return lambda data: None if data is None else other(data)
    if fields_of(kind) is not None:
        each = {name: _decoder(hint) for name, hint in _hints(kind).items()}
        return lambda data: kind(**{key: each[key](value) for key, value in _of(dict, data).items() if key in each})
    if origin is tuple:
        item = _decoder(arguments[0])
        return lambda data: tuple(map(item, _of(list, data)))
    if origin is dict:
        inner = _decoder(arguments[1])
        return lambda data: {key: inner(value) for key, value in _of(dict, data).items()}
    if kind in (int, float):
        return lambda data: kind(data) if type(data) in (int, kind) and -MOST <= data <= MOST else _endless(kind, data)
    return lambda data: _of(kind, data)


def _endless(kind: Any, data: Any) -> Any:
    if kind is float and type(data) is float and not math.isnan(data):
        return data
    raise TypeError


def _of(kind: Any, data: Any) -> Any:
    if type(data) is not kind:
        raise TypeError
    return data


def _decode(kind: Any, data: Any, where: str) -> Any:
    origin, arguments = _parts(kind)
    if origin in (typing.Union, types.UnionType):
        if data is None and type(None) in arguments:
            return None
        return _decode(next(argument for argument in arguments if argument is not type(None)), data, where)
    if fields_of(kind) is not None:
        if not isinstance(data, dict):
            raise DataError(f"{where}: a mapping is needed, not {_shown(data)}")
        hints = _hints(kind)
        try:
            return kind(**{k: _decode(hints[k], v, f"{where}.{k}") for k, v in data.items() if k in hints})
        except DataError:
            raise
        except (TypeError, ValueError) as error:  # a field without default is absent; or the dataclass itself refuses
            raise DataError(f"{where}: {error}") from None
    if origin is tuple:
        if not isinstance(data, list | tuple):
            raise DataError(f"{where}: a list is needed, not {_shown(data)}")
        return tuple(_decode(arguments[0], item, f"{where}[{n}]") for n, item in enumerate(data))
    if origin is dict:
        if not isinstance(data, dict):
            raise DataError(f"{where}: a mapping is needed, not {_shown(data)}")
        return {key: _decode(arguments[1], item, f"{where}[{key}]") for key, item in data.items()}
    if isinstance(data, int) and not isinstance(data, bool):
        if abs(data) > MOST:
            raise DataError(f"{where}: {_shown(data)} is larger than any number here may be")
        data = float(data) if kind is float else data
    if (
        not isinstance(data, kind)
        or (isinstance(data, bool) and kind is not bool)
        or (kind is float and math.isnan(data))
    ):
        raise DataError(f"{where}: {kind.__name__} is needed, not {_shown(data)}")
    return data


def _shown(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 80 else f"{text[:77]}..."
