"""Google Cloud's kinds of resources (pulumi-gcp)."""

from __future__ import annotations

from ironburst.plan.kinds import Kinds

_FIREWALL = "gcp:compute/firewall:Firewall"
_INSTANCE = "gcp:compute/instance:Instance"
GOOGLE = Kinds(
    nodes={_INSTANCE: "fixed node"},
    # the provider stops a machine for these, where allowStoppingForUpdate lets it
    stops={
        _INSTANCE: frozenset(
            {
                *("machineType", "minCpuPlatform", "enableDisplay", "shieldedInstanceConfig", "serviceAccount"),
                *("advancedMachineFeatures", "desiredStatus", "networkPerformanceConfig"),
            }
        )
    },
    words={
        "gcp:compute/network:Network": "network (VPC)",
        "gcp:compute/subnetwork:Subnetwork": "subnet",
        "gcp:compute/router:Router": "Cloud Router",
        "gcp:compute/routerNat:RouterNat": "Cloud NAT",
        "gcp:compute/haVpnGateway:HaVpnGateway": "VPN gateway",
        "gcp:compute/externalVpnGateway:ExternalVpnGateway": "VPN gateway of the hall",
        "gcp:compute/vPNTunnel:VPNTunnel": "VPN tunnel",
        "gcp:compute/interconnectAttachment:InterconnectAttachment": "VLAN attachment",
        "gcp:compute/resourcePolicy:ResourcePolicy": "placement policy",
        "gcp:serviceaccount/account:Account": "service account",
        "gcp:projects/iAMCustomRole:IAMCustomRole": "custom role",
        "gcp:projects/iAMMember:IAMMember": "right of a role in the project",
        "gcp:serviceaccount/iAMMember:IAMMember": "right to act as a service account",
        "gcp:secretmanager/secretIamMember:SecretIamMember": "right to read a secret",
        "gcp:storage/bucketIAMMember:BucketIAMMember": "right to read data",
        "gcp:billing/budget:Budget": "budget alarm",
        _FIREWALL: "firewall rule",
    },
    rules=(_FIREWALL,),
    open_unless={_FIREWALL: ("sourceRanges", "sourceTags", "sourceServiceAccounts")},
    secrets=("gcp:secretmanager/secret:", "gcp:secretmanager/secretVersion:"),
)
