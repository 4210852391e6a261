"""ClusterDocument v1: what the declaration became. The contract between Pulumi, the inventory and the controller.

The Pulumi program exports it as `cluster` with serial 0; `publish` puts it where the readers look and counts the serial up.
Readers ignore fields that they don't know, refuse versions that they don't know, and keep a last good copy.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ironburst import catalog
from ironburst.config import software as declared_software
from ironburst.config import software_models
from ironburst.config.models import (
    ClusterConfig,
    Group,
    Hall,
    Nodes,
    Pool,
    declared_price,
    group_nodes,
    image_parameter,
    pool_nodes,
    pool_partition,
)
from ironburst.software.model import SoftwareSet

VERSION = 1
TOP_PRIORITY = 14


class DocumentError(ValueError):
    """A document that can't be used; the text is one sentence."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Software(_Part):
    """What is one for the whole cluster; the driver's are those of the first group of GPU nodes. Hosts have their own: NodeSoftware."""

    driver: str | None
    kernel_module: str | None
    cuda: str | None
    container_toolkit: str | None
    container_runtime: str
    container_runtimes: list[str] = ["containerd"]
    rdma: str
    slurm: str | None


class NodeSoftware(_Part):
    """The exact set of one group of nodes, as the version lock solved it. None: not on these nodes (or, for `kernel`, not pinned)."""

    driver: str | None
    driver_branch: int | None
    kernel_module: str | None
    fabric_manager: str | None
    nscq: str | None
    nvlsm: bool
    imex: str | None
    persistenced: str | None = None
    cuda: str | None
    container_toolkit: str | None
    container_runtimes: list[str]
    dcgm: str | None
    nccl: str | None
    rdma: str
    rdma_version: str | None
    peer_memory: str
    gds: bool
    kernel: str | None
    slurm: str | None
    packages: dict[str, list[str]] = Field(description="role: package specs in the OS's own syntax; every one is held")


class Mig(_Part):
    gpus: list[int]
    profiles: dict[str, int]


class Scratch(_Part):
    path: str
    devices: list[str] = Field(description="empty: every unused local NVMe disk")
    filesystem: str


class Filesystem(_Part):
    kind: str
    source: str
    options: str


class SubnetManager(_Part):
    host: str
    priority: int = Field(description="opensm's, 0 to 15: the highest becomes master")


class Gpu(_Part):
    model: str
    count: int


class SlurmNode(_Part):
    cpus: int
    memory_mb: int


class Ssh(_Part):
    user: str


class Scheduler(_Part):
    kind: str
    head: str
    head_address: str
    home_partition: str
    munge_key: str
    shared_filesystem: str


class Host(_Part):
    """A declared host, owned or a fixed cloud node."""

    name: str
    kind: Literal["bare_metal", "cloud"]
    role: Literal["gpu", "head"]
    address: str
    partition: str | None
    gpu: Gpu | None
    fabric: Literal["infiniband", "efa", "none"]
    fabric_links: int
    slurm: SlurmNode | None
    serial: str | None = None
    hall: str | None = None
    rack: str | None = None
    instance_id: str | None = None
    instance_type: str | None = None
    zone: str | None = None
    os: str | None = None
    software: NodeSoftware | None = None
    mig: list[Mig] | None = None
    scratch: Scratch | None = None
    roles: list[str]


class PoolZone(_Part):
    zone: str
    subnet_id: str
    launch_template_id: str


class PoolDocument(_Part):
    """The envelope of one burst pool: limits, prices, and what a launch needs."""

    name: str
    partition: str
    nodes: list[str]
    instance_type: str
    gpu: Gpu
    fabric: Literal["infiniband", "efa", "none"]
    fabric_links: int
    slurm: SlurmNode
    markets: list[str]
    usd_per_hour: dict[str, float | None] = Field(description="market: USD per node-hour; null: unknown, so not rented")
    price_as_of: str | None
    zones: list[PoolZone]
    image_parameter: str
    interruption_queue_url: str | None
    capacity_reservation_id: str | None
    boot_s: int
    idle_s: int
    max_run_s: int
    os: str | None = None
    software: NodeSoftware | None = None
    mig: list[Mig] | None = None
    scratch: Scratch | None = None
    roles: list[str]


class Budget(_Part):
    usd_per_month: float


class Burst(_Part):
    tick_s: int
    wait_limit_s: int
    cool_down_s: int


class ClusterDocument(_Part):
    version: Literal[1]
    serial: int
    cluster: str
    region: str | None
    software: Software
    ssh: Ssh
    scheduler: Scheduler
    hosts: list[Host]
    pools: list[PoolDocument]
    budget: Budget | None
    burst: Burst
    filesystem: Filesystem | None = Field(default=None, description="mounted at scheduler.shared_filesystem; null: somebody else does")
    subnet_managers: dict[str, list[SubnetManager]] = Field(default={}, description="by hall; empty: the switches or UFM do")
    data_science: list[str] = []

    def host(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    def pool(self, name: str) -> PoolDocument:
        return next(pool for pool in self.pools if pool.name == name)


# ---- building: what the Pulumi program exports


class CloudInstance(_Part):
    id: str
    address: str


class Observed(_Part):
    """What only the cloud can tell: ids and addresses, by declared name."""

    instances: dict[str, CloudInstance] = {}
    pool_zones: dict[str, list[PoolZone]] = {}
    interruption_queue_urls: dict[str, str] = {}


def build(config: ClusterConfig, observed: Observed, sets: Mapping[str, SoftwareSet] | None = None) -> ClusterDocument:
    """The document of a valid declaration. `sets`: the exact software of each group, as the lock has it; None: solved here. Pure."""
    software = _Solved(config, sets)
    hosts = [host for hall in config.halls for nodes in hall.nodes for host in _bare_metal(config, hall, nodes, software)]
    pools = []
    if config.cloud:
        hosts += [host for group in config.cloud.groups for host in _fixed(config, group, observed, software)]
        pools = [_pool(config, pool, observed, software) for pool in config.cloud.pools]
    head = next(host for host in hosts if host.name == config.scheduler.head)
    scheduler = config.scheduler.model_dump() | {"head_address": head.address}
    burst = {f"{name}_s": getattr(config.burst, name) for name in ("tick", "wait_limit", "cool_down")}
    return ClusterDocument(
        version=1, serial=0, cluster=config.name, region=config.cloud.region if config.cloud else None,
        software=software.cluster(), ssh=Ssh(user=config.ssh.user), scheduler=Scheduler(**scheduler),
        hosts=hosts, pools=pools, budget=Budget(usd_per_month=config.budget.usd_per_month) if config.budget else None,
        burst=Burst(**burst), filesystem=Filesystem(**config.filesystem.model_dump()) if config.filesystem else None,
        subnet_managers={hall.name: _subnet_managers(hall) for hall in config.halls if hall.subnet_managers},
        data_science=list(config.data_science),
    )  # fmt: skip


class _Solved:
    """The groups of a declaration with their sets."""

    def __init__(self, config: ClusterConfig, sets: Mapping[str, SoftwareSet] | None) -> None:
        self.config = config
        self.groups = {group.name: group for group in declared_software.groups(config)}
        if sets is None:
            solution = declared_software.solved(config)
            if solution.conflicts:
                raise DocumentError("; ".join(str(hit) for hit in solution.conflicts))
            sets = solution.sets
        self.sets = sets

    def of(self, name: str, scratch: software_models.Scratch | None) -> dict[str, Any]:
        """The fields of a host or pool that the lock fills."""
        group = self.groups[name]
        return {
            "os": group.os, "software": NodeSoftware(**asdict(self.sets[name])),
            "mig": [Mig(gpus=list(one.gpus), profiles=dict(one.profiles)) for one in group.mig] or None,
            "scratch": Scratch(**scratch.model_dump()) if scratch else None,
        }  # fmt: skip

    def cluster(self) -> Software:
        """The first GPU group's versions stand for the cluster."""
        first = next((name for name, group in self.groups.items() if group.gpu), None)
        chosen, wish = self.sets.get(first or ""), declared_software.wish(self.config, None, None)
        fields = {key: getattr(chosen, key, None) for key in ("driver", "kernel_module", "cuda", "container_toolkit")}
        runtimes = list(wish.container_runtimes)
        return Software(**fields, container_runtime=runtimes[0], container_runtimes=runtimes, rdma=wish.rdma, slurm=wish.slurm)


def _subnet_managers(hall: Hall) -> list[SubnetManager]:
    """opensm's priorities, from 14 downwards in the declared order (15 is left for a switch in an emergency)."""
    return [SubnetManager(host=host, priority=TOP_PRIORITY - n) for n, host in enumerate(hall.subnet_managers)]


def _roles(config: ClusterConfig, chosen: NodeSoftware, facts: dict[str, Any], *, gpu: bool, opensm: bool = False) -> list[str]:
    """The roles of a host: what its set, its hardware and the declaration need. Group name = role name."""
    wanted = {
        "base": True, "nvidia_driver": gpu, "nvlsm": chosen.nvlsm, "fabric_manager": chosen.fabric_manager is not None,
        "imex": chosen.imex is not None, "cuda": gpu, "nvidia_container_toolkit": gpu,
        "container_runtime": gpu and bool(chosen.container_runtimes), "rdma": bool(chosen.packages.get("rdma")),
        "infiniband_fabric": opensm, "mig": bool(facts["mig"]), "dcgm": gpu, "metrics": config.metrics,
        "scratch": facts["scratch"] is not None,
        "shared_filesystem": config.filesystem is not None, "data_science": gpu and bool(config.data_science), "node_health": gpu,
        "slurm_node": gpu, "slurm_head": not gpu,
    }  # fmt: skip
    return [role for role, needed in wanted.items() if needed]


def _bare_metal(config: ClusterConfig, hall: Hall, nodes: Nodes, software: _Solved) -> list[Host]:
    gpu = None
    if nodes.role == "gpu":
        platform = catalog.platform(nodes.platform)
        gpu = Gpu(model=platform.gpu.model, count=platform.gpu_count)
    links = nodes.infiniband_links or 0
    facts = software.of(declared_software.nodes_group(hall.name, nodes), nodes.scratch)
    return [
        Host(
            name=name, kind="bare_metal", role=nodes.role, address=address, hall=hall.name, rack=nodes.rack, gpu=gpu,
            serial=nodes.serials[n] if nodes.serials else None,
            partition=config.scheduler.home_partition if gpu else None, fabric="infiniband" if links else "none", fabric_links=links,
            slurm=SlurmNode(**nodes.slurm.model_dump()) if nodes.slurm else None,
            roles=_roles(config, facts["software"], facts, gpu=gpu is not None, opensm=name in hall.subnet_managers), **facts,
        )
        for n, (name, address) in enumerate(zip(nodes.names, nodes.addresses, strict=True))
    ]  # fmt: skip


def _instance_facts(config: ClusterConfig, instance_type: str, slurm: Any, facts: dict[str, Any]) -> dict[str, Any]:
    kind = catalog.instance_type(instance_type)
    efa = sum(nic.interface_type != "interface" for nic in catalog.network_interfaces(instance_type))
    told = SlurmNode(**slurm.model_dump()) if slurm else SlurmNode(cpus=kind.vcpus, memory_mb=int(kind.memory_mib * 0.95))
    return facts | {
        "gpu": Gpu(model=kind.gpu.model, count=kind.gpu_count), "fabric": "efa" if efa else "none", "fabric_links": efa, "slurm": told,
        "instance_type": instance_type, "roles": _roles(config, facts["software"], facts, gpu=True),
    }  # fmt: skip


def _fixed(config: ClusterConfig, group: Group, observed: Observed, software: _Solved) -> list[Host]:
    solved = software.of(declared_software.fixed_group(group), group.scratch)
    facts = _instance_facts(config, group.instance_type, group.slurm, solved)
    return [
        Host(name=name, kind="cloud", role="gpu", partition=group.name, zone=group.zone, instance_id=observed.instances[name].id,
             address=observed.instances[name].address, **facts)
        for name in group_nodes(group)
    ]  # fmt: skip


def _pool(config: ClusterConfig, pool: Pool, observed: Observed, software: _Solved) -> PoolDocument:
    assert config.cloud
    prices = {
        market: catalog.price(pool.instance_type, market, config.cloud.region, declared_price(config.cloud, pool.instance_type, market))
        for market in pool.markets
    }
    ages = [price.as_of for price in prices.values() if price and price.as_of]
    solved = software.of(declared_software.pool_group(pool), pool.scratch)
    return PoolDocument(
        name=pool.name, partition=pool_partition(pool), nodes=pool_nodes(pool), markets=list(pool.markets),
        usd_per_hour={market: price.usd_per_hour if price else None for market, price in prices.items()},
        price_as_of=str(min(ages)) if ages else None, zones=observed.pool_zones[pool.name],
        image_parameter=image_parameter(config.name, pool), interruption_queue_url=observed.interruption_queue_urls.get(pool.name),
        capacity_reservation_id=pool.capacity_reservation, boot_s=pool.boot, idle_s=pool.idle, max_run_s=pool.max_run,
        **_instance_facts(config, pool.instance_type, pool.slurm, solved),
    )  # fmt: skip


# ---- publishing and reading


def parse(data: Any, where: str = "the document") -> ClusterDocument:
    """A ClusterDocument from decoded JSON. Raises DocumentError."""
    if not isinstance(data, dict) or "version" not in data:
        raise DocumentError(f"{where} is not a ClusterDocument: it has no version; publish one with `ironburst publish`")
    if data["version"] != VERSION:
        raise DocumentError(
            f"{where} has version {data['version']!r}; this ironburst reads version {VERSION}: upgrade the reader or publish again"
        )
    try:
        return ClusterDocument.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise DocumentError(f"{where} is damaged at {path}: {first['msg']}; publish it again with `ironburst publish`") from None


def read(path: Path | str, last_good: Path | None = None) -> ClusterDocument:
    """The document at `path`. With `last_good`, a good one is copied there and used when `path` is gone or damaged.

    Raises DocumentError, also for an unknown version (which is no damage: an old copy would hide it).
    """
    path = Path(path)
    try:
        document = parse(_load(path), str(path))
    except DocumentError as error:
        if last_good is None or "has version" in str(error) or not last_good.exists():
            raise
        return parse(_load(last_good), str(last_good))
    if last_good is not None:
        _write(last_good, document.model_dump(mode="json"))
    return document


def publish(document: ClusterDocument, path: Path) -> ClusterDocument:
    """Write `document` to `path`, atomically, with the next serial if it differs from what is there. Raises DocumentError."""
    serial = 1
    if path.exists():
        before = parse(_load(path), str(path))
        if before.cluster != document.cluster:
            raise DocumentError(
                f"{path} is the document of cluster {before.cluster!r}, not of {document.cluster!r}: publish to another path"
            )
        same = before.model_copy(update={"serial": 0}) == document.model_copy(update={"serial": 0})
        serial = before.serial if same else before.serial + 1
    published = document.model_copy(update={"serial": serial})
    _write(path, published.model_dump(mode="json"))
    return published


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise DocumentError(f"there is no ClusterDocument at {path}: run `pulumi up`, then `ironburst publish --to {path}`") from None
    except (OSError, ValueError) as error:
        raise DocumentError(f"{path} can't be read as JSON ({error}); publish it again with `ironburst publish`") from None


def _write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, delete=False) as file:
        json.dump(data, file, indent=1)
        file.write("\n")
    os.replace(file.name, path)
