"""A cluster with nodes in the lab's Azure, as a stack file declares it."""

from copy import deepcopy
from pathlib import Path

from ironburst.config.load import read_value

STACK = Path(__file__).parents[1] / "stacks" / "Pulumi.lab.yaml"
SUBSCRIPTION = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
VAULT = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/platform/providers/Microsoft.KeyVault/vaults/lab-vault"
_CLOUD = {
    "provider": "azure",
    "subscription": SUBSCRIPTION,
    "region": "eastus",
    "ssh_public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHVsZm9y ops@example.org",
    "key_vault": VAULT,
    "network": {
        "cidr": "10.90.0.0/16",
        "zones": ["eastus-1", "eastus-2"],
        "hall_link": {
            "kind": "vpn",
            "hall": "hall-a",
            "peer_address": "203.0.113.10",
            "shared_secret": "env:VPN_SECRET",
        },
    },
    "groups": [
        {
            "name": "fixed",
            "instance_type": "Standard_NC64as_T4_v3",
            "count": 1,
            "zone": "eastus-1",
            "image": "Canonical:ubuntu-24_04-lts:server:latest",
            "root_disk_gb": 100,
        }
    ],
    "pools": [
        {
            "name": "h100",
            "instance_type": "Standard_ND96isr_H100_v5",
            "max_nodes": 2,
            "zones": ["eastus-1", "eastus-2"],
            "markets": ["spot"],
            "checkpoint": "30m",
        },
        {
            "name": "t4",
            "instance_type": "Standard_NC64as_T4_v3",
            "max_nodes": 2,
            "zones": ["eastus-1"],
            "markets": ["on-demand"],
        },
    ],
    "price": {"Standard_ND96isr_H100_v5": {"spot_max": 60.0}},
}


def cloud():
    """A copy of it, to be changed."""
    return deepcopy(_CLOUD)


def value():
    """The whole declaration, as it is in a stack file."""
    said = read_value(STACK)
    said["scheduler"]["munge_key"] = "azure-keyvault:lab-vault/munge-key"
    said["ssh"] = said.get("ssh", {}) | {"cloud_user": "ironburst"}  # Debian's own is refused by Azure
    return said | {"cloud": cloud()}
