"""How long a place that refused isn't tried again."""

from __future__ import annotations

LONGEST_S = 3600.0
FORGIVEN_AFTER = 2.0  # times the length of a cool-down, from its end: then the refusals before it count no more


def lasts_s(first_s: float, refusals: int) -> float:
    """After that many refusals in a row (1 or more): each one doubles it,
    up to LONGEST_S, or to `first_s` if that is longer.
    """
    return min(first_s * 2.0 ** min(refusals - 1, 1000), max(first_s, LONGEST_S))  # a float can't be doubled for ever
