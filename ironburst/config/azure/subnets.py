"""How a VNet is divided: the nodes' subnet, and that of its gateways to halls. Pure arithmetic."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

RESERVED = 5
"""Azure keeps the first four addresses and the last one of every subnet"""
GATEWAYS = 27
"""prefix of the subnet GatewaySubnet, that both kinds of gateways fit in"""


@dataclass(frozen=True)
class Subnets:
    """Networks of a VNet."""

    nodes: str
    gateways: str


def divide(cidr: str) -> Subnets:
    """The same whether or not there is a link, so that one added later moves nothing. Raises ValueError where it is too
    small.
    """
    network = ipaddress.IPv4Network(cidr)
    if network.prefixlen >= GATEWAYS:
        raise ValueError(f"{cidr} is too small; write a /{GATEWAYS - 1} or a larger network")
    nodes, upper = network.subnets(prefixlen_diff=1)
    *_, gateways = upper.subnets(new_prefix=GATEWAYS)
    return Subnets(nodes=str(nodes), gateways=str(gateways))


def usable(cidr: str) -> int:
    """Addresses of a subnet that nodes can take."""
    return ipaddress.IPv4Network(cidr).num_addresses - RESERVED
