"""The gcp plugin's stand-in: its types and settings. Resources lie in lab.google (lab/google/declared.py)."""

from __future__ import annotations

import pulumi_gcp

from lab.google.declared import KINDS, ROOT
from lab.provider import schema
from lab.provider.declared import DeclaredStandIn
from lab.provider.wire import Props

# Of every type what can't be changed in place, as its Terraform resource has it (ForceNew), of the inputs used here
FIXED = {
    "*": "name project region zone network",
    "Network": "autoCreateSubnetworks networkProfile",
    "Subnetwork": "ipCidrRange",
    "Firewall": "direction",
    "Router": "encryptedInterconnectRouter",
    "RouterNat": "router",
    "RouterInterface": "router ipRange vpnTunnel interconnectAttachment",
    "RouterPeer": "router interface",
    "ExternalVpnGateway": "redundancyType interfaces",
    "VPNTunnel": "vpnGateway vpnGatewayInterface peerExternalGateway peerExternalGatewayInterface sharedSecret router",
    "InterconnectAttachment": "interconnect router type",
    "ResourcePolicy": "groupPlacementPolicy",
    "Instance": "machineType bootDisk networkInterfaces scratchDisks reservationAffinity resourcePolicies",
    "Account": "accountId",
    "IAMCustomRole": "roleId",
    "IAMMember": "role member condition serviceAccountId",
    "SecretIamMember": "role member secretId",
    "BucketIAMMember": "bucket role member condition",
    "WorkloadIdentityPool": "workloadIdentityPoolId",
    "WorkloadIdentityPoolProvider": "workloadIdentityPoolId workloadIdentityPoolProviderId",
    "Budget": "billingAccount",
}


class GoogleStandIn(DeclaredStandIn):
    """See lab/google_plugin/README.md."""

    package, version = "gcp", "10.2.0+ironburst.lab.stand.in"
    sdk, kinds, fixed, root = pulumi_gcp, KINDS, FIXED, ROOT
    endpoint, example = "computeCustomEndpoint", "http://127.0.0.1:8080/compute/v1/"

    def named(self, token: str, cls: type, news: Props, name: str) -> None:
        """A binding has none."""
        if "name" in schema.input_types(cls) and not token.endswith("IAMMember") and "name" not in news:
            news["name"] = name.lower()
