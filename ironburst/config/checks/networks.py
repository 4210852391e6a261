"""Networks of the cloud and of halls: that none overlap, and that nodes reach what they join."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Set
from urllib.parse import urlsplit

from ironburst.config.aws.eks_models import KEY as HOSTED
from ironburst.config.checks.common import Findings, cloud_nodes, clouds, schedulers
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import Kubernetes, Scheduler


def overlaps(config: ClusterConfig) -> Findings:
    """No two networks overlap."""
    earlier: list[tuple[str, str]] = []
    for path, cidr in _networks(config):
        for other_path, other in earlier:
            if ipaddress.IPv4Network(cidr).overlaps(ipaddress.IPv4Network(other)):
                message = f"{cidr} overlaps {other} at {other_path}; routes between them would be ambiguous"
                yield Finding(path, cidr, "overlap", message)
        earlier.append((path, cidr))


def _networks(config: ClusterConfig) -> Iterator[tuple[str, str]]:
    for h, hall in enumerate(config.halls):
        yield path_of("halls", h, "cidr"), hall.cidr
        if hall.bmc_cidr:
            yield path_of("halls", h, "bmc_cidr"), hall.bmc_cidr
    for at, cloud in clouds(config):
        yield at("network", "cidr"), cloud.network.cidr
        for key, cidr in cloud.network.further:
            yield at("network", key), cidr
    for at, each in schedulers(config):
        if isinstance(each, Kubernetes) and each.control_plane:
            yield at("control_plane", "pod_cidr"), each.control_plane.pod_cidr
            yield at("control_plane", "service_cidr"), each.control_plane.service_cidr
        elif isinstance(each, Kubernetes) and each.hosted:
            yield at(HOSTED, "service_cidr"), each.hosted.service_cidr


def head_linked(config: ClusterConfig) -> Findings:
    """Rented nodes join at the head, or at the API server; one that lies in no hall is somebody else's matter."""
    if not config.cloud or config.cloud.network.existing:
        return
    network = config.cloud.network
    linked = {link.hall for link in network.links}
    path = path_of("cloud", "network", "hall_link" if network.hall_link else "hall_links")
    joined = {config.scheduler_of(nodes).kind: config.scheduler_of(nodes) for _, nodes in cloud_nodes(config)}
    for each in joined.values():
        what, homes = _joined(config, each)
        if homes:
            yield from _linked(linked, path, what, homes)


def _linked(linked: Set[str], path: str, what: str, homes: list[str]) -> Findings:
    if not linked:
        message = f"is absent, so cloud nodes don't reach {what} in {homes[0]} and none joins"
        yield Finding(path_of("cloud", "network", "hall_link"), None, "hall-link", message, "warning")
    elif homes[0] not in linked:
        message = f"{homes[0]} with {what} has no link, so no cloud node joins; add one for it"
        yield Finding(path, homes[0], "hall-link", message)


def _joined(config: ClusterConfig, scheduler: Scheduler) -> tuple[str, list[str]]:
    """What nodes join at, for people, and the hall that it lies in."""
    if isinstance(scheduler, Kubernetes):
        if scheduler.control_plane:
            return _at_head(config, scheduler.control_plane.head)
        host = urlsplit(scheduler.api_server or "").hostname or ""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return f"the API server {host}", []
        halls = [hall.name for hall in config.halls if address in ipaddress.IPv4Network(hall.cidr)]
        return f"the API server {host}", halls
    return _at_head(config, scheduler.head)


def _at_head(config: ClusterConfig, head: str) -> tuple[str, list[str]]:
    return head, [hall.name for hall in config.halls if any(head in nodes.names for nodes in hall.nodes)]
