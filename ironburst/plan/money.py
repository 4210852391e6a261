"""What a month costs at worst, now and as declared: estimates, by the catalogue's and the declared prices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from ironburst.config import estimates
from ironburst.config.models import ClusterConfig

DAYS = 31


@dataclass(frozen=True)
class MonthlyCost:
    """USD in a month; None: a price isn't known. 0.0: it isn't declared."""

    what: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Money:
    """`rows`: what is paid for; `rented`: what the pools would cost if no ceiling held them, None: not known;
    `ceiling`: budget.total_usd_per_month; `as_of`: the oldest list price in it, None: all are declared.
    """

    rows: list[MonthlyCost]
    rented: float | None
    ceiling: float | None
    as_of: date | None = None

    @property
    def total(self) -> float | None:
        """Of everything as declared; None: a price isn't known."""
        return _sum([row.after for row in self.rows])

    @property
    def total_before(self) -> float | None:
        """The same of the declaration in force."""
        return _sum([row.before for row in self.rows])


def money(config: ClusterConfig, before: ClusterConfig | None) -> Money:
    """Raises catalog.Unknown for a type that the catalogue doesn't have; checks.check says it first."""
    then, now = (_costs(before) if before else {}), _costs(config)
    rows = [MonthlyCost(what, then.get(what, 0.0), now.get(what, 0.0)) for what in dict.fromkeys([*now, *then])]
    ceiling = config.budget.total_usd_per_month if config.budget else None
    pools = [estimates.pool(config.cloud_of(pool), pool) for pool in config.pools]
    days = [each.as_of for each in (*estimates.fixed(config), *pools) if each.as_of]
    return Money(rows, _pools(config), ceiling, min(days, default=None))


def _costs(config: ClusterConfig) -> dict[str, float | None]:
    costs = {each.what.partition(",")[0]: each.usd_per_month for each in estimates.fixed(config)}
    if (config.pools or config.karpenter) and config.budget:
        budget = config.budget
        most = min(budget.usd_per_month, DAYS * (budget.usd_per_day or budget.usd_per_month))
        pools = None if config.karpenter else _pools(config)
        costs["rented nodes"] = most if pools is None else min(most, pools)
    return costs


def _pools(config: ClusterConfig) -> float | None:
    return _sum([estimates.pool(config.cloud_of(pool), pool).usd_per_month for pool in config.pools])


def _sum(costs: list[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
