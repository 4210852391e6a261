"""What changed from one JSON value to the next, and back: small where most stays.
Lists are compared item by item, wherever an item stands.

A change is {"value": the new value}, {"keys": {key: change}, "gone": [keys]} of an object, or {"runs": [...]} of a
list: a run is [start, count] of the old list, or {"new": item}.
"""

from __future__ import annotations

import json
from typing import Any

SAME: dict[str, Any] = {"keys": {}, "gone": []}  # nothing changed


def between(before: Any, after: Any) -> dict[str, Any]:
    """What makes `after` of `before`."""
    if isinstance(before, dict) and isinstance(after, dict):
        changed = {key: value for key, value in after.items() if key not in before or before[key] != value}
        keys = {
            key: between(before[key], value) if key in before else {"value": value} for key, value in changed.items()
        }
        return {"keys": keys, "gone": [key for key in before if key not in after]}
    if isinstance(before, list) and isinstance(after, list):
        return {"runs": _runs(before, after)}
    return {"value": after}


def applied(before: Any, change: dict[str, Any]) -> Any:
    """`before` with a change. Raises ValueError, KeyError, TypeError or IndexError for one that isn't of it."""
    if "value" in change:
        return change["value"]
    if "runs" in change:
        return _list(before, change["runs"])
    kept = {key: value for key, value in before.items() if key not in change["gone"]}
    return kept | {key: applied(before.get(key), inner) for key, inner in change["keys"].items()}


def _runs(before: list[Any], after: list[Any]) -> list[Any]:
    same = {id(item): n for n, item in enumerate(before)}  # most are: who records them keeps them
    stay = {id(item) for item in after}
    new = stay - same.keys()
    alike = {_text(item): n for n, item in enumerate(before) if id(item) not in stay} if new else {}
    runs: list[Any] = []
    for item in after:
        end = sum(runs[-1]) if runs and isinstance(runs[-1], list) else len(before)
        if end < len(before) and (before[end] is item or (id(item) in new and before[end] == item)):
            runs[-1][1] += 1  # also where equal items repeat
            continue
        old = same.get(id(item)) if id(item) not in new else alike.get(_text(item))
        runs.append({"new": item} if old is None else [old, 1])
    return runs


def _list(before: list[Any], runs: list[Any]) -> list[Any]:
    after: list[Any] = []
    for run in runs:
        if isinstance(run, dict):
            after.append(run["new"])
        else:
            start, count = run
            if not 0 <= start <= start + count <= len(before):
                raise IndexError(f"a change names items {start} to {start + count} of {len(before)}")
            after += before[start : start + count]
    return after


def _text(item: Any) -> str:
    return json.dumps(item, sort_keys=True)
