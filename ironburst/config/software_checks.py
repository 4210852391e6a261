"""What the version lock's rules say of a declaration: software of every group, and who runs the subnet manager."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ironburst import catalog
from ironburst.config import software as declared
from ironburst.config.load import Finding, path_of
from ironburst.config.models import ClusterConfig, Hall
from ironburst.software import rules
from ironburst.software.state import FabricState

Findings = Iterator[Finding]


def software(config: ClusterConfig, now: datetime) -> Findings:
    """The rules for every group of nodes, owned or rented."""
    if config.software.profile is not None:
        try:
            catalog.profile(config.software.profile)
        except catalog.Unknown as error:
            yield Finding(path_of("software", "profile"), config.software.profile, "unknown", str(error))
            return
    try:
        solution = declared.solved(config, today=now.date())
    except catalog.Unknown:
        return  # said by platforms() and instance_types()
    for hit in (*solution.conflicts, *solution.warnings):
        yield Finding(
            path_of("software"), config.software.driver or config.software.profile, hit.id, str(hit), hit.severity
        )


def mig(config: ClusterConfig) -> Findings:
    """A GPU has one layout."""
    named = [
        (path_of("halls", h, "nodes", n, "mig"), nodes.mig)
        for h, hall in enumerate(config.halls)
        for n, nodes in enumerate(hall.nodes)
    ]
    if config.cloud:
        named += [(path_of("cloud", "groups", i, "mig"), group.mig) for i, group in enumerate(config.cloud.groups)]
        named += [(path_of("cloud", "pools", i, "mig"), pool.mig) for i, pool in enumerate(config.cloud.pools)]
    for path, layouts in named:
        gpus = [gpu for one in layouts or [] for gpu in one.gpus or []]
        if len(set(gpus)) < len(gpus) or (len(layouts or []) > 1 and any(one.gpus is None for one in layouts or [])):
            yield Finding(
                path, gpus, "duplicate", "gives a GPU two layouts; name each GPU once (none named: all of the node)"
            )


def fabrics(config: ClusterConfig) -> Findings:
    """Subnet managers are hosts of their hall, once each; opensm beside jobs is a warning."""
    for h, hall in enumerate(config.halls):
        path = path_of("halls", h, "subnet_managers")
        roles = {name: nodes for nodes in hall.nodes for name in nodes.names}
        unknown = [name for name in hall.subnet_managers if name not in roles]
        if unknown:
            message = f"{unknown[0]!r} is not a node of {hall.name}; its nodes: {', '.join(list(roles)[:6])}"
            yield Finding(path, hall.subnet_managers, "unknown-node", message)
            continue
        if len(set(hall.subnet_managers)) < len(hall.subnet_managers):
            yield Finding(path, hall.subnet_managers, "duplicate", "names a host twice; each has a priority of its own")
        for name in hall.subnet_managers:
            if roles[name].infiniband_links == 0:
                yield Finding(
                    path,
                    name,
                    "no-infiniband",
                    f"{name} has no InfiniBand, so it can't manage the subnet; name another host",
                )
        for hit in rules.check_fabric(_fabric(hall), catalog.software_facts()):
            yield Finding(path, hall.subnet_managers, hit.id, str(hit), hit.severity)
        computing = [name for name in hall.subnet_managers if roles[name].role == "gpu"]
        if computing:
            message = f"{hall.name}: {', '.join(computing)} runs jobs, which a subnet manager and they disturb: prefer hosts without jobs"
            yield Finding(path, computing, "NET-005", message, "warning")


def _fabric(hall: Hall) -> FabricState:
    compute = tuple(name for nodes in hall.nodes for name in nodes.names if nodes.role == "gpu")
    managers = tuple(hall.subnet_managers)
    return FabricState(name=hall.name, managers=managers, opensm_hosts=managers, compute_hosts=compute)
