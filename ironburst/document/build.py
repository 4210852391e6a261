"""From a declaration to the ClusterDocument that the Pulumi program exports. Its readers don't load this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TypedDict

from pydantic import BaseModel

from ironburst import catalog
from ironburst.config import gpu_models, halls, software_models
from ironburst.config import software as declared_software
from ironburst.config.cloud_models import Cloud, Group, Pool
from ironburst.config.karpenter_models import KarpenterPool as DeclaredKarpenterPool
from ironburst.config.models import ClusterConfig, Hall, Nodes
from ironburst.config.node_settings import NodeSettings
from ironburst.config.prices import fixed_usd_per_gpu_hour, oldest, price, spot_max
from ironburst.config.scheduler_models import Kubernetes
from ironburst.document import (
    CloudDocument,
    ClusterDocument,
    DataSet,
    DocumentError,
    Filesystem,
    GpuDocument,
    HallDocument,
    Host,
    ImagesDocument,
    KarpenterPool,
    MigDocument,
    NodeSoftware,
    PoolDocument,
    PoolType,
    PoolZone,
    Scratch,
    SlurmNode,
    Software,
    Ssh,
    SubnetManager,
)
from ironburst.document.build_monitoring import monitoring
from ironburst.document.build_policy import budget, burst, share
from ironburst.document.build_scheduler import HostedCluster, declared_node, scheduler, told
from ironburst.document.build_users import users
from ironburst.document.hall_model import FabricCable
from ironburst.nodes import naming
from ironburst.software.solve import Solution

TOP_PRIORITY = 14


class CloudInstance(BaseModel, frozen=True):
    """One fixed node as EC2 made it."""

    id: str
    address: str


class Observed(BaseModel, frozen=True):
    """What only the cloud knows: ids and addresses, by declared name."""

    instances: dict[str, CloudInstance] = {}
    pool_zones: dict[str, list[PoolZone]] = {}
    notices: dict[str, str] = {}
    hosted: HostedCluster | None = None


class _OfSoftware(TypedDict):
    """The fields of a host or pool that the version lock fills."""

    os: str | None
    software: NodeSoftware | None
    mig: list[MigDocument] | None
    scratch: Scratch | None


class _OfInstances(_OfSoftware):
    """The fields of a fixed node or a pool that its instance type fills, too."""

    gpu: GpuDocument
    fabric: str
    fabric_links: int
    slurm: SlurmNode
    instance_type: str
    roles: list[str]


def build(config: ClusterConfig, observed: Observed, solution: Solution | None = None) -> ClusterDocument:
    """The document of a valid declaration. `solution`: its software (config.stack); None: solved here, whatever is
    locked. Pure. Raises DocumentError for a conflict.
    """
    solution = solution or declared_software.solved(config)
    if solution.conflicts:
        raise DocumentError("; ".join(str(hit) for hit in solution.conflicts))
    declared_halls = halls.declared(config)
    devices = {device.name: device for hall in declared_halls for device in hall.devices}
    hosts = [
        host.model_copy(update={"power_w": devices[host.name].power_w, "gpu_w": devices[host.name].gpu_w})
        for hall in config.halls
        for nodes in hall.nodes
        for host in _bare_metal(config, hall, nodes, solution)
    ]
    pools, karpenter = [], []
    if config.cloud:
        hosts += [host for group in config.cloud.groups for host in _fixed(config, group, observed, solution)]
        pools = [_pool(config, pool, observed, solution) for pool in config.cloud.pools]
        karpenter = [_karpenter(config.name, config.cloud, pool) for pool in config.cloud.karpenter]
    return ClusterDocument(
        version=6,
        serial=0,
        cluster=config.name,
        cloud=_cloud(config.cloud) if config.cloud else None,
        software=_cluster_software(config, solution),
        ssh=Ssh(
            user=config.ssh.user,
            cloud_user=config.ssh.cloud_user,
            sudo_secret=config.ssh.sudo_password or "",
        ),
        scheduler=scheduler(config, config.scheduler, hosts, observed.hosted),
        other_schedulers=[scheduler(config, each, hosts, observed.hosted) for each in config.other_schedulers],
        hosts=hosts,
        halls={
            hall.name: HallDocument(
                breaker_share=hall.breaker.share,
                drain_after_s=int(hall.breaker.drain_after),
                other_w=halls.other_w(of_it),
                nightly_stress=hall.nightly_stress,
                cables=[FabricCable(**each) for each in halls.fabric_cables(of_it)],
            )
            for hall, of_it in zip(config.halls, declared_halls, strict=True)
        },
        pools=pools,
        karpenter=karpenter,
        budget=budget(config),
        burst=burst(config),
        monitoring=monitoring(config),
        filesystem=Filesystem(**config.filesystem.model_dump()) if config.filesystem else None,
        subnet_managers={hall.name: _subnet_managers(hall) for hall in config.halls if hall.subnet_managers},
        topology=halls.slurm_topology(config),
        data_science=list(config.data_science),
        data=_data(config.cloud) if config.cloud else {},
        images=ImagesDocument(**config.cloud.images.model_dump()) if config.cloud else ImagesDocument(),
        shares=[share(each) for each in config.shares],
        users=users(config),
        names=config.names or "",
    )


def _cloud(cloud: Cloud) -> CloudDocument:
    return CloudDocument(provider=cloud.provider, region=cloud.region, account=cloud.account)


def _of_software(solution: Solution, name: str, scratch: software_models.Scratch | None) -> _OfSoftware:
    """Of one group of nodes, by its name in the lock."""
    group = solution.groups[name]
    return {
        "os": group.os,
        "software": NodeSoftware(**asdict(solution.sets[name])),
        "mig": [MigDocument(gpus=list(layout.gpus), profiles=dict(layout.profiles)) for layout in group.mig] or None,
        "scratch": Scratch(**scratch.model_dump()) if scratch else None,
    }


def _cluster_software(config: ClusterConfig, solution: Solution) -> Software:
    """The first GPU group's versions stand for the cluster."""
    first = next((name for name, group in solution.groups.items() if group.gpu), "")
    chosen = solution.sets.get(first)
    # of a scheduler's own version Slurm's stands here; each node has kubelet's
    wish = declared_software.wish(config, None, None, "slurm" if config.slurm else config.scheduler.kind)
    return Software(
        driver=chosen.driver if chosen else None,
        kernel_module=chosen.kernel_module if chosen else None,
        cuda=chosen.cuda if chosen else None,
        container_toolkit=chosen.container_toolkit if chosen else None,
        container_runtime=wish.container_runtimes[0],
        container_runtimes=list(wish.container_runtimes),
        rdma=wish.rdma,
        slurm=wish.slurm,
    )


def _subnet_managers(hall: Hall) -> list[SubnetManager]:
    """opensm's priorities, from 14 downwards in the declared order (15 is left for a switch in an emergency)."""
    return [SubnetManager(host=host, priority=TOP_PRIORITY - n) for n, host in enumerate(hall.subnet_managers)]


def _data(cloud: Cloud) -> dict[str, DataSet]:
    sources = {name: declared.comes_from(cloud.region) for name, declared in cloud.data.items()}
    return {
        name: DataSet(kind=kind, source=source, path=cloud.data[name].where(name))
        for name, (kind, source) in sources.items()
    }


def _roles(
    config: ClusterConfig, nodes: NodeSettings, its: _OfSoftware, *, gpu: bool, here: Sequence[str] = ()
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


def _bare_metal(config: ClusterConfig, hall: Hall, nodes: Nodes, solution: Solution) -> list[Host]:
    gpu = None
    if nodes.role == "gpu":
        assert nodes.platform is not None  # config.checks.metal
        platform = catalog.platform(nodes.platform)
        gpu = GpuDocument(count=platform.gpu_count, **asdict(gpu_models.of(platform.gpu)), pcie_width=0)
    links = nodes.infiniband_links or 0
    its: _OfSoftware = {"os": nodes.os, "software": None, "mig": None, "scratch": None}
    if nodes.managed:
        its = _of_software(solution, declared_software.nodes_group(hall.name, nodes), nodes.scratch)
    opensm = {manager: ["infiniband_fabric"] for manager in hall.subnet_managers}
    server = {config.monitoring.server: ["prometheus"]}
    own = {node: naming.own_partition(share.name) for share in config.shares for node in share.nodes or []}
    return [
        Host(
            name=name,
            scheduler=_whose(config, nodes),
            kind="bare_metal",
            role=nodes.role,
            address=address,
            hall=hall.name,
            rack=nodes.rack,
            managed=nodes.managed,
            gpu=gpu,
            gpu_power_limit_w=nodes.gpu_power_limit_w,
            serial=nodes.serials[n] if nodes.serials else None,
            node_object=nodes.node_objects[n] if nodes.node_objects else "",
            partition=own.get(name, config.scheduler_of(nodes).home_partition) if gpu else None,
            fabric="infiniband" if links else "none",
            fabric_links=links,
            slurm=declared_node(nodes.slurm) if nodes.slurm else None,
            usd_per_gpu_hour=nodes.usd_per_gpu_hour.usd if nodes.usd_per_gpu_hour else None,
            roles=_roles(config, nodes, its, gpu=gpu is not None, here=opensm.get(name, []) + server.get(name, []))
            if nodes.managed
            else [],
            **its,
        )
        for n, (name, address) in enumerate(zip(nodes.names, nodes.addresses or [""] * len(nodes.names), strict=True))
    ]


def _of_instances(config: ClusterConfig, given: Group | Pool, name: str, solution: Solution) -> _OfInstances:
    """Of a fixed group or a pool, by its name in the lock."""
    kinds = [catalog.instance_type(name) for name in given.types]
    kind, (fabric, links) = kinds[0], catalog.fabric(*given.types)
    assert kind.gpu is not None  # config.checks.cloud
    its = _of_software(solution, name, given.scratch)
    return {
        **its,
        "gpu": GpuDocument(
            count=kind.gpu_count, **asdict(gpu_models.rented(kind, given.mig)), pcie_width=_lanes(kinds)
        ),
        "fabric": fabric,
        "fabric_links": links,
        "slurm": told(kinds, given.slurm),
        "instance_type": kind.name,
        "roles": _roles(config, given, its, gpu=True, here=["data_sets"] if _has_data(config, given) else []),
    }


def _lanes(kinds: Sequence[catalog.InstanceType]) -> int | None:
    """Of a pool with several types the fewest; None: of one they aren't known."""
    lanes = [kind.pcie_lanes for kind in kinds]
    return None if None in lanes else min(each for each in lanes if each is not None)


def _has_data(config: ClusterConfig, given: Group | Pool) -> bool:
    return bool(config.cloud and config.cloud.data.keys() & set(given.data))


def _whose(config: ClusterConfig, nodes: NodeSettings) -> str:
    """The kind of their scheduler, where there are two."""
    return config.scheduler_of(nodes).kind if config.other_schedulers else ""


def _fixed(config: ClusterConfig, group: Group, observed: Observed, solution: Solution) -> list[Host]:
    its = _of_instances(config, group, naming.locked_group(group.name), solution)
    whose = config.scheduler_of(group)
    by_id = isinstance(whose, Kubernetes) and whose.hosted is not None
    return [
        Host(
            name=name,
            scheduler=_whose(config, group),
            kind="cloud",
            role="gpu",
            partition=group.name,
            zone=group.zone,
            instance_id=observed.instances[name].id,
            node_object=observed.instances[name].id if by_id else "",
            address=observed.instances[name].address,
            data=group.data,
            usd_per_gpu_hour=fixed_usd_per_gpu_hour(config.cloud, group) if config.cloud else None,
            **its,
        )
        for name in naming.numbered(group.name, group.count)
    ]


def _pool_type(cloud: Cloud, pool: Pool, name: str) -> PoolType:
    prices = {market: price(cloud, name, market) for market in pool.markets}
    taken_back = catalog.interruptions(name, cloud.region) if "spot" in pool.markets else None
    return PoolType(
        instance_type=name,
        usd_per_hour={market: known.usd_per_hour if known else None for market, known in prices.items()},
        interruptions_per_hour={"spot": round(taken_back.per_hour, 6)} if taken_back else {},
    )


def _pool(config: ClusterConfig, pool: Pool, observed: Observed, solution: Solution) -> PoolDocument:
    assert config.cloud
    first, *others = [_pool_type(config.cloud, pool, name) for name in pool.types]
    cloud = config.cloud
    days = {market: oldest(price(cloud, name, market) for name in pool.types) for market in pool.markets}
    known = {market: str(day) for market, day in days.items() if day}
    return PoolDocument(
        name=pool.name,
        scheduler=_whose(config, pool),
        partition=naming.burst_partition(pool.name),
        nodes=naming.numbered(pool.name, pool.max_nodes),
        markets=list(pool.markets),
        usd_per_hour=first.usd_per_hour,
        spot_max_usd_per_hour={name: usd for name in pool.types if (usd := spot_max(cloud, name)) is not None},
        price_as_of=min(known.values(), default=None),
        prices_as_of=known,
        zones=observed.pool_zones[pool.name],
        image=cloud.image_place(config.name, pool.name),
        notices=observed.notices.get(pool.name, ""),
        bought=pool.bought,
        boot_s=pool.boot,
        idle_s=pool.idle,
        max_run_s=pool.max_run,
        capacity_ends_s=pool.taken_back.timestamp() if pool.taken_back else None,
        capacity_starts_s=pool.opens.timestamp() if pool.opens else None,
        account=pool.of_account,
        data=pool.data,
        licences=pool.licences,
        labels=pool.labels,
        interruptions_per_hour=first.interruptions_per_hour,
        checkpoint_s=pool.checkpoint or 0,
        relative_speed=pool.relative_speed,
        root_disk_gb=pool.root_disk_gb,
        root_disk_mb_s=pool.root_disk_mb_s,
        other_types=others,
        prefer=pool.prefer,
        **_of_instances(config, pool, naming.locked_pool(pool.name), solution),
    )


def _karpenter(cluster: str, cloud: Cloud, pool: DeclaredKarpenterPool) -> KarpenterPool:
    kind, known = catalog.instance_type(pool.instance_type), price(cloud, pool.instance_type, pool.market)
    assert known is not None and kind.vcpus is not None  # config.checks.karpenter
    return KarpenterPool(
        name=pool.name,
        node_pool=naming.node_pool(cluster, pool.name),
        instance_type=kind.name,
        gpus=kind.gpu_count,
        cpus=kind.vcpus,
        market=pool.market,
        usd_per_hour=known.usd_per_hour,
        max_nodes=pool.max_nodes,
        max_run_s=pool.max_run,
        account=pool.account or "",
    )
