"""A hall, as the controller and `ironburst hall cap` see it. A part of the document: see model.py."""

from __future__ import annotations

from pydantic import Field

from ironburst.document.part import Part


class FabricCable(Part):
    """A declared InfiniBand cable."""

    ends: list[str] = Field(description="NAME/PORT of both")
    gbps: float
    what: str = Field(description="as people call it: NDR dac 3 m")


class HallDocument(Part):
    """A declared hall, beside its hosts."""

    breaker_share: float = Field(default=0.1, description="what more of its GPU nodes have at once is the hall's")
    drain_after_s: int = Field(default=14400, description="nodes that work all the same are drained then")
    other_w: float | None = Field(
        default=None, description="the most that all but GPU nodes draw, as far as it is declared; null: unknown"
    )
    nightly_stress: bool = Field(default=False, description="its idle nodes are measured at night")
    cables: list[FabricCable] = Field(default=[], description="of its InfiniBand")
