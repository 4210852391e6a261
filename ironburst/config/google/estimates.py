"""What a network in Google Cloud costs by the hour."""

from __future__ import annotations

from ironburst.catalog.google.prices import NetworkItem, network_price
from ironburst.config.estimate import Estimate, of_network
from ironburst.config.google.models import GoogleCloud
from ironburst.config.models import ClusterConfig

WAY_OUT: dict[str, NetworkItem] = {"vpn": "vpn-out", "interconnect": "interconnect-out"}
TUNNELS = 2
"""of an HA VPN"""


def running(config: ClusterConfig) -> list[Estimate]:
    """What costs money all the time in Google Cloud beside nodes."""
    cloud = config.cloud_by_class(GoogleCloud)
    return [network(cloud)] if cloud and not cloud.network.existing else []


def network(cloud: GoogleCloud) -> Estimate:
    """The stack's own network, with the data to the hall where it is declared; of other data the price of a GB. Google
    bills GiB: 7% less than it says here.
    """
    links = cloud.network.links
    parts: list[tuple[str, float, NetworkItem]] = []
    data: list[tuple[str, NetworkItem]] = []
    if cloud.network.egress == "nat" and (cloud.groups or cloud.pools):
        parts += [("Cloud NAT", 1, "nat-gateway"), ("", 1, "external-address")]
        data.append(("through NAT", "nat-gateway-data"))
    tunnels = TUNNELS * sum(link.kind == "vpn" for link in links)
    attachments = sum(len(link.interconnects) for link in links)
    parts += [(f"{tunnels} VPN tunnels", tunnels, "vpn-tunnel")] if tunnels else []
    parts += [(f"{attachments} VLAN attachments", attachments, "vlan-attachment")] if attachments else []
    return of_network(parts, data, [(link, WAY_OUT[link.kind]) for link in links], network_price)
