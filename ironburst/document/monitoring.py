"""Where a site's figures are, for who reads them."""

from __future__ import annotations

from pydantic import Field

from ironburst.document.part import Part


class MonitoringDocument(Part):
    """The site's Prometheus, or what answers as it does (Mimir, VictoriaMetrics)."""

    url: str = Field(default="", description="that the controller asks what a job made of its GPUs; empty: nobody")
    pue: float | None = Field(
        default=None, description="energy of the hall over that of its machines; null: what cooling takes is not known"
    )
    receiver: str = Field(default="", description="address:port that rented nodes push to; empty: they push nothing")
