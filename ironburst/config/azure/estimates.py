"""What a network in Azure costs by the hour."""

from __future__ import annotations

from ironburst.catalog.azure.prices import NetworkItem, network_price
from ironburst.config.azure.models import AzureCloud
from ironburst.config.estimate import HOURS_PER_MONTH, Estimate, NetworkPart, of_network
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
    for link in links:
        if link.gb_per_month:
            said = f"{link.gb_per_month:,g} GB a month to {link.hall}"
            parts.append((said, link.gb_per_month / HOURS_PER_MONTH, WAY_OUT[link.kind]))
    data += [(f"to {link.hall}", WAY_OUT[link.kind]) for link in links if link.gb_per_month is None]
    priced = [NetworkPart(called, count, item, network_price(item)) for called, count, item in parts]
    return of_network(priced, [(called, network_price(item)) for called, item in data])
