"""The burst policy's part of the document: patience, money, shares."""

from __future__ import annotations

from ironburst.config.models import ClusterConfig
from ironburst.config.shares_models import Share as DeclaredShare
from ironburst.document import BudgetDocument, Burst, Share, WaitTargetDocument


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
        deadline_spare_s=declared.deadline_spare,
        folders=_folders(config),
        accounts=declared.accounts,
        untyped_jobs_may_use=_untyped(config),
        carbon_usd_per_tonne=declared.carbon_usd_per_tonne,
        dead_man_s=declared.dead_man,
    )


def _folders(config: ClusterConfig) -> list[str] | None:
    """Of Slurm's jobs: pods say what they mount by themselves."""
    if config.burst.folders is not None:
        return config.burst.folders or None
    return [config.slurm.shared_filesystem] if config.slurm else None


def _untyped(config: ClusterConfig) -> list[str]:
    """Beside those that are declared to be: a pool that jobs of a type may have with less memory than home's."""
    named = config.burst.untyped_jobs_may_use or []
    return [pool.name for pool in config.pools if pool.less_gpu_memory or pool.name in named]


def _wait_target(config: ClusterConfig) -> WaitTargetDocument | None:
    """Hours of the declared seconds."""
    if config.burst.wait_target is None:
        return None
    waits = vars(config.burst.wait_target)
    return WaitTargetDocument(**{f"{name}_h": seconds / 3600 for name, seconds in waits.items() if seconds is not None})


def budget(config: ClusterConfig) -> BudgetDocument | None:
    """None: nothing is rented."""
    return BudgetDocument(**config.budget.model_dump(exclude={"notify"})) if config.budget else None
