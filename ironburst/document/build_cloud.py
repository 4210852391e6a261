"""Part of build.py: what is declared of clouds: fixed groups, burst pools, what Karpenter launches, data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from pydantic import BaseModel

from ironburst import catalog
from ironburst.config import gpu_models
from ironburst.config.cloud_models import Cloud, Group, Pool
from ironburst.config.karpenter_models import KarpenterPool as DeclaredKarpenterPool
from ironburst.config.models import ClusterConfig
from ironburst.config.prices import fixed_usd_per_gpu_hour, oldest, price, spot_max
from ironburst.config.scheduler_models import Kubernetes
from ironburst.document import (
    CloudDocument,
    DataSet,
    GpuDocument,
    Host,
    ImagesDocument,
    KarpenterPool,
    OtherCloud,
    PoolDocument,
    PoolType,
    PoolZone,
    SlurmNode,
)
from ironburst.document.build_monitoring import emitted
from ironburst.document.build_nodes import OfSoftware, of_software, roles, whose
from ironburst.document.build_scheduler import HostedCluster, told
from ironburst.nodes import naming
from ironburst.software.solve import Solution


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


class _OfInstances(OfSoftware):
    """The fields of a fixed node or a pool that its instance type fills, too."""

    gpu: GpuDocument
    fabric: str
    fabric_links: int
    slurm: SlurmNode
    instance_type: str
    roles: list[str]


def cloud_of(cloud: Cloud) -> CloudDocument:
    """The first cloud."""
    return CloudDocument(provider=cloud.provider, region=cloud.region, account=cloud.account, secrets=cloud.secrets)


def other_cloud(config: ClusterConfig, cloud: Cloud) -> OtherCloud:
    """One beside it, with what is the document's own of the first."""
    return OtherCloud(
        **cloud_of(cloud).model_dump(),
        data=data(cloud),
        images=ImagesDocument(**cloud.images.model_dump()),
        energy=emitted(config, cloud),
    )


def data(cloud: Cloud) -> dict[str, DataSet]:
    """Its declared data sets."""
    sources = {name: declared.comes_from(cloud.region) for name, declared in cloud.data.items()}
    return {
        name: DataSet(kind=kind, source=source, path=cloud.data[name].where(name))
        for name, (kind, source) in sources.items()
    }


def _of_instances(config: ClusterConfig, given: Group | Pool, name: str, solution: Solution) -> _OfInstances:
    """Of a fixed group or a pool, by its name in the lock."""
    kinds = [catalog.instance_type(name) for name in given.types]
    kind, (fabric, links) = kinds[0], catalog.fabric(*given.types)
    assert kind.gpu is not None  # config.checks.cloud
    its = of_software(solution, name, given.scratch)
    return {
        **its,
        "gpu": GpuDocument(
            count=kind.gpu_count, **asdict(gpu_models.rented(kind, given.mig)), pcie_width=_lanes(kinds)
        ),
        "fabric": fabric,
        "fabric_links": links,
        "slurm": told(kinds, given.slurm),
        "instance_type": kind.name,
        "roles": roles(config, given, its, gpu=True, here=["data_sets"] if _has_data(config, given) else []),
    }


def _lanes(kinds: Sequence[catalog.InstanceType]) -> int | None:
    """Of a pool with several types the fewest; None: of one they aren't known."""
    lanes = [kind.pcie_lanes for kind in kinds]
    return None if None in lanes else min(each for each in lanes if each is not None)


def _has_data(config: ClusterConfig, given: Group | Pool) -> bool:
    return bool(config.cloud_of(given).data.keys() & set(given.data))


def fixed(config: ClusterConfig, group: Group, observed: Observed, solution: Solution) -> list[Host]:
    """The nodes of a fixed group."""
    its = _of_instances(config, group, naming.locked_group(group.name), solution)
    scheduler = config.scheduler_of(group)
    by_id, cloud = isinstance(scheduler, Kubernetes) and scheduler.hosted is not None, config.cloud_of(group)
    return [
        Host(
            name=name,
            scheduler=whose(config, group),
            kind="cloud",
            role="gpu",
            partition=group.name,
            zone=group.zone,
            provider="" if cloud is config.cloud else cloud.provider,
            instance_id=observed.instances[name].id,
            node_object=observed.instances[name].id if by_id else "",
            address=observed.instances[name].address,
            data=group.data,
            usd_per_gpu_hour=fixed_usd_per_gpu_hour(cloud, group),
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


def burst_pool(config: ClusterConfig, pool: Pool, observed: Observed, solution: Solution) -> PoolDocument:
    """A burst pool."""
    cloud = config.cloud_of(pool)
    first, *others = [_pool_type(cloud, pool, name) for name in pool.types]
    days = {market: oldest(price(cloud, name, market) for name in pool.types) for market in pool.markets}
    known = {market: str(day) for market, day in days.items() if day}
    return PoolDocument(
        name=pool.name,
        scheduler=whose(config, pool),
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


def karpenter(cluster: str, cloud: Cloud, pool: DeclaredKarpenterPool) -> KarpenterPool:
    """A pool that Karpenter launches."""
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
