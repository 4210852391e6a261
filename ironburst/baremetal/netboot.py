"""dnsmasq's settings for halls whose BMCs load no medium: the firmware asks by DHCP, and each node gets its own medium
over HTTP (UEFI HTTP boot). Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Client:
    """A node that may be installed: its port's MAC, its address, and the URL of its medium (an EFI program)."""

    node: str
    mac: str
    address: str
    medium: str


def dnsmasq(clients: Iterable[Client], network: str, interface: str, gateway: str | None, dns: Iterable[str]) -> str:
    """dnsmasq.conf. Nobody but the clients gets an address; `network` as in 10.0.1.0/24.

    Client architecture 16 is x86-64 firmware that boots over HTTP (RFC 5970, IANA's list); it takes an answer only
    with vendor class HTTPClient (UEFI 2.5, 24.7).
    """
    hall = ipaddress.IPv4Network(network)
    lines = [
        "# Written by ironburst: nodes of allow_install, and no others",
        "port=0",
        f"interface={interface}",
        "bind-dynamic",
        f"dhcp-range={hall.network_address},static,{hall.netmask},1h",
        "dhcp-ignore=tag:!known",
        f"dhcp-option=option:router,{gateway}" if gateway else "dhcp-option=option:router",
        *([f"dhcp-option=option:dns-server,{','.join(dns)}"] if dns else []),
        "dhcp-match=set:http,option:client-arch,16",
        "dhcp-option-force=tag:http,option:vendor-class,HTTPClient",
    ]
    for client in clients:
        lines += [
            f"dhcp-host={client.mac},set:{client.node},{client.address},{client.node}",
            f"dhcp-boot=tag:http,tag:{client.node},{client.medium}",
        ]
    return "".join(f"{line}\n" for line in lines)
