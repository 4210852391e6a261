"""The cloud network: the nodes' subnet, a way out, who may come in, links to the halls. InfiniBand lies outside it."""

import pulumi
import pulumi_azure_native as azure

from components.azure.hall_links import HallLinks
from ironburst.config.azure import subnets
from ironburst.config.azure.models import AzureCloud
from ironburst.nodes.naming import logical

_LAST = 4096  # priority: ours end there, and Azure's own follow


class Network(pulumi.ComponentResource):
    """Outputs: `subnet` (the nodes', by its id), `hall_tunnels` (what the halls' VPN devices are set up with).
    `security_group`: of nodes' interfaces; empty: the subnet has one.
    """

    subnet: pulumi.Output[str]
    hall_tunnels: pulumi.Output[list[dict[str, str]]]
    security_group = ""

    def __init__(
        self,
        name: str,
        *,
        cloud: AzureCloud,
        group: pulumi.Output[str],
        hall_cidrs: dict[str, str],
        tags: dict[str, str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`group`: the stack's resource group; `hall_cidrs`: hall name -> network of its nodes. A network that is there
        gets nothing: no rule, no gateway.
        """
        super().__init__("ironburst:components:AzureNetwork", name, None, opts)
        self._name, self._cloud, self._child = name, cloud, pulumi.ResourceOptions(parent=self)
        self._here = {"resource_group_name": group, "location": cloud.region, "tags": tags}
        self.hall_tunnels = pulumi.Output.from_input([])
        if cloud.network.existing:
            self.subnet = pulumi.Output.from_input(cloud.network.existing.subnet)
            self.security_group = cloud.network.existing.security_group or ""
        else:
            self._own(group, hall_cidrs)
        self.register_outputs({"subnet": self.subnet})

    def _own(self, group: pulumi.Output[str], hall_cidrs: dict[str, str]) -> None:
        declared = self._cloud.network
        network = azure.network.VirtualNetwork(
            logical(self._name, "network"),
            virtual_network_name="nodes",
            address_space=azure.network.AddressSpaceArgs(address_prefixes=[declared.cidr]),
            **self._here,
            opts=pulumi.ResourceOptions.merge(self._child, pulumi.ResourceOptions(ignore_changes=["subnets"])),
        )  # which are resources of their own here, and part of it there
        divided, private = subnets.divide(declared.cidr), declared.egress == "private"
        vault = azure.network.ServiceEndpointPropertiesFormatArgs(service="Microsoft.KeyVault")
        subnet = azure.network.Subnet(
            logical(self._name, "nodes"),
            subnet_name="nodes",
            virtual_network_name=network.name,
            resource_group_name=group,
            address_prefix=divided.nodes,
            default_outbound_access=False,
            nat_gateway=None if private else azure.network.SubResourceArgs(id=self._nat().id),
            network_security_group=azure.network.NetworkSecurityGroupArgs(id=self._rules(divided.nodes, hall_cidrs).id),
            service_endpoints=[vault] if private else None,
            opts=self._child,
        )
        self.subnet = subnet.id
        if declared.links:
            links = HallLinks(
                self._name,
                cloud=self._cloud,
                network=network.name,
                cidr=divided.gateways,
                hall_cidrs=hall_cidrs,
                here=self._here,
                opts=pulumi.ResourceOptions.merge(self._child, pulumi.ResourceOptions(depends_on=[subnet])),
            )  # one change of a network's subnets at a time
            self.hall_tunnels = links.tunnels

    def _nat(self) -> azure.network.NatGateway:
        address = azure.network.PublicIPAddress(
            logical(self._name, "nat"),
            public_ip_address_name="nat",
            public_ip_allocation_method=azure.network.IPAllocationMethod.STATIC,
            sku=azure.network.PublicIPAddressSkuArgs(name=azure.network.PublicIPAddressSkuName.STANDARD),
            **self._here,
            opts=self._child,
        )
        return azure.network.NatGateway(
            logical(self._name, "nat"),
            nat_gateway_name="nat",
            public_ip_addresses=[azure.network.SubResourceArgs(id=address.id)],
            sku=azure.network.NatGatewaySkuArgs(name=azure.network.NatGatewaySkuName.STANDARD),
            **self._here,
            opts=self._child,
        )

    def _rules(self, nodes: str, hall_cidrs: dict[str, str]) -> azure.network.NetworkSecurityGroup:
        """Nodes and halls come in. Azure's own rules would let in all that is in this network or linked to it."""
        sources = {"among-nodes": nodes} | {logical("from", hall): cidr for hall, cidr in hall_cidrs.items()}
        allowed = [
            _rule(label, cidr, "Allow", 100 + 10 * number) for number, (label, cidr) in enumerate(sources.items())
        ]
        return azure.network.NetworkSecurityGroup(
            logical(self._name, "nodes"),
            network_security_group_name="nodes",
            security_rules=[*allowed, _rule("nobody-else", "VirtualNetwork", "Deny", _LAST)],
            **self._here,
            opts=self._child,
        )


def _rule(name: str, source: str, access: str, priority: int) -> azure.network.SecurityRuleArgs:
    return azure.network.SecurityRuleArgs(
        name=name,
        access=access,
        direction=azure.network.SecurityRuleDirection.INBOUND,
        priority=priority,
        protocol=azure.network.SecurityRuleProtocol.ASTERISK,
        source_address_prefix=source,
        source_port_range="*",
        destination_address_prefix="*",
        destination_port_range="*",
    )
