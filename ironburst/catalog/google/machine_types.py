"""Compute Engine's machine types with GPUs, their network cards and prices. Types to which GPUs are attached (N1) are
none of them: a launch would have to say which.
"""

import functools
from dataclasses import dataclass
from datetime import date

from ironburst.catalog import instances
from ironburst.catalog.errors import Unknown, look_up
from ironburst.catalog.hardware import gpu
from ironburst.catalog.tables import Row, integer, items, number, table, text


@dataclass(frozen=True)
class MachineType(instances.InstanceType):
    """One type. `gvnics`: NICs for hosts, the first in the nodes' subnet; `fabric_gvnics`, `rdma_nics`: those of the
    fabric; each gVNIC is in a network of its own, all RDMA ones in one. None: its cards aren't known.
    """

    architecture: str
    """x86_64 or aarch64"""
    gvnics: int | None
    fabric_gvnics: int | None
    rdma_nics: int | None
    fabric_name: str | None
    mtu: int | None
    """of the fabric's networks"""
    local_ssds: int
    """that it brings"""
    local_ssds_asked: tuple[str, ...]
    """numbers of them that it takes where it brings none; empty: none, or not known"""
    hyperdisk_only: bool
    """it boots from no other kind of disk"""
    spot_usd_per_hour: float | None

    @property
    def nics(self) -> int:
        """All of its network cards. Raises Unknown."""
        if self.gvnics is None or self.fabric_gvnics is None or self.rdma_nics is None:
            raise Unknown("network card layout of", self.name)
        return self.gvnics + self.fabric_gvnics + self.rdma_nics

    def fabric(self) -> tuple[str, int]:
        """GPUDirect-TCPX, -TCPXO or RoCE, and its cards. Raises Unknown where they aren't known."""
        links = self.nics - (self.gvnics or 0)
        return (self.fabric_name or "none", links) if links else ("none", 0)

    def listed(self, market: instances.Market, region: str) -> instances.Price | None:
        """The list price of an hour, of one region; None: not known, or not sold so."""
        if region != self.list_region or market not in self.purchase:
            return None
        usd = self.od_usd_per_hour if market == "on-demand" else self.spot_usd_per_hour
        return None if usd is None else instances.Price(usd, "list price", self.prices_as_of)


@functools.cache
def machine_types() -> dict[str, MachineType]:
    """All by name."""
    return {row["machine_type"]: _read(row) for row in table("google_machine_types.csv").rows}


def _read(row: Row) -> MachineType:
    sold = {"on-demand": row["on_demand"], "spot": row["spot"], "capacity-block": row["reservation"]}
    gb, gbps, day = integer(row, "memory_gb"), integer(row, "network_gbps"), text(row, "price_date")
    model = gpu(row["gpu_model"])
    name = row["machine_type"]
    return MachineType(
        provider="google",
        name=name,
        family=name.rpartition("-")[0],
        vcpus=integer(row, "vcpus"),
        threads_per_core=None,
        memory_mib=None if gb is None else gb * 1024,  # "1 GB is 2^30 bytes", says Google's page of prices
        accelerator=model.model,
        gpu=model,
        gpu_count=int(row["gpus"]),
        gpu_fraction=number(row, "gpu_fraction"),
        pcie_lanes=None,
        network_mbps=None if gbps is None else gbps * 1000,
        od_usd_per_hour=number(row, "usd_on_demand") if row["on_demand"] == "yes" else None,
        prices_as_of=date.fromisoformat(day) if day else None,
        purchase=tuple(market for market, said in sold.items() if said in ("yes", "required")),
        list_region=row["price_region"],
        architecture=row["architecture"],
        gvnics=integer(row, "gvnics"),
        fabric_gvnics=integer(row, "fabric_gvnics"),
        rdma_nics=integer(row, "rdma_nics"),
        fabric_name=text(row, "fabric"),
        mtu=integer(row, "mtu"),
        local_ssds=int(row["local_ssds"]),
        local_ssds_asked=items(row, "local_ssds_asked"),
        hyperdisk_only=row["hyperdisk_only"] == "yes",
        spot_usd_per_hour=number(row, "usd_spot"),
    )


def machine_type(name: str) -> MachineType:
    """The type with this name ("a3-highgpu-8g"); raises Unknown."""
    return look_up("machine type", name, machine_types())
