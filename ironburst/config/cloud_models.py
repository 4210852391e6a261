"""The cloud nodes, fixed and rented, as a person declares them (`cloud` of ironburst.config.models)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ironburst.config.data_models import DataName, DataSet
from ironburst.config.karpenter_models import KarpenterPool
from ironburst.config.network_models import CloudNetwork
from ironburst.config.node_settings import NodeSettings
from ironburst.config.software_models import Strict
from ironburst.config.types import (
    Account,
    Certificates,
    Duration,
    ImageOwner,
    Moment,
    Name,
    NodeLabel,
    NodeLabelValue,
    Usd,
)

MOST_GB = 65_536
"""of a gp3 volume, GiB"""
_RESERVATION = r"^cr-[0-9a-f]+$"
_GROUP_ARN = r"^arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{12}:group/[A-Za-z0-9_.-]+$"


class CapacityBlock(Strict):
    """A Capacity Block for ML that somebody has bought."""

    id: str = Field(pattern=_RESERVATION)
    starts: Moment | None = Field(default=None, description="when it begins, with time zone; none: it has begun")
    ends: Moment = Field(description="when it ends, with time zone; AWS takes the instances half an hour before")


class OwnedBlock(CapacityBlock):
    """A Capacity Block for ML that a pool's nodes run in."""

    account: Account | None = Field(
        default=None, description="the Slurm account whose jobs alone may rent in it, this very one; none: all"
    )


class _FixedAlone(Strict):
    name: Name
    instance_type: str = Field(examples=["p5.48xlarge"])
    count: int = Field(gt=0, le=1000)
    zone: str = Field(description="one of the network's zones")
    image: str = Field(
        pattern=r"^ami-[0-9a-f]{8,17}$", description="a plain image of the system; Ansible converges the nodes"
    )
    placement_group: bool = Field(default=False, description="a cluster placement group for the group")
    capacity_reservation: str | None = Field(
        default=None, pattern=_RESERVATION, description="On-Demand Capacity Reservation"
    )
    capacity_reservation_group: str | None = Field(
        default=None,
        pattern=_GROUP_ARN,
        description="resource group of On-Demand Capacity Reservations; what has no room in it runs on demand",
    )
    capacity_block: CapacityBlock | None = Field(default=None, description="Capacity Block for ML")
    root_disk_gb: int = Field(default=200, gt=0, le=MOST_GB, description="size of the root volume, GiB")
    root_disk_mb_s: int = Field(default=250, ge=125, le=750, description="throughput of the root volume (gp3), MiB/s")
    data: list[str] = Field(default=[], description="data sets of cloud.data that its nodes have")


class Group(NodeSettings, _FixedAlone):
    """Fixed cloud nodes: always there, one resource a node."""

    @property
    def types(self) -> list[str]:
        """The instance types that its nodes may be: one."""
        return [self.instance_type]


class _RentedAlone(Strict):
    name: Name
    instance_type: str | None = Field(
        default=None, examples=["p5.48xlarge"], description="what its nodes are; or write instance_types"
    )
    instance_types: list[str] = Field(
        default=[],
        examples=[["g6e.12xlarge", "g6e.24xlarge"]],
        description="interchangeable types, of one GPU model, GPU count and fabric; a launch gets one of them",
    )
    prefer: Literal["price", "order"] = Field(
        default="price", description="which of instance_types is tried first in a market: the cheapest, or the first"
    )
    max_nodes: int = Field(gt=0, le=1000, description="never more than this many at a time")
    zones: list[str] = Field(min_length=1, description="in order of preference")
    markets: list[Literal["on-demand", "spot", "capacity-block"]] = Field(
        default=["on-demand"],
        min_length=1,
        description="spot is only for batch jobs that may be requeued, see burst.spot_max_nodes; "
        "a pool with a capacity_block has capacity-block alone, written or not",
    )
    placement_group: bool | None = Field(
        default=None,
        description="a cluster placement group in each zone; none: where the type has EFA and no capacity is bought",
    )
    capacity_reservation: str | None = Field(
        default=None, pattern=_RESERVATION, description="On-Demand Capacity Reservation"
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
    boot: Duration = Field(default="15m", validate_default=True, description="longest time from launch to joined")
    idle: Duration = Field(
        default="10m", validate_default=True, description="an idle node is given back after this at the latest"
    )
    max_run: Duration = Field(
        default="1d", validate_default=True, description="longest time limit of a job that may rent"
    )
    capacity_ends: Moment | None = Field(
        default=None,
        description="when its reservation is taken back, with time zone: "
        "no job is placed that would run longer; a capacity_block says it itself",
    )
    data: list[str] = Field(
        default=[],
        description="data sets that its nodes have; jobs name theirs in --comment data=NAME. Those of cloud.data come "
        "to the nodes by themselves, others somebody else brings",
    )
    licences: list[str] = Field(default=[], description="licences (Slurm's names) that jobs on its nodes can take")
    labels: dict[NodeLabel, NodeLabelValue] = Field(
        default={},
        description="labels of its nodes where the scheduler is Kubernetes, beside our own: also those that feature "
        "discovery will put there, so that pods that select them may be rented for",
        examples=[{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}],
    )
    less_gpu_memory: bool = Field(
        default=False,
        description="its GPUs may have less memory than home's of the same name: to Slurm an A100 of 40 GB and one of "
        "80 GB are the same gres type, and jobs that ask for it are rented either",
    )
    relative_speed: float | None = Field(
        default=None,
        ge=0.01,
        le=100,
        allow_inf_nan=False,
        description="how fast its nodes do what home's do: at 0.5 a job takes twice as long; "
        "none: not known, counted as 1",
    )
    checkpoint: Duration | None = Field(
        default=None, description="jobs save their work so often; none: an interruption loses all of it"
    )


class Pool(NodeSettings, _RentedAlone):
    """Rented nodes: none until the burst policy wants them, never more than `max_nodes`."""

    @model_validator(mode="before")
    @classmethod
    def _market_of_its_block(cls, given: Any) -> Any:
        implied = isinstance(given, dict) and given.get("capacity_block") and "markets" not in given
        return given | {"markets": ["capacity-block"]} if implied else given

    @property
    def bought(self) -> bool:
        """Its nodes run in capacity that somebody bought."""
        return bool(self.capacity_reservation or self.capacity_reservation_group or self.capacity_block)

    @property
    def taken_back(self) -> datetime | None:
        """When AWS begins to end its instances; UltraServers' half an hour sooner. None: no such moment."""
        if self.capacity_block is None:
            return self.capacity_ends
        return self.capacity_block.ends - timedelta(minutes=60 if self.types[0].startswith("p6e-") else 30)

    @model_validator(mode="after")
    def _one_of_two(self) -> Pool:
        if (self.instance_type is None) == (not self.instance_types):
            has = "has both instance_type and" if self.instance_types else "has neither instance_type nor"
            raise ValueError(f"{has} instance_types: write one of them")
        return self

    @property
    def types(self) -> list[str]:
        """The instance types that its nodes may be, in the declared order."""
        return [self.instance_type] if self.instance_type else self.instance_types


class Price(Strict):
    """USD per hour, replacing the catalogue's (a discount, a savings plan)."""

    on_demand: Usd | None = Field(default=None, description="USD per hour of one instance")
    spot: Usd | None = Field(default=None, description="USD per hour of one instance")

    @model_validator(mode="after")
    def _something(self) -> Price:
        if self.on_demand is None and self.spot is None:
            raise ValueError("says no price; write on_demand or spot, or leave the type out")
        return self


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


Subject = Annotated[str, Field(pattern=r"^[A-Za-z0-9:/@._ -]+$")]


class Ci(Strict):
    """CI that previews changes. It signs in with tokens of its own (OpenID Connect), and has no key."""

    issuer: str = Field(
        pattern=r"^[a-z0-9.-]+(/[A-Za-z0-9._/-]+)?$",
        description="who issues the tokens, without https://; the account's OIDC provider for it is there before",
        examples=["token.actions.githubusercontent.com", "gitlab.com"],
    )
    audience: str = Field(
        default="sts.amazonaws.com",
        pattern=r"^[A-Za-z0-9:/._-]+$",
        examples=["sts.amazonaws.com"],
        description="`aud` of the tokens",
    )
    preview: list[Subject] = Field(
        min_length=1,
        description="`sub` of the tokens that may preview, whole: a wildcard is none",
        examples=[["repo:org/name:pull_request", "repo:org/name:ref:refs/heads/main"]],
    )


class Cloud(Strict):
    """Cloud nodes, fixed and rented."""

    provider: Literal["aws"] = "aws"
    region: str
    network: CloudNetwork
    groups: list[Group] = Field(default=[])
    pools: list[Pool] = Field(default=[])
    karpenter: list[KarpenterPool] = Field(
        default=[], description="pools that Karpenter launches for a Kubernetes cluster, within the same budget"
    )
    data: dict[DataName, DataSet] = Field(default={}, description="name: files that cloud nodes are given to read")
    price: dict[str, Price] = Field(default={}, description="instance type: price")
    images: Images = Field(default=Images(), description="the images of rented nodes")
    controller: Controller | None = Field(
        default=None,
        description="a head outside AWS signs in with a certificate; none: a principal of the account that may assume "
        "the controller's role",
    )
    ci: Ci | None = Field(default=None, description="CI that may preview this stack, and nothing more")
