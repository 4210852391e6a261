"""The custom roles that a subscription's owners make or look at: of whoever does `up`, of the controller, of the reaper
and of whoever bakes images, as `az role definition create --role-definition` reads them. Pure.

Whoever may write role assignments can give himself any right in their scope: Azure narrows that only by a condition
on which roles he gives (Microsoft.Authorization/roleAssignments, attribute RoleDefinitionId), which the owners write.
"""

from __future__ import annotations

from typing import Any

from ironburst.config.azure import rights
from ironburst.config.azure.models import AzureCloud
from ironburst.config.models import ClusterConfig

_ALWAYS = {
    "Microsoft.Resources/subscriptions/resourceGroups": "delete read write",
    "Microsoft.Authorization/roleAssignments": "delete read write",
    "Microsoft.Authorization/roleDefinitions": "delete read write",
    "Microsoft.Network/networkSecurityGroups": "delete join/action read write",
    "Microsoft.ManagedIdentity/userAssignedIdentities": "assign/action delete read write",
}
_NETWORK = {
    "Microsoft.Network/virtualNetworks": "delete read write",
    "Microsoft.Network/virtualNetworks/subnets": "delete join/action read write",
    "Microsoft.Network/natGateways": "delete join/action read write",
    "Microsoft.Network/publicIPAddresses": "delete join/action read write",
}
_LINKS = {
    "Microsoft.Network/virtualNetworkGateways": "delete read write",
    "Microsoft.Network/connections": "delete read write",
}
_VPN = {"Microsoft.Network/localNetworkGateways": "delete read write"}
_CIRCUIT = {"Microsoft.Network/expressRouteCircuits": "join/action read"}
_POOLS = {
    "Microsoft.Compute/galleries": "delete read write",
    "Microsoft.Compute/galleries/images": "delete read write",
    "Microsoft.Logic/workflows": "delete read write",
    "Microsoft.Consumption/budgets": "delete read write",
}
_FIXED = {
    "Microsoft.Compute/virtualMachines": "delete read write",
    "Microsoft.Compute/virtualMachineScaleSets": "delete read write",
    "Microsoft.Compute/disks": "delete read write",
    "Microsoft.Network/networkInterfaces": "delete join/action read write",
}
_FEDERATED = {"Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials": "delete read write"}


def of_up(cloud: AzureCloud) -> list[str]:
    """The actions of whoever does `up` of this stack."""
    kinds, links = (
        {**_ALWAYS, **({} if cloud.network.existing else _NETWORK)},
        {link.kind for link in cloud.network.links},
    )
    kinds |= _LINKS if links else {}
    kinds |= _VPN if "vpn" in links else {}
    kinds |= _CIRCUIT if "expressroute" in links else {}
    kinds |= _POOLS if cloud.pools else {}
    kinds |= _FIXED if cloud.groups else {}
    kinds |= _FEDERATED if cloud.ci or (cloud.controller and cloud.controller.issuer) else {}
    wanted = {f"{kind}/{verb}" for kind, verbs in kinds.items() for verb in verbs.split()}
    if cloud.network.existing:
        wanted.add("Microsoft.Network/virtualNetworks/subnets/join/action")
        wanted.add("Microsoft.Network/virtualNetworks/subnets/read")
    return sorted(wanted | {"Microsoft.Resources/subscriptions/read"})


def roles(config: ClusterConfig, cloud: AzureCloud) -> dict[str, Any]:
    """name -> role. They are of the subscription: the groups of launches aren't there before."""
    subscription = f"/subscriptions/{cloud.subscription}"
    looking = {*rights.LOOKING, *(rights.LAUNCHING if cloud.pools else ())}
    made: dict[str, tuple[str, list[str]]] = {
        "up": ("whoever does `pulumi up`", of_up(cloud)),
        "controller": ("the controller: looks, launches and ends", sorted(looking)),
    }
    if cloud.pools:
        baker = sorted({*rights.BAKING, *looking})
        made["baker"] = ("whoever bakes and publishes images", baker)
        made["reaper"] = ("the workflow that ends what nobody prolongs", sorted(rights.REAPING))
    if cloud.ci:
        made["preview"] = ("CI: reads what a preview refreshes", list(rights.PREVIEWING))
    return {
        name: {
            "Name": f"ironburst {config.name} {name}",
            "IsCustom": True,
            "Description": what,
            "Actions": actions,
            "NotActions": [],
            "DataActions": [],
            "NotDataActions": [],
            "AssignableScopes": [subscription],
        }
        for name, (what, actions) in made.items()
    }
