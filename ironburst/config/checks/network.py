"""Networks: overlaps, room for the declared nodes, zones, and the link to the hall."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from ironburst import catalog
from ironburst.config import subnets
from ironburst.config.checks.common import Findings
from ironburst.config.cloud_models import Cloud
from ironburst.config.load import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.config.network_models import HallLink

LINK_KEYS = {"vpn": ("peer_address", "peer_asn"), "direct-connect": ("gateway_id",)}
"""kind of hall link: the keys that it needs, and others may not have"""


def overlaps(config: ClusterConfig) -> Findings:
    """No two networks overlap, and the cloud's holds what is declared in it."""
    earlier: list[tuple[str, str]] = []
    for path, cidr in _networks(config):
        for other_path, other in earlier:
            if ipaddress.IPv4Network(cidr).overlaps(ipaddress.IPv4Network(other)):
                message = f"{cidr} overlaps {other} at {other_path}; routes between them would be ambiguous"
                yield Finding(path, cidr, "overlap", message)
        earlier.append((path, cidr))
    if config.cloud and not config.cloud.network.existing:
        yield from _room(config.cloud)


def _networks(config: ClusterConfig) -> Iterator[tuple[str, str]]:
    for h, hall in enumerate(config.halls):
        yield path_of("halls", h, "cidr"), hall.cidr
        yield path_of("halls", h, "bmc_cidr"), hall.bmc_cidr
    if config.cloud:
        yield path_of("cloud", "network", "cidr"), config.cloud.network.cidr


def _room(cloud: Cloud) -> Findings:
    """Every zone's subnet has an address for each interface of the nodes that may run there."""
    network, path = cloud.network, path_of("cloud", "network", "cidr")
    try:
        divided = subnets.divide(network.cidr, network.zones)
    except ValueError as error:
        yield Finding(path, network.cidr, "too-small", str(error))
        return
    declared = [(group.types, [group.zone], group.count) for group in cloud.groups]
    declared += [(pool.types, pool.zones, pool.max_nodes) for pool in cloud.pools]
    needed = dict.fromkeys(divided, 0)
    for types, its_zones, count in declared:
        try:
            a_node = max(catalog.addresses(catalog.network_interfaces(name)) for name in types)
        except catalog.Unknown:
            continue  # said by cloud.instance_types()
        for zone in its_zones:
            if zone in needed:
                needed[zone] += a_node * count
    for zone, count in needed.items():
        room = subnets.usable(divided[zone].private)
        if count > room:
            message = f"{network.cidr} gives zone {zone} {room} addresses and the nodes declared there need {count}"
            yield Finding(path, network.cidr, "too-small", message)


def zones(config: ClusterConfig) -> Findings:
    """Zones are the region's, have a subnet, and offer the instance types that are wanted in them."""
    if not config.cloud:
        return
    network, region = config.cloud.network, config.cloud.region
    for z, zone in enumerate(network.zones):
        if not (zone.startswith(region) and len(zone) == len(region) + 1):
            message = f"{zone!r} is not a zone of {region}; write for example {region}a"
            yield Finding(path_of("cloud", "network", "zones", z), zone, "zone", message)
    if network.existing:
        path = path_of("cloud", "network", "existing", "subnets")
        for zone in network.existing.subnets.keys() ^ set(network.zones):
            message = f"zone {zone} is only in one of `zones` and `existing.subnets`; name the same zones in both"
            yield Finding(path, zone, "zone", message)
    for path, zone, types in _used_zones(config.cloud):
        if zone not in network.zones:
            yield Finding(path, zone, "zone", f"{zone!r} is not in cloud.network.zones ({', '.join(network.zones)})")
            continue
        for name in types:
            yield from _not_offered(path, zone, name, region)


def _not_offered(path: str, zone: str, instance_type: str, region: str) -> Findings:
    try:
        offered = catalog.instance_type(instance_type).zones(region)
    except catalog.Unknown:
        return  # said by cloud.instance_types()
    if offered and zone not in offered:
        message = (
            f"{instance_type} may not be offered in {zone}: the catalogue lists {', '.join(offered)}; "
            "zones have other letters in other accounts, so the preview asks EC2"
        )
        yield Finding(path, zone, "not-offered", message, "warning")


def _used_zones(cloud: Cloud) -> Iterator[tuple[str, str, list[str]]]:
    """(path, zone, instance types) of everything that runs in a zone."""
    for g, group in enumerate(cloud.groups):
        yield path_of("cloud", "groups", g, "zone"), group.zone, group.types
    for p, pool in enumerate(cloud.pools):
        for z, zone in enumerate(pool.zones):
            yield path_of("cloud", "pools", p, "zones", z), zone, pool.types


def hall_link(config: ClusterConfig) -> Findings:
    """The link names a declared hall and has its kind's keys."""
    network = config.cloud.network if config.cloud else None
    if network is None or network.hall_link is None:
        return
    link, path = network.hall_link, ("cloud", "network", "hall_link")
    if network.existing:
        message = (
            "stands beside existing: such a network is used, never changed; "
            "link it to the hall where it is kept, and leave this out"
        )
        yield Finding(path_of(*path), link.kind, "hall-link", message)
    if link.hall not in {hall.name for hall in config.halls}:
        yield Finding(path_of(*path, "hall"), link.hall, "unknown-hall", f"{link.hall!r} is not a declared hall")
    for key, given, message in _misplaced_keys(link):
        yield Finding(path_of(*path, key), given, "hall-link", message)


def _misplaced_keys(link: HallLink) -> Iterator[tuple[str, object, str]]:
    """(key, its value, what is wrong) of keys that the link's kind lacks or may not have."""
    for kind, keys in LINK_KEYS.items():
        for key in keys:
            given = getattr(link, key)
            if link.kind == kind and given is None:
                yield key, given, f"is needed for a {kind} link"
            if link.kind != kind and given is not None:
                yield key, given, f"belongs to a {kind} link, not to {link.kind}"
