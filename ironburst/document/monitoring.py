"""Where a site's figures are, for who reads them, and what its electricity comes to."""

from __future__ import annotations

from pydantic import Field

from ironburst.document.part import Part

NODE_OVER_GPUS = 1.7
"""a node's energy over that of its GPUs, where nothing else is known: of a DGX H100's 10.2 kW 60% are its GPUs'"""


class PlaceEnergy(Part):
    """What machines in one place need beside their own energy, and what it emits; null: not known."""

    pue: float | None = Field(default=None, description="energy of the place over that of its machines")
    gco2_per_kwh: float | None = Field(default=None, description="grams of CO2 equivalents, location-based")
    origin: str = Field(default="", description="whose figure that is, and of which year")


class IdleDocument(Part):
    """Running jobs whose GPUs do nothing: when whom is told, in seconds, and which end."""

    after_s: int
    team_s: int
    end: str | None = Field(default=None, description="rented: those on rented nodes alone; all; null: none")
    end_after_s: int
    grace_s: int
    watts: float | None = Field(default=None, description="the most that a GPU draws which does nothing")


class MonitoringDocument(Part):
    """The site's Prometheus, or what answers as it does (Mimir, VictoriaMetrics)."""

    url: str = Field(default="", description="that the controller asks what a job made of its GPUs; empty: nobody")
    pue: float | None = Field(
        default=None, description="of all halls; null: what cooling takes is not known, or each hall has its own"
    )
    halls: dict[str, PlaceEnergy] = Field(default={}, description="by name; none: not known")
    cloud: PlaceEnergy | None = Field(default=None, description="of what is in the cloud; null: not known")
    watts: dict[str, float] = Field(
        default={}, description="of a pool's node at work, by instance type: an estimate by its GPUs; none: not known"
    )
    idle: IdleDocument | None = Field(default=None, description="null: nobody looks at GPUs that do nothing")
