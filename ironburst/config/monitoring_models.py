"""What a person writes of who is told of alerts. Part of models.py's declaration."""

from __future__ import annotations

import ipaddress
from typing import Literal

from pydantic import Field, field_validator, model_validator

from ironburst.config.energy_models import Carbon, IdleGpus, Pue
from ironburst.config.software_models import Strict
from ironburst.config.types import NAME_PATTERN, Account, Certificates, Duration, Mail, SecretRef


class Relay(Strict):
    """The site's mail server, as Alertmanager sends by it."""

    host: str = Field(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}$",
        description="host:port",
        examples=["mail.example.org:587"],
    )
    sender: Mail = Field(description="whom the mail is from", examples=["ironburst@example.org"])
    user: str | None = Field(default=None, min_length=1, description="that it signs in as; none: as nobody")
    password: SecretRef | None = Field(default=None, description="of `user`")
    tls: bool = Field(default=True, description="no: STARTTLS isn't asked for, and what is sent can be read on the way")

    @model_validator(mode="after")
    def _both(self) -> Relay:
        if bool(self.user) != bool(self.password):
            raise ValueError("has one of user and password without the other: write both, or none")
        if self.password and not self.tls:
            raise ValueError("would send its password unencrypted: leave out `tls: false`, or user and password")
        return self


class Told(Strict):
    """Who is told of what: by mail, or by a service."""

    audience: Literal["operators", "money"] = Field(description="operators: machines; money: spending")
    severity: Literal["page", "ticket"] | None = Field(
        default=None, description="page: wakes somebody; ticket: the next working day; none: both"
    )
    account: Account | None = Field(
        default=None, description="with money: only what is about the jobs of this account; none: everything"
    )
    mail: list[Mail] = Field(default=[], description="addresses")
    service: Literal["slack", "teams", "pagerduty", "webhook"] | None = Field(
        default=None,
        description="whose format is sent; webhook: Alertmanager's own JSON; teams: a workflow's, from Alertmanager "
        "0.28 on (Debian 13)",
    )
    secret: SecretRef | None = Field(
        default=None, description="the service's URL, which is its password; of pagerduty the integration key"
    )

    @model_validator(mode="after")
    def _one_way(self) -> Told:
        if bool(self.mail) == bool(self.service):
            raise ValueError("needs one way: either mail, or a service with its secret; declare two ways as two items")
        if self.account and self.audience != "money":
            raise ValueError("has an account, and machines are of none: write audience: money, or leave account out")
        if bool(self.service) != bool(self.secret):
            raise ValueError("has one of service and secret without the other: write both, or mail instead")
        return self


class Logs(Strict):
    """The site's log centre: each host sends it its journal, without what looks like a secret."""

    url: str = Field(
        pattern=r"^https?://[^/?#@\s]+$",
        description="as hosts reach it",
        examples=["https://logs.example.org:9200", "http://10.0.0.10:9428"],
    )
    kind: Literal["elasticsearch", "victorialogs"] = Field(
        default="elasticsearch", description="elasticsearch: OpenSearch, too, and what answers as they do"
    )
    user: str | None = Field(
        default=None,
        pattern=r"^[^:\s]+$",
        description="that owned hosts sign in as, with rights to write the indices `ironburst-logs-*`; none: as nobody",
    )
    password: SecretRef | None = Field(default=None, description="of `user`")
    ca: Certificates | None = Field(
        default=None, description="that signed its certificate, PEM; none: the system's own authorities"
    )
    days: int = Field(
        default=30,
        ge=1,
        le=3650,
        description="older indices are deleted, by the head; VictoriaLogs does that itself (-retentionPeriod)",
    )

    @model_validator(mode="after")
    def _both(self) -> Logs:
        if bool(self.user) != bool(self.password):
            raise ValueError("has one of user and password without the other: write both, or none")
        if self.password and not self.url.startswith("https:"):
            raise ValueError("would send its password unencrypted: write an https URL, or no user and password")
        return self


_URL = r"^(https?://[^/?#@\s]+(/[^?#\s]*)?)?$"


class Monitoring(Strict):
    """The site's Prometheus and Alertmanager, ours (`server`) or yours (`ironburst monitoring`), and who is told when
    an alert fires.
    """

    server: str | None = Field(
        default=None,
        pattern=NAME_PATTERN,
        description="name of the owned host that runs Prometheus and Alertmanager, the head or another; needs "
        "`metrics: true`; null: they are somebody else's",
        examples=["head"],
    )
    retention: Duration = Field(default=30 * 86400, description="how long the server keeps samples")
    retention_gb: int = Field(
        default=20, ge=1, description="and how much of its disk they may take: the oldest go first"
    )
    url: str = Field(
        default="",
        pattern=_URL,
        description="of Prometheus, or of what answers as it does (Mimir, VictoriaMetrics), as the controller reaches "
        "it: it is asked at each job's end what the job made of its GPUs (`ironburst job`); empty: that of `server`, "
        "or nobody is asked",
        examples=["http://10.0.0.10:9090", "https://mimir.example.com/prometheus"],
    )
    grafana: str = Field(
        default="",
        pattern=_URL,
        description="of Grafana, as people's browsers reach it: the page of `ironburst serve` leads to it",
        examples=["https://grafana.example.com"],
    )
    pue: Pue = Field(
        default=None,
        description="energy of the hall over that of its machines, of a year; or by hall; null: unknown",
        examples=[1.25, {"dc1": 1.25}],
    )
    carbon: Carbon | None = Field(default=None, description="null: nothing is told of emissions")
    idle: IdleGpus | None = Field(default=None, description="null: nobody looks at GPUs that do nothing")
    receiver: str = Field(
        default="",
        description="address:port of the head, as rented nodes reach it, where `ironburst receive` takes what they "
        "push; empty: they push nothing, and nobody sees them. Images are baked anew once",
        examples=["10.0.0.10:8644"],
    )
    logs: Logs | None = Field(
        default=None,
        description="where hosts send their journals; null: they keep them. Rented nodes send theirs by `receiver`",
    )
    relay: Relay | None = Field(default=None, description="needed where somebody is told by mail")
    tell: list[Told] = Field(default=[], description="none: no alertmanager.yml is written")

    @field_validator("receiver")
    @classmethod
    def _its_own(cls, given: str) -> str:
        address, _, port = given.rpartition(":")
        try:
            ip = ipaddress.IPv4Address(address) if given else None
        except ValueError:
            ip = ipaddress.IPv4Address(0)
        if ip is None:
            return given
        if not port.isdecimal() or not 0 < int(port) < 65536 or ip.is_unspecified or ip.is_loopback or ip.is_global:
            raise ValueError(
                "isn't address:port of a private IPv4 address of the head, as rented nodes reach it: 10.0.0.10:8644"
            )
        return given

    @model_validator(mode="after")
    def _heard(self) -> Monitoring:
        if any(each.mail for each in self.tell) and not self.relay:
            raise ValueError("tells somebody by mail and has no relay: declare relay, the mail server of the site")
        pages = [each for each in self.tell if each.audience == "operators" and each.severity != "ticket"]
        if self.tell and not pages:
            raise ValueError("tells no operators of pages: nobody would wake; add an item with audience: operators")
        if self.idle and not self.url:
            raise ValueError("has idle and no url: it is Prometheus that knows what GPUs do; declare url")
        return self
