"""The network of the cloud nodes (`cloud.network` of ironburst.config.models): what all clouds have in common."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import Field

from ironburst.config.software_models import Strict
from ironburst.config.types import Name


class Link(Strict):
    """How a cloud network reaches a hall."""

    hall: Name
    gb_per_month: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="GB that go from the cloud to the hall in a month (results, checkpoints), for the estimate; none: "
        "the price of one is said",
    )


LinkT = TypeVar("LinkT", bound=Link)


class LinkedNetwork(Strict, Generic[LinkT]):
    """A network that halls are linked to."""

    hall_link: LinkT | None = Field(default=None, description="rented nodes reach the head through it")
    hall_links: list[LinkT] = Field(default=[], description="in the place of hall_link: one for each of several halls")

    @property
    def further(self) -> list[tuple[str, str]]:
        """(key, network) of those beside `cidr`."""
        return []

    @property
    def links(self) -> list[LinkT]:
        """All of them."""
        return [self.hall_link, *self.hall_links] if self.hall_link else self.hall_links
