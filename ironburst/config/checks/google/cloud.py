"""Cloud nodes: what Compute Engine refuses, or sells otherwise."""

from __future__ import annotations

import re
from datetime import datetime

from ironburst import catalog
from ironburst.catalog.google.machine_types import MachineType, machine_type
from ironburst.config.checks import capacity as capacity_of
from ironburst.config.checks.common import Findings, Place, architecture, places, unknown
from ironburst.config.finding import Finding, path_of
from ironburst.config.google.models import GoogleCloud, GoogleGroup, GooglePool
from ironburst.config.models import ClusterConfig
from ironburst.nodes import naming

Nodes = GoogleGroup | GooglePool
LONGEST_NAME = 63
OURS = "ironburst"
"""how our own labels begin"""


def cloud(config: ClusterConfig) -> Findings:
    """All that doesn't depend on the day."""
    declared = config.cloud_by_class(GoogleCloud)
    if not declared:
        return
    if naming.SEPARATOR in config.name:
        message = f"has {naming.SEPARATOR!r}, behind which a cluster's names end for Google: write one hyphen"
        yield Finding(path_of("name"), config.name, "name", message)
    yield from unknown(path_of("cloud", "region"), declared.region, lambda name: catalog.region(name, "google"))
    for place, nodes in places(declared.groups, declared.pools):
        for kind in catalog.known(nodes.types, machine_type):
            yield from _disks(place, nodes, kind)
        yield from _sold(place, nodes)
    for p, pool in enumerate(declared.pools):
        at: Place = ("cloud", "pools", p)
        yield from capacity_of.markets(at, pool)
        yield from capacity_of.dead_man(at, pool, config.burst)
        yield from _reservation(at, pool)
        if len(name := naming.image_family(config.name, pool.name)) > LONGEST_NAME:
            message = f"its image family would be called {name}, and {LONGEST_NAME} characters are the most: shorten it"
            yield Finding(path_of("cloud", "pools", p, "name"), pool.name, "name", message)
    for key in declared.labels:
        if key.startswith(OURS):
            message = f"the label {key!r} is ours, by which nodes are known: write another"
            yield Finding(path_of("cloud", "labels", key), key, "labels", message)
    if declared.karpenter:
        message = "launches in AWS here, not in Google Cloud: leave it out, pools are rented by the controller"
        yield Finding(path_of("cloud", "karpenter"), len(declared.karpenter), "karpenter", message)


def capacity(config: ClusterConfig, now: datetime) -> Findings:
    """Capacity that is taken back by `now`."""
    yield from capacity_of.over(config.cloud_by_class(GoogleCloud), now)


def _disks(at: Place, nodes: Nodes, kind: MachineType) -> Findings:
    if kind.hyperdisk_only and nodes.root_disk_type not in (None, "hyperdisk-balanced"):
        message = f"{kind.name} boots from hyperdisk-balanced alone: leave it out"
        yield Finding(path_of(*at, "root_disk_type"), nodes.root_disk_type, "disk", message)
    throughput = nodes.root_disk_mb_s if isinstance(nodes, GooglePool) else None
    if throughput and not (kind.hyperdisk_only or nodes.root_disk_type == "hyperdisk-balanced"):
        message = "is hyperdisk-balanced's: write root_disk_type: hyperdisk-balanced, or leave it out"
        yield Finding(path_of(*at, "root_disk_mb_s"), throughput, "disk", message)
    if nodes.local_ssds and kind.local_ssds:
        message = f"{kind.name} brings its {kind.local_ssds} by itself: leave it out"
        yield Finding(path_of(*at, "local_ssds"), nodes.local_ssds, "disk", message)
    elif nodes.local_ssds and kind.local_ssds_asked and str(nodes.local_ssds) not in kind.local_ssds_asked:
        message = f"{kind.name} takes {', '.join(kind.local_ssds_asked)} of them"
        yield Finding(path_of(*at, "local_ssds"), nodes.local_ssds, "disk", message)


def _sold(at: Place, nodes: Nodes) -> Findings:
    """Some types are sold on demand only in a reservation."""
    on_demand = isinstance(nodes, GoogleGroup) or "on-demand" in nodes.markets
    for kind in catalog.known(nodes.types, machine_type):
        if on_demand and "on-demand" not in kind.purchase and not nodes.reserved:
            sold = " or ".join(each for each in kind.purchase if each != "capacity-block")
            message = f"{kind.name} isn't sold on demand; name a reservation" + (f", or write {sold}" if sold else "")
            key = "markets" if isinstance(nodes, GooglePool) else "instance_type"
            yield Finding(path_of(*at, key), kind.name, "not-sold", message)
    if nodes.reservation_bound and not nodes.reservation:
        message = "is of a reservation, and none is named: write reservation, or leave it out"
        yield Finding(path_of(*at, "reservation_bound"), True, "capacity", message)
    if nodes.reserved and nodes.compact_placement:
        message = "stands beside a reservation, whose own placement counts: leave it out"
        yield Finding(path_of(*at, "compact_placement"), True, "capacity", message)


def _reservation(at: Place, pool: GooglePool) -> Findings:
    """It is in one zone, and of one type."""
    if pool.reserved and len(pool.zones) > 1:
        message = "names more than one zone, and a reservation is in one: name that one only"
        yield Finding(path_of(*at, "zones"), pool.zones, "capacity", message)
    if pool.reserved and len(pool.types) > 1:
        message = "has several beside a reservation, which is of one: make it its own pool"
        yield Finding(path_of(*at, "instance_types"), pool.types, "capacity", message)


_ARM = re.compile(r"(t2a|c4a|n4a|a4x)-.*")
"""machine types with Arm's processors"""


def doubtful(config: ClusterConfig) -> Findings:
    """An image that boots on none of its nodes."""
    yield from architecture(config.cloud_by_class(GoogleCloud), _ARM)
