"""The network of the cloud nodes, as a person declares it (`cloud.network` of ironburst.config.models)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ironburst.config.cloud_network_models import Link, LinkedNetwork
from ironburst.config.google.forms import NETWORK, SUBNETWORK
from ironburst.config.software_models import Strict
from ironburst.config.types import Address, Network, SecretRef

Subnetwork = Annotated[str, Field(pattern=SUBNETWORK)]


class GoogleHallLink(Link):
    """How the cloud network reaches a hall."""

    kind: Literal["vpn", "interconnect"] = Field(
        description="vpn: an HA VPN, two tunnels to the hall's device; interconnect: a VLAN attachment on each of "
        "interconnects"
    )
    peer_asn: int = Field(ge=1, le=4294967294, description="BGP ASN of the hall")
    peer_address: Address | None = Field(default=None, description="public address of the hall's VPN device (vpn)")
    shared_secret: SecretRef | None = Field(default=None, description="IKE pre-shared key of both tunnels (vpn)")
    interconnects: list[str] = Field(
        default=[],
        description="Dedicated Interconnects that are there before (interconnect), two for an SLA",
        examples=[["projects/gpu-prod-4711/global/interconnects/hall-a-1"]],
    )

    @model_validator(mode="after")
    def _keys_of_its_kind(self) -> GoogleHallLink:
        vpn = {"peer_address": self.peer_address, "shared_secret": self.shared_secret}
        for key, given in vpn.items():
            if (given is None) == (self.kind == "vpn"):
                raise ValueError(f"of the kind {self.kind} {'needs' if self.kind == 'vpn' else 'has no'} {key}")
        if bool(self.interconnects) != (self.kind == "interconnect"):
            raise ValueError(f"of the kind {self.kind} {'has no' if self.interconnects else 'needs'} interconnects")
        return self


class ExistingNetwork(Strict):
    """Networks that somebody else owns, of this project or shared with it: used, never changed."""

    network: str = Field(pattern=NETWORK, examples=["projects/net-host-4711/global/networks/gpu"])
    subnetwork: Subnetwork = Field(description="of the region, for every node's first NIC", examples=["gpu-nodes"])
    fabric: dict[str, list[Subnetwork]] = Field(
        default={},
        description="zone: subnetworks of the other NICs, in their order (gVNICs first, then RDMA), for types that "
        "have more than one",
    )


class GoogleNetwork(LinkedNetwork[GoogleHallLink]):
    """The network of the cloud nodes: one subnet of the region, and networks of their own for further NICs."""

    cidr: Network = Field(description="subnet of the nodes' first NICs; halls must not overlap it")
    zones: list[str] = Field(min_length=1, description="zones that nodes may run in", examples=[["us-central1-a"]])
    fabric_cidr: Network | None = Field(
        default=None,
        description="network that the subnets of further NICs are cut from, for types that have more than one; no host "
        "outside reaches them",
    )
    existing: ExistingNetwork | None = Field(default=None, description="use these networks instead of making any")
    egress: Literal["nat", "private"] = Field(
        default="nat", description="how nodes reach out: Cloud NAT; private: to Google's own services only"
    )

    @property
    def further(self) -> list[tuple[str, str]]:
        """(key, network) of those beside `cidr`."""
        return [("fabric_cidr", self.fabric_cidr)] if self.fabric_cidr else []
