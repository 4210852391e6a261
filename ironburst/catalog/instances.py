"""An instance type as every cloud has it, and what its hours cost."""

import math
from dataclasses import dataclass
from datetime import date
from typing import Literal

from ironburst.catalog.hardware import Gpu
from ironburst.catalog.tables import number, table

Market = Literal["on-demand", "spot", "capacity-block"]


@dataclass(frozen=True)
class Price:
    """USD for one instance-hour, where it comes from, and the date it was read (None for a declared price). `most`: it
    costs that or less.
    """

    usd_per_hour: float
    source: str
    as_of: date | None
    most: bool = False


@dataclass(frozen=True)
class NetworkPrice:
    """USD for an hour of a thing or a GB of data (`between-zones`: in each direction)."""

    usd: float
    as_of: date | None


def network_price(file: str, **of: str) -> NetworkPrice | None:
    """That of the row of a data file whose columns say so; None where it isn't known."""
    prices = table(file)
    found = [number(row, "usd") for row in prices.rows if all(row[column] == said for column, said in of.items())]
    return NetworkPrice(found[0], prices.as_of) if found and found[0] is not None else None


@dataclass(frozen=True)
class Savings:
    """Percent of the on-demand price that spot costs less, as of that day."""

    percent: float
    as_of: date | None


@dataclass(frozen=True)
class Interruptions:
    """The part of an instance type's spot instances that are taken back within
    30 days: a band, from `least` to `most`.
    """

    least: float
    most: float
    source: str
    as_of: date | None

    @property
    def per_hour(self) -> float:
        """The rate of one instance, taken from the upper end of the band: rather too many than too few."""
        return -math.log(1 - self.most) / (30 * 24)


@dataclass(frozen=True)
class Region:
    """One region: whose it is, its name as the cloud's API has it, the cloud's words for it, and the code (ISO 3166) of
    its country.
    """

    provider: str
    region: str
    name: str
    country: str


@dataclass(frozen=True)
class InstanceType:
    """One type. `gpu` is None where its accelerator isn't in the GPU table; other None values are unknown."""

    provider: str
    name: str
    family: str
    vcpus: int | None
    threads_per_core: int | None
    """as it boots; no cloud says of any type how many sockets it has"""
    memory_mib: int | None
    accelerator: str
    gpu: Gpu | None
    gpu_count: int
    gpu_fraction: float | None
    """below 1: a part of one GPU"""
    pcie_lanes: int | None
    """that it wires to each GPU; None: not known"""
    network_mbps: int | None
    od_usd_per_hour: float | None
    """on-demand price in `list_region`; None: not sold on demand, or unknown"""
    prices_as_of: date | None
    purchase: tuple[str, ...]
    """the ways it is sold: on-demand, spot, capacity-block; empty is unknown"""
    list_region: str
    """the only region whose prices of it the data has; empty: none"""

    @property
    def gpu_model(self) -> str | None:
        """The name of its GPU in the catalogue; None: no GPU that the catalogue knows."""
        return None if self.gpu is None else self.gpu.model

    @property
    def regions(self) -> tuple[str, ...]:
        """Regions that offer this type (as of the data file's date); empty: none known."""
        return ()

    def zones(self, region: str) -> tuple[str, ...]:  # noqa: ARG002 - of the data, where there is some
        """Zones of `region` that offer this type (as of the data file's date); empty: none known."""
        return ()

    def fabric(self) -> tuple[str, int]:
        """The fabric between its nodes: its name, and the links that one has; ("none", 0): none. Raises Unknown where
        its network cards aren't known.
        """
        raise NotImplementedError

    def listed(self, market: Market, region: str) -> Price | None:
        """The list price of an hour; None: not known."""
        raise NotImplementedError

    def interruptions(self, region: str) -> Interruptions | None:  # noqa: ARG002 - as zones
        """How often spot instances of it are taken back; None: not known."""
        return None

    def spot_savings(self, region: str) -> Savings | None:  # noqa: ARG002 - as zones
        """What spot saves on on-demand in a region; None: not known."""
        return None
