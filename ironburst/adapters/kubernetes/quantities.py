"""Kubernetes' own notations: quantities (`500m`, `64Gi`), durations (`8h`) and times (RFC 3339)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


@lru_cache(maxsize=4096)
def quantity(text: str | int | float) -> float:
    """A quantity's value: CPUs, bytes, pieces. Raises ValueError."""
    match = _QUANTITY.fullmatch(str(text).strip())
    if not match:
        raise ValueError(f"{text!r} is no quantity")
    number, exponent, suffix = match.groups()
    if exponent:
        return float(number + exponent)
    if suffix in _BINARY:
        return float(number) * 1024.0 ** _BINARY[suffix]
    return float(number) * 10.0 ** _DECIMAL[suffix] if suffix else float(number)


_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration(text: str) -> float:
    """A duration (`8h`, `1h30m`, `2d`, `3600`) in seconds. Raises ValueError, also for none."""
    parts = _PART.findall(text.strip())
    whole = "".join(map("".join, parts)) == text.strip()
    value = float(text) if text.strip().isdigit() else sum(float(n) * _SECONDS[unit] for n, unit in parts)
    if value <= 0 or not (whole or text.strip().isdigit()):
        raise ValueError(f"{text!r} is no duration: write 8h, 90m or seconds")
    return value


@lru_cache(maxsize=16384)
def seconds(text: str) -> float:
    """A time (`2026-11-23T07:00:00Z`, with or without fractions) as seconds since 1970. Raises ValueError."""
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def moment(value: object) -> float | None:
    """A time, or None where there is none."""
    return seconds(value) if isinstance(value, str) and value else None


def micro_time(at_s: float) -> str:
    """Seconds since 1970 as a MicroTime, as a Lease has it."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
