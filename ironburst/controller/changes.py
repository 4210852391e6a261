"""What changed from one JSON value to the next, and back: small where most stays.
Lists are compared item by item, wherever an item stands; items may be dataclasses, of which JSON is made where they
differ: of 100,000 jobs a gigabyte of it would be kept.

A change is {"value": the new value}, {"keys": {key: change}, "gone": [keys]} of an object, or {"runs": [...]} of a
list. A run is [start, count] of the old list; {"new": item}; {"columns": {key: [values]}} of new objects with the same
keys; or {"of": [start, count], "columns": {key: [values]}} of old objects in which these keys have other values, or
{"plus": [integers]} more. Of nothing, lists and objects are changes of empty ones.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from ironburst.burst import to_json
from ironburst.burst.codec import column, fields_of, names_said

SAME: dict[str, Any] = {"keys": {}, "gone": []}  # nothing changed


def between(before: Any, after: Any) -> dict[str, Any]:
    """What makes `after` of `before`; None: of nothing."""
    if isinstance(before, dict | None) and isinstance(after, dict):
        before = before or {}
        keys = {
            key: between(before.get(key), value)
            for key, value in after.items()
            if key not in before or (before[key] is not value and before[key] != value)
        }
        return {"keys": keys, "gone": [key for key in before if key not in after]}
    if isinstance(before, list | None) and isinstance(after, list):
        return {"runs": _Runs(before or []).of(after)}
    return {"value": to_json(after)}


def applied(before: Any, change: dict[str, Any]) -> Any:
    """`before` with a change. Raises ValueError, KeyError, TypeError or IndexError for one that isn't of it."""
    if "value" in change:
        return change["value"]
    if "runs" in change:
        return _list([] if before is None else before, change["runs"])
    before = {} if before is None else before
    kept = {key: value for key, value in before.items() if key not in change["gone"]}
    return kept | {key: applied(before.get(key), inner) for key, inner in change["keys"].items()}


class _Runs:
    """Makes the runs of one list."""

    def __init__(self, before: list[Any]):
        self._before = before
        self._same = {id(item): n for n, item in enumerate(before)}  # most are: who records them keeps them
        self._called: dict[Hashable, int] | None = None
        self._runs: list[Any] = []
        self._end = len(before)  # behind the last run, in the old list; its length: nothing follows

    def of(self, after: list[Any]) -> list[Any]:
        """What makes `after` of it."""
        if not self._before:
            return _new(after)
        new: list[Any] = []  # those that stand together
        for item in after:
            old = self._same.get(id(item))
            if old is None:
                old = self._end if self._at(self._end, item) else self._find(item)
            elif self._end < len(self._before) and self._before[self._end] is item:
                old = self._end  # also where one object repeats
            columns = None
            if old is not None and self._before[old] is not item and self._before[old] != item:
                columns = _columns(to_json(self._before[old]), to_json(item))
                old = None if columns is None else old
            if old is None:
                new.append(item)
                self._end = len(self._before)
                continue
            self._runs += _new(new)
            new.clear()
            if columns is None:
                self._stays(old)
            else:
                self._changed(old, columns)
        return self._runs + _new(new)

    def _at(self, n: int, item: Any) -> bool:
        return n < len(self._before) and _called(self._before[n]) == _called(item)

    def _find(self, item: Any) -> int | None:
        if self._called is None:
            self._called = {_called(item): n for n, item in enumerate(self._before)}
        return self._called.get(_called(item))

    def _stays(self, old: int) -> None:
        last = self._runs[-1] if self._runs else None
        if isinstance(last, list) and old == self._end:
            last[1] += 1
        else:
            self._runs.append([old, 1])
        self._end = old + 1

    def _changed(self, old: int, columns: dict[str, Any]) -> None:
        last = self._runs[-1] if self._runs else None
        if isinstance(last, dict) and "of" in last and old == self._end and _alike(last["columns"], columns):
            last["of"][1] += 1
            _extend(last["columns"], columns)
        else:
            self._runs.append({"of": [old, 1], "columns": columns})
        self._end = old + 1


def _new(items: list[Any]) -> list[Any]:
    """Runs of items that stand together; by columns, so that JSON is made of many values at once."""
    runs: list[Any] = []
    for (kind, names), group in groupby(items, _shape):
        each = [*group]
        if not names:
            runs += [{"new": to_json(item)} for item in each]
            continue
        get = itemgetter if kind is dict else attrgetter
        runs.append({"columns": {name: column([*map(get(name), each)]) for name in names}})
    return runs


def _shape(item: Any) -> tuple[Any, tuple[str, ...]]:
    """Items with the same one can stand in columns; without names: in none."""
    kind: Any = type(item)
    return (kind, tuple(item)) if kind is dict else (kind, names_said(item) if fields_of(kind) else ())


def _columns(before: Any, after: Any) -> dict[str, Any] | None:
    """Of an object in which some values are others; None: it is another object."""
    if not isinstance(before, dict) or not isinstance(after, dict) or before.keys() != after.keys():
        return None
    return {key: _column(before[key], value) for key, value in after.items() if before[key] != value}


def _called(item: Any) -> Hashable:
    """An object by its first value (an id, a name), anything else by all of it."""
    kind: Any = type(item)
    if names := fields_of(kind):
        item = to_json(getattr(item, names[0]))
    elif isinstance(item, dict):
        item = next(iter(item.values()), None)
    return item if type(item) in (int, str) else (json.dumps(item, sort_keys=True),)


def _column(before: Any, after: Any) -> Any:
    return {"plus": [after - before]} if type(before) is type(after) is int else [after]


def _alike(columns: dict[str, Any], more: dict[str, Any]) -> bool:
    return columns.keys() == more.keys() and all(type(columns[key]) is type(value) for key, value in more.items())


def _extend(columns: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict):
            columns[key]["plus"] += value["plus"]
        else:
            columns[key] += value


def _list(before: list[Any], runs: list[Any]) -> list[Any]:
    after: list[Any] = []
    for run in runs:
        if isinstance(run, list):
            after += _part(before, *run)
        elif "new" in run:
            after.append(run["new"])
        elif "of" in run:
            old = _part(before, *run["of"])
            columns = {key: _values(old, key, column) for key, column in run["columns"].items()}
            after += [item | new for item, new in zip(old, _rows(columns), strict=True)]
        else:
            after += _rows(run["columns"])
    return after


def _part(before: list[Any], start: int, count: int) -> list[Any]:
    if not 0 <= start <= start + count <= len(before):
        raise IndexError(f"a change names items {start} to {start + count} of {len(before)}")
    return before[start : start + count]


def _values(old: list[Any], key: str, column: Any) -> list[Any]:
    if isinstance(column, list):
        return column
    return [item[key] + more for item, more in zip(old, column["plus"], strict=True)]


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
