"""Where a site's figures are, for who reads them, and what its own Prometheus and Alertmanager are told."""

from __future__ import annotations

from pydantic import Field

from ironburst.document.part import Part

PORT, CONTROLLER_PORT = 9090, 8643
"""of Prometheus; of the controller's metrics"""


class RelayDocument(Part):
    """The site's mail server."""

    host: str = Field(description="host:port")
    sender: str
    user: str | None = None
    password: str | None = Field(default=None, description="of `user`, as a reference")
    tls: bool = True


class ToldDocument(Part):
    """Who is told of what."""

    audience: str = Field(description="operators or money")
    severity: str | None = Field(default=None, description="page or ticket; null: both")
    mail: list[str] = Field(default=[])
    service: str | None = Field(default=None, description="slack, teams, pagerduty or webhook")
    secret: str | None = Field(default=None, description="of `service`, as a reference")


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
    grafana: str = Field(default="", description="as people's browsers reach it; empty: none is known")
    pue: float | None = Field(
        default=None, description="energy of the hall over that of its machines; null: what cooling takes is not known"
    )
    server: str | None = Field(default=None, description="the host with role prometheus; null: none")
    address: str = Field(default="", description="that its Prometheus listens on; empty: there is none")
    controller: str = Field(
        default="", description="host:port where it scrapes the controller, on the head; empty: there is none"
    )
    retention: str = Field(default="", description="how long it keeps samples, such as 30d")
    retention_gb: int | None = Field(default=None, description="and how much of its disk they may take")
    relay: RelayDocument | None = None
    tell: list[ToldDocument] = Field(default=[])
    receiver: str = Field(default="", description="address:port that rented nodes push to; empty: they push nothing")
    logs: LogsDocument | None = Field(default=None, description="where journals are sent; null: nowhere")
