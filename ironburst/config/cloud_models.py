"""The cloud nodes, fixed and rented, as a person declares them (`cloud` of ironburst.config.models): what all clouds
have in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from ironburst.config.data_models import Data
from ironburst.config.karpenter_models import KarpenterPool
from ironburst.config.node_settings import NodeSettings
from ironburst.config.software_models import Strict
from ironburst.config.types import Account, Duration, Moment, Name, NodeLabel, NodeLabelValue, SecretRef, Usd
from ironburst.nodes import naming

ISSUER = r"^[a-z0-9.-]+(/[A-Za-z0-9._/-]+)?$"


class Bought(Strict):
    """Capacity of a fixed time that was paid for when somebody bought it."""

    starts: Moment | None = Field(default=None, description="when it begins, with time zone; none: it has begun")
    ends: Moment = Field(description="when it ends, with time zone")


class OwnedBought(Bought):
    """The same of a pool, whose nodes run in it."""

    account: Account | None = Field(
        default=None, description="the Slurm account whose jobs alone may rent in it, this very one; none: all"
    )


class _FixedAlone(Strict):
    name: Name
    instance_type: str = Field(examples=["p5.48xlarge"])
    count: int = Field(gt=0, le=1000)
    zone: str = Field(description="one of the network's zones")
    image: str = Field(description="a plain image of the system; Ansible converges the nodes")
    root_disk_gb: int = Field(default=200, gt=0, description="size of the root volume, GiB")
    data: list[str] = Field(default=[], description="data sets of cloud.data that its nodes have")


class Group(NodeSettings, _FixedAlone):
    """Fixed cloud nodes: always there, one resource a node."""

    @property
    def types(self) -> list[str]:
        """The instance types that its nodes may be: one."""
        return [self.instance_type]

    @property
    def paid_before(self) -> bool:
        """Its nodes run in capacity for which nothing more is paid by the hour."""
        return False

    @property
    def reserved(self) -> list[tuple[str, tuple[str, ...]]]:
        """The capacity that it names, and under which key."""
        return []


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
    root_disk_gb: int = Field(
        default=200, gt=0, description="size of the root volume, GiB; the pool's next image is baked with it"
    )
    root_disk_mb_s: int | None = Field(default=None, description="throughput of the root volume, MiB/s")
    boot: Duration = Field(default="15m", validate_default=True, description="longest time from launch to joined")
    idle: Duration = Field(
        default="10m", validate_default=True, description="an idle node is given back after this at the latest"
    )
    max_run: Duration = Field(
        default="1d", validate_default=True, description="longest time limit of a job that may rent"
    )
    capacity_ends: Moment | None = Field(
        default=None,
        description="when its capacity is taken back, with time zone: no job is placed that would run longer",
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

    block_key: ClassVar[str] = ""
    """under which it names what was bought for a fixed time"""

    @model_validator(mode="before")
    @classmethod
    def _market_of_its_block(cls, given: Any) -> Any:
        implied = isinstance(given, dict) and given.get(cls.block_key) and "markets" not in given
        return given | {"markets": ["capacity-block"]} if implied else given

    @property
    def block(self) -> OwnedBought | None:
        """What its nodes run in, and was bought for a fixed time."""
        found: OwnedBought | None = getattr(self, self.block_key) if self.block_key else None
        return found

    @property
    def closing(self) -> timedelta:
        """How long before its block's end the cloud begins to end its instances."""
        return timedelta(minutes=30)

    @property
    def bought(self) -> bool:
        """Its nodes run in capacity that somebody bought."""
        return bool(self.reserved)

    @property
    def reserved(self) -> list[tuple[str, tuple[str, ...]]]:
        """The capacity that it names, and under which key."""
        return []

    @property
    def opens(self) -> datetime | None:
        """When its block begins; None: it has begun, or there is none."""
        return self.block.starts if self.block else None

    @property
    def taken_back(self) -> datetime | None:
        """When the cloud begins to end its instances; None: no such moment."""
        return self.block.ends - self.closing if self.block else self.capacity_ends

    @property
    def of_account(self) -> str | None:
        """The only account whose jobs may rent in it; None: all."""
        return self.block.account if self.block else None

    def spans(self, spot_max_nodes: int) -> bool:
        """Whether a job may have several of its nodes; on spot at most this number."""
        return self.max_nodes > 1 and (set(self.markets) != {"spot"} or spot_max_nodes > 1)

    @property
    def paid_beside(self) -> str:
        """What a launch pays for beside its hours, in words; empty: nothing."""
        return ""

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
    spot: Usd | None = Field(
        default=None, description="USD per hour of one instance, as long as the cloud hasn't said what it costs now"
    )
    spot_max: Usd | None = Field(
        default=None,
        description="the most that is paid for an hour of spot, which ends the node where it costs more; none: the "
        "cloud's own limit, the on-demand price",
    )

    @model_validator(mode="after")
    def _something(self) -> Price:
        if self.on_demand is None and self.spot is None and self.spot_max is None:
            raise ValueError("says no price; write on_demand or spot, or leave the type out")
        return self


class Images(Strict):
    """How the images of pools are baked (`ironburst image`), and how long they stay."""

    build_type: str | None = Field(
        default=None,
        description="a small instance type without GPUs, of the pools' architecture; none: the pool's own type",
    )
    keep: int = Field(
        default=3,
        ge=2,
        description="baked images of each pool that stay, but those in use; a launch of this moment may name the last "
        "but one",
    )


class Ci(Strict):
    """CI that previews changes. It signs in with tokens of its own (OpenID Connect), and has no key."""

    issuer: str = Field(
        pattern=ISSUER,
        description="who issues the tokens, without https://",
        examples=["token.actions.githubusercontent.com", "gitlab.com"],
    )
    preview: list[Annotated[str, Field(pattern=r"^[A-Za-z0-9:/@._ -]+$")]] = Field(
        min_length=1,
        description="`sub` of the tokens that may preview, whole: a wildcard is none",
        examples=[["repo:org/name:pull_request", "repo:org/name:ref:refs/heads/main"]],
    )


class Cloud(Strict):
    """Cloud nodes, fixed and rented: what the policy and the document read of every cloud. Each has a class of its own
    (config.clouds), with what is its own.
    """

    store: ClassVar[str] = ""
    """scheme of references to its store of secrets, which its nodes can read"""
    spot_notice_s: ClassVar[int]
    """so long before its end a spot node is told at least, as ironburst launches it"""

    provider: str
    region: str
    groups: Sequence[Group] = Field(default=[])
    pools: Sequence[Pool] = Field(default=[])
    karpenter: list[KarpenterPool] = Field(
        default=[], description="pools that Karpenter launches for a Kubernetes cluster, within the same budget"
    )
    data: Mapping[str, Data] = Field(default={}, description="name: files that cloud nodes are given to read")
    price: dict[str, Price] = Field(default={}, description="instance type: price")
    images: Images = Field(default=Images(), description="the images of rented nodes")
    secrets: dict[SecretRef, SecretRef] = Field(
        default={},
        description="reference of a scheduler's secret: the same secret in this cloud's own store, where its rented "
        "nodes read it; needed where the reference is to another cloud's store",
    )

    @property
    def account(self) -> str:
        """What its calls are made in, where they name it; empty: they don't."""
        return ""

    def image_place(self, cluster: str, pool: str) -> str:
        """Where it keeps which image a pool's nodes boot."""
        return naming.image_parameter(cluster, pool)
