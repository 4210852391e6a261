"""Networks of Azure: room for the declared nodes, zones, and the link to the hall."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from ironburst import catalog
from ironburst.config.azure import subnets
from ironburst.config.azure.models import AzureCloud
from ironburst.config.checks import linked
from ironburst.config.checks.common import Findings
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig

FABRIC = "172.16.0.0/16"
"""of the RDMA network: neither the VNet nor a hall may have it (setup-infiniband, 2026-09)"""


def network(config: ClusterConfig) -> Findings:
    """All of it."""
    if cloud := config.cloud_by_class(AzureCloud):
        yield from _zones(cloud)
        yield from _room(cloud)
        yield from _fabric(config, cloud)
        yield from linked.links(config, cloud.network, existing=cloud.network.existing is not None)


def _zones(cloud: AzureCloud) -> Findings:
    declared, region = cloud.network.zones, cloud.region
    for z, zone in enumerate(declared):
        if zone != region and not re.fullmatch(rf"{re.escape(region)}-[1-9]", zone):
            message = f"{zone!r} is not a zone of {region}; write for example {region}-1, or {region} for none"
            yield Finding(path_of("cloud", "network", "zones", z), zone, "zone", message)
    yield from linked.zones(cloud, declared)


def _room(cloud: AzureCloud) -> Findings:
    """Every node has an address in the one subnet."""
    path = path_of("cloud", "network", "cidr")
    yield from linked.public(cloud.network.cidr)
    if cloud.network.existing:
        return
    try:
        room = subnets.usable(subnets.divide(cloud.network.cidr).nodes)
    except ValueError as error:
        yield Finding(path, cloud.network.cidr, "too-small", str(error))
        return
    if (needed := linked.nodes(cloud)) > room:
        message = f"{cloud.network.cidr} has {room} addresses for nodes, and those declared need {needed}"
        yield Finding(path, cloud.network.cidr, "too-small", f"{message}: write a larger one")


def _fabric(config: ClusterConfig, cloud: AzureCloud) -> Findings:
    groups, pools = [each.types for each in cloud.groups], [each.types for each in cloud.pools]
    if not any(_has_fabric(name) for types in (*groups, *pools) for name in types):
        return
    for path, cidr in _networks(config, cloud):
        if ipaddress.IPv4Network(cidr).overlaps(ipaddress.IPv4Network(FABRIC)):
            message = f"{cidr} overlaps {FABRIC}, which is Azure's InfiniBand's own on these nodes: take another"
            yield Finding(path, cidr, "infiniband", message)


def _networks(config: ClusterConfig, cloud: AzureCloud) -> Iterator[tuple[str, str]]:
    yield path_of("cloud", "network", "cidr"), cloud.network.cidr
    yield from ((path_of("halls", h, "cidr"), hall.cidr) for h, hall in enumerate(config.halls))


def _has_fabric(name: str) -> bool:
    try:
        return catalog.fabric(name)[0] == "infiniband"
    except catalog.Unknown:
        return False  # said by instance_types
