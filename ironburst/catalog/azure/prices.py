"""What parts of a network in Azure cost, besides machines."""

from typing import Literal

from ironburst.catalog import instances
from ironburst.catalog.instances import NetworkPrice

NetworkItem = Literal[
    "nat-gateway",
    "nat-gateway-data",
    "public-address",
    "VpnGw1AZ",
    "VpnGw2AZ",
    "VpnGw3AZ",
    "VpnGw4AZ",
    "VpnGw5AZ",
    "ErGw1AZ",
    "ErGw2AZ",
    "ErGw3AZ",
    "vpn-out",
    "expressroute-out",
]


def network_price(item: NetworkItem) -> NetworkPrice | None:
    """Of an hour or a GB; None where it isn't known."""
    return instances.network_price("azure_network_prices.csv", item=item)
