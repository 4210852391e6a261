"""Moments for people, in local time."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime

PRICES_OLD_DAYS = 30
"""older prices are warned of"""
_MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ")


def clock(now_s: float) -> Callable[[float], str]:
    """Writes a moment down for people, in local time: 14:20 on the day of `now_s`, else with the date."""
    today = datetime.fromtimestamp(now_s).date()

    def said(seconds: float) -> str:
        moment = datetime.fromtimestamp(seconds)
        return moment.strftime("%H:%M" if moment.date() == today else "%Y-%m-%d %H:%M")

    return said


def at(seconds: float | None) -> str:
    """Local time, for people: 2026-11-21 13:08:00, as squeue and sacct have it."""
    return "-" if seconds is None else datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def local(text: str) -> str:
    """A text of the policy's or the ledger's, with its moments (ironburst.burst.explain.at, UTC) as `at` has them."""

    def said(found: re.Match[str]) -> str:
        try:
            return at(datetime.fromisoformat(found[0][:-1]).replace(tzinfo=UTC).timestamp())
        except (ValueError, OverflowError):  # what only looks like one, or that no local clock has
            return found[0]

    return _MOMENT.sub(said, text) if "Z" in text else text


def prices_of(day: date | str | None, today: date | None = None) -> str:
    """What prices of a day are, with their age; None: a person declared them."""
    if day is None:
        return "the stack file"
    days = age_days(day, today)
    old = " and too old to count on: declare today's under price of their cloud" if days > PRICES_OLD_DAYS else ""
    return f"{day}, {days} day{'' if days == 1 else 's'} old{old}"


def age_days(day: date | str, today: date | None = None) -> int:
    """Whole days since then, by UTC."""
    day = date.fromisoformat(day) if isinstance(day, str) else day
    return max(((today or datetime.now(UTC).date()) - day).days, 0)
