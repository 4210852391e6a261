"""The price port: what one hour of an instance costs, where that is known. Sums made from it are estimates."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

from ironburst.catalog.instances import instance_type
from ironburst.catalog.tables import table

Market = Literal["on-demand", "spot"]
Overrides = Mapping[str, Mapping[str, float | None]]
"""instance type -> {"on_demand": USD/h, "spot": USD/h}, as the declaration's `price:` has it"""

_LIST_REGION = "us-east-1"  # the only region whose on-demand prices the data has


@dataclass(frozen=True)
class Price:
    """USD for one instance-hour, where it comes from, and the date it was read (None for a declared price)."""

    usd_per_hour: float
    source: str
    as_of: date | None

    def age_days(self, today: date) -> int | None:
        """How old the price is on `today`; None for a declared one, which has no date."""
        return None if self.as_of is None else (today - self.as_of).days


def price(name: str, market: Market, region: str, overrides: Overrides | None = None) -> Price | None:
    """The hourly price, or None where it isn't known. Declared overrides come first; raises Unknown for an unknown type."""
    kind = instance_type(name)
    declared = ((overrides or {}).get(name) or {}).get(market.replace("-", "_"))
    if declared is not None:
        return Price(float(declared), "declared", None)
    if region != _LIST_REGION:
        return None
    if market != "spot":
        if kind.od_usd_per_hour is None:
            return None
        return Price(kind.od_usd_per_hour, "list price", kind.prices_as_of)
    advisor = table("aws_spot_advisor.csv")
    for row in advisor.rows:
        if row["instance_type"] == name and row["region"] == region and row["est_spot_usd_h_us_east_1_only"]:
            return Price(float(row["est_spot_usd_h_us_east_1_only"]), "spot advisor (average savings)", advisor.as_of)
    return None


def estimate(name: str, market: Market, region: str, node_hours: float, overrides: Overrides | None = None) -> float | None:
    """Estimated USD for so many node-hours; None where the price isn't known."""
    known = price(name, market, region, overrides)
    return None if known is None else known.usd_per_hour * node_hours
