"""Cloud nodes: what Azure refuses, or sells otherwise."""

from __future__ import annotations

import re
from datetime import datetime

from ironburst import catalog
from ironburst.catalog.azure.sizes import size
from ironburst.config.azure.models import AzureCloud, AzureGroup, AzurePool
from ironburst.config.checks import capacity as capacity_of
from ironburst.config.checks.common import Findings, Place, architecture, places, schedulers, unknown
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig

Nodes = AzureGroup | AzurePool
FABRIC = 100
"""machines of a scale set with one placement group, the edge of an InfiniBand fabric (setup-infiniband, 2026-09)"""
OURS = "ironburst:"
"""how our own tags begin"""
NO_USERS = frozenset(
    (
        *("administrator", "admin", "user", "user1", "test", "user2", "test1", "user3", "admin1", "1", "123", "a"),
        *("actuser", "adm", "admin2", "aspnet", "backup", "console", "david", "guest", "john", "owner", "root"),
        *("server", "sql", "support", "support_388945a0", "sys", "test2", "test3", "user4", "user5"),
    )
)
"""whom Azure makes on no machine (OSProfile.admin_username of azure-mgmt-compute)"""


def cloud(config: ClusterConfig) -> Findings:
    """All that doesn't depend on the day."""
    declared = config.cloud_by_class(AzureCloud)
    if not declared:
        return
    yield from unknown(path_of("cloud", "region"), declared.region, lambda name: catalog.region(name, "azure"))
    for at, nodes in places(declared.groups, declared.pools):
        yield from _sold(at, nodes)
        yield from _fabric(at, nodes)
        yield from _machine(at, nodes)
    for p, pool in enumerate(declared.pools):
        place: Place = ("cloud", "pools", p)
        yield from capacity_of.markets(place, pool)
        yield from capacity_of.dead_man(place, pool, config.burst)
    for key in declared.tags:
        if key.lower().startswith(OURS):
            message = f"the tag {key!r} is ours, by which nodes are known: write another"
            yield Finding(path_of("cloud", "tags", key), key, "tags", message)
    yield from _vault(config, declared)
    yield from _user(config, declared)
    if declared.data:
        message = "is copied to no node of Azure yet: leave it out; what somebody else brings is only named there"
        yield Finding(path_of("cloud", "data"), ", ".join(declared.data), "data", message)
    if declared.karpenter:
        message = "launches in AWS here, not in Azure: leave it out, pools are rented by the controller"
        yield Finding(path_of("cloud", "karpenter"), len(declared.karpenter), "karpenter", message)


def capacity(config: ClusterConfig, now: datetime) -> Findings:
    """Capacity that is taken back by `now`."""
    yield from capacity_of.over(config.cloud_by_class(AzureCloud), now)


def _sold(at: Place, nodes: Nodes) -> Findings:
    for kind in catalog.known(nodes.types, size):
        if nodes.capacity_reservation_group and kind.on_demand_reservation == "no":
            message = f"Azure reserves no {kind.name} on demand: leave it out, or name a bought block"
            yield Finding(path_of(*at, "capacity_reservation_group"), kind.name, "not-sold", message)
        if isinstance(nodes, AzurePool) and "spot" in nodes.markets and "spot" not in kind.purchase:
            message = f"{kind.name} isn't sold as spot"
            yield Finding(path_of(*at, "markets"), kind.name, "not-sold", message)


def _fabric(at: Place, nodes: Nodes) -> Findings:
    """InfiniBand ends at a scale set's edge, and a reservation on demand has none."""
    path = path_of(*at, "infiniband")
    links = [kind.infiniband_links for kind in catalog.known(nodes.types, size)]
    if nodes.infiniband and 0 in links:
        yield Finding(path, True, "infiniband", f"{', '.join(nodes.types)} has no InfiniBand: leave it out")
    if nodes.infiniband and nodes.capacity_reservation_group:
        message = "stands beside capacity_reservation_group, and a reservation on demand has no placement group: choose"
        yield Finding(path, True, "infiniband", message)
    count = nodes.count if isinstance(nodes, AzureGroup) else nodes.max_nodes
    if nodes.infiniband is not False and links and 0 not in links and count > FABRIC:
        message = f"{count} nodes are above the {FABRIC} of one InfiniBand fabric: a job never has more together"
        severity = "error" if isinstance(nodes, AzureGroup) else "warning"
        key = "count" if isinstance(nodes, AzureGroup) else "max_nodes"
        yield Finding(path_of(*at, key), count, "infiniband", message, severity)


def _machine(at: Place, nodes: Nodes) -> Findings:
    if isinstance(nodes, AzurePool) and nodes.root_disk_mb_s:
        message = "isn't asked for: a managed disk has the throughput of its size; leave it out, or make it larger"
        yield Finding(path_of(*at, "root_disk_mb_s"), nodes.root_disk_mb_s, "disk", message)
    for kind in catalog.known(nodes.types, size):
        if nodes.security_type and kind.trusted_launch == "no":
            message = f"{kind.name} has no Trusted Launch: leave it out"
            yield Finding(path_of(*at, "security_type"), nodes.security_type, "security", message)


def _user(config: ClusterConfig, cloud: AzureCloud) -> Findings:
    """Azure makes the user that logs in."""
    path, user = path_of("ssh", "cloud_user"), config.ssh.cloud_user
    systems = {nodes.os or config.software.os for nodes in (*cloud.groups, *cloud.pools)}
    if user in NO_USERS:
        message = f"{user!r} is nobody whom Azure makes on a machine: write another name, as in ironburst"
        yield Finding(path, user, "user", message)
    elif user is None and any(name.startswith("debian") for name in systems):
        message = "isn't written, and Debian's own, admin, is nobody whom Azure makes: write a name, as in ironburst"
        yield Finding(path, None, "user", message)


def _vault(config: ClusterConfig, cloud: AzureCloud) -> Findings:
    """Nodes read secrets of one vault, in which they are given each by itself."""
    vault = (cloud.key_vault or "").rpartition("/")[2]
    for at, scheduler in schedulers(config):
        for key in ("munge_key", "join_token"):
            scheme, _, name = str(getattr(scheduler, key, None) or "").partition(":")
            if cloud.pools and scheme == cloud.store and name.partition("/")[0].lower() != vault.lower():
                where = f"is of another vault than cloud.key_vault, {vault}" if vault else "is of a vault"
                message = f"{where}, and nodes read of that alone: write cloud.key_vault with its id"
                yield Finding(at(key), name, "key-vault", message)


_ARM = re.compile(r"Standard_[A-Z]+[0-9-]+[a-z]*p[a-z]*_.*|Standard_[A-Z]+\d+isr_(NDR_)?GB.*")
"""sizes with Arm's processors: p among the small letters"""


def doubtful(config: ClusterConfig) -> Findings:
    """An image that boots on none of its nodes."""
    yield from architecture(config.cloud_by_class(AzureCloud), _ARM)
