"""Times, durations and money in words: one place, so that every reason reads alike."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=4096)  # the same moments are told again and again
def at(seconds: float) -> str:
    """A moment: 2026-11-21 12:08:00Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


@lru_cache(maxsize=4096)
def duration(seconds: float) -> str:
    """45 s, 12 min, 3 h 20 min, 2 d 4 h: the two largest parts."""
    left, parts = int(round(max(seconds, 0))), []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def usd(amount: float) -> str:
    return f"${amount:,.2f}"


def listed(words: Iterable[str], limit: int = 6) -> str:
    words = list(words)
    return ", ".join(words[:limit]) + (f" and {len(words) - limit} more" if len(words) > limit else "")


def plural(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")
