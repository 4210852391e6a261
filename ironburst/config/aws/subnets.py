"""How a cloud network is divided: a small public and a large private subnet per zone. Pure arithmetic."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from ironburst.config.aws.models import AwsCloud

RESERVED = 5  # AWS keeps the first four addresses and the last one of every subnet
SMALLEST = 28  # and makes no subnet smaller than this


@dataclass(frozen=True)
class ZoneSubnets:
    """Networks of one zone."""

    public: str
    private: str


def zones_in_use(cloud: AwsCloud) -> list[str]:
    """The network's zones that nodes are declared in, in its order: the others need no way out."""
    used = {group.zone for group in cloud.groups}.union(*(pool.zones for pool in cloud.pools))
    return [zone for zone in cloud.network.zones if zone in used]


def divide(cidr: str, zones: list[str]) -> dict[str, ZoneSubnets]:
    """Subnets of each zone, in order of `zones`, inside `cidr`. The same input gives the same subnets.

    The network is cut in equal slots, one more than there are zones rounded up to a power of two;
    slot 0 holds the public subnets, so that adding a zone within the same power of two moves
    nothing. Raises ValueError if it is too small.
    """
    network = ipaddress.IPv4Network(cidr)
    bits = len(zones).bit_length()
    prefix = network.prefixlen + bits
    public_prefix = max(prefix + bits, 24)
    if prefix > SMALLEST or public_prefix > SMALLEST:
        raise ValueError(
            f"{cidr} is too small for {len(zones)} zones; AWS needs at least a /{SMALLEST - 2 * bits} here"
        )
    slots = list(network.subnets(new_prefix=prefix))
    publics = slots[0].subnets(new_prefix=public_prefix)
    return {
        zone: ZoneSubnets(public=str(public), private=str(slot))
        for zone, public, slot in zip(zones, publics, slots[1:], strict=False)
    }


def usable(cidr: str) -> int:
    """Addresses of a subnet that nodes can take."""
    return ipaddress.IPv4Network(cidr).num_addresses - RESERVED
