"""What several checks share."""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ironburst import catalog
from ironburst.config.cloud_models import Cloud, Group, Pool
from ironburst.config.clouds import DeclaredCloud
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig, Hall, Nodes
from ironburst.config.scheduler_models import Scheduler

Findings = Iterator[Finding]
At = Callable[..., str]
"""The path in the file of a key of one section: at("bmc", "addresses", 0)."""
Place = tuple[str | int, ...]
G = TypeVar("G", bound=Group)
P = TypeVar("P", bound=Pool)


def owned_nodes(config: ClusterConfig) -> Iterator[tuple[At, Hall, Nodes]]:
    """Every declared range of owned nodes, with its hall and its place in the file."""
    for h, hall in enumerate(config.halls):
        for n, nodes in enumerate(hall.nodes):
            yield functools.partial(path_of, "halls", h, "nodes", n), hall, nodes


def schedulers(config: ClusterConfig) -> Iterator[tuple[At, Scheduler]]:
    """Every declared scheduler, with its place in the file."""
    yield functools.partial(path_of, "scheduler"), config.scheduler
    for n, other in enumerate(config.other_schedulers):
        yield functools.partial(path_of, "other_schedulers", n), other


def clouds(config: ClusterConfig) -> Iterator[tuple[At, DeclaredCloud]]:
    """Every declared cloud, with its place in the file."""
    if config.cloud:
        yield functools.partial(path_of, "cloud"), config.cloud
    for n, other in enumerate(config.other_clouds):
        yield functools.partial(path_of, "other_clouds", n), other


def cloud_nodes(config: ClusterConfig) -> Iterator[tuple[At, Group | Pool]]:
    """Every declared group and pool, with its place in the file."""
    for at, cloud in clouds(config):
        for g, group in enumerate(cloud.groups):
            yield functools.partial(at, "groups", g), group
        for p, pool in enumerate(cloud.pools):
            yield functools.partial(at, "pools", p), pool


def pools(config: ClusterConfig) -> Iterator[tuple[At, Pool]]:
    """Every declared burst pool, with its place in the file."""
    yield from ((at, nodes) for at, nodes in cloud_nodes(config) if isinstance(nodes, Pool))


def places(groups: Sequence[G], pools: Sequence[P]) -> Iterator[tuple[Place, G | P]]:
    """Groups and pools of `cloud`, each with its place in the file."""
    yield from ((("cloud", "groups", g), group) for g, group in enumerate(groups))
    yield from ((("cloud", "pools", p), pool) for p, pool in enumerate(pools))


def readable(cloud: Cloud, path: str, reference: str) -> Findings:
    """A finding where a secret isn't in the store that the cloud's nodes can read."""
    if reference.partition(":")[0] != cloud.store:
        message = f"must be a reference to {cloud.store}: where there are burst pools: a rented node reads it at boot, "
        message += "by its role; of a secret that is elsewhere name its copy there under cloud.secrets"
        yield Finding(path, reference, path.rpartition(".")[2].replace("_", "-"), message)


def unknown(path: str, name: str, lookup: Callable[[str], object]) -> Findings:
    """A finding where the catalogue's `lookup` doesn't know `name`."""
    try:
        lookup(name)
    except catalog.Unknown as error:
        yield Finding(path, name, "unknown", str(error))


def architecture(cloud: Cloud | None, arm: re.Pattern[str], advice: str = "") -> Findings:
    """An image that boots on none of its nodes. `arm`: matches types with Arm's processors; `advice`: the message's
    end.
    """
    build = cloud.images.build_type if cloud else None
    for pool in cloud.pools if cloud and build else ():
        if build and any(bool(arm.fullmatch(name)) != bool(arm.fullmatch(build)) for name in pool.types):
            arms = "Arm" if arm.fullmatch(build) else "x86"
            message = f"{build} is of {arms}, and pool {pool.name} isn't: its image would boot on none of its nodes"
            yield Finding(path_of("cloud", "images", "build_type"), build, "architecture", message + advice)
            return


def unroutable(address: str) -> bool:
    """Whether nobody outside reaches it."""
    private = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
    return any(ipaddress.IPv4Address(address) in ipaddress.IPv4Network(each) for each in private)
