"""A proposal as YAML for `halls` of a stack file, with all notes as comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ironburst.hall.netbox_import.pages import clean
from ironburst.hall.netbox_import.proposal import Proposal

WIDTH = 130
HEADS = {
    "declare": "To declare: NetBox doesn't know it, and nothing is guessed",
    "look": "Look at it: taken over, but not just as it is in NetBox",
    "left": "Not taken over",
}
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*|\d+GbE")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"}
"""of YAML 1.1, which are no texts"""


def lines(proposal: Proposal) -> Iterator[str]:
    """Every line without its end."""
    yield f"# By `ironburst hall import`: {proposal.hall['name']} as NetBox has it"
    for which, head in HEADS.items():
        if notes := proposal.of(which):
            yield from ("#", f"# {head}:")
            yield from (f"# - {clean(str(note))}" for note in notes)
    yield "halls:"
    yield from _item(proposal.hall, "  ")


def _item(values: Mapping[str, Any], indent: str) -> Iterator[str]:
    """One of a list: in one line where it fits and all of it is known."""
    flow = f"{indent}- {_flow(values)}"
    if len(flow) <= WIDTH and None not in values.values() and not _nested(values):
        yield flow
        return
    start = f"{indent}- "
    for key, value in values.items():
        if value is None or (key == "nodes" and not value):
            yield f"{start}{key}:  # to declare"
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{start}{key}:"
            for each in value:
                yield from _item(each, f"{indent}    ")
        else:
            yield f"{start}{key}: {_flow(value)}"
        start = f"{indent}  "


def _nested(values: Mapping[str, Any]) -> bool:
    return any(isinstance(value, list) and value and isinstance(value[0], dict) for value in values.values())


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if plain else json.dumps(value, ensure_ascii=False)
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)
