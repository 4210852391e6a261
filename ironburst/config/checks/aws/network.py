"""Networks of AWS: room for the declared nodes, zones, and the link to the hall."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst import catalog
from ironburst.config.aws import subnets
from ironburst.config.aws.models import AwsCloud
from ironburst.config.aws.network_models import CloudNetwork, HallLink
from ironburst.config.checks.common import Findings
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig

LINK_KEYS = {
    "peer_address": ("vpn",),
    "peer_asn": ("vpn",),
    "gateway_id": ("direct-connect", "transit-gateway"),
}
"""key of a hall link: the kinds that need it; others may not have it"""


def room(config: ClusterConfig) -> Findings:
    """Every zone's subnet has an address for each interface of the nodes that may run there."""
    cloud = config.cloud_by_class(AwsCloud)
    if not cloud or cloud.network.existing:
        return
    network, path = cloud.network, path_of("cloud", "network", "cidr")
    try:
        divided = subnets.divide(network.cidr, network.zones)
    except ValueError as error:
        yield Finding(path, network.cidr, "too-small", str(error))
        return
    declared = [(group.types, [group.zone], group.count) for group in cloud.groups]
    declared += [(pool.types, pool.zones, pool.max_nodes) for pool in cloud.pools]
    # each attachment of a transit gateway takes one in every zone
    needed = dict.fromkeys(divided, len({link.gateway_id for link in network.links if link.kind == "transit-gateway"}))
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
    if not (cloud := config.cloud_by_class(AwsCloud)):
        return
    network, region = cloud.network, cloud.region
    for z, zone in enumerate(network.zones):
        if not (zone.startswith(region) and len(zone) == len(region) + 1):
            message = f"{zone!r} is not a zone of {region}; write for example {region}a"
            yield Finding(path_of("cloud", "network", "zones", z), zone, "zone", message)
        elif zone not in (known := catalog.zones(region)) and known:
            message = (
                f"the catalogue knows no {zone!r}, but {', '.join(known)}; zones have other letters in other accounts"
            )
            yield Finding(path_of("cloud", "network", "zones", z), zone, "zone", message, "warning")
    if network.existing:
        path = path_of("cloud", "network", "existing", "subnets")
        for zone in network.existing.subnets.keys() ^ set(network.zones):
            message = f"zone {zone} is only in one of `zones` and `existing.subnets`; name the same zones in both"
            yield Finding(path, zone, "zone", message)
    for path, zone, types in _used_zones(cloud):
        if zone not in network.zones:
            yield Finding(path, zone, "zone", f"{zone!r} is not in cloud.network.zones ({', '.join(network.zones)})")
            continue
        for name in types:
            yield from _not_offered(path, zone, name, region)


def _not_offered(path: str, zone: str, instance_type: str, region: str) -> Findings:
    try:
        kind = catalog.instance_type(instance_type)
    except catalog.Unknown:
        return  # said by cloud.instance_types()
    offered = kind.zones(region)
    if not offered and kind.regions:
        known = ", ".join(kind.regions[:6]) + (" and others" if len(kind.regions) > 6 else "")
        message = f"{instance_type} may not be offered in {region}: the catalogue lists {known}"
        yield Finding(path, zone, "not-offered", f"{message}; the preview asks EC2", "warning")
    if offered and zone not in offered:
        message = (
            f"{instance_type} may not be offered in {zone}: the catalogue lists {', '.join(offered)}; "
            "zones have other letters in other accounts, so the preview asks EC2"
        )
        yield Finding(path, zone, "not-offered", message, "warning")


def _used_zones(cloud: AwsCloud) -> Iterator[tuple[str, str, list[str]]]:
    """(path, zone, instance types) of everything that runs in a zone."""
    for g, group in enumerate(cloud.groups):
        yield path_of("cloud", "groups", g, "zone"), group.zone, group.types
    for p, pool in enumerate(cloud.pools):
        for z, zone in enumerate(pool.zones):
            yield path_of("cloud", "pools", p, "zones", z), zone, pool.types


def hall_links(config: ClusterConfig) -> Findings:
    """Each link names a declared hall and has its kind's keys, and they fit together."""
    if not (cloud := config.cloud_by_class(AwsCloud)):
        return
    network = cloud.network
    first = path_of("cloud", "network", "hall_link" if network.hall_link else "hall_links")
    if network.hall_link and network.hall_links:
        message = "stand beside hall_link: write all links here, and leave hall_link out"
        yield Finding(path_of("cloud", "network", "hall_links"), len(network.hall_links), "hall-link", message)
        return
    if network.existing and network.links:
        message = (
            "stands beside existing: such a network is used, never changed; "
            "link it to the hall where it is kept, and leave this out"
        )
        yield Finding(first, network.links[0].kind, "hall-link", message)
    for path, link in _links(network):
        if link.hall not in {hall.name for hall in config.halls}:
            yield Finding(f"{path}.hall", link.hall, "unknown-hall", f"{link.hall!r} is not a declared hall")
        for key, given, message in _misplaced_keys(link):
            yield Finding(f"{path}.{key}", given, "hall-link", message)
    yield from _together(network)


def _links(network: CloudNetwork) -> Iterator[tuple[str, HallLink]]:
    if network.hall_link:
        yield path_of("cloud", "network", "hall_link"), network.hall_link
    for number, link in enumerate(network.hall_links):
        yield path_of("cloud", "network", "hall_links", number), link


def _misplaced_keys(link: HallLink) -> Iterator[tuple[str, object, str]]:
    """(key, its value, what is wrong) of keys that the link's kind lacks or may not have."""
    for key, kinds in LINK_KEYS.items():
        given = getattr(link, key)
        if link.kind in kinds and given is None:
            yield key, given, f"is needed for a {link.kind} link"
        if link.kind not in kinds and given is not None:
            yield key, given, f"belongs to a {' or '.join(kinds)} link, not to {link.kind}"
    if link.gateway_id and link.gateway_id.startswith("tgw-") != (link.kind == "transit-gateway"):
        wanted = "tgw- and its digits" if link.kind == "transit-gateway" else "the Direct Connect gateway's UUID"
        yield "gateway_id", link.gateway_id, f"is no gateway of a {link.kind} link; write {wanted}"


def _together(network: CloudNetwork) -> Findings:
    """A VPC has one VPN gateway, that is associated with one Direct Connect gateway; a route to a hall has one way."""
    kinds: dict[str, list[str]] = {}
    peers: dict[str, str] = {}
    direct: str | None = None
    for path, link in _links(network):
        others = kinds.setdefault(link.hall, [])
        if (others and {*others, link.kind} != {"direct-connect", "vpn"}) or link.kind in others:
            message = (
                f"{link.hall} is linked already ({', '.join(others)}); only a vpn may stand behind a direct-connect"
            )
            yield Finding(f"{path}.hall", link.hall, "hall-link", message)
        others.append(link.kind)
        if link.peer_address and peers.setdefault(link.peer_address, link.hall) != link.hall:
            message = f"{link.peer_address} is the device of {peers[link.peer_address]}; each hall has its own"
            yield Finding(f"{path}.peer_address", link.peer_address, "hall-link", message)
        if link.kind == "direct-connect" and link.gateway_id:
            direct = direct or link.gateway_id
            if link.gateway_id != direct:
                message = f"a VPC takes one Direct Connect gateway, here {direct}; bring the halls together there"
                yield Finding(f"{path}.gateway_id", link.gateway_id, "hall-link", message)
