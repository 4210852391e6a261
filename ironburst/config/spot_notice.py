"""How the notice of a spot node is shared out: a turn of the controller until it is read, Slurm's way to the node,
and the rest for the job (KillWait, which is of a whole Slurm).
"""

from __future__ import annotations

from collections.abc import Iterable

from ironburst.config.clouds import CLASSES
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import Scheduler

GIVEN_UP_S = 120
"""the controller waits for jobs of a node that it gives up so long"""
WAY_S = 10
"""scontrol, slurmctld and slurmd until the job has its SIGTERM: below 2 s in the lab"""
USUAL_S, SLURMS_S = 90, 30
"""what is given where it fits; Slurm's own default, which is the least"""


def shortest_s(providers: Iterable[str]) -> int | None:
    """Of the clouds that may take back a node of a scheduler's; None: no cloud does."""
    return min((CLASSES[provider].spot_notice_s for provider in providers), default=None)


def declared_s(config: ClusterConfig, scheduler: Scheduler) -> int | None:
    """The same of a declared scheduler's pools."""
    pools = [(cloud.provider, pool) for cloud in config.clouds for pool in cloud.pools if "spot" in pool.markets]
    return shortest_s(provider for provider, pool in pools if config.scheduler_of(pool) is scheduler)


def kill_wait_s(tick_s: int, notice_s: int | None) -> int:
    """KillWait where none is declared."""
    return min(USUAL_S, most_s(tick_s, notice_s))


def most_s(tick_s: int, notice_s: int | None) -> int:
    """The longest KillWait that ends before the node does; Slurm's own where the notice hasn't room for that."""
    return max(SLURMS_S, GIVEN_UP_S - WAY_S if notice_s is None else notice_s - tick_s - WAY_S)
