"""From a declaration to the ClusterDocument that the Pulumi program exports. Its readers don't load this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel

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
from ironburst.document import (
    Budget,
    Burst,
    ClusterDocument,
    DocumentError,
    Filesystem,
    Gpu,
    Host,
    Mig,
    NodeSoftware,
    PoolDocument,
    PoolZone,
    Scheduler,
    Scratch,
    SlurmNode,
    Software,
    Ssh,
    SubnetManager,
    WaitTarget,
)
from ironburst.software.model import SoftwareSet

TOP_PRIORITY = 14


class CloudInstance(BaseModel, frozen=True):
    id: str
    address: str


class Observed(BaseModel, frozen=True):
    """What only the cloud can tell: ids and addresses, by declared name."""

    instances: dict[str, CloudInstance] = {}
    pool_zones: dict[str, list[PoolZone]] = {}
    interruption_queue_urls: dict[str, str] = {}


def build(config: ClusterConfig, observed: Observed, sets: Mapping[str, SoftwareSet] | None = None) -> ClusterDocument:
    """The document of a valid declaration. `sets`: the exact software of each group, as the lock has it; None: solved
    here. Pure.
    """
    software = _Solved(config, sets)
    hosts = [
        host for hall in config.halls for nodes in hall.nodes for host in _bare_metal(config, hall, nodes, software)
    ]
    pools = []
    if config.cloud:
        hosts += [host for group in config.cloud.groups for host in _fixed(config, group, observed, software)]
        pools = [_pool(config, pool, observed, software) for pool in config.cloud.pools]
    head = next(host for host in hosts if host.name == config.scheduler.head)
    scheduler = config.scheduler.model_dump() | {"head_address": head.address}
    return ClusterDocument(
        version=1,
        serial=0,
        cluster=config.name,
        region=config.cloud.region if config.cloud else None,
        software=software.cluster(),
        ssh=Ssh(user=config.ssh.user),
        scheduler=Scheduler(**scheduler),
        hosts=hosts,
        pools=pools,
        budget=_budget(config),
        burst=_burst(config),
        filesystem=Filesystem(**config.filesystem.model_dump()) if config.filesystem else None,
        subnet_managers={hall.name: _subnet_managers(hall) for hall in config.halls if hall.subnet_managers},
        data_science=list(config.data_science),
    )


def _burst(config: ClusterConfig) -> Burst:
    seconds = {f"{name}_s": getattr(config.burst, name) for name in ("tick", "wait_limit", "settle", "cool_down")}
    waits = vars(config.burst.wait_target) if config.burst.wait_target else {}
    target = (
        WaitTarget(**{f"{name}_h": value / 3600 for name, value in waits.items() if value is not None})
        if waits
        else None
    )
    return Burst(**seconds, wait_target=target, spot_max_nodes=config.burst.spot_max_nodes)


def _budget(config: ClusterConfig) -> Budget | None:
    return Budget(**config.budget.model_dump(exclude={"notify"})) if config.budget else None


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
            "os": group.os,
            "software": NodeSoftware(**asdict(self.sets[name])),
            "mig": [Mig(gpus=list(one.gpus), profiles=dict(one.profiles)) for one in group.mig] or None,
            "scratch": Scratch(**scratch.model_dump()) if scratch else None,
        }

    def cluster(self) -> Software:
        """The first GPU group's versions stand for the cluster."""
        first = next((name for name, group in self.groups.items() if group.gpu), None)
        chosen, wish = self.sets.get(first or ""), declared_software.wish(self.config, None, None)
        fields = {key: getattr(chosen, key, None) for key in ("driver", "kernel_module", "cuda", "container_toolkit")}
        runtimes = list(wish.container_runtimes)
        return Software(
            **fields, container_runtime=runtimes[0], container_runtimes=runtimes, rdma=wish.rdma, slurm=wish.slurm
        )


def _subnet_managers(hall: Hall) -> list[SubnetManager]:
    """opensm's priorities, from 14 downwards in the declared order (15 is left for a switch in an emergency)."""
    return [SubnetManager(host=host, priority=TOP_PRIORITY - n) for n, host in enumerate(hall.subnet_managers)]


def _roles(
    config: ClusterConfig, chosen: NodeSoftware, facts: dict[str, Any], *, gpu: bool, opensm: bool = False
) -> list[str]:
    """The roles of a host: what its set, its hardware and the declaration need. Group name = role name."""
    wanted = {
        "base": True,
        "nvidia_driver": gpu,
        "nvlsm": chosen.nvlsm,
        "fabric_manager": chosen.fabric_manager is not None,
        "imex": chosen.imex is not None,
        "cuda": gpu,
        "nvidia_container_toolkit": gpu,
        "container_runtime": gpu and bool(chosen.container_runtimes),
        "rdma": bool(chosen.packages.get("rdma")),
        "infiniband_fabric": opensm,
        "mig": bool(facts["mig"]),
        "dcgm": gpu,
        "metrics": config.metrics,
        "scratch": facts["scratch"] is not None,
        "shared_filesystem": config.filesystem is not None,
        "data_science": gpu and bool(config.data_science),
        "node_health": gpu,
        "slurm_node": gpu,
        "slurm_head": not gpu,
    }
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
            name=name,
            kind="bare_metal",
            role=nodes.role,
            address=address,
            hall=hall.name,
            rack=nodes.rack,
            gpu=gpu,
            serial=nodes.serials[n] if nodes.serials else None,
            partition=config.scheduler.home_partition if gpu else None,
            fabric="infiniband" if links else "none",
            fabric_links=links,
            slurm=SlurmNode(**nodes.slurm.model_dump()) if nodes.slurm else None,
            roles=_roles(config, facts["software"], facts, gpu=gpu is not None, opensm=name in hall.subnet_managers),
            **facts,
        )
        for n, (name, address) in enumerate(zip(nodes.names, nodes.addresses, strict=True))
    ]


def _instance_facts(config: ClusterConfig, instance_type: str, slurm: Any, facts: dict[str, Any]) -> dict[str, Any]:
    kind = catalog.instance_type(instance_type)
    efa = sum(nic.interface_type != "interface" for nic in catalog.network_interfaces(instance_type))
    told = (
        SlurmNode(**slurm.model_dump()) if slurm else SlurmNode(cpus=kind.vcpus, memory_mb=int(kind.memory_mib * 0.95))
    )
    return facts | {
        "gpu": Gpu(model=kind.gpu.model, count=kind.gpu_count),
        "fabric": "efa" if efa else "none",
        "fabric_links": efa,
        "slurm": told,
        "instance_type": instance_type,
        "roles": _roles(config, facts["software"], facts, gpu=True),
    }


def _fixed(config: ClusterConfig, group: Group, observed: Observed, software: _Solved) -> list[Host]:
    solved = software.of(declared_software.fixed_group(group), group.scratch)
    facts = _instance_facts(config, group.instance_type, group.slurm, solved)
    return [
        Host(
            name=name,
            kind="cloud",
            role="gpu",
            partition=group.name,
            zone=group.zone,
            instance_id=observed.instances[name].id,
            address=observed.instances[name].address,
            **facts,
        )
        for name in group_nodes(group)
    ]


def _pool(config: ClusterConfig, pool: Pool, observed: Observed, software: _Solved) -> PoolDocument:
    assert config.cloud
    prices = {
        market: catalog.price(
            pool.instance_type, market, config.cloud.region, declared_price(config.cloud, pool.instance_type, market)
        )
        for market in pool.markets
    }
    ages = [price.as_of for price in prices.values() if price and price.as_of]
    solved = software.of(declared_software.pool_group(pool), pool.scratch)
    taken_back = catalog.interruptions(pool.instance_type, config.cloud.region) if "spot" in pool.markets else None
    return PoolDocument(
        name=pool.name,
        partition=pool_partition(pool),
        nodes=pool_nodes(pool),
        markets=list(pool.markets),
        usd_per_hour={market: price.usd_per_hour if price else None for market, price in prices.items()},
        price_as_of=str(min(ages)) if ages else None,
        zones=observed.pool_zones[pool.name],
        image_parameter=image_parameter(config.name, pool),
        interruption_queue_url=observed.interruption_queue_urls.get(pool.name),
        capacity_reservation_id=pool.capacity_reservation,
        boot_s=pool.boot,
        idle_s=pool.idle,
        max_run_s=pool.max_run,
        capacity_ends_s=pool.capacity_ends.timestamp() if pool.capacity_ends else None,
        data=pool.data,
        licences=pool.licences,
        interruptions_per_hour={"spot": round(taken_back.per_hour, 6)} if taken_back else {},
        checkpoint_s=pool.checkpoint or 0,
        **_instance_facts(config, pool.instance_type, pool.slurm, solved),
    )
