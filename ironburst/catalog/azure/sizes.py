"""Azure's sizes of machines with GPUs, and their prices. Retired ones (NCv3) and confidential machines, which take
other disks and identities, are none of them.
"""

import functools
from dataclasses import dataclass
from datetime import date

from ironburst.catalog import instances
from ironburst.catalog.errors import Unknown, look_up
from ironburst.catalog.hardware import gpu
from ironburst.catalog.tables import Row, integer, number, table, text


@dataclass(frozen=True)
class Size(instances.InstanceType):
    """One size. `infiniband_links`: None: not known."""

    architecture: str
    """x86_64 or aarch64"""
    infiniband_links: int | None
    accelerated_networking: bool
    trusted_launch: str | None
    """yes or no; None: not known"""
    on_demand_reservation: str | None
    """yes or no; None: not known"""

    def fabric(self) -> tuple[str, int]:
        """InfiniBand, and its cards. Raises Unknown where they aren't known."""
        if self.infiniband_links is None:
            raise Unknown("network card layout of", self.name)
        return ("infiniband", self.infiniband_links) if self.infiniband_links else ("none", 0)

    def listed(self, market: instances.Market, region: str) -> instances.Price | None:
        """The list price of an hour on demand, of one region; spot never costs more, unless a ceiling above it is
        declared, and what it costs is asked for when it is rented. None: not known, or not sold so.
        """
        if region != self.list_region or market not in self.purchase or self.od_usd_per_hour is None:
            return None
        spot = market == "spot"
        source = "list price on demand, the most that spot costs" if spot else "list price"
        return instances.Price(self.od_usd_per_hour, source, self.prices_as_of, most=spot)


@functools.cache
def sizes() -> dict[str, Size]:
    """All by name."""
    return {row["size"]: _read(row) for row in table("azure_sizes.csv").rows}


def _read(row: Row) -> Size:
    gib, gbps, day = integer(row, "memory_gib"), integer(row, "network_gbps"), text(row, "price_date")
    model = gpu(row["gpu_model"])
    return Size(
        provider="azure",
        name=row["size"],
        family=row["series"],
        vcpus=integer(row, "vcpus"),
        threads_per_core=None,
        memory_mib=None if gib is None else gib * 1024,
        accelerator=model.model,
        gpu=model,
        gpu_count=int(row["gpus"]),
        gpu_fraction=number(row, "gpu_fraction"),
        pcie_lanes=None,
        network_mbps=None if gbps is None else gbps * 1000,
        od_usd_per_hour=number(row, "usd_on_demand"),
        prices_as_of=date.fromisoformat(day) if day else None,
        purchase=("on-demand", "capacity-block") + (("spot",) if row["spot"] == "yes" else ()),
        list_region=row["price_region"],
        architecture=row["architecture"],
        infiniband_links=integer(row, "infiniband_links"),
        accelerated_networking=row["accelerated_networking"] == "yes",
        trusted_launch=text(row, "trusted_launch"),
        on_demand_reservation=text(row, "on_demand_reservation"),
    )


def size(name: str) -> Size:
    """The size with this name ("Standard_ND96isr_H100_v5"); raises Unknown."""
    return look_up("size", name, sizes())
