"""What parts of a network in AWS, and a control plane of EKS, cost."""

from typing import Literal

from ironburst.catalog.instances import NetworkPrice
from ironburst.catalog.tables import table

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


def network_price(item: NetworkItem, region: str) -> NetworkPrice | None:
    """What a part of a network, or a control plane of EKS, costs; None where it isn't known."""
    prices = table("aws_network_prices.csv")
    for row in prices.rows:
        if (row["region"], row["item"]) == (region, item) and row["usd"]:
            return NetworkPrice(float(row["usd"]), prices.as_of)
    return None
