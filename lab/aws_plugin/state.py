"""Pure functions over inputs and outputs: what changed, what drifted, names, tags."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from lab.provider.wire import UNKNOWN, Props

DEFAULTS = "__defaults"  # inputs that Check made up, as the real plugin notes them


def auto_name(logical: str, seed: bytes) -> str:
    """`<logical>-<7 hex>`, the same for the same seed."""
    return f"{logical}-{hashlib.sha256(seed + logical.encode()).hexdigest()[:7]}"


def all_tags(defaults: dict[str, str], tags: Any) -> Any:
    return UNKNOWN if tags == UNKNOWN else {**defaults, **(tags or {})}


def same(asked: Any, seen: Any) -> bool:
    """Whether AWS's value is what was asked for: text and numbers or booleans alike, JSON by content, lists in any
    order, and of an object only what was asked.
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


def as_observed(inputs: Props, observed: Props) -> Props:
    """The inputs as they are in AWS: what was asked for where that is what is there, else what is there.

    An input that the reply doesn't show is taken as it was asked."""
    out: Props = {}
    for key, asked in inputs.items():
        if key not in observed or key.startswith("__"):
            out[key] = asked
        elif key in ("tags", "tagsAll"):
            out[key] = observed[key]
        else:
            out[key] = asked if same(asked, observed[key]) else observed[key]
    return out


def split_tags(observed: Props, known: Props, defaults: dict[str, str]) -> Props:
    """`tags` of a reply is all there is: that is `tagsAll`; `tags` is without what comes from the provider's
    defaults.
    """
    if "tags" not in observed:
        return observed
    seen, own = observed["tags"], known.get("tags") or {}
    return {**observed, "tagsAll": seen, "tags": {k: v for k, v in seen.items() if k in own or defaults.get(k) != v}}
