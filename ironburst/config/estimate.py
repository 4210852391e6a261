"""An estimate of what something costs by the hour, from prices that have a date."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

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
    remedy: str = "give one under cloud.price"

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
