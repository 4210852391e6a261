"""The network of the cloud nodes, as a person declares it (`cloud.network` of ironburst.config.models)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from ironburst.config.azure.forms import CIRCUIT, SECURITY_GROUP, SUBNET
from ironburst.config.cloud_network_models import Link, LinkedNetwork
from ironburst.config.software_models import Strict
from ironburst.config.types import Address, Network, SecretRef


class AzureHallLink(Link):
    """How the cloud network reaches a hall: its `cidr`, and no more, is routed there."""

    kind: Literal["vpn", "expressroute"] = Field(
        description="vpn: a VPN gateway with a connection to the hall's device; expressroute: an ExpressRoute gateway "
        "with a connection to a circuit"
    )
    peer_address: Address | None = Field(default=None, description="public address of the hall's VPN device (vpn)")
    shared_secret: SecretRef | None = Field(default=None, description="IKE pre-shared key (vpn)")
    circuit: str | None = Field(
        default=None,
        pattern=CIRCUIT,
        description="ExpressRoute circuit with private peering, that is there before (expressroute)",
    )

    @model_validator(mode="after")
    def _keys_of_its_kind(self) -> AzureHallLink:
        vpn = {"peer_address": self.peer_address, "shared_secret": self.shared_secret}
        for key, given, of in [*((key, given, "vpn") for key, given in vpn.items()), ("circuit", self.circuit, "")]:
            if (given is None) == ((self.kind == "vpn") == (of == "vpn")):
                raise ValueError(f"of the kind {self.kind} {'needs' if given is None else 'has no'} {key}")
        return self


class ExistingVnet(Strict):
    """A network that somebody else owns: used, never changed."""

    subnet: str = Field(pattern=SUBNET, description="id of the nodes' subnet; what may reach them is decided there")
    security_group: str | None = Field(
        default=None, pattern=SECURITY_GROUP, description="of their network interfaces, beside the subnet's"
    )


class AzureNetwork(LinkedNetwork[AzureHallLink]):
    """The network of the cloud nodes: one subnet for all zones. InfiniBand lies outside it."""

    cidr: Network = Field(
        description="network of the VNet: the lower half is the nodes' subnet, the last /27 the gateways' to halls; "
        "halls must not overlap it"
    )
    zones: list[str] = Field(
        min_length=1,
        description="zones that nodes may run in, as REGION-NUMBER; the region's name: in none (numbers are a "
        "subscription's own)",
        examples=[["eastus-1", "eastus-2"]],
    )
    existing: ExistingVnet | None = Field(default=None, description="use this subnet instead of making a network")
    egress: Literal["nat", "private"] = Field(
        default="nat", description="how nodes reach out: a NAT gateway; private: to halls and Key Vault alone"
    )
    vpn_gateway: Literal["VpnGw1AZ", "VpnGw2AZ", "VpnGw3AZ", "VpnGw4AZ", "VpnGw5AZ"] = Field(
        default="VpnGw1AZ", description="SKU of the gateway that links of the kind vpn share"
    )
    expressroute_gateway: Literal["ErGw1AZ", "ErGw2AZ", "ErGw3AZ"] = Field(
        default="ErGw1AZ", description="SKU of the gateway that links of the kind expressroute share"
    )
