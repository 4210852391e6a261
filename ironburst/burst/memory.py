"""What a snapshot has of the time before it: idle times, run times, spells of spot."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class IdleHistory:
    """The idle times of a pool's leases so far, as ironburst.burst.idle keeps them."""

    gaps_s: tuple[float, ...] = ()  # the newest last; one that got as long as the rule could ever wait is cut there
    # twice what the best in hindsight pays for all of them, less what was paid (open ones at their worst)
    credit_usd: float = 0.0

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """What is looked up by it is so at every tick, for every idle lease."""
        return hash((self.gaps_s, self.credit_usd))


@dataclass(frozen=True)
class SpotMarket:
    """What was seen of spot of one type in a pool, as ironburst.burst.spot keeps it: spells in which it is to be had
    and in which it isn't. By (away, there): how many spells ended, and how many would have by what is known of others.
    """

    pool: str
    instance_type: str = ""  # as in an offer: empty for a pool's only one
    there: bool | None = None  # when it was seen last; None: never
    since_s: float = 0.0  # when that spell began
    seen_s: float = 0.0
    ended: tuple[float, float] = (0.0, 0.0)
    expected: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Experience:
    """How long ended jobs ran, as ironburst.burst.runtimes keeps it: ln(run time / limit) by group, the newest last."""

    ratios: dict[str, tuple[float, ...]] = field(default_factory=dict)
