"""Part of build.py: what hosts of all kinds have, owned or of a cloud: their software, their roles, their scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TypedDict

from ironburst import catalog
from ironburst.config import software_models
from ironburst.config.cloud_models import Pool
from ironburst.config.models import ClusterConfig, Nodes
from ironburst.config.node_settings import NodeSettings
from ironburst.document import MigDocument, NodeSoftware, Scratch
from ironburst.software.solve import Solution


class OfSoftware(TypedDict):
    """The fields of a host or pool that the version lock fills."""

    os: str | None
    software: NodeSoftware | None
    mig: list[MigDocument] | None
    scratch: Scratch | None


def of_software(solution: Solution, name: str, scratch: software_models.Scratch | None) -> OfSoftware:
    """Of one group of nodes, by its name in the lock."""
    group = solution.groups[name]
    return {
        "os": group.os,
        "software": NodeSoftware(**asdict(solution.sets[name])),
        "mig": [MigDocument(gpus=list(layout.gpus), profiles=dict(layout.profiles)) for layout in group.mig] or None,
        "scratch": Scratch(**scratch.model_dump()) if scratch else None,
    }


def whose(config: ClusterConfig, nodes: NodeSettings) -> str:
    """The kind of their scheduler, where there are two."""
    return config.scheduler_of(nodes).kind if config.other_schedulers else ""


def roles(
    config: ClusterConfig, nodes: NodeSettings, its: OfSoftware, *, gpu: bool, here: Sequence[str] = ()
) -> list[str]:
    """Roles of a host: what its set, hardware and declaration need, and what it is named for (`here`). Group = role."""
    chosen, kind = its["software"], config.scheduler_of(nodes).kind
    assert chosen is not None  # of what is managed
    role = nodes.role if isinstance(nodes, Nodes) else "gpu"
    bridged = config.bridge is not None and isinstance(nodes, Pool)  # others are nodes of its cluster already
    wanted = {
        "base": True,
        "host_names": config.names is not None and not isinstance(nodes, Pool),
        "users": config.users is not None and kind == "slurm",
        "nvidia_driver": gpu,
        "nvlsm": chosen.nvlsm,
        "fabric_manager": chosen.fabric_manager is not None,
        "imex": chosen.imex is not None,
        "cuda": gpu,
        "nvidia_container_toolkit": gpu,
        "container_runtime": bool(chosen.container_runtimes),
        "rdma": bool(chosen.packages.get("rdma")) or chosen.rdma in catalog.software_extra()["fabrics"]["own_rdma"],
        "infiniband_fabric": "infiniband_fabric" in here,
        "mig": bool(its["mig"]),
        "gpu_power_limit": isinstance(nodes, Nodes) and nodes.gpu_power_limit_w is not None,
        "dcgm": gpu,
        "metrics": config.metrics,
        "logs": config.monitoring.logs is not None
        and (bool(config.monitoring.receiver) or not isinstance(nodes, Pool)),
        "prometheus": "prometheus" in here,
        "scratch": its["scratch"] is not None,
        "data_sets": "data_sets" in here,
        "shared_filesystem": config.filesystem is not None,
        "data_science": gpu and bool(config.data_science),
        "node_health": gpu,
        "slurm_node": gpu and kind == "slurm",
        "slurm_head": role == "head" and kind == "slurm",
        "slurm_login": role == "login" and kind == "slurm",
        "kubernetes_head": role == "head" and kind == "kubernetes",
        "kubernetes_node": gpu and (kind == "kubernetes" or bridged),
    }
    return [role for role, needed in wanted.items() if needed]
