"""The cloud nodes of Google Cloud, as a person declares them (`cloud` of ironburst.config.models)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ironburst.config.cloud_models import Ci, Cloud, Group, Images, OwnedBought, Pool
from ironburst.config.data_models import DataName
from ironburst.config.google.data_models import GoogleDataSet
from ironburst.config.google.forms import BILLING, IMAGE, PROJECT, RESERVATION
from ironburst.config.google.network_models import GoogleNetwork
from ironburst.config.software_models import Strict
from ironburst.config.types import Certificates, Moment
from ironburst.nodes import naming

DiskType = Literal["pd-balanced", "pd-ssd", "hyperdisk-balanced"]


class CalendarReservation(OwnedBought):
    """A future reservation in calendar mode that somebody has bought."""

    name: str = Field(pattern=RESERVATION, description="of the reservation that it made", examples=["h200-week-49"])
    ends: Moment = Field(description="when it ends, with time zone; Google ends its machines then")


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

    block_key: ClassVar[str] = "calendar_reservation"

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

    # how long before its end Google takes a calendar reservation's machines isn't sourced: `closing` is AWS's

    @property
    def reserved(self) -> list[tuple[str, tuple[str, ...]]]:
        """Its reservation, of either kind."""
        return _reserved(self.reservation, self.calendar_reservation)


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


class GoogleCi(Ci):
    """CI that previews changes. It signs in with tokens of its own (OpenID Connect), and has no key."""

    audience: str | None = Field(
        default=None, pattern=r"^[A-Za-z0-9:/._-]+$", description="`aud` of the tokens; none: Google's own form"
    )
    preview: list[Annotated[str, Field(pattern=r"^[A-Za-z0-9:/@._ -]{1,127}$")]] = Field(
        min_length=1,
        description="`sub` of the tokens that may preview, whole: a wildcard is none",
        examples=[["repo:org/name:pull_request", "repo:org/name:ref:refs/heads/main"]],
    )


LabelKey = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
LabelValue = Annotated[str, Field(pattern=r"^[a-z0-9_-]{0,63}$")]


class GoogleCloud(Cloud):
    """Cloud nodes, fixed and rented."""

    store: ClassVar[str] = "google-secretmanager"
    # a launch asks for it: "Create and use Spot VMs" and gcloud's --preemption-notice-duration have this value alone
    spot_notice_s: ClassVar[int] = 120

    provider: Literal["google"]
    project: str = Field(pattern=PROJECT, examples=["gpu-prod-4711"], description="id of the project, no number")
    network: GoogleNetwork
    groups: list[GoogleGroup] = Field(default=[])
    pools: list[GooglePool] = Field(default=[])
    data: dict[DataName, GoogleDataSet] = Field(
        default={}, description="name: files that cloud nodes are given to read"
    )
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
