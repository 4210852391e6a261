"""The azure-native plugin's stand-in: its types and settings. Resources lie in lab.azure (lab/azure/declared.py)."""

from __future__ import annotations

import pulumi_azure_native

from lab.azure.declared import KINDS, ROOT
from lab.provider.declared import DeclaredStandIn

# Of every type what can't be changed in place, of the inputs used here: what is in its path, where it lies, and what
# the API's pages call immutable
FIXED = {
    "*": "resourceGroupName location zones",
    "ResourceGroup": "resourceGroupName",
    "VirtualNetwork": "virtualNetworkName",
    "Subnet": "virtualNetworkName subnetName",
    "NetworkSecurityGroup": "networkSecurityGroupName",
    "NatGateway": "natGatewayName sku",
    "PublicIPAddress": "publicIpAddressName sku",
    "NetworkInterface": "networkInterfaceName",
    "VirtualNetworkGateway": "virtualNetworkGatewayName gatewayType vpnType",
    "LocalNetworkGateway": "localNetworkGatewayName",
    "VirtualNetworkGatewayConnection": "virtualNetworkGatewayConnectionName connectionType virtualNetworkGateway1",
    "VirtualMachine": "vmName osProfile storageProfile priority virtualMachineScaleSet",
    "VirtualMachineScaleSet": "vmScaleSetName orchestrationMode platformFaultDomainCount",
    "Gallery": "galleryName",
    "GalleryImage": "galleryName galleryImageName architecture hyperVGeneration identifier osState osType",
    "UserAssignedIdentity": "resourceName",
    "FederatedIdentityCredential": "resourceName federatedIdentityCredentialResourceName",
    "RoleDefinition": "roleDefinitionId scope",
    "RoleAssignment": "roleAssignmentName roleDefinitionId principalId principalType scope",
    "Workflow": "workflowName",
    "Budget": "budgetName scope",
}


class AzureStandIn(DeclaredStandIn):
    """See lab/azure_plugin/README.md."""

    package, version = "azure-native", "3.29.0+ironburst.lab.stand.in"
    sdk, kinds, fixed, root = pulumi_azure_native, KINDS, FIXED, ROOT
    reshaped = frozenset({"identity"})
    endpoint, example = "metadataHost", "127.0.0.1:8080"
