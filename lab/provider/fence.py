"""The fence around the lab: a stand-in talks to literal addresses of the lab and to nothing else."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

LAB = tuple(map(ipaddress.ip_network, ("127.0.0.0/8", "::1/128", "10.78.0.0/16")))


class OutsideLab(Exception):
    """A request would have left the lab."""


def in_lab(url: str) -> bool:
    """Whether the URL's host is a literal address of the lab (names could lead anywhere)."""
    try:
        parts = urlsplit(url)
        address = ipaddress.ip_address(parts.hostname or "")
        return parts.scheme in ("http", "https") and any(
            address in net for net in LAB if net.version == address.version
        )
    except ValueError:
        return False
