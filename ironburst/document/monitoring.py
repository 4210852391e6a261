"""Where a site's figures are, for who reads them."""

from __future__ import annotations

from pydantic import Field

from ironburst.document.part import Part


class LogsDocument(Part):
    """The site's log centre."""

    url: str
    kind: str = Field(default="elasticsearch", description="or victorialogs")
    user: str | None = Field(default=None, description="that owned hosts sign in as; null: as nobody")
    password: str | None = Field(default=None, description="of `user`, as a reference")
    ca: str | None = Field(default=None, description="PEM of who signed its certificate; null: the system's own")
    days: int = Field(description="older indices are deleted")


class MonitoringDocument(Part):
    """The site's Prometheus, or what answers as it does (Mimir, VictoriaMetrics)."""

    url: str = Field(default="", description="that the controller asks what a job made of its GPUs; empty: nobody")
    pue: float | None = Field(
        default=None, description="energy of the hall over that of its machines; null: what cooling takes is not known"
    )
    receiver: str = Field(default="", description="address:port that rented nodes push to; empty: they push nothing")
    logs: LogsDocument | None = Field(default=None, description="where journals are sent; null: nowhere")
