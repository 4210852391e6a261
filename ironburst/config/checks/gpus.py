"""GPUs that Slurm can't tell apart."""

from __future__ import annotations

from ironburst import catalog, naming
from ironburst.config.checks.common import Findings, owned_nodes
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig


def memory(config: ClusterConfig) -> Findings:
    """A job is rented no GPU with less memory than those of the same gres type at home, unless that is declared."""
    most = _at_home(config)
    for p, pool in enumerate(config.cloud.pools if config.cloud else []):
        try:
            gpu = catalog.instance_type(pool.types[0]).gpu
        except catalog.Unknown:
            continue  # said by cloud.instance_types()
        if gpu is None or gpu.memory_gb is None or config.scheduler_of(pool).kind != "slurm":
            continue
        home = most.get(naming.gpu_type(gpu.model))
        if home and gpu.memory_gb < (home.memory_gb or 0) and not pool.less_gpu_memory:
            message = (
                f"{pool.types[0]} has {gpu.model}, and home has {home.model}: to Slurm both are "
                f"{naming.gpu_type(gpu.model)}, so a job may be rented less memory than it has at home; take a type "
                "with as much, or write less_gpu_memory: true"
            )
            yield Finding(path_of("cloud", "pools", p, "less_gpu_memory"), False, "gpu-memory", message)


def _at_home(config: ClusterConfig) -> dict[str, catalog.Gpu]:
    """Of each gres type of Slurm's owned nodes the model with the most memory."""
    most: dict[str, catalog.Gpu] = {}
    for _, _, nodes in owned_nodes(config):
        try:
            gpu = catalog.platform(nodes.platform).gpu if nodes.platform else None
        except catalog.Unknown:
            continue  # said by metal.platforms()
        if gpu and gpu.memory_gb and config.scheduler_of(nodes).kind == "slurm":
            type = naming.gpu_type(gpu.model)
            if type not in most or (most[type].memory_gb or 0) < gpu.memory_gb:
                most[type] = gpu
    return most
