"""What the controller decides by: money, waits and shares. A part of the document: see model.py."""

from __future__ import annotations

from pydantic import Field

from ironburst.document.part import Part


class BudgetDocument(Part):
    """Ceilings for rented nodes, in UTC's months and days."""

    usd_per_month: float
    usd_per_day: float | None = None
    accounts: dict[str, float] = Field(
        default={}, description="Slurm account: USD a month; others have the common ceilings only"
    )


class WaitTargetDocument(Part):
    """Hours; null: in the proportion to the mean that the burst policy knows."""

    mean_h: float
    p99_h: float | None = None
    p999_h: float | None = None
    max_h: float | None = None
    gpu_hour_weighted_h: float | None = None


class Burst(Part):
    """The settings of the burst policy, in seconds."""

    tick_s: int
    wait_limit_s: int
    settle_s: int = 0
    cool_down_s: int
    wait_target: WaitTargetDocument | None = Field(default=None, description="null: wait_limit_s counts, for every job")
    hours_per_gpu_hour: float | None = Field(
        default=None, description="a job may wait so long for each GPU-hour, up to wait_target's max; null: not fitted"
    )
    spot_max_nodes: int | None = Field(default=None, description="null: the burst policy's own")
    deadline_spare_s: int | None = Field(
        default=None,
        description="jobs that save their work go between spot and on demand by what they have to spare beyond this "
        "for their deadline; null: they don't",
    )
    folders: list[str] | None = Field(
        default=None, description="file systems that rented nodes have, too; null: jobs' folders aren't looked at"
    )
    accounts: list[str] = Field(default=[], description="whose jobs may be rented for; none: everybody's")
    untyped_jobs_may_use: list[str] | None = Field(
        default=None,
        description="pools for jobs without a GPU type whatever home has; null: all are, as in documents of before 0.2",
    )
    carbon_usd_per_tonne: float = Field(default=0.0, description="what CO2e weighs where a place to rent in is chosen")
    dead_man_s: int = Field(default=1800, description="a rented node without jobs ends itself after so long alone")


class Share(Part):
    """A team's part of the owned GPUs: nodes of its own, and a guaranteed number of those that all share."""

    account: str = Field(description="Slurm account, or Kubernetes namespace")
    guaranteed_gpus: int
    over_quota: bool
    weight: int
    max_gpus: int | None = Field(description="of the shared nodes; null: as many as there are")
    nodes: list[str] = Field(default=[], description="that are its alone")
