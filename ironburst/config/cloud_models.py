"""The cloud nodes, fixed and rented, as a person declares them (`cloud` of ironburst.config.models)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from ironburst.config.network_models import CloudNetwork
from ironburst.config.node_settings import NodeSettings
from ironburst.config.software_models import Strict
from ironburst.config.types import Certificates, Duration, ImageOwner, Name


class CapacityBlock(Strict):
    """A Capacity Block for ML that somebody has bought."""

    id: str = Field(pattern=r"^cr-[0-9a-f]+$")
    ends: datetime = Field(description="when AWS takes it back, with time zone")


class _FixedAlone(Strict):
    name: Name
    instance_type: str = Field(examples=["p5.48xlarge"])
    count: int = Field(gt=0, le=1000)
    zone: str = Field(description="one of the network's zones")
    image: str = Field(
        pattern=r"^ami-[0-9a-f]+$", description="a plain image of the system; Ansible converges the nodes"
    )
    placement_group: bool = Field(default=False, description="a cluster placement group for the group")
    capacity_reservation: str | None = Field(
        default=None, pattern=r"^cr-[0-9a-f]+$", description="On-Demand Capacity Reservation"
    )
    capacity_block: CapacityBlock | None = Field(default=None, description="Capacity Block for ML")
    root_disk_gb: int = Field(default=200, gt=0, description="size of the root volume, GiB")


class Group(NodeSettings, _FixedAlone):
    """Fixed cloud nodes: always there, one resource a node."""


class _RentedAlone(Strict):
    name: Name
    instance_type: str = Field(examples=["p5.48xlarge"])
    max_nodes: int = Field(gt=0, le=1000, description="never more than this many at a time")
    zones: list[str] = Field(min_length=1, description="in order of preference")
    markets: list[Literal["on-demand", "spot"]] = Field(
        default=["on-demand"],
        min_length=1,
        description="spot is only for batch jobs that may be requeued, see burst.spot_max_nodes",
    )
    capacity_reservation: str | None = Field(
        default=None, pattern=r"^cr-[0-9a-f]+$", description="On-Demand Capacity Reservation"
    )
    root_disk_gb: int = Field(
        default=200, gt=0, description="size of the root volume, GiB; the pool's next image is baked with it"
    )
    boot: Duration = Field(default="15m", validate_default=True, description="longest time from launch to joined")
    idle: Duration = Field(
        default="10m", validate_default=True, description="an idle node is given back after this at the latest"
    )
    max_run: Duration = Field(
        default="1d", validate_default=True, description="longest time limit of a job that may rent"
    )
    capacity_ends: datetime | None = Field(
        default=None,
        description="when its reservation or block is taken back, with time zone: "
        "no job is placed that would run longer",
    )
    data: list[str] = Field(
        default=[], description="data sets that its nodes reach; jobs name theirs in --comment data=NAME"
    )
    licences: list[str] = Field(default=[], description="licences (Slurm's names) that jobs on its nodes can take")
    checkpoint: Duration | None = Field(
        default=None, description="jobs save their work so often; none: an interruption loses all of it"
    )


class Pool(NodeSettings, _RentedAlone):
    """Rented nodes: none until the burst policy wants them, never more than `max_nodes`."""


class Price(Strict):
    """USD per hour, replacing the catalogue's (a discount, a savings plan)."""

    on_demand: float | None = Field(default=None, gt=0, description="USD per hour of one instance")
    spot: float | None = Field(default=None, gt=0, description="USD per hour of one instance")


class Images(Strict):
    """How the images of pools are baked (`ironburst image`), and how long they stay."""

    build_type: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$",
        description="a small instance type without GPUs, of the pools' architecture; none: the pool's own type",
        examples=["m7i.2xlarge"],
    )
    keep: int = Field(
        default=3,
        ge=2,
        description="baked images of each pool that stay, but those in use; a launch of this moment may name the last "
        "but one",
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


class Cloud(Strict):
    """Cloud nodes, fixed and rented."""

    provider: Literal["aws"] = "aws"
    region: str
    network: CloudNetwork
    groups: list[Group] = Field(default=[])
    pools: list[Pool] = Field(default=[])
    price: dict[str, Price] = Field(default={}, description="instance type: price")
    images: Images = Field(default=Images(), description="the images of rented nodes")
    controller: Controller | None = Field(
        default=None,
        description="a head outside AWS signs in with a certificate; none: a principal of the account that may assume "
        "the controller's role",
    )
