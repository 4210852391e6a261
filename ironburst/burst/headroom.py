"""Headroom: what is left under each ceiling of the budget while one decision is made,
or checked again. Pure but for its own count.

Every ceiling counts what falls into its own time: a lease over midnight is paid by two
days. The least of what is left applies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from ironburst.burst import explain
from ironburst.burst.budget import Budget, Ceiling

COMMON = ""
_ROUNDING_USD = 1e-6


@dataclass(frozen=True)
class Charge:
    """Money to be set aside: a price from one moment to another, under the ceilings
    of these accounts (COMMON: everybody's).
    """

    usd_per_hour: float
    from_s: float
    until_s: float
    accounts: tuple[str, ...]

    @property
    def usd(self) -> float:
        """All of it, whenever it falls."""
        return self.usd_per_hour * max(0.0, self.until_s - self.from_s) / 3600


def charges(
    budget: Budget | None,
    account: str,
    usd_per_hour: float,
    now_s: float,
    until_s: float,
    set_aside: tuple[str, float] | None = None,
) -> list[Charge]:
    """For a job of `account` that needs nodes until then.
    `set_aside`: who pays for them already, and up to when money is set aside.

    A payer who goes on pays for what is added. A new one pays for all from now on;
    the common ceilings for what is added: the first charge.
    """
    payer = budget.payer(account) if budget else COMMON
    paying, since_s = (payer, now_s) if set_aside is None else (set_aside[0], max(set_aside[1], now_s))
    if payer in (paying, COMMON):
        return [Charge(usd_per_hour, since_s, until_s, (COMMON,) if payer == COMMON else (COMMON, payer))]
    return [
        Charge(usd_per_hour, since_s, until_s, (COMMON,)),
        Charge(usd_per_hour, now_s, max(until_s, since_s), (payer,)),
    ]


@dataclass
class Headroom:
    """Takes money as it is promised."""

    budget: Budget | None
    _ceilings: tuple[Ceiling, ...] = field(init=False)
    _left_usd: list[float] = field(init=False)  # of each

    def __post_init__(self) -> None:
        self._ceilings = ceilings(self.budget)
        self._left_usd = [ceiling.left_usd for ceiling in self._ceilings]

    def short(self, asked: Sequence[Charge]) -> tuple[Ceiling, float, float] | None:
        """The ceiling that is in the way longest, what it would have to pay,
        and what it has left. None: there is enough.
        """
        longest: tuple[Ceiling, float, float] | None = None
        for ceiling, left in zip(self._ceilings, self._left_usd, strict=True):
            needed = _needed(ceiling, asked)
            if needed > 0 and needed > left + _ROUNDING_USD and (longest is None or ceiling.to_s > longest[0].to_s):
                longest = ceiling, needed, left
        return longest

    def take(self, asked: Sequence[Charge]) -> None:
        """Promise it: it is set aside from now on."""
        for number, ceiling in enumerate(self._ceilings):
            self._left_usd[number] -= _needed(ceiling, asked)

    def never(self, account: str, usd_per_hour: float, seconds: float) -> tuple[Ceiling, float] | None:
        """A ceiling that couldn't pay for this even if nothing else were spent, and what it would have to pay."""
        payer = self.budget.payer(account) if self.budget else COMMON
        for ceiling in self._ceilings:
            usd = usd_per_hour * min(seconds, ceiling.to_s - ceiling.from_s) / 3600
            if ceiling.account in (COMMON, payer) and usd > ceiling.usd:
                return ceiling, usd
        return None


def set_aside(budget: Budget | None, asked: Sequence[Charge]) -> Budget | None:
    """The budget as it is when this has been promised."""
    if budget is None:
        return None
    common = sum(charge.usd for charge in asked if COMMON in charge.accounts)
    own = tuple(replace(each, committed_usd=each.committed_usd + _needed(each, asked)) for each in budget.ceilings)
    return replace(budget, committed_usd=budget.committed_usd + common, ceilings=own)


def ceilings(budget: Budget | None) -> tuple[Ceiling, ...]:
    """Those of a budget; of one that names none (an old snapshot's) the month's,
    which pays for everything whenever it falls.
    """
    if budget is None or budget.ceilings:
        return budget.ceilings if budget else ()
    spent, committed = budget.spent_usd, budget.committed_usd
    return (Ceiling("month", budget.usd_per_month, -math.inf, budget.month_ends_s, spent, committed, slack_s=math.inf),)


def named(ceiling: Ceiling) -> str:
    """the month's $60,000.00; account vision's $900.00 of the month; the day's $400.00 (2026-11-22)."""
    usd = explain.usd(ceiling.usd)
    of_account = f"account {ceiling.account}'s {usd} of the {ceiling.kind}"
    whose = of_account if ceiling.account else f"the {ceiling.kind}'s {usd}"
    if ceiling.kind != "day":
        return whose
    return f"{whose} ({datetime.fromtimestamp(ceiling.from_s, UTC):%Y-%m-%d})"


def _needed(ceiling: Ceiling, asked: Sequence[Charge]) -> float:
    return sum(
        charge.usd_per_hour * ceiling.hours(charge.from_s, charge.until_s)
        for charge in asked
        if ceiling.account in charge.accounts
    )
