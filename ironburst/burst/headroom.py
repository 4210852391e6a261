"""What is left under each ceiling of the budget while one decision is made, or checked again. Pure but for its own
count.

Every ceiling counts what falls into its own time: a lease over midnight is paid by two days. The least of what is left
applies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ironburst.burst import explain
from ironburst.burst.snapshot import Budget, Ceiling

COMMON = ""
_ROUNDING_USD = 1e-6


@dataclass(frozen=True)
class Charge:
    """Money to be set aside: a price from one moment to another, under the ceilings of these accounts (COMMON:
    everybody's).
    """

    usd_per_hour: float
    from_s: float
    until_s: float
    accounts: tuple[str, ...]

    @property
    def usd(self) -> float:
        return self.usd_per_hour * max(0.0, self.until_s - self.from_s) / 3600


def charges(
    budget: Budget | None,
    account: str,
    usd_per_hour: float,
    now_s: float,
    until_s: float,
    held: tuple[str, float] | None = None,
) -> list[Charge]:
    """For a job of `account` that needs nodes until then. `held`: who pays for them, and until when money is set aside
    already.

    A payer who goes on pays for what is added. A new one pays for all from now on; the common ceilings for what is
    added: the first charge.
    """
    payer = budget.payer(account) if budget else COMMON
    paid, since_s = (payer, now_s) if held is None else (held[0], max(held[1], now_s))
    if payer in (paid, COMMON):
        return [Charge(usd_per_hour, since_s, until_s, (COMMON,) if payer == COMMON else (COMMON, payer))]
    return [
        Charge(usd_per_hour, since_s, until_s, (COMMON,)),
        Charge(usd_per_hour, now_s, max(until_s, since_s), (payer,)),
    ]


@dataclass
class Headroom:
    """Takes money as it is promised."""

    budget: Budget | None
    _left: list[list] = field(init=False)  # [ceiling, USD]

    def __post_init__(self) -> None:
        self._left = [[ceiling, ceiling.left_usd] for ceiling in ceilings(self.budget)]

    def short(self, asked: Sequence[Charge]) -> tuple[Ceiling, float, float] | None:
        """The ceiling that is in the way longest, what it would have to pay, and what it has left. None: there is
        enough.
        """
        found = None
        for ceiling, left in self._left:
            needed = _needed(ceiling, asked)
            if needed > 0 and needed > left + _ROUNDING_USD and (found is None or ceiling.to_s > found[0].to_s):
                found = ceiling, needed, left
        return found

    def take(self, asked: Sequence[Charge]) -> None:
        for each in self._left:
            each[1] -= _needed(each[0], asked)

    def never(self, account: str, usd_per_hour: float, seconds: float) -> tuple[Ceiling, float] | None:
        """A ceiling that couldn't pay for this even if nothing else were spent, and what it would have to pay."""
        payer = self.budget.payer(account) if self.budget else COMMON
        for ceiling, _ in self._left:
            usd = usd_per_hour * min(seconds, ceiling.to_s - ceiling.from_s) / 3600
            if ceiling.account in (COMMON, payer) and usd > ceiling.usd:
                return ceiling, usd
        return None


def ceilings(budget: Budget | None) -> tuple[Ceiling, ...]:
    """Those of a budget; of one that names none (an old snapshot's) the month's, which pays for everything whenever it
    falls.
    """
    if budget is None or budget.ceilings:
        return budget.ceilings if budget else ()
    spent, committed = budget.spent_usd, budget.committed_usd
    return (Ceiling("month", budget.usd_per_month, -math.inf, budget.month_ends_s, spent, committed, slack_s=math.inf),)


def named(ceiling: Ceiling) -> str:
    """the month's $60,000.00; account vision's $900.00 of the month; the day's $400.00 (2026-11-22)."""
    usd = explain.usd(ceiling.usd)
    whose = (
        f"account {ceiling.account}'s {usd} of the {ceiling.kind}" if ceiling.account else f"the {ceiling.kind}'s {usd}"
    )
    if ceiling.kind != "day":
        return whose
    return f"{whose} ({datetime.fromtimestamp(ceiling.from_s, UTC):%Y-%m-%d})"


def _needed(ceiling: Ceiling, asked: Sequence[Charge]) -> float:
    return sum(
        each.usd_per_hour * ceiling.hours(each.from_s, each.until_s)
        for each in asked
        if ceiling.account in each.accounts
    )
