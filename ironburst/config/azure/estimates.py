"""What a network in Azure costs by the hour."""

from __future__ import annotations

from ironburst.catalog.azure.prices import NetworkItem, network_price
from ironburst.config.azure.models import AzureCloud
from ironburst.config.estimate import Estimate, of_network
from ironburst.config.models import ClusterConfig

WAY_OUT: dict[str, NetworkItem] = {"vpn": "vpn-out", "expressroute": "expressroute-out"}


def running(config: ClusterConfig) -> list[Estimate]:
    """What costs money all the time in Azure beside nodes."""
    cloud = config.cloud_by_class(AzureCloud)
    return [network(cloud)] if cloud and not cloud.network.existing else []


def network(cloud: AzureCloud) -> Estimate:
    """The stack's own network, with the data to the hall where it is declared; of other data the price of a GB."""
    links = cloud.network.links
    parts: list[tuple[str, float, NetworkItem]] = []
    data: list[tuple[str, NetworkItem]] = []
    if cloud.network.egress == "nat" and (cloud.groups or cloud.pools):
        parts += [("NAT gateway", 1, "nat-gateway"), ("", 1, "public-address")]
        data.append(("through NAT", "nat-gateway-data"))
    gateway: dict[str, NetworkItem] = {
        "vpn": cloud.network.vpn_gateway,
        "expressroute": cloud.network.expressroute_gateway,
    }
    for kind in dict.fromkeys(link.kind for link in links):
        parts += [(f"{kind} gateway", 1, gateway[kind]), ("", 1, "public-address")]
    return of_network(parts, data, [(link, WAY_OUT[link.kind]) for link in links], network_price)
