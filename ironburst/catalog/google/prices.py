"""What parts of a network in Google Cloud cost, besides machines."""

from typing import Literal

from ironburst.catalog import instances
from ironburst.catalog.instances import NetworkPrice

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
    return instances.network_price("google_network_prices.csv", item=item)
