"""What a person writes of electricity, and of GPUs that do nothing. Part of monitoring_models.py's declaration."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from ironburst.config.software_models import Strict
from ironburst.config.types import Duration, Name, duration_text


def _no_bool(given: Any) -> Any:
    if isinstance(given, bool):
        raise ValueError('is no number, and no country: YAML takes NO without quotes for false; Norway is "NO"')
    return given


Pue: TypeAlias = Annotated[float, Field(ge=1, le=3), BeforeValidator(_no_bool)]
Emits: TypeAlias = Annotated[
    Annotated[str, Field(pattern=r"^[A-Z]{2}$")] | Annotated[float, Field(ge=0, le=2000)], BeforeValidator(_no_bool)
]


class Carbon(Strict):
    """What a kWh of electricity emits where the machines are (location-based): grams of CO2e, or a country's code (ISO
    3166, in quotes), whose mean of a year counts, as Ember has it.
    """

    halls: dict[Name, Emits] = Field(
        default={}, description="by hall; of one that is left out nothing is told", examples=[{"dc1": "DE"}]
    )
    cloud: Emits | None = Field(default=None, description="of nodes in the cloud; null: the country of its region")


class IdleGpus(Strict):
    """Running jobs whose GPUs do nothing: their owner is told, then their account, and they end only where `end` says
    so.
    """

    after: Duration = Field(
        default="1h", validate_default=True, description="a GPU has done nothing for so long: the job's owner is told"
    )
    team: Duration = Field(
        default="2h", validate_default=True, description="the alert JobIdle fires, for the job's account"
    )
    end: Literal["rented", "all"] | None = Field(
        default=None,
        description="which jobs end: rented, those on rented nodes alone; all; null: none. Only where all of a job's "
        "GPUs do nothing, none of them draws more than `watts`, and the CPUs of its nodes are idle, too",
    )
    end_after: Duration = Field(default="4h", validate_default=True, description="they have done nothing for so long")
    grace: Duration = Field(
        default="30m", validate_default=True, description="so long before its end the owner is told of it"
    )
    watts: float | None = Field(
        default=None, gt=0, le=1000, description="the most that one of your GPUs draws while it does nothing"
    )

    @model_validator(mode="after")
    def _in_order(self) -> IdleGpus:
        order = (("after", "team"), ("team", "end_after"))
        for short, long in order:
            less, more = getattr(self, short), getattr(self, long)
            if less > more:
                raise ValueError(
                    f"has {short} {duration_text(less)}, longer than {long}, {duration_text(more)}: "
                    f"lower {short} or raise {long}"
                )
        if self.after < 600:
            raise ValueError(
                f"has after {duration_text(self.after)}: jobs load and save for minutes; write 10m or more"
            )
        if self.grace < 600:
            raise ValueError(f"has grace {duration_text(self.grace)}: nobody reads that in time; write 10m or more")
        if self.end and self.watts is None:
            raise ValueError(
                "ends jobs and doesn't say by which power: write watts, the most that nvidia-smi shows of an idle GPU"
            )
        return self
