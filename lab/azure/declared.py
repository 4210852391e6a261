"""What Pulumi declares in the stand-in's subscription: each resource by its type and id, as pulumi-azure-native writes
its inputs. What one names in the stack's group has to be there, and what another one names can't be taken away,
machines included. A resource group goes with all that is in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lab.azure.world import Json, Refusal, Vm, World, image_name

ROOT = "/lab/declared"


class Kind(NamedTuple):
    """`id`: its form, of inputs, below the subscription or (`scope`) wherever it says. `named`: the input that is its
    name; `makes`: its computed outputs.
    """

    id: str
    named: str
    makes: Callable[[World, Json, str], Json] | None = None


def _address(world: World, _said: Json, _id: str) -> Json:
    return {"ipAddress": world.address().replace("10.20.", "198.51.")}


def _identity(world: World, _said: Json, _id: str) -> Json:
    return {"principalId": world.number(), "clientId": world.number(), "tenantId": world.number()}


def _workflow(_world: World, said: Json, _id: str) -> Json:
    """Its identities are a list when they are written, and an object when they are read."""
    return {
        "identity": {
            **said["identity"],
            "userAssignedIdentities": {id: {} for id in said["identity"]["userAssignedIdentities"]},
        }
    }


def _interface(world: World, said: Json, its_id: str) -> Json:
    asked = said["ipConfigurations"]
    shown = [{**each, "privateIPAddress": world.address(each.get("subnet", {}).get("id", ""))} for each in asked]
    raw = [{"name": each["name"], "properties": {"privateIPAddress": each["privateIPAddress"]}} for each in shown]
    properties = {"ipConfigurations": raw, "provisioningState": "Succeeded"}
    name = said["networkInterfaceName"]
    world.nics[its_id] = {"id": its_id, "name": name, "location": said["location"], "properties": properties}
    return {"ipConfigurations": shown}


def _machine(world: World, said: Json, its_id: str) -> Json:
    """It is there at once, and runs."""
    number, group, name = world.number(), said["resourceGroupName"], said["vmName"]
    interfaces = [
        {"id": each["id"], "properties": {"primary": True, "deleteOption": each.get("deleteOption", "Detach")}}
        for each in said["networkProfile"]["networkInterfaces"]
    ]
    kept = ("hardwareProfile", "storageProfile", "osProfile", "diagnosticsProfile", "virtualMachineScaleSet")
    properties = {key: said[key] for key in kept if key in said} | {"vmId": number, "provisioningState": "Succeeded"}
    properties |= {"timeCreated": world.stamp(), "networkProfile": {"networkInterfaces": interfaces}}
    raw: Json = {"id": its_id, "name": name, "type": "Microsoft.Compute/virtualMachines", "location": said["location"]}
    raw |= {"tags": said.get("tags", {}), "properties": properties}
    raw |= {"zones": said["zones"]} if "zones" in said else {}
    vm = world.vms[its_id.lower()] = Vm(raw, group, world.now(), power="running", allocated=True)
    world.made.append(name)
    world.disks[f"{its_id}/osDisk"] = its_id.lower()
    for each in interfaces:
        world.nics[each["id"]]["properties"]["virtualMachine"] = {"id": its_id}
    world.machines.launch(vm, image_name(said["storageProfile"]["imageReference"]))
    return {"vmId": number}


def _of(provider: str, path: str) -> str:
    return f"/resourceGroups/{{resourceGroupName}}/providers/Microsoft.{provider}/{path}"


KINDS = {
    "azure-native:resources:ResourceGroup": Kind("/resourceGroups/{resourceGroupName}", "resourceGroupName"),
    "azure-native:network:VirtualNetwork": Kind(
        _of("Network", "virtualNetworks/{virtualNetworkName}"), "virtualNetworkName"
    ),
    "azure-native:network:Subnet": Kind(
        _of("Network", "virtualNetworks/{virtualNetworkName}/subnets/{subnetName}"), "subnetName"
    ),
    "azure-native:network:NetworkSecurityGroup": Kind(
        _of("Network", "networkSecurityGroups/{networkSecurityGroupName}"), "networkSecurityGroupName"
    ),
    "azure-native:network:NatGateway": Kind(_of("Network", "natGateways/{natGatewayName}"), "natGatewayName"),
    "azure-native:network:PublicIPAddress": Kind(
        _of("Network", "publicIPAddresses/{publicIpAddressName}"), "publicIpAddressName", _address
    ),
    "azure-native:network:NetworkInterface": Kind(
        _of("Network", "networkInterfaces/{networkInterfaceName}"), "networkInterfaceName", _interface
    ),
    "azure-native:network:VirtualNetworkGateway": Kind(
        _of("Network", "virtualNetworkGateways/{virtualNetworkGatewayName}"), "virtualNetworkGatewayName"
    ),
    "azure-native:network:LocalNetworkGateway": Kind(
        _of("Network", "localNetworkGateways/{localNetworkGatewayName}"), "localNetworkGatewayName"
    ),
    "azure-native:network:VirtualNetworkGatewayConnection": Kind(
        _of("Network", "connections/{virtualNetworkGatewayConnectionName}"), "virtualNetworkGatewayConnectionName"
    ),
    "azure-native:compute:VirtualMachine": Kind(_of("Compute", "virtualMachines/{vmName}"), "vmName", _machine),
    "azure-native:compute:VirtualMachineScaleSet": Kind(
        _of("Compute", "virtualMachineScaleSets/{vmScaleSetName}"), "vmScaleSetName"
    ),
    "azure-native:compute:Gallery": Kind(_of("Compute", "galleries/{galleryName}"), "galleryName"),
    "azure-native:compute:GalleryImage": Kind(
        _of("Compute", "galleries/{galleryName}/images/{galleryImageName}"), "galleryImageName"
    ),
    "azure-native:managedidentity:UserAssignedIdentity": Kind(
        _of("ManagedIdentity", "userAssignedIdentities/{resourceName}"), "resourceName", _identity
    ),
    "azure-native:managedidentity:FederatedIdentityCredential": Kind(
        _of(
            "ManagedIdentity",
            "userAssignedIdentities/{resourceName}/federatedIdentityCredentials/"
            "{federatedIdentityCredentialResourceName}",
        ),
        "federatedIdentityCredentialResourceName",
    ),
    "azure-native:authorization:RoleDefinition": Kind(
        "{scope}/providers/Microsoft.Authorization/roleDefinitions/{roleDefinitionId}", "roleDefinitionId"
    ),
    "azure-native:authorization:RoleAssignment": Kind(
        "{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}", "roleAssignmentName"
    ),
    "azure-native:logic:Workflow": Kind(_of("Logic", "workflows/{workflowName}"), "workflowName", _workflow),
    "azure-native:consumption:Budget": Kind(
        "{scope}/providers/Microsoft.Consumption/budgets/{budgetName}", "budgetName"
    ),
}
GROUP, SUBNET = "azure-native:resources:ResourceGroup", "azure-native:network:Subnet"
ROLE, GIVEN = "azure-native:authorization:RoleDefinition", "azure-native:authorization:RoleAssignment"


class Declared:
    """Of one subscription: `held`, {type: {id: inputs and outputs}}."""

    def __init__(self, world: World):
        self.world = world
        self.held: dict[str, dict[str, Json]] = {token: {} for token in KINDS}

    def handle(self, verb: str, path: str, body: bytes) -> tuple[int, bytes]:
        """/lab/declared/TYPE[?id]: POST makes, PUT changes, GET shows, DELETE takes away."""
        token, _, its_id = path.removeprefix(ROOT + "/").partition("?")
        said = json.loads(body) if body else {}
        try:
            if token not in KINDS:
                raise Refusal(501, "NotImplemented", f"this stand-in doesn't know {token}")
            return 200, json.dumps(getattr(self, f"_{verb.lower()}")(token, its_id, said)).encode()
        except Refusal as error:
            return error.status, json.dumps({"reason": error.code, "message": str(error)}).encode()

    def ids(self) -> set[str]:
        """Of all that is there."""
        return {its_id for resources in self.held.values() for its_id in resources}

    def cidr(self, subnet: str) -> str:
        """Of a subnet that is declared, by its id; empty: it isn't."""
        said = self.held[SUBNET].get(subnet, {})
        return str(said.get("addressPrefix") or next(iter(said.get("addressPrefixes", ())), ""))

    def allowed(self, principal: str, action: str, scope: str) -> bool:
        """Whether somebody may do that there, by the roles that are declared."""
        for given in self.held[GIVEN].values():
            if given["principalId"] != principal or not f"{scope}/".lower().startswith(f"{given['scope']}/".lower()):
                continue
            for permission in self.held[ROLE][given["roleDefinitionId"]]["permissions"]:
                if action in (*permission.get("actions", ()), *permission.get("dataActions", ())):
                    return True
        return False

    def _post(self, token: str, _id: str, said: Json) -> Json:
        kind, world = KINDS[token], self.world
        its_id = kind.id.format(**said)
        its_id = its_id if its_id.startswith("/subscriptions/") else world.id() + its_id
        if its_id in self.ids():
            raise Refusal(409, "Conflict", f"The resource '{its_id}' already exists")
        self._refers(its_id, said)
        made = kind.makes(world, said, its_id) if kind.makes else {}
        self.held[token][its_id] = {**said, "name": said[kind.named], **made, "inputs": said}
        if token == GROUP:
            group = {"id": its_id, "name": said[kind.named], "location": said["location"], "tags": said.get("tags", {})}
            world.groups[said[kind.named].lower()] = group | {"properties": {"provisioningState": "Succeeded"}}
        return {"id": its_id, **self.held[token][its_id]}

    def _put(self, token: str, its_id: str, said: Json) -> Json:
        kept = self._get(token, its_id, {})
        self._refers(its_id, said)
        fixed = ("ipConfigurations", "identity") if KINDS[token].makes else ()
        self.held[token][its_id] = {**kept, **said, **{key: kept[key] for key in fixed if key in kept}, "inputs": said}
        return {"id": its_id, **self.held[token][its_id]}

    def _get(self, token: str, its_id: str, _said: Json) -> Json:
        gone = token.endswith(":VirtualMachine") and its_id.lower() not in self.world.vms
        if its_id not in self.held[token] or gone:
            raise Refusal(404, "ResourceNotFound", f"The Resource '{its_id}' was not found.")
        return {"id": its_id, **self.held[token][its_id]}

    def _delete(self, token: str, its_id: str, _said: Json) -> Json:
        self._get(token, its_id, {})
        for user in self._users(its_id):
            raise Refusal(400, "InUse", f"{token.rpartition(':')[2]} {its_id} is in use by {user}")
        inside = [each for each in self.ids() if each == its_id or each.startswith(f"{its_id}/")]
        for resources in self.held.values():
            for each in inside:
                resources.pop(each, None)
        if vm := self.world.vms.get(its_id.lower()):
            self.world.remove(vm)
        self.world.nics.pop(its_id, None)
        if token == GROUP:
            self.world.groups.pop(its_id.rpartition("/")[2].lower(), None)
            within = f"{its_id}/".lower()
            for image in [each for each in self.world.images if each.startswith(within)]:
                del self.world.images[image]
        return {}

    def _refers(self, its_id: str, said: Json) -> None:
        """What is named in a group of the stack's, or as a role, has to be there, and what it is a part of."""
        known, own = self.ids(), self.held[GROUP]
        group, _, inside = its_id.partition("/providers/")
        above = [group] if "resourceGroupName" in said and inside else []
        if its_id.count("/") > 8 and above:  # a subnet's network, an image's gallery
            above.append(its_id.rpartition("/")[0].rpartition("/")[0])
        ours = ("/roleDefinitions/", *(f"{each}/" for each in own))
        named = [each for each in _ids(said) if any(part in f"{each}/" for part in ours)]
        for each in [*above, *named]:
            if each not in known:
                raise Refusal(404, "ResourceNotFound", f"The Resource '{each}' was not found.")

    def _users(self, its_id: str) -> Iterator[str]:
        for resources in self.held.values():
            for other, said in resources.items():
                outside = not other.startswith(f"{its_id}/") and other != its_id
                if outside and any(each == its_id or each.startswith(f"{its_id}/") for each in _ids(said)):
                    yield other
        for nic in self.world.nics.values():  # of rented machines, too
            for each in nic["properties"]["ipConfigurations"]:
                subnet = each["properties"].get("subnet", {}).get("id", "")
                if subnet == its_id or subnet.startswith(f"{its_id}/"):
                    yield nic["id"]


def _ids(said: Any) -> Iterator[str]:
    """Ids of resources in what somebody declares."""
    if isinstance(said, str) and said.startswith("/subscriptions/") and said.count("/") > 2:
        yield said
    for each in said.values() if isinstance(said, dict) else said if isinstance(said, list) else ():
        yield from _ids(each)
