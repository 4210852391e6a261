"""The burst policy's part of the document: patience, money, shares."""

from __future__ import annotations

from ironburst import catalog
from ironburst.config.cloud_models import Cloud
from ironburst.config.karpenter_models import KarpenterPool as DeclaredKarpenterPool
from ironburst.config.models import ClusterConfig
from ironburst.config.prices import price
from ironburst.config.shares_models import Share as DeclaredShare
from ironburst.document import BudgetDocument, Burst, KarpenterPool, Share, WaitTargetDocument
from ironburst.nodes import naming


def share(declared: DeclaredShare) -> Share:
    """Of one team."""
    values = declared.model_dump(exclude={"team", "account", "nodes", "namespace"})
    return Share(account=declared.name, nodes=declared.nodes or [], **values)


def burst(config: ClusterConfig) -> Burst:
    """In seconds and hours."""
    declared = config.burst
    return Burst(
        tick_s=declared.tick,
        wait_limit_s=declared.wait_limit,
        settle_s=declared.settle,
        cool_down_s=declared.cool_down,
        wait_target=_wait_target(config),
        hours_per_gpu_hour=declared.hours_per_gpu_hour,
        spot_max_nodes=declared.spot_max_nodes,
        folders=_folders(config),
        accounts=declared.accounts,
        untyped_jobs_may_use=_untyped(config),
        dead_man_s=declared.dead_man,
    )


def _folders(config: ClusterConfig) -> list[str] | None:
    """Of Slurm's jobs: pods say what they mount by themselves."""
    if config.burst.folders is not None:
        return config.burst.folders or None
    return [config.slurm.shared_filesystem] if config.slurm else None


def _untyped(config: ClusterConfig) -> list[str]:
    """Beside those that are declared to be: a pool that jobs of a type may have with less memory than home's."""
    pools = config.cloud.pools if config.cloud else []
    named = config.burst.untyped_jobs_may_use or []
    return [pool.name for pool in pools if pool.less_gpu_memory or pool.name in named]


def _wait_target(config: ClusterConfig) -> WaitTargetDocument | None:
    """Hours of the declared seconds."""
    if config.burst.wait_target is None:
        return None
    waits = vars(config.burst.wait_target)
    return WaitTargetDocument(**{f"{name}_h": seconds / 3600 for name, seconds in waits.items() if seconds is not None})


def budget(config: ClusterConfig) -> BudgetDocument | None:
    """None: nothing is rented."""
    return BudgetDocument(**config.budget.model_dump(exclude={"notify"})) if config.budget else None


def karpenter_pool(cluster: str, cloud: Cloud, pool: DeclaredKarpenterPool) -> KarpenterPool:
    """What Karpenter may launch within the budget."""
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
