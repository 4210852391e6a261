"""The ways from the cloud network to the halls: site-to-site VPNs and ExpressRoute circuits. A hall's network is routed
there, and no more.
"""

from typing import Any

import pulumi
import pulumi_azure_native as azure

from ironburst.config.azure.models import AzureCloud
from ironburst.config.azure.network_models import AzureHallLink
from ironburst.nodes.naming import logical
from ironburst.system.secrets import resolve

_ZONES = ["1", "2", "3"]  # of a gateway's address: its SKUs are those that are in all zones


class HallLinks:
    """`tunnels`: what the halls' VPN devices need beside the key."""

    tunnels: pulumi.Output[list[dict[str, str]]]

    def __init__(
        self,
        name: str,
        *,
        cloud: AzureCloud,
        network: pulumi.Output[str],
        cidr: str,
        hall_cidrs: dict[str, str],
        here: dict[str, Any],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """`cidr`: of the gateways' subnet; `here`: resource group, location and tags of all that is made."""
        self._name, self._cloud, self._here, self._child = name, cloud, here, opts
        self._subnet = azure.network.Subnet(
            logical(name, "gateways"),
            subnet_name="GatewaySubnet",  # Azure's word
            virtual_network_name=network,
            resource_group_name=here["resource_group_name"],
            address_prefix=cidr,
            opts=opts,
        )
        declared = cloud.network
        gateways = {
            kind: self._gateway(kind, of, sku)
            for kind, of, sku in (
                ("vpn", "Vpn", declared.vpn_gateway),
                ("expressroute", "ExpressRoute", declared.expressroute_gateway),
            )
            if any(link.kind == kind for link in declared.links)
        }
        tunnels = []
        for link in declared.links:
            gateway, address = gateways[link.kind]
            if link.kind == "vpn":
                self._vpn(link, gateway, hall_cidrs[link.hall])
                tunnels.append(pulumi.Output.all(hall=link.hall, outside_address=address))
            else:
                self._circuit(link, gateway)
        self.tunnels = pulumi.Output.all(*tunnels).apply(lambda known: list(known))

    def _gateway(
        self, kind: str, of: str, sku: str
    ) -> tuple[azure.network.VirtualNetworkGateway, pulumi.Output[str | None]]:
        address = azure.network.PublicIPAddress(
            logical(self._name, kind),
            public_ip_address_name=kind,
            public_ip_allocation_method=azure.network.IPAllocationMethod.STATIC,
            sku=azure.network.PublicIPAddressSkuArgs(name=azure.network.PublicIPAddressSkuName.STANDARD),
            zones=_ZONES,
            **self._here,
            opts=self._child,
        )
        made = azure.network.VirtualNetworkGateway(
            logical(self._name, kind),
            virtual_network_gateway_name=kind,
            gateway_type=of,
            vpn_type=azure.network.VpnType.ROUTE_BASED if of == "Vpn" else None,
            sku=azure.network.VirtualNetworkGatewaySkuArgs(name=sku, tier=sku),
            ip_configurations=[
                azure.network.VirtualNetworkGatewayIPConfigurationArgs(
                    name="address",
                    subnet=azure.network.SubResourceArgs(id=self._subnet.id),
                    public_ip_address=azure.network.SubResourceArgs(id=address.id),
                )
            ],
            **self._here,
            opts=self._child,
        )
        return made, address.ip_address

    def _vpn(self, link: AzureHallLink, gateway: azure.network.VirtualNetworkGateway, cidr: str) -> None:
        assert link.peer_address is not None and link.shared_secret is not None  # the model's own check
        label = logical("hall", link.hall)
        hall = azure.network.LocalNetworkGateway(
            logical(self._name, label),
            local_network_gateway_name=label,
            gateway_ip_address=link.peer_address,
            local_network_address_space=azure.network.AddressSpaceArgs(address_prefixes=[cidr]),
            **self._here,
            opts=self._child,
        )
        azure.network.VirtualNetworkGatewayConnection(
            logical(self._name, label),
            virtual_network_gateway_connection_name=label,
            connection_type=azure.network.VirtualNetworkGatewayConnectionType.IPSEC,
            connection_protocol=azure.network.VirtualNetworkGatewayConnectionProtocol.IK_EV2,
            virtual_network_gateway1=azure.network.VirtualNetworkGatewayArgs(id=gateway.id),
            local_network_gateway2=azure.network.LocalNetworkGatewayArgs(id=hall.id),
            shared_key=pulumi.Output.secret(resolve(link.shared_secret)),
            **self._here,
            opts=self._child,
        )

    def _circuit(self, link: AzureHallLink, gateway: azure.network.VirtualNetworkGateway) -> None:
        label = logical("hall", link.hall)
        azure.network.VirtualNetworkGatewayConnection(
            logical(self._name, label),
            virtual_network_gateway_connection_name=label,
            connection_type=azure.network.VirtualNetworkGatewayConnectionType.EXPRESS_ROUTE,
            virtual_network_gateway1=azure.network.VirtualNetworkGatewayArgs(id=gateway.id),
            peer=azure.network.SubResourceArgs(id=link.circuit),
            **self._here,
            opts=self._child,
        )
