"""ClusterDocument v1: what the declaration became. The contract between Pulumi, the inventory and the controller.

The Pulumi program exports it as `cluster` with serial 0; `publish` puts it where the readers look and counts the serial up.
Readers ignore fields that they don't know, refuse versions that they don't know, and keep a last good copy.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ironburst import catalog
from ironburst.config.models import (
    ClusterConfig,
    Group,
    Nodes,
    Pool,
    declared_price,
    group_nodes,
    image_parameter,
    pool_nodes,
    pool_partition,
)

VERSION = 1
GPU_ROLES = ["base", "nvidia_driver", "cuda", "nvidia_container_toolkit", "container_runtime", "rdma", "slurm_node", "node_health"]
HEAD_ROLES = ["base", "slurm_head"]


class DocumentError(ValueError):
    """A document that can't be used; the text is one sentence."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Software(_Part):
    driver: str
    kernel_module: str
    cuda: str
    container_toolkit: str
    container_runtime: str
    rdma: str
    slurm: str


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


def build(config: ClusterConfig, observed: Observed) -> ClusterDocument:
    """The document of a valid declaration. Pure."""
    hosts = [host for hall in config.halls for nodes in hall.nodes for host in _bare_metal(config, hall.name, nodes)]
    pools = []
    if config.cloud:
        hosts += [host for group in config.cloud.groups for host in _fixed(group, observed)]
        pools = [_pool(config, pool, observed) for pool in config.cloud.pools]
    head = next(host for host in hosts if host.name == config.scheduler.head)
    scheduler = config.scheduler.model_dump() | {"head_address": head.address}
    burst = {f"{name}_s": getattr(config.burst, name) for name in ("tick", "wait_limit", "cool_down")}
    return ClusterDocument(
        version=1, serial=0, cluster=config.name, region=config.cloud.region if config.cloud else None,
        software=Software(**config.software.model_dump()), ssh=Ssh(user=config.ssh.user), scheduler=Scheduler(**scheduler),
        hosts=hosts, pools=pools, budget=Budget(usd_per_month=config.budget.usd_per_month) if config.budget else None,
        burst=Burst(**burst),
    )  # fmt: skip


def _bare_metal(config: ClusterConfig, hall: str, nodes: Nodes) -> list[Host]:
    gpu = None
    if nodes.role == "gpu":
        platform = catalog.platform(nodes.platform)
        gpu = Gpu(model=platform.gpu.model, count=platform.gpu_count)
    links = nodes.infiniband_links or 0
    return [
        Host(
            name=name, kind="bare_metal", role=nodes.role, address=address, hall=hall, rack=nodes.rack, gpu=gpu,
            serial=nodes.serials[n] if nodes.serials else None,
            partition=config.scheduler.home_partition if gpu else None, fabric="infiniband" if links else "none", fabric_links=links,
            slurm=SlurmNode(**nodes.slurm.model_dump()) if nodes.slurm else None,
            roles=GPU_ROLES if gpu else HEAD_ROLES,
        )
        for n, (name, address) in enumerate(zip(nodes.names, nodes.addresses, strict=True))
    ]  # fmt: skip


def _instance_facts(instance_type: str, slurm: Any) -> dict[str, Any]:
    kind = catalog.instance_type(instance_type)
    efa = sum(nic.interface_type != "interface" for nic in catalog.network_interfaces(instance_type))
    told = SlurmNode(**slurm.model_dump()) if slurm else SlurmNode(cpus=kind.vcpus, memory_mb=int(kind.memory_mib * 0.95))
    return {
        "gpu": Gpu(model=kind.gpu.model, count=kind.gpu_count), "fabric": "efa" if efa else "none", "fabric_links": efa, "slurm": told,
        "instance_type": instance_type, "roles": GPU_ROLES,
    }  # fmt: skip


def _fixed(group: Group, observed: Observed) -> list[Host]:
    facts = _instance_facts(group.instance_type, group.slurm)
    return [
        Host(name=name, kind="cloud", role="gpu", partition=group.name, zone=group.zone, instance_id=observed.instances[name].id,
             address=observed.instances[name].address, **facts)
        for name in group_nodes(group)
    ]  # fmt: skip


def _pool(config: ClusterConfig, pool: Pool, observed: Observed) -> PoolDocument:
    assert config.cloud
    prices = {
        market: catalog.price(pool.instance_type, market, config.cloud.region, declared_price(config.cloud, pool.instance_type, market))
        for market in pool.markets
    }
    ages = [price.as_of for price in prices.values() if price and price.as_of]
    return PoolDocument(
        name=pool.name, partition=pool_partition(pool), nodes=pool_nodes(pool), markets=list(pool.markets),
        usd_per_hour={market: price.usd_per_hour if price else None for market, price in prices.items()},
        price_as_of=str(min(ages)) if ages else None, zones=observed.pool_zones[pool.name],
        image_parameter=image_parameter(config.name, pool), interruption_queue_url=observed.interruption_queue_urls.get(pool.name),
        capacity_reservation_id=pool.capacity_reservation, boot_s=pool.boot, idle_s=pool.idle, max_run_s=pool.max_run,
        **_instance_facts(pool.instance_type, pool.slurm),
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
