"""What rented nodes have cost and what is set aside for them, by calendar day and month (UTC) and by account. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from ironburst.burst import Budget
from ironburst.burst.budget import Ceiling
from ironburst.controller.records import CLOCK_S, REQUESTED, LeaseRow, Rate
from ironburst.document import BudgetDocument as DeclaredBudget

Paid = Mapping[str, Sequence[Rate]]  # by lease, the oldest rate first
Times = tuple[float, float]  # from, to
Costs = tuple[LeaseRow, Times]  # a lease, and when it costs money


@dataclass(frozen=True)
class Spent:
    """USD by account, of the calendar month and the day (UTC) that begin at those moments."""

    month_s: float = 0.0
    month: dict[str, float] = field(default_factory=dict)
    day_s: float = 0.0
    day: dict[str, float] = field(default_factory=dict)


def spent(leases: Iterable[LeaseRow], rates: Paid, now_s: float) -> Spent:
    """What leases had cost by then. A call without an answer isn't counted: if it happened, its instance shows it."""
    leases, this_month, this_day = list(leases), month(now_s), day(now_s)
    return Spent(
        this_month[0], within(leases, rates, this_month, now_s), this_day[0], within(leases, rates, this_day, now_s)
    )


def within(leases: Iterable[LeaseRow], rates: Paid, times: Times, now_s: float) -> dict[str, float]:
    """USD by account that leases had cost by then, of what falls into a time."""
    known = [lease for lease in leases if lease.state != REQUESTED]
    paid = [(lease, paid) for lease in known if (paid := lease.paid(now_s))]
    names = {rate.account for lease, _ in paid for rate in rates_of(lease, rates)}
    only = Ceiling("month", 0.0, *times)
    return {
        name: sum(_usd(rates_of(lease, rates), *costs, only, name) for lease, costs in paid) for name in sorted(names)
    }


def budget(declared: DeclaredBudget, leases: Iterable[LeaseRow], rates: Paid, now_s: float, ahead_s: float) -> Budget:
    """The budget at that moment, with the ceilings of all days and months that a lease
    reaches, or that one of `ahead_s` would.
    """
    leases = list(leases)
    asides = [(lease, aside) for lease in leases if (aside := lease.aside(now_s))]
    last_s = max((until_s for _, (_, until_s) in asides), default=now_s)
    until_s = max(last_s, now_s + ahead_s) + CLOCK_S
    months = _windows(month, now_s - CLOCK_S, until_s)
    days = _windows(day, now_s - CLOCK_S, until_s) if declared.usd_per_day is not None else []
    empty = [
        *(Ceiling("day", declared.usd_per_day or 0.0, *window, slack_s=CLOCK_S) for window in days),
        *(Ceiling("month", declared.usd_per_month, *window, slack_s=CLOCK_S) for window in months),
        *(
            Ceiling("month", usd, *window, account=name, slack_s=CLOCK_S)
            for name, usd in sorted(declared.accounts.items())
            for window in months
        ),
    ]
    paid = [(lease, paid) for lease in leases if (paid := lease.paid(now_s))]
    ceilings = [_filled(ceiling, paid, asides, rates) for ceiling in empty]
    start, end = month(now_s)
    this = Ceiling("month", declared.usd_per_month, start, end)
    spent = sum(usd(this, lease, times, rates) for lease, times in paid)
    committed = sum(_usd(rates_of(lease, rates), from_s, until_s, None, None) for lease, (from_s, until_s) in asides)
    return Budget(
        usd_per_month=declared.usd_per_month,
        spent_usd=spent,
        committed_usd=committed,
        month_ends_s=end,
        usd_per_day=declared.usd_per_day,
        accounts=dict(declared.accounts),
        ceilings=tuple(ceilings),
    )


def counts_from_s(now_s: float) -> float:
    """What ended before this moment no ceiling of now pays for: the start of the month, as far as clocks differ."""
    start_s, _ = month(now_s - CLOCK_S)
    return start_s - CLOCK_S


def rates_of(lease: LeaseRow, rates: Paid) -> Sequence[Rate]:
    """Those of a lease; one of an old ledger has the price that it was rented for."""
    return rates.get(lease.id) or (Rate(0.0, "", lease.usd_per_hour),)


def usd(ceiling: Ceiling, lease: LeaseRow, times: Times, rates: Paid) -> float:
    """What a time of a lease costs under a ceiling."""
    return _usd(rates_of(lease, rates), *times, ceiling, ceiling.account or None)


def _filled(ceiling: Ceiling, paid: Iterable[Costs], asides: Iterable[Costs], rates: Paid) -> Ceiling:
    spent = sum(usd(ceiling, lease, times, rates) for lease, times in paid)
    committed = sum(usd(ceiling, lease, times, rates) for lease, times in asides)
    return replace(ceiling, spent_usd=spent, committed_usd=committed)


def _usd(rates: Sequence[Rate], from_s: float, until_s: float, ceiling: Ceiling | None, account: str | None) -> float:
    total = 0.0
    for n, rate in enumerate(rates):
        begin = max(from_s, rate.from_s)
        end = min(until_s, rates[n + 1].from_s) if n + 1 < len(rates) else until_s
        if end > begin and account in (None, rate.account):
            total += rate.usd_per_hour * (ceiling.hours(begin, end) if ceiling else (end - begin) / 3600)
    return total


def month(at_s: float) -> Times:
    """Start and end of the calendar month (UTC) that holds a moment."""
    start = datetime.fromtimestamp(at_s, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    end = start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
    return start.timestamp(), end.timestamp()


def day(at_s: float) -> Times:
    """Start and end of the day (UTC) that holds a moment."""
    start = datetime.fromtimestamp(at_s, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return start.timestamp(), (start + timedelta(days=1)).timestamp()


def _windows(of: Callable[[float], Times], from_s: float, until_s: float) -> list[Times]:
    windows = [of(from_s)]
    while windows[-1][1] < until_s:
        windows.append(of(windows[-1][1]))
    return windows
