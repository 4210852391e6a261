"""virtualMachines.createOrUpdate: what is asked for is looked at, begun, and comes up or fails later."""

from __future__ import annotations

import base64
import binascii
import copy
import re

from lab.azure.world import Json, Refusal, Reservation, Vm, World

_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,62}[a-zA-Z0-9])?")
_USER_DATA = 65_536  # in base64: "can't exceed 64 KB", which may be meant of the bytes


def put(world: World, group: str, name: str, body: Json, create_only: bool) -> tuple[int, Json, str]:
    """Status, machine and the name of its operation. Raises Refusal."""
    of_group = world.group(group)
    if of_group["properties"]["provisioningState"] == "Deleting":
        raise Refusal(409, "ResourceGroupBeingDeleted", f"The resource group '{group}' is in deprovisioning state.")
    there = world.vms.get(world.vm_id(group, name).lower())
    if there is not None:
        return _there(world, there, body, create_only)
    _sound(world, name, body)
    size, priority = body["properties"]["hardwareProfile"]["vmSize"], body["properties"].get("priority", "Regular")
    refusal = _quota(world, size, priority) if world.assumed.quota_at_once else None
    if refusal is None and world.assumed.capacity_at_once and not _room(world, size, _zone(body), priority, ""):
        refusal = _no_room(size, _zone(body), priority)
    if refusal is not None:
        raise Refusal(409, *refusal)
    vm = _begun(world, of_group["name"], name, body)
    operation, said = world.operation()
    world.after(world.delays.create_s, lambda: _judged(world, vm, said))
    return 201, vm.raw, operation


def _zone(body: Json) -> str:
    return (body.get("zones") or [""])[0]


def _there(world: World, vm: Vm, body: Json, create_only: bool) -> tuple[int, Json, str]:
    if create_only:
        if world.assumed.there_already == 412:
            raise Refusal(412, "PreconditionFailed", f"The condition in If-None-Match was not met: {vm.name} exists.")
        raise Refusal(409, "PropertyChangeNotAllowed", "Changing property 'osProfile' is not allowed.")
    if body["properties"].get("osProfile") != vm.properties["osProfile"]:
        raise Refusal(409, "PropertyChangeNotAllowed", "Changing property 'osProfile' is not allowed.")
    return 200, vm.raw, ""


def _sound(world: World, name: str, body: Json) -> None:
    def refuse(text: str, code: str = "InvalidParameter", status: int = 400) -> None:
        raise Refusal(status, code, text)

    properties = body["properties"]
    size = properties.get("hardwareProfile", {}).get("vmSize")
    if not _NAME.fullmatch(name):
        refuse(f"Linux host name '{name}' cannot exceed 64 characters in length")
    if size not in world.sizes:
        refuse(f"The requested VM size {size} is not available in the current region.")
    if body.get("location") != world.region:
        refuse(f"The location '{body.get('location')}' is not this one's", "InvalidResourceLocation", 409)
    known = world.sizes[size]
    if known.restricted or (_zone(body) and _zone(body) not in known.zones):
        raise Refusal(409, *_no_room(size, _zone(body), "Spot"))  # the same words as for no capacity
    asked = properties.get("storageProfile", {}).get("imageReference", {})
    image = asked.get("id") or ":".join(asked.get(key, "") for key in ("publisher", "offer", "sku"))
    if image.lower() not in world.images and asked.get("version") not in world.market.get(image, ()):
        refuse(f"The gallery image {image} is not available in {world.region} region.", "GalleryImageNotFound", 404)
    if properties["storageProfile"]["osDisk"]["createOption"] != "FromImage":
        refuse("osDisk.createOption must be FromImage")
    _system(properties, refuse)
    _network(properties, refuse)
    _market(world, properties, size, refuse)


def _system(properties: Json, refuse: object) -> None:
    said, fail = properties.get("osProfile", {}), refuse
    assert callable(fail)
    if not said.get("adminUsername"):
        fail("Required parameter 'adminUsername' is missing (null).")
    linux = said.get("linuxConfiguration", {})
    if not said.get("adminPassword") and not (linux.get("ssh") or {}).get("publicKeys"):
        fail("Authentication using either SSH or by user name and password must be enabled in Linux profile.")
    text = properties.get("userData", "")
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        fail("User data must be in Base64 encoding.")
    if len(text) > _USER_DATA:
        fail("User data must have a maximum length of 64 KB.")


def _network(properties: Json, refuse: object) -> None:
    said, fail = properties.get("networkProfile", {}), refuse
    assert callable(fail)
    wanted = said.get("networkInterfaceConfigurations")
    if not wanted:
        fail("Virtual machine must have at least one network interface.")
    if not said.get("networkApiVersion"):
        fail("networkApiVersion must be set with networkInterfaceConfigurations")
    for each in wanted:
        for address in each["properties"]["ipConfigurations"]:
            if not address["properties"].get("subnet", {}).get("id", "").startswith("/subscriptions/"):
                fail("the subnet of an IP configuration is missing", "InvalidRequestFormat")


def _market(world: World, properties: Json, size: str, refuse: object) -> None:
    fail, spot = refuse, properties.get("priority") == "Spot"
    assert callable(fail)
    reserved = properties.get("capacityReservation", {}).get("capacityReservationGroup", {}).get("id", "")
    most = properties.get("billingProfile", {}).get("maxPrice")
    if not spot and "evictionPolicy" in properties:
        text = "Eviction policy can be set only on Azure Spot Virtual Machines."
        fail(text, "EvictionPolicyCanBeSetOnlyOnAzureSpotVirtualMachines", 409)
    if not spot and most is not None:
        text = "Max price is supported only for Azure Spot Virtual Machines."
        fail(text, "MaxPriceIsSupportedOnlyForAzureSpotVirtualMachines", 409)
    if most is not None and most != -1 and most <= 0:
        fail("Invalid max price value.", "MaxPriceValueInvalid", 409)
    usd = world.spot_usd.get(size, 0.0)
    if spot and most is not None and most != -1 and most < usd:
        text = f"Unable to perform operation 'Create VM' since the provided max price '{most} USD' is lower than the "
        fail(f"{text}current spot price '{usd} USD'", "SpotPriceGreaterThanProvidedMaxPrice", 409)
    if reserved and (spot or reserved.rpartition("/")[2] not in world.reservations):
        fail(f"The capacity reservation group {reserved} can't be used")
    one = properties.get("virtualMachineScaleSet", {}).get("id", "")
    if one:
        scale_set = world.scale_sets.get(one.lower())
        if scale_set is None:
            fail(f"The entity {one} was not found.", "NotFound", 404)
        elif reserved and scale_set["properties"].get("singlePlacementGroup") and _kind(world, reserved) != "Block":
            fail("Capacity reservation is not supported with a single placement group.", "BadRequest")


def _kind(world: World, group: str) -> str:
    return world.reservations[group.rpartition("/")[2]].kind


def _quota(world: World, size: str, priority: str) -> tuple[str, str] | None:
    """One code, three quotas (karpenter-provider-azure's issue 192)."""
    need, family = world.sizes[size].cores, world.sizes[size].family
    used = {"cores": 0, "lowPriorityCores": 0, family: 0}
    for vm in world.vms.values():
        cores = world.sizes[vm.size].cores
        if vm.priority == "Spot":
            used["lowPriorityCores"] += cores
            continue
        used["cores"] += cores
        used[family] += cores if world.sizes[vm.size].family == family else 0
    names = {"cores": "Total Regional Cores", "lowPriorityCores": "LowPriorityCores", family: f"{family} Cores"}
    for key in ("lowPriorityCores",) if priority == "Spot" else (family, "cores"):
        most = world.quota.get(key)
        if most is not None and used[key] + need > most:
            text = f"Operation could not be completed as it results in exceeding approved {names[key]} quota. "
            more = f"Current Limit: {most}, Current Usage: {used[key]}, Additional Required: {need}"
            return "OperationNotAllowed", text + more
    return None


def _room(world: World, size: str, zone: str, priority: str, scale_set: str) -> bool:
    there = [vm for vm in world.vms.values() if vm.allocated and not vm.reserved]
    same = sum((vm.size, vm.zone, vm.priority) == (size, zone, priority) for vm in there)
    if same >= world.capacity.get((size, zone, priority), same + 1):
        return False
    in_set = sum(vm.scale_set == scale_set for vm in there) if scale_set else 0
    return not scale_set or in_set < world.clusters.get(size, in_set + 1)


def _no_room(size: str, zone: str, priority: str) -> tuple[str, str]:
    if priority == "Spot":
        text = (
            f"The requested VM size '{size}' is currently not available in location 'eastus'. Please try another size"
        )
        return "SkuNotAvailable", text
    if zone:
        return (
            "ZonalAllocationFailed",
            "Allocation failed. We do not have sufficient capacity for the requested VM size in this zone.",
        )
    return (
        "AllocationFailed",
        "Allocation failed. We do not have sufficient capacity for the requested VM size in this region.",
    )


def _begun(world: World, group: str, name: str, body: Json) -> Vm:
    raw: Json = copy.deepcopy(body)
    id = world.vm_id(group, name)
    raw |= {"id": id, "name": name, "type": "Microsoft.Compute/virtualMachines", "etag": '"1"'}
    properties = raw["properties"]
    properties |= {"provisioningState": "Creating", "vmId": world.number(), "timeCreated": world.stamp()}
    user_data = properties.pop("userData", "")  # only shown to who asks for it ($expand=userData)
    wanted = properties["networkProfile"].pop("networkInterfaceConfigurations")
    shown = []
    for nic in wanted:
        nic_id = world.id("resourceGroups", group, "providers", "Microsoft.Network", "networkInterfaces", nic["name"])
        (asked,) = nic["properties"]["ipConfigurations"]
        subnet = asked["properties"]["subnet"]["id"]
        address = {"name": "ip", "properties": {"privateIPAddress": world.address(subnet), "primary": True}}
        address["properties"]["subnet"] = {"id": subnet}
        said = {"virtualMachine": {"id": id}, "ipConfigurations": [address], "provisioningState": "Succeeded"}
        world.nics[nic_id] = {"id": nic_id, "name": nic["name"], "location": raw["location"], "properties": said}
        option = nic["properties"].get("deleteOption", "Detach")
        shown.append({"id": nic_id, "properties": {"primary": True, "deleteOption": option}})
    properties["networkProfile"]["networkInterfaces"] = shown
    disk = world.id("resourceGroups", group, "providers", "Microsoft.Compute", "disks", f"{name}_OsDisk")
    world.disks[disk] = id.lower()
    vm = world.vms[id.lower()] = Vm(raw, group, world.now(), user_data=user_data)
    world.made.append(name)
    return vm


def _judged(world: World, vm: Vm, operation: Json) -> None:
    """It comes up, or has failed."""
    if world.vms.get(vm.raw["id"].lower()) is not vm or vm.properties["provisioningState"] != "Creating":
        world.done(operation, ("OperationPreempted", "The operation has been preempted by a more recent operation."))
        return None
    if said := world.fails(vm):
        inner = (said.get("details") or [said])[0]
        return _comes_up(world, vm, operation, (inner["code"], inner["message"]), said)
    error = None if world.assumed.quota_at_once else _late_quota(world, vm)
    name, reservation = _reservation(world, vm)
    if error is None and reservation is not None:
        inside = sum(each.reserved == name for each in world.vms.values())
        if inside < reservation.count:
            vm.reserved = name
        elif reservation.kind == "Block":
            error = ("AllocationFailed", "Allocation failed. The block has no place left.")
    if error is None and not vm.reserved and not _room(world, vm.size, vm.zone, vm.priority, vm.scale_set):
        error = _no_room(vm.size, vm.zone, vm.priority)
    if error is None:
        return world.boots(vm, lambda late: _comes_up(world, vm, operation, late))
    return _comes_up(world, vm, operation, error)


def _comes_up(world: World, vm: Vm, operation: Json, error: tuple[str, str] | None, whole: Json | None = None) -> None:
    """Or not. `whole`: the error as its operation has it."""
    world.done(operation, whole or error)
    if error is None:
        vm.properties["provisioningState"] = "Succeeded"
        return
    vm.error = error
    for nic in vm.properties["networkProfile"]["networkInterfaces"]:
        world.reserved_s[nic["id"]] = world.now() + world.assumed.nic_reserved_s
    vm.properties["provisioningState"] = "Failed"
    if not world.assumed.failed_stays:
        world.remove(vm)


def _late_quota(world: World, vm: Vm) -> tuple[str, str] | None:
    id = vm.raw["id"].lower()
    del world.vms[id]
    refused = _quota(world, vm.size, vm.priority)
    world.vms[id] = vm
    return refused


def _reservation(world: World, vm: Vm) -> tuple[str, Reservation | None]:
    """The one that it is to run in; or an open one that fits, unless it is kept out."""
    said = vm.properties.get("capacityReservation", {})
    named = said.get("capacityReservationGroup", {}).get("id", "").rpartition("/")[2]
    if named:
        return named, world.reservations[named]
    if vm.priority == "Spot" or said.get("disableCapacityReservationAssignment"):
        return "", None
    for name, each in world.reservations.items():
        inside = sum(other.reserved == name for other in world.vms.values())
        if each.kind == "Open" and (each.size, each.zone) == (vm.size, vm.zone) and inside < each.count:
            return name, each
    return "", None
