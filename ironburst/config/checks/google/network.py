"""Networks of Google Cloud: room for the declared nodes, zones, and the link to the hall."""

from __future__ import annotations

import ipaddress

from ironburst import catalog
from ironburst.config.checks import linked
from ironburst.config.checks.common import Findings
from ironburst.config.finding import Finding, path_of
from ironburst.config.google import subnets
from ironburst.config.google.models import GoogleCloud
from ironburst.config.models import ClusterConfig


def network(config: ClusterConfig) -> Findings:
    """All of it."""
    if cloud := config.cloud_by_class(GoogleCloud):
        yield from _zones(cloud)
        yield from _room(cloud)
        yield from _fabric(cloud)
        yield from linked.links(config, cloud.network, existing=cloud.network.existing is not None)


def _zones(cloud: GoogleCloud) -> Findings:
    declared, region = cloud.network.zones, cloud.region
    for z, zone in enumerate(declared):
        if not zone.startswith(f"{region}-") or zone == f"{region}-":
            message = f"{zone!r} is not a zone of {region}; write for example {region}-a"
            yield Finding(path_of("cloud", "network", "zones", z), zone, "zone", message)
    yield from linked.zones(cloud, declared)


def _room(cloud: GoogleCloud) -> Findings:
    """Every node has an address in the one subnet."""
    cidr, path = ipaddress.IPv4Network(cloud.network.cidr), path_of("cloud", "network", "cidr")
    yield from linked.public(cloud.network.cidr)
    needed = linked.nodes(cloud)
    room = cidr.num_addresses - subnets.RESERVED
    if not cloud.network.existing and (cidr.prefixlen > subnets.SMALLEST or needed > room):
        message = f"{cidr} has {max(room, 0)} addresses and the nodes declared there need {needed}: write a larger one"
        yield Finding(path, str(cidr), "too-small", message)


def _fabric(cloud: GoogleCloud) -> Findings:
    """Further NICs have subnets, made here or named."""
    path = path_of("cloud", "network", "fabric_cidr")
    try:
        made = subnets.fabric(cloud)
        if cloud.network.fabric_cidr and not made:
            message = "has no use: no node has more than one NIC whose network is made here; leave it out"
            yield Finding(path, cloud.network.fabric_cidr, "unused", message, "warning")
        wanted = {(zone, len(subnets.nics(kind, zone)) - 1) for _, kind, zone in subnets.placed(cloud)}
    except ValueError as error:
        yield Finding(path, cloud.network.fabric_cidr, "fabric", str(error))
        return
    except catalog.Unknown:
        return  # said by instance_types
    if not cloud.network.existing:
        return
    for zone, count in sorted(wanted):
        named = cloud.network.existing.fabric.get(zone, [])
        if count > len(named):
            message = f"names {len(named)} subnetworks for {zone}, and nodes there have {count} NICs beside the first"
            yield Finding(path_of("cloud", "network", "existing", "fabric"), named, "fabric", message)
