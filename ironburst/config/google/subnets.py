"""The networks that a stack makes for its nodes' further NICs, and which of them each node's cards are in. Pure.

A gVNIC beside the first is in a VPC network of its own; all RDMA cards are in one with Google's network profile, which
is of one zone. (GoogleCloudPlatform/cluster-toolkit, blueprints of a3-highgpu-8g, a3-megagpu-8g, a3-ultragpu-8g,
a4-highgpu-8g, a4x-highgpu-4g.)
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from ironburst.catalog.google.machine_types import MachineType, machine_type
from ironburst.config.google.models import GoogleCloud, GoogleGroup, GooglePool

RESERVED = 4
"""Google keeps the first two addresses and the last two of every subnet"""
SMALLEST = 29
"""prefix of the smallest subnet that Google makes"""
SLOTS = 64
"""subnets that fabric_cidr is cut in"""


@dataclass(frozen=True)
class FabricNetwork:
    """A VPC network for further NICs. `label`: of its logical name; `zone`: of one with a profile, which RDMA has, else
    empty; `subnets`: their networks in the order of the cards, one but for RDMA.
    """

    label: str
    zone: str
    mtu: int
    profile: str
    subnets: tuple[str, ...]


@dataclass(frozen=True)
class Nic:
    """One card of a node. `network`: a FabricNetwork's label, empty: the nodes' own subnet; `subnet`: which of its."""

    nic_type: str
    network: str = ""
    subnet: int = 0


def nics(kind: MachineType, zone: str) -> list[Nic]:
    """The cards of a node there, in their order. Raises catalog.Unknown where they aren't known."""
    rdma = kind.nics - (kind.gvnics or 0) - (kind.fabric_gvnics or 0)
    further = (kind.gvnics or 1) - 1 + (kind.fabric_gvnics or 0)
    return [
        Nic("GVNIC"),
        *(Nic("GVNIC", _gvnic_label(kind.mtu or 0, n)) for n in range(further)),
        *(Nic("MRDMA", _rdma_label(zone), n) for n in range(rdma)),
    ]


def _gvnic_label(mtu: int, n: int) -> str:
    return f"fabric-{mtu}-{n + 1}"


def _rdma_label(zone: str) -> str:
    return f"rdma-{zone}"


def placed(cloud: GoogleCloud) -> Iterator[tuple[GoogleGroup | GooglePool, MachineType, str]]:
    """(group or pool, type, zone) of everything that may run. Raises catalog.Unknown."""
    for group in cloud.groups:
        yield group, machine_type(group.instance_type), group.zone
    for pool in cloud.pools:
        for name in pool.types:
            for zone in pool.zones:
                yield pool, machine_type(name), zone


def fabric(cloud: GoogleCloud) -> list[FabricNetwork]:
    """What is to be made, in the order of the declaration; none where networks are there. Raises catalog.Unknown, and
    ValueError where fabric_cidr is absent or too small. It is cut in SLOTS equal subnets whatever is declared, so that
    what is added behind moves nothing.
    """
    if cloud.network.existing:
        return []
    wanted: dict[str, tuple[MachineType, str, int]] = {}  # label: type, zone, subnets
    room: dict[str, dict[str, int]] = {}  # label: name of a group or pool: its nodes
    for nodes, kind, zone in placed(cloud):
        most = nodes.count if isinstance(nodes, GoogleGroup) else nodes.max_nodes
        for nic in nics(kind, zone)[1:]:
            _, _, before = wanted.get(nic.network, (kind, zone, 0))
            wanted[nic.network] = kind, zone if nic.nic_type == "MRDMA" else "", max(before, nic.subnet + 1)
            room.setdefault(nic.network, {})[nodes.name] = most
    if not wanted:
        return []
    cut = _cut(
        cloud.network.fabric_cidr,
        sum(count for _, _, count in wanted.values()),
        max(sum(those.values()) for those in room.values()),
    )
    return [
        FabricNetwork(label, at, kind.mtu or 0, f"{at}-vpc-roce" if at else "", tuple(next(cut) for _ in range(count)))
        for label, (kind, at, count) in wanted.items()
    ]


def _cut(cidr: str | None, count: int, most: int) -> Iterator[str]:
    """`most`: nodes in one of them."""
    if cidr is None:
        raise ValueError("is needed: nodes have more than one NIC there, each in a subnet of its own")
    network = ipaddress.IPv4Network(cidr)
    prefix = network.prefixlen + (SLOTS - 1).bit_length()
    if prefix > SMALLEST or count > SLOTS or 2 ** (32 - prefix) - RESERVED < most:
        what = f"{count} subnets of further NICs, one of which has {most} nodes"
        raise ValueError(f"{cidr} is cut in {SLOTS} subnets of /{prefix}, too few or too small for {what}")
    return (str(each) for each in network.subnets(new_prefix=prefix))
