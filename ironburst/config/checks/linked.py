"""What a cloud's network and halls have to be to each other, for clouds whose halls have one link each."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from ironburst.config.checks.common import Findings, unroutable
from ironburst.config.cloud_models import Cloud
from ironburst.config.cloud_network_models import Link, LinkedNetwork, LinkT
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig


def zones(cloud: Cloud, declared: Sequence[str]) -> Findings:
    """Groups and pools are in zones of the network."""
    used = [(path_of("cloud", "groups", g, "zone"), group.zone) for g, group in enumerate(cloud.groups)]
    for p, pool in enumerate(cloud.pools):
        used += [(path_of("cloud", "pools", p, "zones", z), zone) for z, zone in enumerate(pool.zones)]
    for path, zone in used:
        if zone not in declared:
            yield Finding(path, zone, "zone", f"{zone!r} is not in cloud.network.zones ({', '.join(declared)})")


def public(cidr: str) -> Findings:
    """A network that the world has already."""
    if not ipaddress.IPv4Network(cidr).is_private:
        message = f"{cidr} is a public network, so nodes reach none of its real hosts; take one of 10.0.0.0/8"
        yield Finding(path_of("cloud", "network", "cidr"), cidr, "public", message, "warning")


def nodes(cloud: Cloud) -> int:
    """All that may be there at a time."""
    return sum(group.count for group in cloud.groups) + sum(pool.max_nodes for pool in cloud.pools)


def links(config: ClusterConfig, network: LinkedNetwork[LinkT], *, existing: bool) -> Findings:
    """Each link is of a declared hall of its own. `existing`: the network is somebody else's."""
    first = path_of("cloud", "network", "hall_link" if network.hall_link else "hall_links")
    if network.hall_link and network.hall_links:
        message = "stand beside hall_link: write all links here, and leave hall_link out"
        yield Finding(path_of("cloud", "network", "hall_links"), len(network.hall_links), "hall-link", message)
        return
    if existing and network.links:
        message = "stands beside existing: such a network is used, never changed; link it to the hall where it is kept"
        yield Finding(first, network.links[0].hall, "hall-link", message)
    halls, seen = {hall.name for hall in config.halls}, set[str]()
    for path, link in _each(network):
        if link.hall not in halls:
            yield Finding(f"{path}.hall", link.hall, "unknown-hall", f"{link.hall!r} is not a declared hall")
        if link.hall in seen:
            yield Finding(f"{path}.hall", link.hall, "hall-link", f"{link.hall} is linked already; leave one out")
        seen.add(link.hall)
        address = getattr(link, "peer_address", None)
        if address and unroutable(address):
            message = f"{address} is a private address, which a VPN from outside can't reach: write the public one"
            yield Finding(f"{path}.peer_address", address, "private", message, "warning")


def _each(network: LinkedNetwork[LinkT]) -> Iterator[tuple[str, Link]]:
    if network.hall_link:
        yield path_of("cloud", "network", "hall_link"), network.hall_link
    for number, link in enumerate(network.hall_links):
        yield path_of("cloud", "network", "hall_links", number), link
