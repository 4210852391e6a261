"""The money of a snapshot: what may be spent, what is, and what is set aside. USD, seconds since 1970 (UTC)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ironburst.burst.codec import IF_SAID
from ironburst.burst.orders import UserLimit


@dataclass(frozen=True)
class Ceiling:
    """What may be spent from one moment to another, by everybody or for one account's
    jobs. Only what falls in between counts.
    """

    kind: str  # day, month
    usd: float
    from_s: float
    to_s: float
    spent_usd: float = 0.0
    committed_usd: float = 0.0
    account: str = ""  # empty: everybody
    slack_s: float = 0.0  # what is so near to its ends counts, too: clocks differ

    @property
    def left_usd(self) -> float:
        """What is neither spent nor set aside; below 0 if a ceiling was lowered."""
        return self.usd - self.spent_usd - self.committed_usd

    def hours(self, from_s: float, until_s: float) -> float:
        """How much of a time counts here, hours."""
        return max(0.0, min(until_s, self.to_s + self.slack_s) - max(from_s, self.from_s - self.slack_s)) / 3600


@dataclass(frozen=True)
class Budget:
    """The money for rented nodes. `spent` and `committed` are estimates: declared prices times hours."""

    usd_per_month: float
    spent_usd: float  # this month
    committed_usd: float  # set aside for open leases beyond what they have spent, whenever it falls
    month_ends_s: float
    usd_per_day: float | None = None
    # USD a month of the accounts that have a ceiling of their own
    accounts: dict[str, float] = field(default_factory=dict)
    ceilings: tuple[Ceiling, ...] = ()  # of now and of the times that a lease can reach; empty: the month's alone
    users: tuple[UserLimit, ...] = field(default=(), metadata=IF_SAID)  # of those that a person limited

    @property
    def left_usd(self) -> float:
        """What of the month's is neither spent nor set aside."""
        return self.usd_per_month - self.spent_usd - self.committed_usd

    def payer(self, account: str) -> str:
        """Whose ceiling pays for an account's job: its own, or only the common ones (empty)."""
        return account if account in self.accounts else ""
