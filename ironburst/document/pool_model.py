"""What the document says of a burst pool: limits, prices, and what a launch needs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ironburst.document.node_model import GpuDocument, MigDocument, NodeSoftware, Scratch
from ironburst.document.part import Part
from ironburst.document.places import Place
from ironburst.document.slurm_node import SlurmNode


class PoolZone(Part):
    """What a launch in one zone needs."""

    zone: str
    instance_type: str = Field(default="", description="that is launched there; empty: the pool's first")
    place: Place = Field(description="of the cloud's own; of each cloud another type")


class PoolType(Part):
    """Another instance type of a pool, and what differs from its first one."""

    instance_type: str
    usd_per_hour: dict[str, float | None] = Field(description="market: USD per node-hour; null: unknown, so not rented")
    interruptions_per_hour: dict[str, float] = Field(
        default={}, description="market: how often one instance is taken back; none: never"
    )


class PoolDocument(Part):
    """The envelope of one burst pool: limits, prices, and what a launch needs."""

    name: str
    scheduler: str = Field(default="", description="kind of the one that its nodes join; empty: there is only one")
    partition: str
    nodes: list[str]
    instance_type: str
    gpu: GpuDocument
    fabric: str
    fabric_links: int
    slurm: SlurmNode
    markets: list[str]
    usd_per_hour: dict[str, float | None] = Field(
        description="market: USD per node-hour; null: unknown, so not rented; a capacity block's is 0: it was paid for"
    )
    spot_max_usd_per_hour: dict[str, float] = Field(default={}, description="type: the most paid for spot; none: any")
    price_as_of: str | None = Field(description="day of the oldest list price in it; null: all are declared")
    prices_as_of: dict[str, str] = Field(default={}, description="market: the same of its prices; none: declared")
    zones: list[PoolZone]
    image: str = Field(description="where the cloud keeps the id of its nodes' image")
    notices: str = Field(default="", description="where the cloud says that it takes nodes back; empty: nowhere")
    bought: bool = Field(default=False, description="its nodes run in capacity that is paid for, used or not")
    boot_s: int
    idle_s: int
    max_run_s: int
    capacity_ends_s: float | None = Field(
        default=None, description="seconds since 1970; its capacity is taken back then"
    )
    capacity_starts_s: float | None = Field(
        default=None, description="seconds since 1970; nothing can be launched before; null: it has begun"
    )
    account: str | None = Field(default=None, description="Slurm account whose jobs alone rent in it; null: all")
    data: list[str] = Field(default=[])
    licences: list[str] = Field(default=[])
    labels: dict[str, str] = Field(default={}, description="of its nodes in Kubernetes, beside our own")
    interruptions_per_hour: dict[str, float] = Field(
        default={}, description="market: how often one instance is taken back; none: never"
    )
    checkpoint_s: int = 0
    relative_speed: float | None = Field(default=None, description="of home's; null: not known, counted as 1")
    root_disk_gb: int | None = Field(default=None, description="GiB of the nodes' root disk; null: as the image has it")
    root_disk_mb_s: int | None = Field(default=None, description="MiB/s of the nodes' root disk; null: the cloud's own")
    os: str | None = None
    software: NodeSoftware | None = None
    mig: list[MigDocument] | None = None
    scratch: Scratch | None = None
    roles: list[str]
    other_types: list[PoolType] = Field(
        default=[], description="that its nodes may be beside instance_type; prices and interruptions are that one's"
    )
    prefer: Literal["price", "order"] = Field(default="price", description="by what a type is chosen in a market")

    @property
    def provider(self) -> str:
        """Whose nodes these are, as its places say."""
        return next((each.place.provider for each in self.zones), "")

    @property
    def zone_names(self) -> list[str]:
        """Its zones, in order of preference."""
        return list(dict.fromkeys(place.zone for place in self.zones))

    def place(self, zone: str, instance_type: str) -> PoolZone | None:
        """What a launch of this type in this zone needs; None: the pool has no such place."""
        wanted = zone, instance_type
        return next(
            (each for each in self.zones if (each.zone, each.instance_type or self.instance_type) == wanted), None
        )

    @property
    def prices(self) -> dict[str, dict[str, float | None]]:
        """Instance type: its usd_per_hour."""
        others = {other.instance_type: other.usd_per_hour for other in self.other_types}
        return {self.instance_type: self.usd_per_hour} | others

    def price(self, instance_type: str, market: str) -> float | None:
        """USD per hour of a node of this type; None: not known, or it isn't the pool's."""
        return self.prices.get(instance_type, {}).get(market)

    @property
    def dearest_usd_per_hour(self) -> float:
        """Of all its types and markets whose price is known; 0 without any."""
        return max((usd for each in self.prices.values() for usd in each.values() if usd is not None), default=0.0)
