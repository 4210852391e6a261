"""The ledger's money: what is rented, at which price, who pays, and what that leaves of the budget.

The arithmetic is in money.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ironburst.burst import Budget
from ironburst.controller import karpenter_store, money, order_book, records
from ironburst.controller.ledger import Ledger
from ironburst.controller.money import Spent
from ironburst.controller.records import LeaseRow, Rate
from ironburst.controller.site import Site
from ironburst.document import BudgetDocument as DeclaredBudget

NONE: Mapping[str, float] = MappingProxyType({})


def budget_of(site: Site, ended: Mapping[str, float] = NONE) -> Budget | None:
    """The money now, under every ceiling that a lease can reach. None: no budget is declared. `ended`: leases by id,
    and when each was over, of which the ledger doesn't know it.
    """
    declared = order_book.budget(site.ledger, site.document, site.now)
    if declared is None:
        return None
    spans = [pool.boot_s + pool.max_run_s + pool.idle_s + records.ENDING_S for pool in site.document.pools]
    spans += [karpenter_store.span_s(pool) for pool in site.document.karpenter]
    ahead_s = max(spans, default=0.0)
    known = budget(site.ledger, declared, site.now, ahead_s, ended)
    return replace(known, users=order_book.user_limits(site.ledger, site.now, rates(site.ledger, site.now)))


def budget(
    ledger: Ledger, declared: DeclaredBudget, now_s: float, ahead_s: float = 0.0, ended: Mapping[str, float] = NONE
) -> Budget:
    """What all leases have spent, and what is set aside for those that aren't over,
    under each ceiling from now to `ahead_s` later. `ended`: as in `budget_of`.
    """
    paid = [replace(row, to_s=ended[row.id]) if row.id in ended else row for row in _paid(ledger, now_s)]
    return money.budget(declared, paid, rates(ledger, now_s), now_s, ahead_s)


def spent(ledger: Ledger, rates: money.Paid, at_s: float) -> Spent:
    """What that moment's month and day had cost by then, at those rates."""
    return money.spent(_paid(ledger, at_s), rates, at_s)


def by_pool(ledger: Ledger, times: Sequence[money.Times], now_s: float) -> list[dict[str, dict[str, float]]]:
    """USD of each of these times by pool and account, as far as it has passed; a NodePool of Karpenter's is a pool,
    too.
    """
    first_s = min(from_s for from_s, _ in times)
    theirs, their_rates = karpenter_store.rows(ledger)
    known = ledger.rates_paid_after(first_s) | their_rates
    pools: dict[str, list[LeaseRow]] = {}
    for lease in (*ledger.leases_paid_after(first_s), *theirs):
        pools.setdefault(lease.pool, []).append(lease)
    costs = [
        {name: money.within(leases, known, each, now_s) for name, leases in sorted(pools.items())} for each in times
    ]
    return [
        {name: found for name, cost in each.items() if (found := {who: usd for who, usd in cost.items() if usd})}
        for each in costs
    ]


def rates(ledger: Ledger, now_s: float) -> dict[str, list[Rate]]:
    """By lease, the oldest first: of the leases, and of Karpenter's machines, that this month pays for."""
    return ledger.rates_paid_after(money.counts_from_s(now_s)) | karpenter_store.rows(ledger)[1]


def _paid(ledger: Ledger, at_s: float) -> list[LeaseRow]:
    """What that moment's month pays for: our leases, and Karpenter's machines."""
    return [*ledger.leases_paid_after(money.counts_from_s(at_s)), *karpenter_store.rows(ledger)[0]]


def assign(
    ledger: Ledger, job: int, leases: Sequence[str], committed_until_s: float, now_s: float, account: str = ""
) -> None:
    """Give leases to a job: they are kept until then, and `account` pays for them from now on."""
    with ledger.transaction():
        ledger.assign(job, leases, now_s)
        known = rates(ledger, now_s)
        for lease in (lease for lease in ledger.leases() if lease.id in leases):
            # what isn't launched yet is kept for as long as from now to then, from its launch on
            until_s = committed_until_s + (lease.made_s - now_s if lease.from_s is None else 0.0)
            ledger.update([lease], committed_until_s=max(lease.committed_until_s, until_s))
            rate = money.rates_of(lease, known)[-1]
            if rate.account != account:
                ledger.rate(lease.id, now_s, account, rate.usd_per_hour)
