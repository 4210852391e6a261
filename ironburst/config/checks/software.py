"""Software and fabric: what the version lock's rules say of the solved groups, MIG layouts, and subnet managers."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst import catalog
from ironburst.config.checks.common import Findings, cloud_nodes, owned_nodes, unknown
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig, Hall
from ironburst.config.software import wish
from ironburst.config.software_models import SoftwareChoice
from ironburst.nodes.naming import SCHEDULERS
from ironburst.software import rules
from ironburst.software.solve import Solution
from ironburst.software.state import FabricState


def findings(config: ClusterConfig, solution: Solution) -> Findings:
    """Conflicts and warnings of the solved groups, owned or rented."""
    asked = config.software.driver or config.software.profile
    for hit in (*solution.conflicts, *solution.warnings):
        yield Finding(path_of("software"), asked, hit.id, str(hit), hit.severity)


def profile(config: ClusterConfig) -> Findings:
    """The profile is in the catalogue; without it nothing can be solved."""
    if config.software.profile is not None:
        yield from unknown(path_of("software", "profile"), config.software.profile, catalog.profile)


def scheduler(config: ClusterConfig) -> Findings:
    """A version of the declared scheduler and of no other; kubelet's containers are containerd's."""
    kinds = {each.kind for each in config.schedulers} | ({"kubernetes"} if config.bridge else set())
    for other in SCHEDULERS.keys() - kinds:
        (kind,) = kinds
        if (given := getattr(config.software, other)) is not None:
            message = f"is for a stack whose scheduler is {SCHEDULERS[other]}, and this one's is {SCHEDULERS[kind]}: "
            message += f"write {kind} instead, or remove it where the profile names one"
            yield Finding(path_of("software", other), given, "other-scheduler", message)
    if config.kubernetes and not list(profile(config)):
        for path, choice in _choices(config):
            runtimes = wish(config, choice, None, "kubernetes").container_runtimes
            if "containerd" not in runtimes:
                message = "has no containerd, which kubelet starts its containers with: add it"
                yield Finding(path, list(runtimes), "containerd", message)


def _choices(config: ClusterConfig) -> Iterator[tuple[str, SoftwareChoice | None]]:
    """Each place that can name container runtimes of the cluster's GPU nodes; the stack's own where one of them names
    none.
    """
    owned = [(at, nodes) for at, _, nodes in owned_nodes(config) if nodes.role == "gpu"]
    places = [
        (at("software", "container_runtime"), nodes.software)
        for at, nodes in (*owned, *cloud_nodes(config))
        if config.scheduler_of(nodes) is config.kubernetes
    ]
    own = [place for place in places if place[1] and place[1].container_runtime]
    if len(own) < len(places):
        yield path_of("software", "container_runtime"), None
    yield from own


def dgx_os(config: ClusterConfig) -> Findings:
    """DGX OS is Ubuntu on a DGX."""
    for at, _, nodes in owned_nodes(config):
        system = nodes.os or config.software.os
        if nodes.dgx_os and (not system.startswith("ubuntu") or not (nodes.platform or "").startswith("dgx")):
            message = (
                f"is for a DGX with ubuntu2204 (DGX OS 6) or ubuntu2404 (DGX OS 7); this is {nodes.platform or 'none'}"
            )
            yield Finding(at("dgx_os"), True, "dgx-os", f"{message} with {system}")


def mig(config: ClusterConfig) -> Findings:
    """A GPU has one layout."""
    named = [
        (path_of("halls", h, "nodes", n, "mig"), nodes.mig)
        for h, hall in enumerate(config.halls)
        for n, nodes in enumerate(hall.nodes)
    ]
    named += [(at("mig"), nodes.mig) for at, nodes in cloud_nodes(config)]
    for path, given in named:
        layouts = given or []
        gpus = [gpu for layout in layouts for gpu in layout.gpus or []]
        of_all_and_of_some = len(layouts) > 1 and any(layout.gpus is None for layout in layouts)
        if len(set(gpus)) < len(gpus) or of_all_and_of_some:
            message = "gives a GPU two layouts; name each GPU once (none named: all of the node)"
            yield Finding(path, gpus, "duplicate", message)


def fabrics(config: ClusterConfig) -> Findings:
    """Subnet managers are hosts of their hall, once each; opensm beside jobs is a warning."""
    for h, hall in enumerate(config.halls):
        path, managers = path_of("halls", h, "subnet_managers"), hall.subnet_managers
        nodes_of = {name: nodes for nodes in hall.nodes for name in nodes.names}
        strangers = [name for name in managers if name not in nodes_of]
        if strangers:
            message = f"{strangers[0]!r} is not a node of {hall.name}; its nodes: {', '.join(list(nodes_of)[:6])}"
            yield Finding(path, managers, "unknown-node", message)
            continue
        if len(set(managers)) < len(managers):
            yield Finding(path, managers, "duplicate", "names a host twice; each has a priority of its own")
        for name in managers:
            if nodes_of[name].infiniband_links == 0:
                message = f"{name} has no InfiniBand, so it can't manage the subnet; name another host"
                yield Finding(path, name, "no-infiniband", message)
        for hit in rules.check_fabric(_fabric(hall), catalog.software_facts()):
            yield Finding(path, managers, hit.id, str(hit), hit.severity)
        computing = [name for name in managers if nodes_of[name].role == "gpu"]
        if computing:
            message = (
                f"{hall.name}: {', '.join(computing)} runs jobs, "
                "which a subnet manager and they disturb: prefer hosts without jobs"
            )
            yield Finding(path, computing, "NET-005", message, "warning")


def _fabric(hall: Hall) -> FabricState:
    compute = tuple(name for nodes in hall.nodes for name in nodes.names if nodes.role == "gpu")
    managers = tuple(hall.subnet_managers)
    return FabricState(name=hall.name, managers=managers, opensm_hosts=managers, compute_hosts=compute)
