"""Names and addresses that hosts, regions and people have in the world."""

from __future__ import annotations

import ipaddress
import re

from ironburst import catalog
from ironburst.config.aws.models import AwsCloud
from ironburst.config.checks.common import Findings, clouds, owned_nodes
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig

HOST_NAME = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
SLURM_NAME = r"[A-Za-z][A-Za-z0-9._-]*"
"""what Slurm takes for a node, that another one named"""
LONGEST = 64
"""characters that Linux takes for a host's name"""
VPC = (16, 28)
"""prefix lengths that AWS takes for a VPC"""


def host_names(config: ClusterConfig) -> Findings:
    """Names of owned nodes can be those of hosts."""
    for at, _, nodes in owned_nodes(config):
        for n, name in enumerate(nodes.names):
            wrong = "" if not nodes.managed and re.fullmatch(SLURM_NAME, name) else _wrong_name(name)
            if wrong:
                yield Finding(at("names", n), name, "host-name", f"{name!r} is no host name: {wrong}")


def _wrong_name(name: str) -> str:
    """What is wrong with a host's name; empty: nothing."""
    if len(name) > LONGEST or max(map(len, name.split("."))) > 63:
        return f"63 characters between two points, and {LONGEST} in all, are the most"
    if name == "localhost":
        return "every host calls itself so; take the name that others know it by"
    if re.fullmatch(r"[0-9.]+", name):
        return "of digits alone it is taken for an address or a number; put a letter first, as in node01"
    if not re.fullmatch(HOST_NAME, name):
        return "write letters, digits and -; several are dgx[01-04], or a list [dgx01, login]"
    return ""


def names_of_groups(config: ClusterConfig) -> Findings:
    """The nodes of a group of fixed cloud nodes find each other by the names that Slurm gives them."""
    slurm = config.slurm
    if config.names or slurm is None or not config.cloud:
        return
    for n, group in enumerate(config.cloud.groups):
        if group.count > 1 and config.scheduler_of(group) is slurm:
            message = (
                "isn't written, so its nodes keep the names that the cloud gives them, and a job on two of them doesn't"
                " find its MASTER_ADDR; write names: hosts, or names: dns where a DNS of yours knows them"
            )
            yield Finding(path_of("cloud", "groups", n), group.name, "names", f"names {message}", "warning")


def region(config: ClusterConfig) -> Findings:
    """AWS has the region."""
    if not (cloud := config.cloud_by_class(AwsCloud)):
        return
    name, path = cloud.region, path_of("cloud", "region")
    try:
        catalog.region(name, cloud.provider)
    except catalog.Unknown as error:
        zone = re.fullmatch(r"(.*-\d)[a-z]", name)
        if zone and zone[1] in catalog.regions(cloud.provider):
            message = f"{name!r} is a zone; write {zone[1]} here, and the zone under cloud.network.zones"
        else:
            hint = catalog.suggested(error.near) or "write for example us-east-1"
            message = f"{name!r} is no region of AWS that the catalogue knows; {hint}"
        yield Finding(path, name, "region", message)


def pulumis_region(config: ClusterConfig, given: object) -> Findings:
    """Pulumi works in the region that is declared; `given`: aws:region of the stack file."""
    if not (cloud := config.cloud_by_class(AwsCloud)):
        return
    path, declared = next(at("region") for at, each in clouds(config) if each is cloud), cloud.region
    if given is None:
        message = f"isn't written, so Pulumi takes what AWS_REGION says; write aws:region: {declared}"
        yield Finding("config.aws:region", None, "region", message, "warning")
    elif given != declared:
        message = f"{declared} and aws:region is {given}: write the same region in both"
        yield Finding(path, declared, "region", message)


def networks(config: ClusterConfig) -> Findings:
    """What AWS takes for a VPC; addresses that nodes can have."""
    for at, hall, nodes in owned_nodes(config):
        network = ipaddress.IPv4Network(hall.cidr)
        for n, address in enumerate(nodes.addresses):
            own = {str(network.network_address): "the network's own", str(network.broadcast_address): "for broadcast"}
            if address in own and network.prefixlen < 31:
                message = f"{address} is {own[address]} in {hall.cidr}; take one between"
                yield Finding(at("addresses", n), address, "address", message)
    if (cloud := config.cloud_by_class(AwsCloud)) and not cloud.network.existing:
        yield from _vpc(cloud)


def _vpc(cloud: AwsCloud) -> Findings:
    path, network = path_of("cloud", "network", "cidr"), ipaddress.IPv4Network(cloud.network.cidr)
    if network.prefixlen < VPC[0]:
        message = f"{network} is larger than AWS makes a VPC: write a /{VPC[0]} to /{VPC[1]}"
        yield Finding(path, str(network), "too-large", message)
    if not network.is_private:
        message = f"{network} is a public network, so nodes reach none of its real hosts; take one of 10.0.0.0/8"
        yield Finding(path, str(network), "public", message, "warning")


def once(config: ClusterConfig) -> Findings:
    """What is listed once only."""
    lists: list[tuple[tuple[str | int, ...], list[str]]] = []
    if config.cloud:
        lists.append((("cloud", "network", "zones"), config.cloud.network.zones))
        lists += [(("cloud", "pools", p, "zones"), pool.zones) for p, pool in enumerate(config.cloud.pools)]
        lists += [(("cloud", "karpenter", p, "zones"), pool.zones) for p, pool in enumerate(config.cloud.karpenter)]
    if config.budget:
        lists.append((("budget", "notify"), config.budget.notify))
    for path, values in lists:
        for n, value in enumerate(values):
            if value in values[:n]:
                yield Finding(path_of(*path, n), value, "duplicate", f"names {value} twice; leave one out")
