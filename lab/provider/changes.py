"""What changed between two values, leaf by leaf."""

from __future__ import annotations

import json
import re
from typing import Any

from lab.provider.wire import Props


def flatten(value: Any, path: str = "") -> dict[str, Any]:
    """Leaf path -> value: `networkInterfaces[0].subnetId`, `tags["a.b"]`; empty lists and objects are leaves."""
    if isinstance(value, dict) and (value or not path):
        pairs = [(_join(path, k), v) for k, v in value.items() if not k.startswith("__")]
    elif isinstance(value, list) and value:
        pairs = [(f"{path}[{i}]", v) for i, v in enumerate(value)]
    else:
        return {path: value}
    return {p: leaf for at, v in pairs for p, leaf in flatten(v, at).items()}


def _join(path: str, key: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key


def changes(old: Props, new: Props) -> dict[str, str]:
    """Leaf path -> 'add', 'delete' or 'update'."""
    before, after = flatten(old), flatten(new)
    return {
        p: "add" if p not in before else "delete" if p not in after else "update"
        for p in sorted({*before, *after})
        if p not in before or p not in after or before[p] != after[p]
    }


def top(path: str) -> str:
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def replaces(path: str, rules: frozenset[str]) -> bool:
    """Whether a change at `path` is covered by a rule (a path without indexes), at it or above it."""
    bare = re.sub(r"\[[^\]]*\]", "", path)
    parts = bare.split(".")
    return any(".".join(parts[:i]) in rules for i in range(1, len(parts) + 1))


def same(asked: Any, seen: Any) -> bool:
    """Whether a cloud's value is what was asked for: text and numbers or booleans alike, JSON by content, lists in
    any order, and of an object only what was asked.
    """
    if isinstance(asked, dict) and isinstance(seen, dict):
        return all(same(v, seen.get(k)) for k, v in asked.items())
    if isinstance(asked, list) and isinstance(seen, list):
        left = list(seen)
        for item in asked:
            if (hit := next((i for i, s in enumerate(left) if same(item, s)), None)) is None:
                return False
            del left[hit]
        return not left
    if asked == seen or (not asked and not seen and not isinstance(asked, str | bool | int)):
        return True
    if isinstance(asked, bool) or isinstance(seen, bool):
        return str(asked).lower() == str(seen).lower()
    try:
        return bool(json.loads(str(asked)) == json.loads(str(seen)))
    except ValueError:
        return False
