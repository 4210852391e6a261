"""What parts of a network in Google Cloud cost, besides machines."""

from typing import Literal

from ironburst.catalog.instances import NetworkPrice
from ironburst.catalog.tables import number, table

NetworkItem = Literal[
    "nat-gateway",
    "nat-gateway-data",
    "external-address",
    "vpn-tunnel",
    "vpn-out",
    "vlan-attachment",
    "interconnect-out",
]


def network_price(item: NetworkItem) -> NetworkPrice | None:
    """Of an hour or a GiB; None where it isn't known."""
    prices = table("google_network_prices.csv")
    usd = next(number(row, "usd") for row in prices.rows if row["item"] == item)
    return None if usd is None else NetworkPrice(usd, prices.as_of)
