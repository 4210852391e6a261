"""What parts of a network in AWS, and a control plane of EKS, cost."""

from typing import Literal

from ironburst.catalog import instances
from ironburst.catalog.instances import NetworkPrice

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
    return instances.network_price("aws_network_prices.csv", region=region, item=item)
