"""Values as Slurm writes them: numbers in JSON of any release, and lists of hosts."""

from __future__ import annotations

import math
import re
from typing import Any

NO_VALUE = 0xFFFFFFFE  # as a plain number: not set; one more: infinite
_MAX_HOSTS = 65536


def number(value: Any) -> float | int | None:
    """A number in any of Slurm's forms; None: not set. An infinite one is math.inf."""
    if type(value) is int and value < NO_VALUE:
        return value
    if isinstance(value, dict):
        if not value.keys() >= {"set", "infinite", "number"}:
            raise ValueError(f"a number is {{set, infinite, number}}, not {value}")
        return math.inf if value["infinite"] else value["number"] if value["set"] else None
    if isinstance(value, str):
        return math.inf if value.lower() in ("infinite", "infinity", "unlimited") else int(value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"a number is needed, not {value!r}")
    return math.inf if value == NO_VALUE + 1 else None if value == NO_VALUE else value


def expand(text: str) -> list[str]:
    """A hostlist (`gpu[2-3,05],head`) as names. Raises ValueError."""
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        names += _expand_one(part)
        if len(names) > _MAX_HOSTS:
            raise ValueError(f"the host list {text[:60]!r} has more than {_MAX_HOSTS} names")
    return names


def _expand_one(part: str) -> list[str]:
    match = re.search(r"\[([^\]]*)\]", part)
    if not match:
        return [part] if part else []
    head, rest, out = part[: match.start()], part[match.end() :], []
    for piece in match.group(1).split(","):
        first, _, last = piece.partition("-")
        for n in range(int(first), int(last or first) + 1):
            out += [f"{head}{n:0{len(first)}d}{tail}" for tail in _expand_one(rest) or [""]]
    return out


def joined(value: Any) -> str:
    """A list in any of Slurm's forms as text with commas; empty: there is none."""
    return ",".join(value) if isinstance(value, list) else value or ""
