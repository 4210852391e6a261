"""What is wrong with a well-formed declaration: duplicates, networks, racks, unknown hardware, refused combinations.

Each check yields findings with the path in the file; none stops at the first. Pure, but for `secret_references`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ironburst import catalog, secrets
from ironburst.config import lockfile, subnets
from ironburst.config.load import ConfigError, Finding, load, path_of
from ironburst.config.models import ClusterConfig, Hall, Nodes, declared_price, group_nodes, pool_nodes
from ironburst.config.software_checks import fabrics, mig, software

Findings = Iterator[Finding]


def load_valid(
    path: Path | str, *, now: datetime, resolve_secrets: bool = False
) -> tuple[ClusterConfig, list[Finding]]:
    """A stack file's declaration and its warnings; its lock file is looked at too. Raises ConfigError with every
    error.
    """
    config = load(path)
    warnings = require_valid(config, now=now, resolve_secrets=resolve_secrets)
    return config, warnings + lockfile.use(config, Path(path))[1]


def require_valid(config: ClusterConfig, *, now: datetime, resolve_secrets: bool = False) -> list[Finding]:
    """The warnings of a valid declaration. Raises ConfigError if there is any error."""
    findings = check(config, now) + (list(secret_references(config)) if resolve_secrets else [])
    if any(finding.severity == "error" for finding in findings):
        raise ConfigError(findings)
    return findings


def check(config: ClusterConfig, now: datetime, *, versions: bool = True) -> list[Finding]:
    """Everything that can be said without a network (`versions`: also of software, which `ironburst lock` says itself).
    `now` decides whether a capacity block or a driver branch is over.
    """
    checks: tuple[Callable[[ClusterConfig], Findings], ...] = (
        shapes,
        duplicates,
        rack_units,
        networks,
        addresses,
        scheduler,
        platforms,
        instance_types,
        zones,
        links,
        money,
        mig,
        fabrics,
    )
    found = [finding for one in checks for finding in one(config)]
    return found + (list(software(config, now)) if versions else []) + list(capacity(config, now))


def secret_references(config: ClusterConfig) -> Findings:
    """References that do not resolve here. AWS Secrets Manager is not asked: validate needs no cloud."""
    places = {path_of("scheduler", "munge_key"): config.scheduler.munge_key}
    places |= {
        path_of("halls", h, "nodes", n, "bmc", "password"): nodes.bmc.password for h, n, _, nodes in _all_nodes(config)
    }
    for path, reference in places.items():
        if not reference.startswith("aws-secretsmanager:"):
            try:
                secrets.resolve(reference)
            except secrets.SecretError as error:
                yield Finding(path, reference, "secret", str(error))


def _all_nodes(config: ClusterConfig) -> Iterator[tuple[int, int, Hall, Nodes]]:
    for h, hall in enumerate(config.halls):
        for n, nodes in enumerate(hall.nodes):
            yield h, n, hall, nodes


def shapes(config: ClusterConfig) -> Findings:
    """Every list gives one value a node."""
    for h, n, _, nodes in _all_nodes(config):
        wanted = len(nodes.names)
        lists = {"units": nodes.units, "addresses": nodes.addresses, "macs": nodes.macs, "serials": nodes.serials}
        for key, values in lists.items():
            if values is not None and len(values) != wanted:
                yield Finding(
                    path_of("halls", h, "nodes", n, key),
                    values,
                    "one-a-node",
                    f"gives {len(values)} values for {wanted} nodes; give one each",
                )
        if len(nodes.bmc.addresses) != wanted:
            path = path_of("halls", h, "nodes", n, "bmc", "addresses")
            yield Finding(
                path,
                nodes.bmc.addresses,
                "one-a-node",
                f"gives {len(nodes.bmc.addresses)} values for {wanted} nodes; give one each",
            )


def duplicates(config: ClusterConfig) -> Findings:
    seen: dict[tuple[str, str], str] = {}

    def once(what: str, value: str, path: str) -> Findings:
        first = seen.setdefault((what, value.lower()), path)
        if first != path:
            yield Finding(path, value, "duplicate", f"{what} {value!r} is used already at {first}; each needs its own")

    for h, hall in enumerate(config.halls):
        yield from once("hall", hall.name, path_of("halls", h, "name"))
        for r, rack in enumerate(hall.racks):
            yield from once(f"rack of {hall.name}", rack.name, path_of("halls", h, "racks", r, "name"))
    for h, n, _, nodes in _all_nodes(config):
        for key, what in (
            ("names", "node name"),
            ("addresses", "address"),
            ("macs", "MAC address"),
            ("serials", "serial number"),
        ):
            for i, value in enumerate(getattr(nodes, key) or []):
                yield from once(what, value, path_of("halls", h, "nodes", n, key, i))
        for i, value in enumerate(nodes.bmc.addresses):
            yield from once("BMC address", value.rstrip("/"), path_of("halls", h, "nodes", n, "bmc", "addresses", i))
    yield from once("partition", config.scheduler.home_partition, path_of("scheduler", "home_partition"))
    if config.cloud:
        for g, group in enumerate(config.cloud.groups):
            yield from once("partition", group.name, path_of("cloud", "groups", g, "name"))
            for name in group_nodes(group):
                yield from once("node name", name, path_of("cloud", "groups", g, "name"))
        for p, pool in enumerate(config.cloud.pools):
            yield from once("partition", f"burst-{pool.name}", path_of("cloud", "pools", p, "name"))
            for name in pool_nodes(pool):
                yield from once("node name", name, path_of("cloud", "pools", p, "name"))


def _height(nodes: Nodes) -> int | None:
    if nodes.height or not nodes.platform:
        return nodes.height
    try:
        return catalog.platform(nodes.platform).height_u
    except catalog.Unknown:
        return None  # said by platforms()


def rack_units(config: ClusterConfig) -> Findings:
    taken: dict[tuple[str, str, int], str] = {}
    for h, n, hall, nodes in _all_nodes(config):
        path = path_of("halls", h, "nodes", n, "units")
        racks = {rack.name: rack for rack in hall.racks}
        if nodes.rack not in racks:
            known = ", ".join(racks)
            yield Finding(
                path_of("halls", h, "nodes", n, "rack"),
                nodes.rack,
                "unknown-rack",
                f"{nodes.rack!r} is not a rack of {hall.name}; known: {known}",
            )
            continue
        height = _height(nodes)
        if height is None:
            yield Finding(
                path_of("halls", h, "nodes", n, "height"),
                None,
                "missing",
                "is needed: the catalogue doesn't know this platform's rack units",
            )
            continue
        for name, unit in zip(nodes.names, nodes.units, strict=False):
            top = unit + height - 1
            if top > racks[nodes.rack].units:
                yield Finding(
                    path,
                    unit,
                    "rack-unit",
                    f"{name} would reach unit {top} of rack {nodes.rack}, which has {racks[nodes.rack].units}",
                )
            for u in range(unit, top + 1):
                other = taken.setdefault((hall.name, nodes.rack, u), name)
                if other != name:
                    yield Finding(
                        path, unit, "duplicate", f"{name} and {other} both take unit {u} of rack {nodes.rack}; move one"
                    )
                    break


def networks(config: ClusterConfig) -> Findings:
    """No two networks overlap, and the cloud's holds what is declared in it."""
    named = [
        (path_of("halls", h, key), getattr(hall, key))
        for h, hall in enumerate(config.halls)
        for key in ("cidr", "bmc_cidr")
    ]
    if config.cloud:
        named.append((path_of("cloud", "network", "cidr"), config.cloud.network.cidr))
    for i, (path, cidr) in enumerate(named):
        for other_path, other in named[:i]:
            if ipaddress.IPv4Network(cidr).overlaps(ipaddress.IPv4Network(other)):
                yield Finding(
                    path,
                    cidr,
                    "overlap",
                    f"{cidr} overlaps {other} at {other_path}; routes between them would be ambiguous",
                )
    if config.cloud and not config.cloud.network.existing:
        yield from _cloud_space(config)


def _cloud_space(config: ClusterConfig) -> Findings:
    assert config.cloud
    network, path = config.cloud.network, path_of("cloud", "network", "cidr")
    try:
        plan = subnets.plan(network.cidr, network.zones)
    except ValueError as error:
        yield Finding(path, network.cidr, "too-small", str(error))
        return
    needed = dict.fromkeys(plan, 0)
    for kind, zones, count in [(g.instance_type, [g.zone], g.count) for g in config.cloud.groups] + [
        (p.instance_type, p.zones, p.max_nodes) for p in config.cloud.pools
    ]:
        try:
            each = sum(nic.interface_type != "efa-only" for nic in catalog.network_interfaces(kind))
        except catalog.Unknown:
            continue  # said by instance_types()
        for zone in zones:
            if zone in needed:
                needed[zone] += each * count
    for zone, count in needed.items():
        room = subnets.usable(plan[zone].private)
        if count > room:
            yield Finding(
                path,
                network.cidr,
                "too-small",
                f"{network.cidr} gives zone {zone} {room} addresses and the nodes declared there need {count}",
            )


def addresses(config: ClusterConfig) -> Findings:
    for h, n, hall, nodes in _all_nodes(config):
        for i, address in enumerate(nodes.addresses):
            yield from _inside(path_of("halls", h, "nodes", n, "addresses", i), address, hall.cidr, f"hall {hall.name}")
        for i, url in enumerate(nodes.bmc.addresses):
            path = path_of("halls", h, "nodes", n, "bmc", "addresses", i)
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                yield Finding(path, url, "url", f"{url!r} is not a BMC's URL; write https://ADDRESS")
            elif parts.hostname.replace(".", "").isdigit():
                yield from _inside(path, parts.hostname, hall.bmc_cidr, f"the BMC network of {hall.name}")


def _inside(path: str, address: str, cidr: str, what: str) -> Findings:
    try:
        inside = ipaddress.IPv4Address(address) in ipaddress.IPv4Network(cidr)
    except ValueError:
        yield Finding(path, address, "address", f"{address!r} is not an IPv4 address")
        return
    if not inside:
        yield Finding(path, address, "outside", f"{address} is not in {cidr}, {what}")


def scheduler(config: ClusterConfig) -> Findings:
    heads = [name for _, _, _, nodes in _all_nodes(config) if nodes.role == "head" for name in nodes.names]
    path = path_of("scheduler", "head")
    if config.scheduler.head not in heads:
        known = ", ".join(heads) or "none is declared"
        yield Finding(
            path,
            config.scheduler.head,
            "unknown-node",
            f"{config.scheduler.head!r} is not a node with role head; nodes with it: {known}",
        )
    elif len(heads) > 1:
        yield Finding(
            path,
            heads,
            "one-head",
            f"there are {len(heads)} head nodes and one is supported (no fenced store for a backup yet); keep one",
        )
    key = config.scheduler.munge_key
    if config.cloud and config.cloud.pools and not key.startswith("aws-secretsmanager:"):
        message = "must be an aws-secretsmanager: reference where there are burst pools: a rented node reads the key at boot, by its role"
        yield Finding(path_of("scheduler", "munge_key"), key, "munge-key", message)


def platforms(config: ClusterConfig) -> Findings:
    for h, n, _, nodes in _all_nodes(config):
        path = path_of("halls", h, "nodes", n, "platform")
        if nodes.role == "gpu" and nodes.platform is None:
            yield Finding(path, None, "missing", "is needed for GPU nodes; name one of the catalogue, as in dgx-h100")
        if nodes.role == "gpu" and nodes.infiniband_links is None:
            yield Finding(
                path_of("halls", h, "nodes", n, "infiniband_links"),
                None,
                "missing",
                "is needed for GPU nodes; write 0 if they have no InfiniBand",
            )
        if nodes.platform is not None:
            yield from _known(path, nodes.platform, catalog.platform)


def _known(path: str, name: str, lookup: Callable[[str], Any]) -> Findings:
    try:
        lookup(name)
    except catalog.Unknown as error:
        yield Finding(path, name, "unknown", str(error))


def instance_types(config: ClusterConfig) -> Findings:
    if not config.cloud:
        return
    named = [
        (path_of("cloud", "groups", i, "instance_type"), g.instance_type) for i, g in enumerate(config.cloud.groups)
    ]
    named += [
        (path_of("cloud", "pools", i, "instance_type"), p.instance_type) for i, p in enumerate(config.cloud.pools)
    ]
    for path, name in named:
        unknown = list(_known(path, name, catalog.instance_type))
        yield from unknown
        if not unknown and not catalog.instance_type(name).gpu:
            yield Finding(
                path, name, "no-gpu", f"{name} has no NVIDIA GPU that the catalogue knows; choose a GPU instance type"
            )
    for name in config.cloud.price:
        yield from _known(path_of("cloud", "price", name), name, catalog.instance_type)


def zones(config: ClusterConfig) -> Findings:
    if not config.cloud:
        return
    network, region = config.cloud.network, config.cloud.region
    for z, zone in enumerate(network.zones):
        if not (zone.startswith(region) and len(zone) == len(region) + 1):
            yield Finding(
                path_of("cloud", "network", "zones", z),
                zone,
                "zone",
                f"{zone!r} is not a zone of {region}; write for example {region}a",
            )
    if network.existing:
        for zone in network.existing.subnets.keys() ^ set(network.zones):
            path = path_of("cloud", "network", "existing", "subnets")
            yield Finding(
                path,
                zone,
                "zone",
                f"zone {zone} is only in one of `zones` and `existing.subnets`; name the same zones in both",
            )
    used = [(path_of("cloud", "groups", i, "zone"), g.zone, g.instance_type) for i, g in enumerate(config.cloud.groups)]
    used += [
        (path_of("cloud", "pools", i, "zones", z), zone, p.instance_type)
        for i, p in enumerate(config.cloud.pools)
        for z, zone in enumerate(p.zones)
    ]
    for path, zone, kind in used:
        if zone not in network.zones:
            yield Finding(path, zone, "zone", f"{zone!r} is not in cloud.network.zones ({', '.join(network.zones)})")
            continue
        try:
            offered = catalog.instance_type(kind).zones(region)
        except catalog.Unknown:
            continue  # said by instance_types()
        if offered and zone not in offered:
            yield Finding(
                path, zone, "not-offered", f"{kind} is not offered in {zone}; the catalogue lists {', '.join(offered)}"
            )


def capacity(config: ClusterConfig, now: datetime) -> Findings:
    """Combinations that AWS refuses."""
    if not config.cloud:
        return
    for g, group in enumerate(config.cloud.groups):
        block, here = group.capacity_block, ("cloud", "groups", g)
        if block and group.capacity_reservation:
            yield Finding(
                path_of(*here, "capacity_reservation"),
                group.capacity_reservation,
                "CAP-1",
                "stands beside capacity_block; an instance takes one",
            )
        if block and group.placement_group:
            yield Finding(
                path_of(*here, "placement_group"),
                True,
                "AWS-001",
                "stands beside capacity_block: AWS places a block's instances itself; leave it out",
            )
        if group.capacity_reservation and group.placement_group:
            message = "stands beside capacity_reservation: EC2 refuses a reservation outside the group; leave one out"
            yield Finding(path_of(*here, "placement_group"), True, "AWS-002", message)
        if block and block.ends.tzinfo is None:
            yield Finding(
                path_of(*here, "capacity_block", "ends"),
                str(block.ends),
                "time-zone",
                "has no time zone; write for example 2026-12-01T11:30:00Z",
            )
        elif block and block.ends <= now:
            yield Finding(
                path_of(*here, "capacity_block", "ends"),
                str(block.ends),
                "over",
                f"the block ended at {block.ends}; AWS has taken it back",
            )
    for p, pool in enumerate(config.cloud.pools):
        if ends := pool.capacity_ends:
            path = path_of("cloud", "pools", p, "capacity_ends")
            if ends.tzinfo is None:
                yield Finding(path, str(ends), "time-zone", "has no time zone; write for example 2026-12-01T11:30:00Z")
            elif ends <= now:
                yield Finding(
                    path, str(ends), "over", f"the pool's capacity ended at {ends}; nothing could be rented in it"
                )
        if pool.capacity_reservation and "spot" in pool.markets:
            path = path_of("cloud", "pools", p, "markets")
            yield Finding(
                path,
                pool.markets,
                "CAP-2",
                "names spot beside capacity_reservation; EC2 starts no spot instance in a reservation: leave one out",
            )
        if len(set(pool.markets)) < len(pool.markets):
            yield Finding(path_of("cloud", "pools", p, "markets"), pool.markets, "duplicate", "names a market twice")


def links(config: ClusterConfig) -> Findings:
    link = config.cloud.network.hall_link if config.cloud else None
    if not link:
        return
    path = ("cloud", "network", "hall_link")
    if config.cloud.network.existing:
        message = "stands beside existing: such a network is used, never changed; link it to the hall where it is kept, and leave this out"
        yield Finding(path_of(*path), link.kind, "hall-link", message)
    if link.hall not in {hall.name for hall in config.halls}:
        yield Finding(path_of(*path, "hall"), link.hall, "unknown-hall", f"{link.hall!r} is not a declared hall")
    needed = {"vpn": ("peer_address", "peer_asn"), "direct-connect": ("gateway_id",)}
    for kind, keys in needed.items():
        for key in keys:
            given = getattr(link, key) is not None
            if given != (link.kind == kind):
                message = (
                    f"is needed for a {kind} link"
                    if link.kind == kind
                    else f"belongs to a {kind} link, not to {link.kind}"
                )
                yield Finding(path_of(*path, key), getattr(link, key), "hall-link", message)


def money(config: ClusterConfig) -> Findings:
    if not config.cloud or not config.cloud.pools:
        return
    if config.budget is None:
        yield Finding(path_of("budget"), None, "missing", "is needed where there are burst pools; write usd_per_month")
    else:
        month = config.budget.usd_per_month
        smaller = {
            ("usd_per_day",): config.budget.usd_per_day,
            **{("accounts", name): usd for name, usd in config.budget.accounts.items()},
        }
        for where, usd in smaller.items():
            if usd is not None and usd > month:
                message = (
                    f"{usd:g} is more than usd_per_month, {month:g}, so it is no ceiling: lower it or leave it out"
                )
                yield Finding(path_of("budget", *where), usd, "over-the-month", message)
    for p, pool in enumerate(config.cloud.pools):
        for market in pool.markets:
            try:
                declared = declared_price(config.cloud, pool.instance_type, market)
                known = catalog.price(pool.instance_type, market, config.cloud.region, declared)
            except catalog.Unknown:
                break  # said by instance_types()
            if known is None:
                message = f"the catalogue has no {market} price of {pool.instance_type} in {config.cloud.region}; write one under cloud.price"
                yield Finding(path_of("cloud", "pools", p, "markets"), market, "no-price", message)
