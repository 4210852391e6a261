"""What a person writes of electricity, and of GPUs that do nothing. Part of monitoring_models.py's declaration."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from ironburst.config.software_models import Strict
from ironburst.config.types import Duration, Name, duration_text

_NUMBER = {"type": "number", "minimum": 1, "maximum": 3}
_GRAMS = {"type": "number", "minimum": 0, "maximum": 2000}
_COUNTRY = {"type": "string", "pattern": "^[A-Z]{2}$"}


def _number(given: Any, least: float, most: float) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and least <= given <= most


def _emits(given: Any) -> str | float:
    if _number(given, 0, 2000):
        return float(given)
    if isinstance(given, str) and re.fullmatch("[A-Z]{2}", given):
        return given
    example = 'Norway is "NO", in quotes, for YAML takes it for false' if given is False else 'such as "DE"'
    raise ValueError(f"is neither grams of CO2e a kWh (0 to 2000) nor a country's code (ISO 3166), {example}")


def _pue(given: Any) -> float | dict[str, float] | None:
    if given is None:
        return None
    each = given if isinstance(given, dict) else {"": given}
    for hall, number in each.items():
        if not _number(number, 1, 3):
            raise ValueError(f"is no PUE{f' for {hall}' if hall else ''}; write a number from 1 to 3, or one by hall")
    return {str(hall): float(number) for hall, number in each.items()} if isinstance(given, dict) else float(given)


Emits: TypeAlias = Annotated[str | float, PlainValidator(_emits), WithJsonSchema({"anyOf": [_COUNTRY, _GRAMS]})]
Pue: TypeAlias = Annotated[
    float | dict[str, float] | None,
    PlainValidator(_pue),
    WithJsonSchema({"anyOf": [_NUMBER, {"type": "object", "additionalProperties": _NUMBER}, {"type": "null"}]}),
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
        if self.end_after - self.grace < self.after:
            raise ValueError(
                f"has end_after {duration_text(self.end_after)} less grace {duration_text(self.grace)}, shorter than "
                f"after {duration_text(self.after)}: raise end_after or lower grace"
            )
        if self.end and self.watts is None:
            raise ValueError(
                "ends jobs and doesn't say by which power: write watts, the most that nvidia-smi shows of an idle GPU"
            )
        return self
