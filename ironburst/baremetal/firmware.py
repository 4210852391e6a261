"""The firmware of nodes beside the least that is declared of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel

from ironburst.baremetal.hardware import Component, Hardware
from ironburst.baremetal.mismatch import Mismatch
from ironburst.config.firmware_versions import Order, compare

Text = Annotated[str, StringConstraints(min_length=1, strict=True)]


class Minimum(BaseModel):
    """The least version of the components whose name or Id fits `component`, a pattern such as GPU*; in Pulumi the
    names are in camel case. `source` and `as_of`: where the figure is from, and from when.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)

    component: Text
    at_least: Text
    source: Text
    as_of: Text


@dataclass(frozen=True)
class FirmwareComparison:
    """One component beside a minimum of it; `component` None: the BMC lists none that fits."""

    minimum: Minimum
    component: Component | None
    order: Order | Literal["not said"]

    @property
    def sentence(self) -> str:
        """For people, without the node's name."""
        least = f"at least {self.minimum.at_least} is declared ({self.minimum.source}, {self.minimum.as_of})"
        if self.component is None:
            return f"firmware {self.minimum.component}: {least}, the BMC lists no such component"
        name = self.component.id if self.component.id == self.component.name else _named(self.component)
        if self.order == "not said":
            return f"firmware of {name}: {least}, the BMC doesn't say its version"
        if self.order == "not comparable":
            return f"firmware of {name} is {self.component.version!r}: {least}, and the two can't be compared"
        return f"firmware of {name} is {self.component.version}: {least}"


def _named(component: Component) -> str:
    return f"{component.name} ({component.id})"


def rows(minimums: Iterable[Minimum], components: Iterable[Component]) -> Iterator[FirmwareComparison]:
    """Each minimum beside every component that it is of."""
    listed = list(components)
    for each in minimums:
        fitting = [component for component in listed if _fits(component, each.component)]
        if not fitting:
            yield FirmwareComparison(each, None, "not said")
        for component in fitting:
            said = component.version
            yield FirmwareComparison(each, component, compare(said, each.at_least) if said else "not said")


def _fits(component: Component, pattern: str) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for name in (component.name, component.id))


def check(minimums: Iterable[Minimum], observed: Hardware) -> Iterator[Mismatch]:
    """What is below its minimum; what can't be known of it counts as not reported."""
    for row in rows(minimums, observed.components):
        if row.order != "reached":
            version = row.component.version if row.component else None
            yield Mismatch("firmware_minimum", version, row.sentence, unknown=row.order != "below")
