"""An estimate of what something costs by the hour, from prices that have a date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from ironburst import catalog
from ironburst.system import local_time

HOURS_PER_MONTH = 730


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


class NetworkPart(NamedTuple):
    """Of a network: `number` of something that costs by the hour. `called`: for people; empty: it isn't named. `item`:
    what the catalogue calls it, `price`: what it says.
    """

    called: str
    number: float
    item: str
    price: catalog.NetworkPrice | None


def of_network(parts: Sequence[NetworkPart], data: Sequence[tuple[str, catalog.NetworkPrice | None]]) -> Estimate:
    """A stack's own network, with data that are declared; of other `data`, by what they are, the price of a GB."""
    what = ", ".join(["network", *(part.called for part in parts if part.called)])
    unknown = [part.item for part in parts if part.price is None]
    if unknown:
        return Estimate(what, None, None, remedy=f"the catalogue has no price of {', '.join(dict.fromkeys(unknown))}")
    beside = ", ".join(f"{price.usd:g} USD a GB {called}" if price else f"data {called}" for called, price in data)
    total = sum(part.number * part.price.usd for part in parts if part.price)
    return Estimate(what, total, None, beside=f"beside that {beside}" if beside else "")
