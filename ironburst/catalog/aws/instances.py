"""EC2 accelerator instance types, where they are offered, and how their network cards are laid out."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ironburst.catalog import instances
from ironburst.catalog.aws import spot
from ironburst.catalog.errors import Unknown, look_up
from ironburst.catalog.hardware import Gpu, gpu, gpus
from ironburst.catalog.tables import Row, integer, number, table, text

LIST_REGION = "us-east-1"  # the only region whose on-demand prices the data has
InterfaceType = Literal["interface", "efa", "efa-only"]


@dataclass(frozen=True)
class InstanceType(instances.InstanceType):
    """One EC2 type. `network_cards`: None where its cards aren't known."""

    network_cards: int | None
    efa_count: int

    def zones(self, region: str) -> tuple[str, ...]:
        """Availability zones of `region` that offer this type (as of the data file's date); empty: none known."""
        return _offerings().get((region, self.name), ())

    @property
    def regions(self) -> tuple[str, ...]:
        """Regions that offer this type (as of the data file's date); empty: none known."""
        return tuple(sorted(region for region, name in _offerings() if name == self.name))

    def fabric(self) -> tuple[str, int]:
        """EFA, by its interfaces. Raises Unknown where its cards aren't known."""
        links = sum(nic.interface_type != "interface" for nic in network_interfaces(self.name))
        return ("efa" if links else "none", links)

    def listed(self, market: instances.Market, region: str) -> instances.Price | None:
        """The list price of an hour; None: not known."""
        if region != LIST_REGION:
            return None
        if market == "on-demand" and self.od_usd_per_hour is not None:
            return instances.Price(self.od_usd_per_hour, "list price", self.prices_as_of)
        return spot.price(self.name, region) if market == "spot" else None

    def interruptions(self, region: str) -> instances.Interruptions | None:
        """By the spot advisor."""
        return spot.interruptions(self.name, region)

    def spot_savings(self, region: str) -> instances.Savings | None:
        """By the spot advisor."""
        return spot.savings(self.name, region)


@dataclass(frozen=True)
class NetworkInterface:
    """One network interface of an instance: where it sits, and its EC2 InterfaceType ("interface" is plain ENA)."""

    card_index: int
    device_index: int
    interface_type: InterfaceType

    @property
    def addresses(self) -> int:
        """IP addresses that it takes from the subnet."""
        return 0 if self.interface_type == "efa-only" else 1


@functools.cache
def _efa_rows() -> dict[str, Row]:
    return {row["instance_type"]: row for row in table("efa_layout.csv").rows}


@functools.cache
def _offerings() -> dict[tuple[str, str], tuple[str, ...]]:
    return {
        (row["region"], row["instance_type"]): tuple(row["region"] + zone for zone in row["zones"].split())
        for row in table("aws_offerings.csv").rows
    }


@functools.cache
def zones(region: str) -> tuple[str, ...]:
    """Availability zones of `region` that offer any type with a GPU of NVIDIA; empty: none known."""
    return tuple(sorted({zone for (where, _), offered in _offerings().items() if where == region for zone in offered}))


def _gpu_of(name: str, family: str) -> Gpu | None:
    """The EFA table names the exact GPU; else the family does, where one GPU model alone claims it."""
    layout = _efa_rows().get(name)
    if layout and layout["gpu_model"] in gpus():
        return gpu(layout["gpu_model"])
    claimed = [model for model in gpus().values() if family in model.cloud_families]
    return claimed[0] if len(claimed) == 1 else None


def _gpu_count(row: Row) -> int:
    """GPUs that the node shows. EC2's API says 0 for a part of a GPU
    (and for p5.4xlarge): the EFA table comes first.
    """
    if row["accel_vendor"] not in ("NVIDIA", "amd"):
        return 0
    layout = _efa_rows().get(row["instance_type"])
    if layout:
        return int(layout["gpus"])
    fraction = number(row, "gpu_fraction")
    if fraction is not None and fraction < 1:
        return 1
    return integer(row, "accel_count") or 0


@functools.cache
def instance_types() -> dict[str, InstanceType]:
    """All instance types by name."""
    prices = table("aws_instance_types.csv")
    types = {}
    for row in prices.rows:
        name, layout = row["instance_type"], _efa_rows().get(row["instance_type"])
        efa_count = int(layout["max_efa"]) if layout else integer(row, "efa_max") or 0
        types[name] = InstanceType(
            provider="aws",
            name=name,
            family=row["family"],
            vcpus=integer(row, "vcpu"),
            threads_per_core=integer(row, "threads_per_core"),
            memory_mib=integer(row, "mem_mib"),
            accelerator=row["accel"],
            gpu=_gpu_of(name, row["family"]) if row["accel_vendor"] == "NVIDIA" else None,
            gpu_count=_gpu_count(row),
            gpu_fraction=number(row, "gpu_fraction"),
            pcie_lanes=integer(row, "pcie_lanes"),
            network_cards=int(layout["network_cards"]) if layout else 1 if efa_count <= 1 else None,
            efa_count=efa_count,
            network_mbps=integer(row, "net_mbps"),
            od_usd_per_hour=number(row, "od_usd_h_us_east_1"),
            prices_as_of=prices.as_of,
            list_region=LIST_REGION,
            purchase=tuple((text(row, "spot_classes") or "").replace(",", " ").split()),
        )
    return types


def instance_type(name: str) -> InstanceType:
    """The EC2 type with this name ("p5.48xlarge"); raises Unknown."""
    return look_up("instance type", name, instance_types())


def network_interfaces(name: str) -> tuple[NetworkInterface, ...]:
    """The interfaces that one instance of this type gets, computed from its cards. Card 0 device 0 is plain ENA; a card
    0 that can do EFA carries it as `efa-only` on device 1; every other card carries `efa-only` on device 0. Raises
    Unknown, also for a type whose cards aren't known.
    """
    kind = instance_type(name)
    if kind.network_cards is None:
        raise Unknown("network card layout of", name)
    primary = NetworkInterface(0, 0, "interface")
    if not kind.efa_count:
        return (primary,)
    layout = _efa_rows().get(name)
    first_card_has_efa = layout is None or layout["card0_dev1"] == "efa-only"
    first = (NetworkInterface(0, 1, "efa-only"),) if first_card_has_efa else ()
    others = tuple(NetworkInterface(card, 0, "efa-only") for card in range(1, kind.network_cards))
    return (primary, *first, *others)


def pod_resources(fabric: str, links: int) -> dict[str, int]:
    """What a Kubernetes node with this number of links of a fabric offers to pods, by the fabric's device plugin: {name
    of the extended resource: number}.
    """
    return {"vpc.amazonaws.com/efa": links} if fabric == "efa" else {}


def addresses(interfaces: Sequence[NetworkInterface]) -> int:
    """IP addresses that one instance with these interfaces takes from its subnet: `efa-only` ones take none."""
    return sum(interface.addresses for interface in interfaces)
