"""Where a site's figures are, for who reads them, what its own Prometheus and Alertmanager are told, and what its
electricity comes to.
"""

from __future__ import annotations

from pydantic import Field

from ironburst.document.part import Part

PORT, CONTROLLER_PORT = 9090, 8643
"""of Prometheus; of the controller's metrics"""
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
    account: str | None = Field(default=None, description="only what is about its jobs; null: everything")


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
        default=None, description="of all halls; null: what cooling takes is not known, or each hall has its own"
    )
    halls: dict[str, PlaceEnergy] = Field(default={}, description="by name; none: not known")
    cloud: PlaceEnergy | None = Field(default=None, description="of what is in the cloud; null: not known")
    watts: dict[str, float] = Field(
        default={}, description="of a pool's node at work, by instance type: an estimate by its GPUs; none: not known"
    )
    idle: IdleDocument | None = Field(default=None, description="null: nobody looks at GPUs that do nothing")
    server: str | None = Field(default=None, description="the host with role prometheus; null: none")
    address: str = Field(default="", description="that its Prometheus listens on; empty: there is none")
    controller: str = Field(
        default="", description="host:port where it scrapes the controller, on the head; empty: there is none"
    )
    second_controller: str = Field(default="", description="the same on the second head; empty: there is none")
    retention: str = Field(default="", description="how long it keeps samples, such as 30d")
    retention_gb: int | None = Field(default=None, description="and how much of its disk they may take")
    relay: RelayDocument | None = None
    tell: list[ToldDocument] = Field(default=[])
    receiver: str = Field(default="", description="address:port that rented nodes push to; empty: they push nothing")
    logs: LogsDocument | None = Field(default=None, description="where journals are sent; null: nowhere")

    @property
    def controllers(self) -> list[str]:
        """Where the controller is scraped: the first head's, then the second's."""
        return [at for at in (self.controller, self.second_controller) if at]
