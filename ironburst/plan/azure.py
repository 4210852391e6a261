"""Azure's kinds of resources (pulumi-azure-native)."""

from __future__ import annotations

from ironburst.plan.kinds import Kinds

_MACHINE = "azure-native:compute:VirtualMachine"
_GROUP, _RULE = "azure-native:network:NetworkSecurityGroup", "azure-native:network:SecurityRule"
AZURE = Kinds(
    nodes={_MACHINE: "fixed node"},
    # a machine is restarted for another size; the others are answered by a refusal, or a replacement
    stops={_MACHINE: frozenset({"hardwareProfile", "scheduledEventsProfile", "additionalCapabilities"})},
    words={
        "azure-native:network:VirtualNetwork": "network (VNet)",
        "azure-native:network:NatGateway": "NAT gateway",
        "azure-native:network:PublicIPAddress": "public address",
        "azure-native:network:VirtualNetworkGateway": "gateway to halls",
        "azure-native:network:LocalNetworkGateway": "VPN device of the hall",
        "azure-native:network:VirtualNetworkGatewayConnection": "connection to a hall",
        "azure-native:compute:VirtualMachineScaleSet": "scale set",
        "azure-native:compute:Gallery": "gallery of images",
        "azure-native:compute:GalleryImage": "image of a pool",
        "azure-native:authorization:RoleDefinition": "custom role",
        "azure-native:authorization:RoleAssignment": "right of a role",
        "azure-native:managedidentity:UserAssignedIdentity": "identity",
        "azure-native:managedidentity:FederatedIdentityCredential": "issuer that an identity trusts",
        "azure-native:consumption:Budget": "budget alarm",
        "azure-native:logic:Workflow": "reaper (workflow)",
        _GROUP: "security group",
        _RULE: "rule of a security group",
    },
    firewalls={_GROUP: "securityRules"},
    rules=(_RULE,),
    open_unless={
        _RULE: ("sourceAddressPrefix", "sourceAddressPrefixes", "sourceApplicationSecurityGroups"),
    },
    secrets=("azure-native:keyvault:Secret", "azure-native:keyvault:Vault"),
    narrow=frozenset({"VirtualNetwork", "AzureLoadBalancer"}),
)
