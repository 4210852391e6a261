"""The cloud nodes of AWS, as a person declares them (`cloud` of ironburst.config.models)."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ironburst.config.aws.data_models import DataSet
from ironburst.config.aws.forms import IMAGE, RESERVATION
from ironburst.config.aws.network_models import CloudNetwork
from ironburst.config.cloud_models import ISSUER, Bought, Ci, Cloud, Group, Images, OwnedBought, Pool
from ironburst.config.data_models import DataName
from ironburst.config.software_models import Strict
from ironburst.config.types import Certificates, Moment

ImageOwner = Annotated[str, Field(pattern=r"^(\d{12}|amazon|aws-marketplace)$")]
MOST_GB = 65_536
"""of a gp3 volume, GiB"""
_GROUP_ARN = r"^arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{12}:group/[A-Za-z0-9_.-]+$"


class CapacityBlock(Bought):
    """A Capacity Block for ML that somebody has bought."""

    id: str = Field(pattern=RESERVATION)
    ends: Moment = Field(description="when it ends, with time zone; AWS takes the instances half an hour before")


class OwnedBlock(CapacityBlock, OwnedBought):
    """A Capacity Block for ML that a pool's nodes run in."""


def _reserved(
    block: CapacityBlock | None, reservation: str | None, group: str | None
) -> list[tuple[str, tuple[str, ...]]]:
    named: tuple[tuple[str | None, tuple[str, ...]], ...] = (
        (block.id if block else None, ("capacity_block", "id")),
        (reservation, ("capacity_reservation",)),
        (group, ("capacity_reservation_group",)),
    )
    return [(value, key) for value, key in named if value]


class AwsGroup(Group):
    """Fixed cloud nodes: always there, one resource a node."""

    image: str = Field(pattern=IMAGE, description="a plain image of the system; Ansible converges the nodes")
    placement_group: bool = Field(default=False, description="a cluster placement group for the group")
    capacity_reservation: str | None = Field(
        default=None, pattern=RESERVATION, description="On-Demand Capacity Reservation"
    )
    capacity_reservation_group: str | None = Field(
        default=None,
        pattern=_GROUP_ARN,
        description="resource group of On-Demand Capacity Reservations; what has no room in it runs on demand",
    )
    capacity_block: CapacityBlock | None = Field(default=None, description="Capacity Block for ML")
    root_disk_gb: int = Field(default=200, gt=0, le=MOST_GB, description="size of the root volume, GiB")
    root_disk_mb_s: int = Field(default=250, ge=125, le=750, description="throughput of the root volume (gp3), MiB/s")

    @property
    def paid_before(self) -> bool:
        """It runs in a capacity block."""
        return self.capacity_block is not None

    @property
    def reserved(self) -> list[tuple[str, tuple[str, ...]]]:
        """Its block, reservation or group of them."""
        return _reserved(self.capacity_block, self.capacity_reservation, self.capacity_reservation_group)


class AwsPool(Pool):
    """Rented nodes: none until the burst policy wants them, never more than `max_nodes`."""

    block_key: ClassVar[str] = "capacity_block"

    placement_group: bool | None = Field(
        default=None,
        description="a cluster placement group in each zone; none: where the type has EFA, no capacity is bought and a "
        "job may have several of its nodes",
    )
    capacity_reservation: str | None = Field(
        default=None, pattern=RESERVATION, description="On-Demand Capacity Reservation"
    )
    capacity_reservation_group: str | None = Field(
        default=None,
        pattern=_GROUP_ARN,
        description="resource group of On-Demand Capacity Reservations; nothing is rented beside them",
        examples=["arn:aws:resource-groups:us-east-1:123456789012:group/training"],
    )
    capacity_block: OwnedBlock | None = Field(
        default=None, description="Capacity Block for ML, paid for when it was bought: renting in it costs nothing more"
    )
    root_disk_gb: int = Field(
        default=200,
        gt=0,
        le=MOST_GB,
        description="size of the root volume, GiB; the pool's next image is baked with it",
    )
    root_disk_mb_s: int = Field(
        default=250, ge=125, le=750, description="throughput of the root volume (gp3), MiB/s; as root_disk_gb"
    )
    root_disk_init_mb_s: int | None = Field(
        default=None,
        ge=100,
        le=300,
        description="MiB/s at which a launch fills the root volume from its image's snapshot (EBS Provisioned Rate for "
        "Volume Initialization), paid for each GB of it; none: a block is fetched when it is read first",
    )
    capacity_ends: Moment | None = Field(
        default=None,
        description="when its reservation is taken back, with time zone: "
        "no job is placed that would run longer; a capacity_block says it itself",
    )

    @property
    def paid_beside(self) -> str:
        """What a launch pays for beside its hours; empty: nothing."""
        filled = "beside that each launch pays for each GB of its image that is filled in at a rate"
        return filled if self.root_disk_init_mb_s else ""

    @property
    def closing(self) -> timedelta:
        """UltraServers' end half an hour sooner."""
        return timedelta(minutes=60 if self.types[0].startswith("p6e-") else 30)

    @property
    def reserved(self) -> list[tuple[str, tuple[str, ...]]]:
        """Its block, reservation or group of them."""
        return _reserved(self.capacity_block, self.capacity_reservation, self.capacity_reservation_group)


class AwsImages(Images):
    """How the images of pools are baked (`ironburst image`), and how long they stay."""

    build_type: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$",
        description="a small instance type without GPUs, of the pools' architecture; none: the pool's own type",
        examples=["m7i.2xlarge"],
    )
    owners: list[ImageOwner] = Field(
        default=[],
        description="who else's images the pools may launch: account numbers, amazon or aws-marketplace; "
        "none: only the account's own",
    )


class Controller(Strict):
    """Who may take the controller's role: who has the key of a certificate, by IAM Roles Anywhere."""

    ca: Certificates = Field(
        description="PEM text of the authorities that sign the controller's certificate; AWS takes no public one"
    )
    common_name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._@-]{0,63}$",
        description="CN of the certificate; another of the same authority is refused",
        examples=["head.hall-a"],
    )


class AwsCi(Ci):
    """CI that previews changes. It signs in with tokens of its own (OpenID Connect), and has no key."""

    issuer: str = Field(
        pattern=ISSUER,
        description="who issues the tokens, without https://; the account's OIDC provider for it is there before",
        examples=["token.actions.githubusercontent.com", "gitlab.com"],
    )
    audience: str = Field(
        default="sts.amazonaws.com",
        pattern=r"^[A-Za-z0-9:/._-]+$",
        examples=["sts.amazonaws.com"],
        description="`aud` of the tokens",
    )


class Iam(Strict):
    """What the account's owners ask of every role that is made in it."""

    permissions_boundary: str | None = Field(
        default=None,
        pattern=r"^arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]+$",
        description="ARN of the managed policy that bounds every role; it is there before",
        examples=["arn:aws:iam::123456789012:policy/boundaries/gpu"],
    )
    path: str | None = Field(
        default=None,
        pattern=r"^/([\w+=,.@-]+/)+$",
        max_length=512,
        description="path of roles, instance profiles and policies, which nobody else uses; none: /. Another one later "
        "makes all of them anew",
        examples=["/ironburst/"],
    )


class AwsCloud(Cloud):
    """Cloud nodes, fixed and rented."""

    store: ClassVar[str] = "aws-secretsmanager"
    spot_notice_s: ClassVar[int] = 120  # EC2 User Guide, "Spot Instance interruption notices"

    provider: Literal["aws"] = "aws"
    network: CloudNetwork
    groups: list[AwsGroup] = Field(default=[])
    pools: list[AwsPool] = Field(default=[])
    data: dict[DataName, DataSet] = Field(default={}, description="name: files that cloud nodes are given to read")
    images: AwsImages = Field(default=AwsImages(), description="the images of rented nodes")
    controller: Controller | None = Field(
        default=None,
        description="a head outside AWS signs in with a certificate; none: a principal of the account that may assume "
        "the controller's role",
    )
    ci: AwsCi | None = Field(default=None, description="CI that may preview this stack, and nothing more")
    iam: Iam = Field(default=Iam(), description="what the account's owners ask of every role")
    tags: dict[str, str] = Field(
        default={},
        description="key: value of the organization's own tags, on everything that is made: by `up`, by launches and "
        "with what they make, by bakes; pools have them after the next `publish`",
        examples=[{"CostCenter": "4711"}],
    )
