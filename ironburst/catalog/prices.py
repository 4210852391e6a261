"""The price port: what one hour of an instance costs, where that is known. Sums made from it are estimates."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

from ironburst.catalog.instances import instance_type
from ironburst.catalog.tables import table

Market = Literal["on-demand", "spot"]
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


def price(name: str, market: Market, region: str, override: float | None = None) -> Price | None:
    """The hourly price, or None where it isn't known. A declared price (`override`) comes first. Raises Unknown."""
    kind = instance_type(name)
    if override is not None:
        return Price(float(override), "declared", None)
    if region != _LIST_REGION:
        return None
    if market == "on-demand" and kind.od_usd_per_hour is not None:
        return Price(kind.od_usd_per_hour, "list price", kind.prices_as_of)
    return _spot(name, region) if market == "spot" else None


def _spot(name: str, region: str) -> Price | None:
    advisor = table("aws_spot_advisor.csv")
    for row in advisor.rows:
        if (row["region"], row["instance_type"]) == (region, name) and row["est_spot_usd_h_us_east_1_only"]:
            return Price(float(row["est_spot_usd_h_us_east_1_only"]), "estimate from the spot advisor", advisor.as_of)
    return None
