"""GPUs that are less than home's: of the same gres type, and for jobs that name none."""

from __future__ import annotations

from ironburst import catalog
from ironburst.config import gpu_models
from ironburst.config.checks.common import Findings, owned_nodes, pools
from ironburst.config.cloud_models import Pool
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.nodes import naming
from ironburst.nodes.gpus import NodeGpu, least


def memory(config: ClusterConfig) -> Findings:
    """A job is rented no GPU with less memory than those of the same gres type at home, unless that is declared."""
    most = _at_home(config)
    for at, pool in pools(config):
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
            yield Finding(at("less_gpu_memory"), False, "gpu-memory", message)


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


def untyped(config: ClusterConfig) -> Findings:
    """Jobs that name no GPU type get none of less than home's, unless declared. Reported until it is decided."""
    named = config.burst.untyped_jobs_may_use
    for n, name in enumerate(named or []):
        if name not in (known := [pool.name for pool in config.pools]):
            message = f"there is no pool {name!r}; the pools are {', '.join(known) or 'none'}"
            yield Finding(path_of("burst", "untyped_jobs_may_use", n), name, "unknown-pool", message)
    if named is not None:
        return
    for at, pool in pools(config):
        try:
            kind = catalog.instance_type(pool.types[0])
        except catalog.Unknown:
            continue  # said by cloud.instance_types()
        home = _kinds_at_home(config, config.scheduler_of(pool).kind)
        if kind.gpu is None or not home or pool.less_gpu_memory:
            continue
        gpu, together = gpu_models.rented(kind, pool.mig), kind.gpu_count > 1
        if not any(gpu.as_good_as(each, together) for each in home):
            has = f"this pool has {gpu}{gpu.lacks(least(home), together)}"
            message = (
                f"jobs that ask for GPUs without a type mean at least home's {least(home)}, and {has}: "
                f"it is rented only for jobs that {_said(config, pool, kind)}; "
                f"for all of them write burst.untyped_jobs_may_use: [{pool.name}], else []"
            )
            yield Finding(at(), pool.name, "lesser-gpus", message, "warning")


def _said(config: ClusterConfig, pool: Pool, kind: catalog.InstanceType) -> str:
    """How a job names the pool's GPUs."""
    assert kind.gpu is not None
    if config.scheduler_of(pool).kind == "slurm":
        return f"say --gres=gpu:{naming.gpu_type(kind.gpu.model)}"
    return "select nvidia.com/gpu.product"


def _kinds_at_home(config: ClusterConfig, scheduler: str) -> tuple[NodeGpu, ...]:
    """The models of a scheduler's owned nodes."""
    found: dict[NodeGpu, None] = {}
    for _, _, nodes in owned_nodes(config):
        if nodes.platform and nodes.role == "gpu" and config.scheduler_of(nodes).kind == scheduler:
            try:
                found[gpu_models.of(catalog.platform(nodes.platform).gpu)] = None
            except catalog.Unknown:
                continue  # said by metal.platforms()
    return tuple(found)
