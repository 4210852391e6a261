"""What a person writes of when renting is worth it. Part of models.py's declaration."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from ironburst.config.software_models import Strict
from ironburst.config.types import DURATION_PATTERN, Account, Duration, Folder, Name, duration_text


def _mean_alone(value: Any) -> Any:
    """`20m` is the mean."""
    return {"mean": value} if isinstance(value, str | int | float) else value


def _or_a_duration(schema: dict[str, Any]) -> None:
    schema["anyOf"].insert(0, {"type": "string", "pattern": DURATION_PATTERN})


class WaitTarget(Strict):
    """Waits that the jobs should have; those left out are in the proportion that they have on a public trace."""

    mean: Duration = Field(description="of all jobs")
    p99: Duration | None = Field(default=None, description="99 of 100 jobs wait no longer")
    p999: Duration | None = Field(default=None, description="999 of 1000 jobs wait no longer")
    max: Duration | None = Field(default=None, description="no job waits longer, where renting can help it")
    gpu_hour_weighted: Duration | None = Field(default=None, description="mean in which a job counts by its GPU-hours")

    @model_validator(mode="after")
    def _in_order(self) -> WaitTarget:
        order = (("p99", "p999"), ("p999", "max"), ("p99", "max"), ("mean", "max"), ("gpu_hour_weighted", "max"))
        for short, long in order:
            less, more = getattr(self, short), getattr(self, long)
            if less is not None and more is not None and less > more:
                raise ValueError(
                    f"has {short} {duration_text(less)}, longer than {long}, {duration_text(more)}: "
                    f"lower {short} or raise {long}"
                )
        return self


class Burst(Strict):
    """When renting is worth it."""

    tick: Duration = Field(default="10s", validate_default=True, description="one turn of the controller")
    wait_limit: Duration = Field(
        default="2h",
        validate_default=True,
        description="a job predicted to wait longer may rent; not looked at with wait_target",
    )
    wait_target: Annotated[WaitTarget | None, BeforeValidator(_mean_alone)] = Field(
        default=None,
        json_schema_extra=_or_a_duration,
        examples=["20m"],
        description="the mean wait that the jobs should have, or this section: "
        "a job may wait the longer, the more GPU-hours it is",
    )
    hours_per_gpu_hour: float | None = Field(
        default=None,
        ge=0.001,
        le=10,
        allow_inf_nan=False,
        description="a job may wait so many hours for each GPU-hour that it runs, but no longer than wait_target's "
        "max: `ironburst fit` says if your history asks for it; none: limits to keep wait_target on a public trace",
    )
    settle: Duration = Field(
        default="30s", validate_default=True, description="a job has waited so long before it is rented for"
    )
    cool_down: Duration = Field(
        default="10m", validate_default=True, description="pause after insufficient capacity, per type, zone and market"
    )
    spot_max_nodes: int | None = Field(
        default=None,
        gt=0,
        description="spot is for jobs of at most so many nodes; none: one, for a gang loses its work with any node",
    )
    folders: list[Folder] | None = Field(
        default=None,
        description="file systems that rented nodes have as home has them: a job that works, reads or writes elsewhere "
        "isn't rented for: Slurm would start it in /tmp. None: the scheduler's shared_filesystem; []: not looked at",
        examples=[["/shared", "/home"]],
    )
    accounts: list[Account] = Field(
        default=[], description="whose jobs may be rented for, for their data leaves home; none: everybody's"
    )
    untyped_jobs_may_use: list[Name] | None = Field(
        default=None, description="pools of lesser GPUs than home's for jobs that name no GPU type, too; []: none"
    )
    carbon_usd_per_tonne: float = Field(
        default=0.0,
        ge=0,
        le=2000,
        allow_inf_nan=False,
        description="what a tonne of CO2e weighs, beside the price, where one of several pools and types is chosen; no "
        "money: budgets and reports don't count it. Needs monitoring.carbon",
    )
    dead_man: Duration = Field(
        default="30m",
        validate_default=True,
        description="a rented node without jobs that hears nothing of the controller for so long powers itself off",
    )

    @model_validator(mode="after")
    def _heard_in_time(self) -> Burst:
        if self.dead_man < max(600, 3 * self.tick):
            raise ValueError("dead_man is less than 10m or three ticks: nodes would end while they join; raise it")
        return self

    @model_validator(mode="after")
    def _one_of_two(self) -> Burst:
        if self.hours_per_gpu_hour is not None and not self.wait_target:
            raise ValueError(
                "has hours_per_gpu_hour without the wait_target that it was fitted to: give one, or leave it out"
            )
        if self.wait_target and "wait_limit" in self.model_fields_set:
            raise ValueError(
                "has both wait_limit and wait_target, and a target gives each job a limit of its own: leave one out"
            )
        return self
