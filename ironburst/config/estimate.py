"""An estimate of what something costs by the hour, from prices that have a date."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

from ironburst import catalog
from ironburst.config.cloud_network_models import Link
from ironburst.system import local_time

HOURS_PER_MONTH = 730
Item = TypeVar("Item", bound=str)


@dataclass(frozen=True)
class Estimate:
    """USD per hour with every declared node running;
    None where a price isn't known. `as_of`: the oldest list price in it. `beside`: what isn't in the sum.
    """

    what: str
    usd_per_hour: float | None
    as_of: date | None
    beside: str = ""
    remedy: str = "give one under price of its cloud"

    @property
    def usd_per_month(self) -> float | None:
        """None where the hour's isn't known."""
        return None if self.usd_per_hour is None else self.usd_per_hour * HOURS_PER_MONTH

    def told(self, today: date | None = None) -> str:
        """For people now: with the age of its prices. `str` is the same on every day, for what is kept."""
        dated = f"list prices of {self.as_of}"
        return str(self).replace(dated, f"list prices of {local_time.prices_of(self.as_of, today)}", 1)

    def __str__(self) -> str:
        if self.usd_per_hour is None:
            return f"{self.what}: price unknown, so no estimate; {self.remedy}"
        dated = f", list prices of {self.as_of}" if self.as_of else ", declared prices"
        hour, month = f"{self.usd_per_hour:,.2f} USD an hour", f"{self.usd_per_month:,.0f} USD a month"
        beside = f"; {self.beside}" if self.beside else ""
        return f"{self.what}: at worst {hour}, {month} (estimate{dated}){beside}"


def of_network(
    parts: Sequence[tuple[str, float, Item]],
    data: Sequence[tuple[str, Item]],
    ways_out: Sequence[tuple[Link, Item]],
    price_of: Callable[[Item], catalog.NetworkPrice | None],
) -> Estimate:
    """A stack's own network, with the data to the halls where they are declared; of other data the price of a GB.

    `parts`: what costs by the hour, as (for people, empty: it isn't named; number; item of the catalogue); `data`: what
    they are, and a GB's item; `ways_out`: a GB's item of each link.
    """
    costs, per_gb = list(parts), list(data)
    for link, item in ways_out:
        if link.gb_per_month:
            costs.append(
                (f"{link.gb_per_month:,g} GB a month to {link.hall}", link.gb_per_month / HOURS_PER_MONTH, item)
            )
        elif link.gb_per_month is None:
            per_gb.append((f"to {link.hall}", item))
    what = ", ".join(["network", *(called for called, _, _ in costs if called)])
    priced = [(number, item, price_of(item)) for _, number, item in costs]
    unknown = [item for _, item, price in priced if price is None]
    if unknown:
        return Estimate(what, None, None, remedy=f"the catalogue has no price of {', '.join(dict.fromkeys(unknown))}")
    prices = [(called, price_of(item)) for called, item in per_gb]
    beside = ", ".join(f"{price.usd:g} USD a GB {called}" if price else f"data {called}" for called, price in prices)
    total = sum(number * price.usd for number, _, price in priced if price)
    return Estimate(what, total, None, beside=f"beside that {beside}" if beside else "")
