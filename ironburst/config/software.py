"""From a declaration to the groups that the version lock solves:
what each group of equal nodes is, and what is wished for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from ironburst import catalog
from ironburst.config.cloud_models import Group, Pool
from ironburst.config.models import ClusterConfig, Nodes
from ironburst.config.software_models import Mig, SoftwareChoice
from ironburst.nodes import naming
from ironburst.nodes.ranges import compact
from ironburst.software import model
from ironburst.software.solve import Solution, solve

DEFAULTS: Mapping[str, Any] = {
    "kernel_module": "auto",
    "container_runtime": ["containerd"],
    "rdma": "inbox",
    "peer_memory": "auto",
    "gds": False,
}
"""What holds where neither the stack file nor its profile says anything."""


def wish(config: ClusterConfig, choice: SoftwareChoice | None, kernel: str | None, *schedulers: str) -> model.Wish:
    """What is asked for on some nodes of a kind of scheduler (of several: the first has their jobs): their own words,
    else the cluster's, else the profile's, else the default. Raises catalog.Unknown for a profile that isn't there.
    """
    given = config.software
    profile = catalog.profile(given.profile) if given.profile else {}

    def said(key: str) -> Any:
        for where in (choice, given):
            if where is not None and getattr(where, key, None) is not None:
                return getattr(where, key)
        return profile.get(key, DEFAULTS.get(key))

    keys = (
        "driver",
        "kernel_module",
        "cuda",
        "container_toolkit",
        "dcgm",
        "nccl",
        "rdma",
        "peer_memory",
        "gds",
        "slurm_packages",
        *schedulers,  # a profile names a version of each scheduler
    )
    return model.Wish(
        **{key: said(key) for key in keys},
        scheduler=schedulers[0],
        container_runtimes=tuple(dict.fromkeys(said("container_runtime"))),
        kernel=kernel or given.kernel,
    )


def nodes_group(hall: str, nodes: Nodes) -> str:
    """Name of a range of owned nodes in the lock."""
    return naming.locked_nodes(hall, compact(nodes.names))


def groups(config: ClusterConfig) -> list[model.Group]:
    """Every group of equal nodes of a valid declaration, in its order.
    Raises catalog.Unknown for hardware that isn't known.
    """
    owned = [_owned(config, hall.name, nodes) for hall in config.halls for nodes in hall.nodes if nodes.managed]
    fixed, rented = [_fixed(config, group) for group in config.groups], [_rented(config, pool) for pool in config.pools]
    return [*owned, *fixed, *rented]


def mig_layouts(given: list[Mig] | None, count: int) -> tuple[model.Mig, ...]:
    """The declared layouts with the GPUs named."""
    return tuple(
        model.Mig(tuple(range(count) if layout.gpus is None else layout.gpus), dict(layout.profiles))
        for layout in given or []
    )


def _owned(config: ClusterConfig, hall: str, nodes: Nodes) -> model.Group:
    platform = catalog.platform(nodes.platform) if nodes.platform and nodes.role == "gpu" else None
    count = platform.gpu_count if platform else 0
    return model.Group(
        name=nodes_group(hall, nodes),
        nodes=tuple(nodes.names),
        span=config.scheduler_of(nodes).home_partition,
        os=nodes.os or config.software.os,
        gpu=platform.gpu if platform else None,
        gpu_count=count,
        board=catalog.board(platform.gpu, count) if platform else model.NoBoard(),
        fabric="infiniband" if nodes.infiniband_links else "none",
        wish=wish(config, nodes.software, nodes.kernel, config.scheduler_of(nodes).kind),
        mig=mig_layouts(nodes.mig, count),
        secure_boot=nodes.secure_boot,
        dgx_os=nodes.dgx_os,
        login=nodes.role == "login",
    )


def _fixed(config: ClusterConfig, group: Group) -> model.Group:
    nodes = naming.numbered(group.name, group.count)
    return _instances(config, naming.locked_group(group.name), nodes, group.name, group)


def _rented(config: ClusterConfig, pool: Pool) -> model.Group:
    nodes, partition = naming.numbered(pool.name, pool.max_nodes), naming.burst_partition(pool.name)
    bridged = ["kubernetes"] if config.bridge else []
    return _instances(config, naming.locked_pool(pool.name), nodes, partition, pool, *bridged)


def _instances(
    config: ClusterConfig, name: str, nodes: list[str], span: str, given: Group | Pool, *others: str
) -> model.Group:
    """`others`: kinds of schedulers that they join, too."""
    first = given.types[0]  # a pool's others have the same GPUs and fabric (config.checks.cloud)
    kind, (fabric, _) = catalog.instance_type(first), catalog.fabric(first)
    return model.Group(
        name=name,
        nodes=tuple(nodes),
        span=span,
        os=given.os or config.software.os,
        gpu=kind.gpu,
        gpu_count=kind.gpu_count,
        board=catalog.board(kind.gpu, kind.gpu_count) if kind.gpu else model.NoBoard(),
        fabric=fabric,
        wish=wish(config, given.software, given.kernel, config.scheduler_of(given).kind, *others),
        mig=mig_layouts(given.mig, kind.gpu_count),
    )


def solved(config: ClusterConfig, today: date | None = None) -> Solution:
    """The newest sets that a valid declaration allows, whatever is locked. Raises catalog.Unknown."""
    return solve(groups(config), catalog.software_facts(), today=today)
