"""Pure functions over inputs and outputs: what changed, what drifted, names, tags."""

from __future__ import annotations

import hashlib
from typing import Any

from lab.provider.changes import same
from lab.provider.wire import UNKNOWN, Props

DEFAULTS = "__defaults"  # inputs that Check made up, as the real plugin notes them


def auto_name(logical: str, seed: bytes) -> str:
    """`<logical>-<7 hex>`, the same for the same seed."""
    return f"{logical}-{hashlib.sha256(seed + logical.encode()).hexdigest()[:7]}"


def all_tags(defaults: dict[str, str], tags: Any) -> Any:
    return UNKNOWN if tags == UNKNOWN else {**defaults, **(tags or {})}


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
