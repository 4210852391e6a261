"""Who calls: tokens of identities, and what the declared roles let them do. A machine's tokens are its metadata
service's; whoever is outside has them from an endpoint as App Service has one ("How to use managed identities for App
Service": IDENTITY_ENDPOINT, IDENTITY_HEADER), which azure-identity asks before a machine's own.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qs, urlsplit

from lab.azure.declared import Declared
from lab.azure.description import Call

ENDPOINT = "/lab/identity"
_LIFE_S = 86_399
_COMPUTE, _NETWORK = "Microsoft.Compute", "Microsoft.Network"
_RESERVATIONS = f"{_COMPUTE}/capacityReservationGroups"
_GROUPS, _VMS = "Microsoft.Resources/subscriptions/resourceGroups", f"{_COMPUTE}/virtualMachines"
_GALLERY = f"{_COMPUTE}/galleries/images"
ACTIONS: Mapping[str, str] = {
    "capacity_reservation_groups.get": f"{_RESERVATIONS}/read",
    "capacity_reservations.list_by_capacity_reservation_group": f"{_RESERVATIONS}/capacityReservations/read",
    "disks.list": f"{_COMPUTE}/disks/read",
    "gallery_image_versions.create_or_update": f"{_GALLERY}/versions/write",
    "gallery_image_versions.delete": f"{_GALLERY}/versions/delete",
    "gallery_image_versions.get": f"{_GALLERY}/versions/read",
    "gallery_image_versions.list_by_gallery_image": f"{_GALLERY}/versions/read",
    "gallery_image_versions.update": f"{_GALLERY}/versions/write",
    "gallery_images.get": f"{_GALLERY}/read",
    "network_interfaces.list": f"{_NETWORK}/networkInterfaces/read",
    "network_interfaces.list_all": f"{_NETWORK}/networkInterfaces/read",
    "operations.get": f"{_COMPUTE}/locations/operations/read",
    "operations.permissions": "Microsoft.Authorization/permissions/read",
    "operations.runs": "Microsoft.Logic/workflows/runs/read",
    "operations.workflow": "Microsoft.Logic/workflows/read",
    "providers.get": "Microsoft.Resources/subscriptions/providers/read",
    "resource_groups.create_or_update": f"{_GROUPS}/write",
    "resource_groups.delete": f"{_GROUPS}/delete",
    "resource_groups.get": f"{_GROUPS}/read",
    "resource_groups.list": f"{_GROUPS}/read",
    "resource_skus.list": f"{_COMPUTE}/skus/read",
    "tags.update_at_scope": "Microsoft.Resources/tags/write",
    "usage.list": f"{_COMPUTE}/locations/usages/read",
    "virtual_machine_images.list": f"{_COMPUTE}/locations/publishers/artifacttypes/offers/skus/versions/read",
    "virtual_machine_scale_sets.create_or_update": f"{_COMPUTE}/virtualMachineScaleSets/write",
    "virtual_machine_scale_sets.get": f"{_COMPUTE}/virtualMachineScaleSets/read",
    "virtual_machines.create_or_update": f"{_VMS}/write",
    "virtual_machines.deallocate": f"{_VMS}/deallocate/action",
    "virtual_machines.delete": f"{_VMS}/delete",
    "virtual_machines.generalize": f"{_VMS}/generalize/action",
    "virtual_machines.get": f"{_VMS}/read",
    "virtual_machines.instance_view": f"{_VMS}/instanceView/read",
    "virtual_machines.list": f"{_VMS}/read",
    "virtual_machines.list_all": f"{_VMS}/read",
    "virtual_machines.retrieve_boot_diagnostics_data": f"{_VMS}/retrieveBootDiagnosticsData/action",
}
"""of calls, as Azure's page "Permissions in Microsoft.Compute" and its like name them"""


class Identities:
    """Of one subscription. `headers`: secret of somebody outside -> his principal; `owners`: who may do all. `strict`:
    a token that was given to nobody is refused; else it is the lab's own, which may do all, too.
    """

    def __init__(self, declared: Declared):
        self.declared, self.strict = declared, False
        self.headers: dict[str, str] = {}
        self.owners: set[str] = set()
        self._tokens: dict[str, tuple[str, str]] = {}  # token -> (resource, principal)

    def token(self, resource: str, principal: str) -> str:
        """A new one. `resource`: that it is for."""
        token = secrets.token_urlsafe(20)
        self._tokens[token] = resource, principal
        return token

    def principal_of(self, identity: str) -> str:
        """Of a managed identity that was declared, by its id in any case; of another one its id."""
        declared = self.declared.held["azure-native:managedidentity:UserAssignedIdentity"]
        found = (said["principalId"] for id, said in declared.items() if id.lower() == identity.lower())
        return str(next(found, identity))

    def answer(self, url: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """To whoever asks for a token at ENDPOINT."""
        asked = parse_qs(urlsplit(url).query)
        lower = {key.lower(): value for key, value in headers.items()}
        who = self.headers.get(lower.get("x-identity-header", ""))
        if who is None or asked.get("api-version") != ["2019-08-01"]:
            return 400, json.dumps({"statusCode": 400, "message": "No managed identity was found"}).encode()
        token, ends_s = self.token(asked["resource"][0], who), str(int(time.time()) + _LIFE_S)
        said = {"access_token": token, "expires_on": ends_s, "resource": asked["resource"][0], "token_type": "Bearer"}
        return 200, json.dumps(said | {"client_id": who}).encode()

    def knows(self, token: str, resource: str) -> bool:
        """Whether a token was given for that."""
        known = self._tokens.get(token)
        return known[0].rstrip("/") == resource if known else not self.strict

    def may(self, token: str, action: str, scope: str) -> bool:
        """Whether whoever has a token may do that there."""
        _, principal = self._tokens.get(token, ("", ""))
        return not principal or principal in self.owners or self.declared.allowed(principal, action, scope)

    def refusal(self, token: str, call: Call) -> str:
        """Why somebody may not call that; empty: he may."""
        within = f"/subscriptions/{call.path['subscriptionId']}" if "subscriptionId" in call.path else ""
        within = within or f"/{call.path.get('scope', '')}".rstrip("/")
        if group := call.path.get("resourceGroupName"):
            within += f"/resourceGroups/{group}"
        for action, scope in [(ACTIONS[call.name], within), *_linked(call, within)]:
            if not self.may(token, action, scope or f"/subscriptions/{self.declared.world.subscription}"):
                _, who = self._tokens[token]
                what = f"authorization to perform action '{action}' over scope '{scope}'"
                return f"The client '{who}' with object id '{who}' does not have {what}."
        return ""


def _linked(call: Call, within: str) -> Iterator[tuple[str, str]]:
    """What a machine's making does beside it, or joins; what goes with a machine."""
    if call.name == "virtual_machines.delete":
        yield f"{_COMPUTE}/disks/delete", within
        yield f"{_NETWORK}/networkInterfaces/delete", within
    if call.name != "virtual_machines.create_or_update":
        return
    properties = call.body["properties"]
    for nic in properties.get("networkProfile", {}).get("networkInterfaceConfigurations", ()):
        yield f"{_NETWORK}/networkInterfaces/write", within
        yield f"{_NETWORK}/networkInterfaces/join/action", within
        for each in nic["properties"]["ipConfigurations"]:
            yield f"{_NETWORK}/virtualNetworks/subnets/join/action", each["properties"]["subnet"]["id"]
        if rules := nic["properties"].get("networkSecurityGroup"):
            yield f"{_NETWORK}/networkSecurityGroups/join/action", rules["id"]
    for identity in call.body.get("identity", {}).get("userAssignedIdentities", ()):
        yield "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action", identity
    if one := properties.get("virtualMachineScaleSet"):
        yield f"{_COMPUTE}/virtualMachineScaleSets/virtualMachines/write", one["id"]
    if group := properties.get("capacityReservation", {}).get("capacityReservationGroup"):
        yield f"{_RESERVATIONS}/deploy/action", group["id"]
