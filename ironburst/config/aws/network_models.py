"""The network of the cloud nodes, as a person declares it (`cloud.network` of ironburst.config.models)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ironburst.config.cloud_network_models import Link, LinkedNetwork
from ironburst.config.software_models import Strict
from ironburst.config.types import Address, Network

# All that a node asks of AWS: the munge key. Each service costs by the hour in each zone.
ENDPOINTS = ("secretsmanager",)


class HallLink(Link):
    """How the cloud network reaches a hall."""

    kind: Literal["vpn", "direct-connect", "transit-gateway"]
    peer_address: Address | None = Field(default=None, description="public address of the hall's VPN device (vpn)")
    peer_asn: int | None = Field(default=None, ge=1, le=4294967294, description="BGP ASN of the hall (vpn)")
    gateway_id: str | None = Field(
        default=None,
        pattern=r"^(tgw-[0-9a-f]{8,17}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$",
        description="Direct Connect gateway, a UUID (direct-connect), or transit gateway; it is there before",
        examples=["tgw-0123456789abcdef0"],
    )


class ExistingVpc(Strict):
    """A network that somebody else owns: used, never changed."""

    vpc_id: str = Field(pattern=r"^vpc-[0-9a-f]+$", examples=["vpc-0123456789abcdef0"])
    subnets: dict[str, Annotated[str, Field(pattern=r"^subnet-[0-9a-f]+$")]] = Field(
        min_length=1, description="zone: private subnet id"
    )


class CloudNetwork(LinkedNetwork[HallLink]):
    """The network of the cloud nodes."""

    cidr: Network = Field(description="network of the VPC; halls must not overlap it")
    zones: list[str] = Field(min_length=1, description="availability zones with subnets", examples=["us-east-1a"])
    existing: ExistingVpc | None = Field(default=None, description="use this VPC instead of making one")
    egress: Literal["nat", "endpoints"] = Field(default="nat", description="how private nodes reach out")
