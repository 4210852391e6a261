"""Times, durations and money in words: one place, so that every reason reads alike."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache

FAR_S = 253_402_300_799.0  # the last second of the year 9999: calendars end there


def at(seconds: float) -> str:
    """A moment: 2026-11-21 12:08:00Z; "never" for one that no calendar has."""
    if not 0 <= seconds <= FAR_S:
        return "never"
    day, second = divmod(math.floor(seconds), 86400)
    return f"{_date(day)} {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


@lru_cache(maxsize=512)
def _date(day: int) -> str:
    return f"{datetime.fromtimestamp(day * 86400, UTC):%Y-%m-%d}"


@lru_cache(maxsize=4096)  # the same ones are told again and again
def duration(seconds: float) -> str:
    """45 s, 12 min, 3 h 20 min, 2 d 4 h: the two largest parts."""
    if not seconds <= FAR_S:
        return "for ever"
    minutes, left = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 24 or not minutes or not hours:
        parts = ((hours // 24, "d"), (hours % 24, "h"), (minutes, "min"), (left, "s"))
        return " ".join([f"{count} {unit}" for count, unit in parts if count][:2]) or "0 s"
    return f"{hours} h {minutes} min"


def usd(amount: float) -> str:
    """$1,234.50"""
    return f"${amount:,.2f}"


def dollars(amount: float) -> str:
    """Without cents from $10 on, where they are noise."""
    return f"${amount:,.0f}" if abs(amount) >= 10 else f"${amount:,.2f}"


def listed(words: Iterable[str], limit: int = 6) -> str:
    """a, b, c and 4 more"""
    words = list(words)
    return ", ".join(words[:limit]) + (f" and {len(words) - limit} more" if len(words) > limit else "")


def plural(count: int, word: str) -> str:
    """1 node, 2 nodes"""
    return f"{count} {word}" + ("" if count == 1 else "s")
