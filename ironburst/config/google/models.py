"""The cloud nodes of Google Cloud, as a person declares them (`cloud` of ironburst.config.models)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from ironburst.config.cloud_models import Cloud, Data, Group, Images, Pool
from ironburst.config.google.forms import BILLING, IMAGE, PROJECT, RESERVATION
from ironburst.config.google.network_models import GoogleNetwork
from ironburst.config.software_models import Strict
from ironburst.config.types import Account, Certificates, Moment
from ironburst.nodes import naming

DiskType = Literal["pd-balanced", "pd-ssd", "hyperdisk-balanced"]
CLOSING = timedelta(minutes=30)
"""before a calendar reservation's end, when nothing new is placed: Google ends its machines then; how long before isn't
sourced, so it is AWS's"""


class CalendarReservation(Strict):
    """A future reservation in calendar mode that somebody has bought."""

    name: str = Field(pattern=RESERVATION, description="of the reservation that it made", examples=["h200-week-49"])
    starts: Moment | None = Field(default=None, description="when it begins, with time zone; none: it has begun")
    ends: Moment = Field(description="when it ends, with time zone; Google ends its machines then")
    account: Account | None = Field(
        default=None, description="the Slurm account whose jobs alone may rent in it, this very one; none: all"
    )


def _reserved(reservation: str | None, calendar: CalendarReservation | None) -> list[tuple[str, tuple[str, ...]]]:
    named = ((reservation, ("reservation",)), (calendar.name if calendar else None, ("calendar_reservation", "name")))
    return [(value, key) for value, key in named if value]


class GoogleGroup(Group):
    """Fixed cloud nodes: always there, one resource a node."""

    instance_type: str = Field(examples=["a3-highgpu-8g"])
    image: str = Field(
        pattern=IMAGE,
        description="a plain image of the system, or a family of them; Ansible converges the nodes",
        examples=["projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64"],
    )
    compact_placement: bool = Field(default=False, description="a compact placement policy for the group")
    reservation: str | None = Field(default=None, pattern=RESERVATION, description="a specific reservation")
    reservation_bound: bool = Field(
        default=False, description="the reservation is dense: its machines are bound to it (RESERVATION_BOUND)"
    )
    local_ssds: int | None = Field(
        default=None, ge=1, le=32, description="local SSDs of 375 GiB, for types that don't bring theirs"
    )
    root_disk_type: DiskType | None = Field(
        default=None, description="none: hyperdisk-balanced where the type takes no other, else pd-balanced"
    )

    @property
    def reserved(self) -> list[tuple[str, tuple[str, ...]]]:
        """Its reservation."""
        return _reserved(self.reservation, None)


class GooglePool(Pool):
    """Rented nodes: none until the burst policy wants them, never more than `max_nodes`."""

    compact_placement: bool | None = Field(
        default=None,
        description="a compact placement policy in each zone; none: where the type has a fabric, no capacity is bought "
        "and a job may have several of its nodes",
    )
    reservation: str | None = Field(
        default=None, pattern=RESERVATION, description="a specific reservation; nothing is rented beside it"
    )
    reservation_bound: bool = Field(
        default=False, description="the reservation is dense: its machines are bound to it (RESERVATION_BOUND)"
    )
    calendar_reservation: CalendarReservation | None = Field(
        default=None,
        description="future reservation in calendar mode, paid for when it was bought: renting in it costs nothing "
        "more; its market is capacity-block, written or not",
    )
    local_ssds: int | None = Field(
        default=None, ge=1, le=32, description="local SSDs of 375 GiB, for types that don't bring theirs"
    )
    root_disk_type: DiskType | None = Field(
        default=None, description="none: hyperdisk-balanced where a type takes no other, else pd-balanced"
    )
    root_disk_mb_s: int | None = Field(
        default=None, gt=0, description="throughput of the root disk, MiB/s (hyperdisk-balanced); none: Google's own"
    )

    @model_validator(mode="before")
    @classmethod
    def _market_of_its_reservation(cls, given: Any) -> Any:
        implied = isinstance(given, dict) and given.get("calendar_reservation") and "markets" not in given
        return given | {"markets": ["capacity-block"]} if implied else given

    def spans(self, spot_max_nodes: int) -> bool:
        """Whether a job may have several of its nodes; on spot at most this number."""
        return self.max_nodes > 1 and (set(self.markets) != {"spot"} or spot_max_nodes > 1)

    @property
    def bought(self) -> bool:
        """Its nodes run in capacity that somebody bought."""
        return bool(self.reserved)

    @property
    def reserved(self) -> list[tuple[str, tuple[str, ...]]]:
        """Its reservation, of either kind."""
        return _reserved(self.reservation, self.calendar_reservation)

    @property
    def opens(self) -> datetime | None:
        """When its calendar reservation begins; None: it has begun, or there is none."""
        return self.calendar_reservation.starts if self.calendar_reservation else None

    @property
    def of_account(self) -> str | None:
        """The only account whose jobs may rent in it; None: all."""
        return self.calendar_reservation.account if self.calendar_reservation else None

    @property
    def taken_back(self) -> datetime | None:
        """When its reservation ends, and half an hour sooner of one in calendar mode. None: no such moment."""
        return self.calendar_reservation.ends - CLOSING if self.calendar_reservation else self.capacity_ends


class GoogleImages(Images):
    """How the images of pools are baked (`ironburst image`), and how long they stay."""

    build_type: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9]+-[a-z0-9-]+$",
        description="a small machine type without GPUs, of the pools' architecture; none: the pool's own type",
        examples=["n2-standard-16"],
    )


class GoogleController(Strict):
    """Who may act as the controller's service account: who has the key of a certificate (workload identity federation
    with X.509).
    """

    ca: Certificates = Field(description="PEM text of the authorities that sign the controller's certificate")
    common_name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._@-]{0,63}$",
        description="CN of the certificate; another of the same authority is refused",
        examples=["head.hall-a"],
    )


class GoogleCi(Strict):
    """CI that previews changes. It signs in with tokens of its own (OpenID Connect), and has no key."""

    issuer: str = Field(
        pattern=r"^[a-z0-9.-]+(/[A-Za-z0-9._/-]+)?$",
        description="who issues the tokens, without https://",
        examples=["token.actions.githubusercontent.com", "gitlab.com"],
    )
    audience: str | None = Field(
        default=None, pattern=r"^[A-Za-z0-9:/._-]+$", description="`aud` of the tokens; none: Google's own form"
    )
    preview: list[Annotated[str, Field(pattern=r"^[A-Za-z0-9:/@._ -]{1,127}$")]] = Field(
        min_length=1,
        description="`sub` of the tokens that may preview, whole: a wildcard is none",
        examples=[["repo:org/name:pull_request", "repo:org/name:ref:refs/heads/main"]],
    )


def _bucket(value: str) -> str:
    bucket, _, prefix = value.removesuffix("/").partition("/")
    good = re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", bucket)
    parts = prefix.split("/") if prefix else []
    if not good or not all(re.fullmatch(r"[A-Za-z0-9!_.'()=-]+", part) and part not in (".", "..") for part in parts):
        raise ValueError("is not bucket/prefix; write for example training-data/imagenet, without gs:// and wildcards")
    return value.removesuffix("/")


class GoogleDataSet(Data):
    """Files that nodes read: copied from Cloud Storage before the node takes jobs."""

    gcs: Annotated[str, AfterValidator(_bucket)] = Field(
        description="bucket/prefix: all objects below prefix/ are copied to the node's disks",
        examples=["training-data/imagenet"],
    )
    path: str | None = Field(
        default=None,
        pattern=r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$",
        examples=["/data/imagenet"],
        description="where nodes have it, read-only; none: /data/ and its name",
    )

    def comes_from(self, region: str) -> tuple[str, str]:  # noqa: ARG002 - a bucket's name has none
        """The kind and the source of a DataSet of the document."""
        return "gcs", self.gcs


DataName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
LabelKey = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
LabelValue = Annotated[str, Field(pattern=r"^[a-z0-9_-]{0,63}$")]


class GoogleCloud(Cloud):
    """Cloud nodes, fixed and rented."""

    closed: ClassVar[str] = "what makes its network, and what its nodes boot with, isn't here yet"

    provider: Literal["google"]
    project: str = Field(pattern=PROJECT, examples=["gpu-prod-4711"], description="id of the project, no number")
    network: GoogleNetwork
    groups: list[GoogleGroup] = Field(default=[])
    pools: list[GooglePool] = Field(default=[])
    data: dict[DataName, GoogleDataSet] = Field(default={}, description="name: files that nodes are given to read")
    images: GoogleImages = Field(default=GoogleImages(), description="the images of rented nodes")
    controller: GoogleController | None = Field(
        default=None,
        description="a head outside Google Cloud signs in with a certificate; none: a principal of the project that "
        "may impersonate the controller's service account",
    )
    ci: GoogleCi | None = Field(default=None, description="CI that may preview this stack, and nothing more")
    billing_account: str | None = Field(
        default=None, pattern=BILLING, description="whose budget sends the alarm of budget.notify; none: no alarm"
    )
    labels: dict[LabelKey, LabelValue] = Field(
        default={},
        description="key: value of the organization's own labels, on everything that is made; pools have them after "
        "the next `publish`",
        examples=[{"cost-center": "4711"}],
    )

    @property
    def account(self) -> str:
        """The project."""
        return self.project

    def image_place(self, cluster: str, pool: str) -> str:
        """The family of images that a pool's nodes boot the newest of."""
        return f"projects/{self.project}/global/images/family/{naming.image_family(cluster, pool)}"
