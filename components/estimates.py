"""What the declaration can cost at worst. Pure; every figure is an estimate from prices that have a date."""

from dataclasses import dataclass
from datetime import date

from ironburst import catalog
from ironburst.config.models import Cloud, Group, Pool
from ironburst.config.prices import price

HOURS_PER_MONTH = 730


@dataclass(frozen=True)
class Estimate:
    """USD per hour with every declared node running;
    None where a price isn't known. `as_of`: the oldest list price in it.
    """

    what: str
    usd_per_hour: float | None
    as_of: date | None

    @property
    def usd_per_month(self) -> float | None:
        """None where the hour's isn't known."""
        return None if self.usd_per_hour is None else self.usd_per_hour * HOURS_PER_MONTH

    def __str__(self) -> str:
        if self.usd_per_hour is None:
            return f"{self.what}: price unknown, so no estimate; give one under cloud.price"
        dated = f", list prices of {self.as_of}" if self.as_of else ", declared prices"
        hour, month = f"{self.usd_per_hour:,.2f} USD an hour", f"{self.usd_per_month:,.0f} USD a month"
        return f"{self.what}: at worst {hour}, {month} (estimate{dated})"


def pool(cloud: Cloud, declared: Pool) -> Estimate:
    """Every node of the pool rented all the time, in its dearest market."""
    what = f"burst pool {declared.name}, {declared.max_nodes} x {declared.instance_type}"
    prices = [price(cloud, declared.instance_type, market) for market in declared.markets]
    return _estimate(what, prices, declared.max_nodes)


def group(cloud: Cloud, declared: Group) -> Estimate:
    """The fixed nodes at the on-demand price (a reservation or a capacity block is paid for apart, and differently)."""
    what = f"fixed group {declared.name}, {declared.count} x {declared.instance_type}"
    return _estimate(what, [price(cloud, declared.instance_type, "on-demand")], declared.count)


def _estimate(what: str, prices: list[catalog.Price | None], nodes: int) -> Estimate:
    known = [given for given in prices if given is not None]
    if len(known) < len(prices):
        return Estimate(what, None, None)
    dearest = max(known, key=lambda given: given.usd_per_hour)
    return Estimate(what, dearest.usd_per_hour * nodes, dearest.as_of)
