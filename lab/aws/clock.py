"""The clock of the lab's AWS, by which sessions end and IAM's changes arrive. It goes as this machine's does; a test
puts it forward, so that nobody waits.
"""

from __future__ import annotations

import datetime as dt

_AHEAD = dt.timedelta()


def now() -> dt.datetime:
    """UTC, without a zone, as moto has it."""
    return dt.datetime.now(dt.UTC).replace(tzinfo=None) + _AHEAD


def forward(seconds: float) -> None:
    """Put it forward by so much more."""
    global _AHEAD
    _AHEAD += dt.timedelta(seconds=seconds)


def reset() -> None:
    """As this machine's."""
    global _AHEAD
    _AHEAD = dt.timedelta()
