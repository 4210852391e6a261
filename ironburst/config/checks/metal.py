"""Owned nodes: one value a node, rack units, addresses, platforms."""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from ironburst import catalog
from ironburst.config.checks.common import At, Findings, owned_nodes, unknown
from ironburst.config.finding import Finding, path_of
from ironburst.config.hall_models import Switches
from ironburst.config.models import ClusterConfig, Hall, Nodes


def one_value_a_node(config: ClusterConfig) -> Findings:
    """Every list gives one value a node."""
    for at, _, nodes in owned_nodes(config):
        lists: list[tuple[tuple[str, ...], Sequence[object] | None]] = [
            (("units",), nodes.units if nodes.rack or nodes.units else None),
            (("addresses",), nodes.addresses if nodes.managed or nodes.addresses else None),
            (("macs",), nodes.macs),
            (("serials",), nodes.serials),
            (("node_objects",), nodes.node_objects),
            (("bmc", "addresses"), nodes.bmc.addresses if nodes.bmc else None),
            (("bmc", "sha256"), nodes.bmc.sha256 if nodes.bmc else None),
        ]
        wanted = len(nodes.names)
        for key, values in lists:
            if values is not None and len(values) != wanted:
                message = f"gives {len(values)} values for {wanted} nodes; give one each{_meant(nodes.names)}"
                yield Finding(at(*key), values, "one-a-node", message)


def _meant(names: Sequence[str]) -> str:
    """dgx01-04 is one name."""
    parts = re.fullmatch(r"(.*?)(\d+)-(\d+)", names[0]) if len(names) == 1 else None
    if parts and int(parts[2]) < int(parts[3]):
        return f" ({names[0]} is one name; a range is {parts[1]}[{parts[2]}-{parts[3]}])"
    return ""


def rack_units(config: ClusterConfig) -> Findings:
    """Every node and switch fits its rack, and no two take the same unit."""
    taken: dict[tuple[str, str, int], str] = {}
    placed: list[tuple[At, Hall, Nodes | Switches]] = [*owned_nodes(config), *_switches(config)]
    for at, hall, each in placed:
        racks = {rack.name: rack for rack in hall.racks}
        if each.rack is None:
            if each.units:
                yield Finding(
                    at("units"), each.units, "unknown-rack", "are of no rack: name the rack, or leave them out"
                )
            continue
        if each.rack not in racks:
            message = f"{each.rack!r} is not a rack of {hall.name}; known: {', '.join(racks) or 'none'}"
            yield Finding(at("rack"), each.rack, "unknown-rack", message)
            continue
        height = _height(each) if isinstance(each, Nodes) else each.height
        if height is None:
            message = "is needed: the catalogue doesn't know this platform's rack units"
            yield Finding(at("height"), None, "missing", message)
            continue
        room = racks[each.rack].units
        for name, unit in zip(each.names, each.units, strict=False):
            top = unit + height - 1
            if top > room:
                message = f"{name} would reach unit {top} of rack {each.rack}, which has {room}"
                yield Finding(at("units"), unit, "rack-unit", message)
            for u in range(unit, top + 1):
                other = taken.setdefault((hall.name, each.rack, u), name)
                if other != name:
                    message = f"{name} and {other} both take unit {u} of rack {each.rack}; move one"
                    yield Finding(at("units"), unit, "duplicate", message)
                    break


def _switches(config: ClusterConfig) -> Iterator[tuple[At, Hall, Switches]]:
    """Every declared range of switches, with its hall and its place in the file."""
    for h, hall in enumerate(config.halls):
        for n, switches in enumerate(hall.switches):
            yield functools.partial(path_of, "halls", h, "switches", n), hall, switches


def _height(nodes: Nodes) -> int | None:
    if nodes.height or not nodes.platform:
        return nodes.height
    try:
        return catalog.platform(nodes.platform).height_u
    except catalog.Unknown:
        return None  # said by platforms()


def addresses(config: ClusterConfig) -> Findings:
    """Nodes and their BMCs lie in the hall's networks."""
    for at, hall, nodes in owned_nodes(config):
        for i, address in enumerate(nodes.addresses):
            yield from _inside(at("addresses", i), address, hall.cidr, f"hall {hall.name}")
        if nodes.bmc and (hall.bmc_cidr is None or not nodes.managed):
            message = "is of nodes that aren't managed, so nobody asks it: leave it out"
            if nodes.managed:
                message = f"needs the network that it lies in: write bmc_cidr of {hall.name}"
            yield Finding(at("bmc"), None, "bmc", message)
            continue
        for i, url in enumerate(nodes.bmc.addresses if nodes.bmc else []):
            path = at("bmc", "addresses", i)
            wrong, parts = _wrong_url(url), urlsplit(url)
            if wrong:
                shown = None if "@" in url else url
                yield Finding(path, shown, "url", f"{repr(url) if shown else 'it'} is not a BMC's URL: {wrong}")
            elif not parts.hostname:
                continue
            elif parts.hostname.replace(".", "").isdigit():
                yield from _inside(path, parts.hostname, hall.bmc_cidr or "", f"the BMC network of {hall.name}")


def _wrong_url(url: str) -> str:
    """What is wrong with a BMC's URL; empty: nothing."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "its port is none; a port is from 1 to 65535, and none is needed for 443"
    if "://" not in url:
        return f"write https://{url.split('/')[0]}"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "write https://ADDRESS"
    if parts.username is not None or parts.password is not None:
        return "it has a user or password, which belong under username and password"
    if parts.path.rstrip("/") or parts.query or parts.fragment:
        return f"it has a path, and Redfish's is known; write {parts.scheme}://{parts.netloc}"
    return ""


def memory(config: ClusterConfig) -> Findings:
    """The memory of a node that Slurm is given is about what the platform has: MiB."""
    for at, _, nodes in owned_nodes(config):
        try:
            has = catalog.platform(nodes.platform or "").system_memory_gb
        except catalog.Unknown:
            continue
        given = nodes.slurm.memory_mb if nodes.slurm else None
        if given and has and not has * 1024 / 20 < given <= has * 1024 * 1.1:
            message = f"{given} MiB, and {nodes.platform} has {has} GB: `slurmd -C` on the node says RealMemory in MiB"
            yield Finding(at("slurm", "memory_mb"), given, "memory", message, "warning")


def power_limits(config: ClusterConfig) -> Findings:
    """A power limit is of GPUs that a role can set it on, and caps them. The least that a GPU takes it says itself."""
    for at, _, nodes in owned_nodes(config):
        limit, platform = nodes.gpu_power_limit_w, catalog.platforms().get(nodes.platform or "")
        message = ""
        if limit is None:
            continue
        if nodes.role != "gpu" or not nodes.managed:
            why = "aren't managed" if not nodes.managed else f"are of role {nodes.role}"
            message = f"is set by Ansible on GPU nodes, and these {why}: leave it out"
        elif platform and platform.gpu.tdp_w and limit > platform.gpu.tdp_w:
            message = (
                f"is {limit} W, and a GPU of {nodes.platform} ({platform.gpu.model}) draws {platform.gpu.tdp_w:g} W at "
                "most: write less, or leave it out"
            )
        if message:
            yield Finding(at("gpu_power_limit_w"), limit, "power-limit", message)


def certificates(config: ClusterConfig) -> Findings:
    """A BMC's certificate is checked in one way; that it is checked in none is reported."""
    for at, _, nodes in owned_nodes(config):
        bmc = nodes.bmc
        if bmc is None:
            continue
        ways = {"ca_file": bmc.ca_file, "sha256": bmc.sha256, "verify_tls: no": not bmc.verify_tls}
        given = [way for way, chosen in ways.items() if chosen]
        if len(given) > 1:
            message = f"has {' and '.join(given)}, which are ways to check the same certificate; give one of them"
            yield Finding(at("bmc"), None, "bmc-certificate", message)
        elif bmc.sha256 and any(url.startswith("http://") for url in bmc.addresses):
            message = "needs addresses with https://: over http:// a BMC shows no certificate"
            yield Finding(at("bmc", "sha256"), None, "bmc-certificate", message)
        elif not bmc.verify_tls:
            message = (
                "lets anybody in the BMC network take the password: give sha256, the fingerprint of each BMC's "
                "certificate, or ca_file"
            )
            yield Finding(at("bmc", "verify_tls"), False, "bmc-certificate", message, "warning")
        plain = [i for i, url in enumerate(bmc.addresses) if url.startswith("http://")]
        if plain and not bmc.sha256:
            message = f"{bmc.addresses[plain[0]]} is http://, so the password goes over the network for all to read: "
            yield Finding(
                at("bmc", "addresses", plain[0]),
                bmc.addresses[plain[0]],
                "plain-http",
                message + "write https://",
                "warning",
            )


def _inside(path: str, address: str, cidr: str, what: str) -> Findings:
    try:
        inside = ipaddress.IPv4Address(address) in ipaddress.IPv4Network(cidr)
    except ValueError:
        range_meant = re.fullmatch(r"(.*\.)(\d+)-(\d+)", address)
        meant = f"; a range is {range_meant[1]}[{range_meant[2]}-{range_meant[3]}]" if range_meant else ""
        meant = meant or ("; write it without its length" if "/" in address else "")
        yield Finding(path, address, "address", f"{address!r} is not an IPv4 address{meant}")
        return
    if not inside:
        yield Finding(path, address, "outside", f"{address} is not in {cidr}, {what}")


def platforms(config: ClusterConfig) -> Findings:
    """GPU nodes say what they are; what is named is in the catalogue."""
    for at, _, nodes in owned_nodes(config):
        if nodes.role == "gpu" and nodes.platform is None:
            message = "is needed for GPU nodes; name one of the catalogue, as in dgx-h100"
            yield Finding(at("platform"), None, "missing", message)
        if nodes.role == "gpu" and nodes.infiniband_links is None and nodes.managed:
            message = "is needed for GPU nodes; write 0 if they have no InfiniBand"
            yield Finding(at("infiniband_links"), None, "missing", message)
        if nodes.platform is not None:
            yield from unknown(at("platform"), nodes.platform, catalog.platform)
