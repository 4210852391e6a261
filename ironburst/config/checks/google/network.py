"""Networks of Google Cloud: room for the declared nodes, zones, and the link to the hall."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from ironburst import catalog
from ironburst.config.checks.common import Findings, unroutable
from ironburst.config.finding import Finding, path_of
from ironburst.config.google import declared as in_google
from ironburst.config.google import subnets
from ironburst.config.google.models import GoogleCloud
from ironburst.config.google.network_models import GoogleHallLink
from ironburst.config.models import ClusterConfig


def network(config: ClusterConfig) -> Findings:
    """All of it."""
    if cloud := in_google.of(config):
        yield from _zones(cloud)
        yield from _room(cloud)
        yield from _fabric(cloud)
        yield from _links(config, cloud)


def _zones(cloud: GoogleCloud) -> Findings:
    declared, region = cloud.network.zones, cloud.region
    for z, zone in enumerate(declared):
        if not zone.startswith(f"{region}-") or zone == f"{region}-":
            message = f"{zone!r} is not a zone of {region}; write for example {region}-a"
            yield Finding(path_of("cloud", "network", "zones", z), zone, "zone", message)
    used = [(path_of("cloud", "groups", g, "zone"), group.zone) for g, group in enumerate(cloud.groups)]
    for p, pool in enumerate(cloud.pools):
        used += [(path_of("cloud", "pools", p, "zones", z), zone) for z, zone in enumerate(pool.zones)]
    for path, zone in used:
        if zone not in declared:
            yield Finding(path, zone, "zone", f"{zone!r} is not in cloud.network.zones ({', '.join(declared)})")


def _room(cloud: GoogleCloud) -> Findings:
    """Every node has an address in the one subnet."""
    cidr, path = ipaddress.IPv4Network(cloud.network.cidr), path_of("cloud", "network", "cidr")
    if not cidr.is_private:
        message = f"{cidr} is a public network, so nodes reach none of its real hosts; take one of 10.0.0.0/8"
        yield Finding(path, str(cidr), "public", message, "warning")
    needed = sum(group.count for group in cloud.groups) + sum(pool.max_nodes for pool in cloud.pools)
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


def _links(config: ClusterConfig, cloud: GoogleCloud) -> Findings:
    network = cloud.network
    first = path_of("cloud", "network", "hall_link" if network.hall_link else "hall_links")
    if network.hall_link and network.hall_links:
        message = "stand beside hall_link: write all links here, and leave hall_link out"
        yield Finding(path_of("cloud", "network", "hall_links"), len(network.hall_links), "hall-link", message)
        return
    if network.existing and network.links:
        message = "stands beside existing: such a network is used, never changed; link it to the hall where it is kept"
        yield Finding(first, network.links[0].kind, "hall-link", message)
    halls, seen = {hall.name for hall in config.halls}, set[str]()
    for path, link in _each(cloud):
        if link.hall not in halls:
            yield Finding(f"{path}.hall", link.hall, "unknown-hall", f"{link.hall!r} is not a declared hall")
        if link.hall in seen:
            yield Finding(f"{path}.hall", link.hall, "hall-link", f"{link.hall} is linked already; leave one out")
        seen.add(link.hall)
        address = link.peer_address
        if address and unroutable(address):
            message = f"{address} is a private address, which a VPN from outside can't reach: write the public one"
            yield Finding(f"{path}.peer_address", address, "private", message, "warning")


def _each(cloud: GoogleCloud) -> Iterator[tuple[str, GoogleHallLink]]:
    if cloud.network.hall_link:
        yield path_of("cloud", "network", "hall_link"), cloud.network.hall_link
    for number, link in enumerate(cloud.network.hall_links):
        yield path_of("cloud", "network", "hall_links", number), link
