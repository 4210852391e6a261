"""The custom roles that a project's owners make or look at: of whoever does `up`, and of the controller, as
`gcloud iam roles create --file` reads them. Pure.

Whoever may bind roles in a project (resourcemanager.projects.setIamPolicy) can give himself any right in it: Google
narrows that only by conditions on which roles he binds (iam.googleapis.com/modifiedGrantsByRole), which the project's
owners write. So `up`'s role has it, and says so.
"""

from __future__ import annotations

from typing import Any

from ironburst.config.google import rights
from ironburst.config.google.models import GoogleCloud
from ironburst.config.models import ClusterConfig

_KEPT = {
    "networks": "create delete get updatePolicy use",
    "subnetworks": "create delete get update use",
    "firewalls": "create delete get update",
    "routers": "create delete get update use",
    "resourcePolicies": "create delete get use",
}
_LINKS = {
    "vpn": {
        "vpnGateways": "create delete get setLabels use",
        "externalVpnGateways": "create delete get setLabels use",
        "vpnTunnels": "create delete get setLabels",
    },
    "interconnect": {"interconnectAttachments": "create delete get setLabels update", "interconnects": "use"},
}
_FIXED = {
    "instances": "create delete get setLabels setMetadata setTags setServiceAccount start stop update",
    "disks": "create delete get setLabels",
    "images": "get useReadOnly",
}
_WAITS = ("globalOperations", "regionOperations", "zoneOperations")
_IDENTITIES = (
    *(f"iam.serviceAccounts.{verb}" for verb in ("actAs", "create", "delete", "get", "getIamPolicy", "setIamPolicy")),
    *(f"iam.roles.{verb}" for verb in ("create", "delete", "get", "update")),
    *("resourcemanager.projects.get", "resourcemanager.projects.getIamPolicy", "resourcemanager.projects.setIamPolicy"),
    *("secretmanager.secrets.get", "secretmanager.secrets.getIamPolicy", "secretmanager.secrets.setIamPolicy"),
)


def of_up(cloud: GoogleCloud) -> list[str]:
    """The permissions of whoever does `up` of this stack."""
    kinds = {} if cloud.network.existing else dict(_KEPT)
    for link in cloud.network.links:
        kinds |= _LINKS[link.kind]
    kinds |= _FIXED if cloud.groups else {}
    kinds.setdefault("resourcePolicies", _KEPT["resourcePolicies"])
    wanted = {f"compute.{kind}.{verb}" for kind, verbs in kinds.items() for verb in verbs.split()}
    wanted |= {f"compute.{kind}.get" for kind in _WAITS} | {"compute.projects.get", *_IDENTITIES}
    if cloud.controller or cloud.ci:
        pools = ("workloadIdentityPools", "workloadIdentityPoolProviders")
        wanted |= {f"iam.{kind}.{verb}" for kind in pools for verb in ("create", "delete", "get", "update")}
    return sorted(wanted | {*(rights.BINDING_DATA if cloud.data else ())})


def roles(config: ClusterConfig, cloud: GoogleCloud) -> dict[str, Any]:
    """name -> role. The controller's third part, to end nodes, is bound under a condition on their names."""
    looking = sorted({*rights.LOOKING, *(rights.LAUNCHING if cloud.pools else ())})
    made = {
        "up": ("whoever does `pulumi up`", of_up(cloud)),
        "controller": ("the controller: looks and launches", looking),
        "ending": (f"controller and nodes, on condition: {rights.of_names(config.name)}", sorted(rights.ENDING)),
    }
    return {
        name: {
            "title": f"ironburst {config.name} {name}",
            "description": what[:256],
            "stage": "GA",
            "includedPermissions": permissions,
        }
        for name, (what, permissions) in made.items()
    }
