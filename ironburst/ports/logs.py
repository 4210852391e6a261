"""What hosts said: the journals of a site, at its log centre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class LogsError(Exception):
    """No answer that can be used; ask again later. The text is one sentence."""


@dataclass(frozen=True)
class LogQuery:
    """Whose lines, and from when to when (seconds since 1970). With `lease` they are a rented node's."""

    hosts: tuple[str, ...]
    from_s: float
    to_s: float
    lease: str = ""


@dataclass(frozen=True)
class LogLine:
    """`id`: of two with the same one only one was said; empty: not known."""

    at_s: float
    host: str
    program: str
    severity: str
    message: str
    lease: str = ""
    id: str = ""


class LogCentre(Protocol):
    """Where journals are sent to."""

    def newest(self, query: LogQuery, count: int) -> list[LogLine]:
        """The last `count` at most, the oldest first. Raises LogsError."""
