"""The price port: what one hour of an instance costs, where that is known. Sums made from it are estimates."""

import math
from dataclasses import dataclass
from datetime import date
from typing import Literal

from ironburst.catalog.aws.instances import instance_type
from ironburst.catalog.tables import table

Market = Literal["on-demand", "spot", "capacity-block"]
NetworkItem = Literal[
    "nat-gateway",
    "nat-gateway-data",
    "public-ipv4",
    "interface-endpoint",
    "interface-endpoint-data",
    "vpn-connection",
    "transit-gateway-attachment",
    "transit-gateway-data",
    "internet-out",
    "direct-connect-out",
    "between-zones",
    "eks-control-plane",
    "eks-extended-support",
]
# of the spot advisor; the last one has no upper end there, so it is taken to be 30%
_BANDS = {"<5%": (0.0, 0.05), "5-10%": (0.05, 0.1), "10-15%": (0.1, 0.15), "15-20%": (0.15, 0.2), ">20%": (0.2, 0.3)}
LIST_REGION = "us-east-1"  # the only region whose on-demand prices the data has


@dataclass(frozen=True)
class Price:
    """USD for one instance-hour, where it comes from, and the date it was read (None for a declared price)."""

    usd_per_hour: float
    source: str
    as_of: date | None


@dataclass(frozen=True)
class NetworkPrice:
    """USD for an hour of a thing or a GB of data (`between-zones`: in each direction)."""

    usd: float
    as_of: date | None


@dataclass(frozen=True)
class Savings:
    """Percent of the on-demand price that spot costs less, as the spot advisor has it of that day."""

    percent: float
    as_of: date | None


@dataclass(frozen=True)
class Interruptions:
    """The part of an instance type's spot instances that are taken back within
    30 days: a band, from `least` to `most`.
    """

    least: float
    most: float
    source: str
    as_of: date | None

    @property
    def per_hour(self) -> float:
        """The rate of one instance, taken from the upper end of the band: rather too many than too few."""
        return -math.log(1 - self.most) / (30 * 24)


def price(name: str, market: Market, region: str, override: float | None = None) -> Price | None:
    """The hourly price, or None where it isn't known. A declared price (`override`) comes first; in a capacity block
    an hour costs nothing: all of them were paid for when it was bought. Raises Unknown.
    """
    kind = instance_type(name)
    if market == "capacity-block":
        return Price(0.0, "paid for when it was bought", None)
    if override is not None:
        return Price(float(override), "declared", None)
    if region != LIST_REGION:
        return None
    if market == "on-demand" and kind.od_usd_per_hour is not None:
        return Price(kind.od_usd_per_hour, "list price", kind.prices_as_of)
    return _spot(name, region) if market == "spot" else None


def network_price(item: NetworkItem, region: str) -> NetworkPrice | None:
    """What a part of a network, or a control plane of EKS, costs; None where it isn't known."""
    prices = table("aws_network_prices.csv")
    for row in prices.rows:
        if (row["region"], row["item"]) == (region, item) and row["usd"]:
            return NetworkPrice(float(row["usd"]), prices.as_of)
    return None


def interruptions(name: str, region: str) -> Interruptions | None:
    """How often spot instances of a type are taken back; None where it isn't known. Raises Unknown."""
    instance_type(name)
    advisor = table("aws_spot_advisor.csv")
    for row in advisor.rows:
        if (row["region"], row["instance_type"]) == (region, name) and row["interruption_30d"] in _BANDS:
            return Interruptions(*_BANDS[row["interruption_30d"]], "spot advisor", advisor.as_of)
    return None


def spot_savings(name: str, region: str) -> Savings | None:
    """What spot saves on on-demand in a region; None where it isn't known. Raises Unknown."""
    instance_type(name)
    advisor = table("aws_spot_advisor.csv")
    for row in advisor.rows:
        if (row["region"], row["instance_type"]) == (region, name) and row["savings_pct_vs_od"]:
            return Savings(float(row["savings_pct_vs_od"]), advisor.as_of)
    return None


def _spot(name: str, region: str) -> Price | None:
    advisor = table("aws_spot_advisor.csv")
    for row in advisor.rows:
        if (row["region"], row["instance_type"]) == (region, name) and row["est_spot_usd_h_us_east_1_only"]:
            return Price(float(row["est_spot_usd_h_us_east_1_only"]), "estimate from the spot advisor", advisor.as_of)
    return None
