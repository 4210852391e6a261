"""The calls that the stand-in answers. One that it doesn't know is refused, never answered with nothing."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from lab.azure import machines
from lab.azure.description import Call
from lab.azure.images import Images
from lab.azure.looked_at import LookedAt
from lab.azure.world import Json, Refusal, World

_TAG = re.compile(r"tagName eq '([^']+)' and tagValue eq '([^']*)'")
_LOCATION = re.compile(r"location eq '([^']+)'")

LATER = {"create_or_update", "update", "delete", "deallocate"}
"""what goes on behind its answer"""


class Answer(NamedTuple):
    """`operation`: the name of what goes on behind it; empty: nothing."""

    status: int
    body: Json | None
    operation: str = ""


class Calls:
    """Of one subscription."""

    def __init__(self, world: World, url: Callable[[], str]):
        self.world, self._url = world, url
        self._known: dict[str, Callable[[Call], Json | Answer]] = {
            "capacity_reservation_groups.get": self._reservation_group,
            "capacity_reservations.list_by_capacity_reservation_group": self._reservations,
            "network_interfaces.list": self._nics,
            "resource_groups.create_or_update": self._put_group,
            "resource_groups.delete": self._delete_group,
            "resource_groups.get": lambda call: self.world.group(call.path["resourceGroupName"]),
            "resource_groups.list": self._groups,
            "resource_skus.list": self._skus,
            "tags.update_at_scope": self._merge_tags,
            "virtual_machine_scale_sets.create_or_update": self._put_scale_set,
            "virtual_machine_scale_sets.get": self._scale_set,
            "virtual_machines.create_or_update": self._put_vm,
            "virtual_machines.delete": self._delete_vm,
            "virtual_machines.get": self._vm,
            "virtual_machines.instance_view": self._instance_view,
            "virtual_machines.list": self._vms,
            "virtual_machines.list_all": self._all_vms,
            "virtual_machines.retrieve_boot_diagnostics_data": self._diagnostics,
        }
        self._known |= self._accepting(Images(world, self._page).known) | LookedAt(world, self._page).known

    def _accepting(self, known: Mapping[str, Callable[[Call], Any]]) -> dict[str, Callable[[Call], Json | Answer]]:
        """Those that answer with nothing, or something that goes on, are accepted."""

        def accepted(act: Callable[[Call], Any], name: str) -> Callable[[Call], Json | Answer]:
            def answer(call: Call) -> Answer:
                found = act(call)
                if name.partition(".")[2] not in LATER:
                    return Answer(200, found)
                return Answer(202 if found is None else 200, found, self.world.operation()[0])

            return answer

        return {name: accepted(act, name) for name, act in known.items()}

    def answer(self, call: Call) -> Answer:
        """Raises Refusal."""
        asked = call.path.get("subscriptionId") or call.path["scope"].split("/")[1]
        if asked != self.world.subscription:
            text = f"The subscription '{asked}' could not be found."
            raise Refusal(404, "SubscriptionNotFound", text)
        found = self._known[call.name](call)
        found = found if isinstance(found, Answer) else Answer(200, found)
        return found._replace(body=copy.deepcopy(found.body))

    # ---- groups
    def _put_group(self, call: Call) -> Answer:
        name, key = call.path["resourceGroupName"], call.path["resourceGroupName"].lower()
        there = self.world.groups.get(key)
        if there and there["properties"]["provisioningState"] == "Deleting":
            raise Refusal(409, "ResourceGroupBeingDeleted", f"The resource group '{name}' is in deprovisioning state.")
        if not re.fullmatch(r"[\w().-]{1,89}[\w()-]", name):
            raise Refusal(400, "InvalidResourceGroup", f"The provided resource group name '{name}' is invalid.")
        _tags_are_sound(call.body.get("tags", {}))
        made = {"id": self.world.id("resourceGroups", name), "name": name, "type": "Microsoft.Resources/resourceGroups"}
        made |= {"location": call.body["location"], "tags": call.body.get("tags", {})}
        made |= {"properties": {"provisioningState": "Succeeded"}}
        self.world.groups[key] = made
        self.world.group_shown_s.setdefault(key, self.world.now() + self.world.delays.list_s)
        return Answer(200 if there else 201, made)

    def _merge_tags(self, call: Call) -> Json:
        scope = re.fullmatch(r"subscriptions/[^/]+/resourceGroups/([^/]+)", call.path["scope"])
        if not scope or call.body["operation"] != "Merge":
            raise Refusal(501, "NotImplemented", "this stand-in merges tags of a resource group, and nothing else")
        found, said = self.world.group(scope[1]), call.body["properties"]["tags"]
        _tags_are_sound(found["tags"] | said)
        found["tags"] = found["tags"] | said
        id = f"{found['id']}/providers/Microsoft.Resources/tags/default"
        return {"id": id, "name": "default", "properties": {"tags": found["tags"]}}

    def _delete_group(self, call: Call) -> Answer:
        found = self.world.group(call.path["resourceGroupName"])
        if found["properties"]["provisioningState"] != "Deleting":
            self.world.ends_group(found["name"])
        elif self.world.assumed.deleted_twice == "conflict":
            text = f"The resource group '{found['name']}' is in deprovisioning state."
            raise Refusal(409, "ResourceGroupBeingDeleted", text)
        return Answer(202, None, self.world.operation()[0])

    def _groups(self, call: Call) -> Json:
        found = [
            raw for key, raw in self.world.groups.items() if self.world.group_shown_s.get(key, 0.0) <= self.world.now()
        ]
        if "$filter" in call.query:
            wanted = _TAG.fullmatch(call.query["$filter"])
            if not wanted:
                raise Refusal(400, "InvalidFilterInQueryString", f"Invalid $filter '{call.query['$filter']}'")
            found = [raw for raw in found if raw["tags"].get(wanted[1]) == wanted[2]]
        return self._page(call, found)

    # ---- machines
    def _put_vm(self, call: Call) -> Answer:
        match = call.headers.get("if-none-match", "")
        _tags_are_sound(call.body.get("tags", {}))
        group, name = call.path["resourceGroupName"], call.path["vmName"]
        return Answer(*machines.put(self.world, group, name, call.body, match == "*"))

    def _delete_vm(self, call: Call) -> Answer:
        vm = self.world.vm(call.path["resourceGroupName"], call.path["vmName"])
        if vm.properties["provisioningState"] != "Deleting":
            self.world.ends(vm, self.world.delays.delete_s)
        elif self.world.assumed.deleted_twice == "conflict":
            text = f"Operation 'delete' is not allowed on VM '{vm.name}' since the VM is marked for deletion."
            raise Refusal(409, "OperationNotAllowed", text)
        return Answer(202, None, self.world.operation()[0])

    def _vm(self, call: Call) -> Json:
        vm = self.world.vm(call.path["resourceGroupName"], call.path["vmName"])
        if call.query.get("$expand") != "instanceView":
            return vm.raw
        return vm.raw | {"properties": vm.properties | {"instanceView": self.world.view(vm)}}

    def _instance_view(self, call: Call) -> Json:
        return self.world.view(self.world.vm(call.path["resourceGroupName"], call.path["vmName"]))

    def _vms(self, call: Call) -> Json:
        group = self.world.group(call.path["resourceGroupName"])
        return self._page(call, [vm.raw for vm in self.world.shown(group["name"])])

    def _all_vms(self, call: Call) -> Json:
        if call.query.get("statusOnly") != "true":
            return self._page(call, [vm.raw for vm in self.world.shown()])
        lacks, self.world.assumed.power_missing = self.world.assumed.power_missing, 0
        found = []
        for vm in list(self.world.shown())[lacks:]:
            view = {"provisioningState": vm.properties["provisioningState"], "instanceView": self.world.view(vm)}
            kept = {key: vm.raw[key] for key in ("id", "name", "type", "location")}  # no tags
            kept["id"] = kept["id"].replace(f"/{vm.group}/", f"/{vm.group.upper()}/")  # in no case that was asked for
            found.append(kept | {"properties": view})
        return self._page(call, found)

    def _diagnostics(self, call: Call) -> Json:
        vm = self.world.vm(call.path["resourceGroupName"], call.path["vmName"])
        if not vm.properties.get("diagnosticsProfile", {}).get("bootDiagnostics", {}).get("enabled"):
            raise Refusal(409, "OperationNotAllowed", "Boot diagnostics is not enabled on this VM.")
        return {"serialConsoleLogBlobUri": f"{self._url()}/blob/{vm.properties['vmId']}?sig=4711"}

    # ---- what else there is
    def _put_scale_set(self, call: Call) -> Answer:
        group, name = call.path["resourceGroupName"], call.path["vmScaleSetName"]
        self.world.group(group)
        kind = ("providers", "Microsoft.Compute", "virtualMachineScaleSets", name)
        id = self.world.id("resourceGroups", group, *kind)
        if id.lower() in self.world.scale_sets:
            if call.headers.get("if-none-match") == "*":
                raise Refusal(412, "PreconditionFailed", f"The condition in If-None-Match was not met: {name} exists.")
            return Answer(200, self.world.scale_sets[id.lower()])
        made = call.body | {"id": id, "name": name, "properties": call.body["properties"]}
        made["properties"] = made["properties"] | {"provisioningState": "Succeeded", "uniqueId": self.world.number()}
        self.world.scale_sets[id.lower()] = made
        return Answer(201, made, self.world.operation()[0])

    def _scale_set(self, call: Call) -> Json:
        group, name = call.path["resourceGroupName"], call.path["vmScaleSetName"]
        kind = ("providers", "Microsoft.Compute", "virtualMachineScaleSets", name)
        found = self.world.scale_sets.get(self.world.id("resourceGroups", group, *kind).lower())
        if found is None:
            text = f"The Resource 'Microsoft.Compute/virtualMachineScaleSets/{name}' under resource group '{group}'"
            raise Refusal(404, "ResourceNotFound", f"{text} was not found.")
        return found

    def _nics(self, call: Call) -> Json:
        inside = f"/resourcegroups/{self.world.group(call.path['resourceGroupName'])['name'].lower()}/"
        return self._page(call, [raw for id, raw in self.world.nics.items() if inside in id.lower()])

    def _skus(self, call: Call) -> Json:
        wanted = _LOCATION.fullmatch(call.query.get("$filter", ""))
        if not wanted:
            raise Refusal(400, "InvalidFilter", "this stand-in wants a filter by location")
        found: list[Json] = [{"resourceType": "disks", "name": "Premium_LRS", "locations": [wanted[1]]}]
        for name, size in self.world.sizes.items():
            place = {"location": wanted[1], "zones": list(size.zones)}
            able = [("vCPUs", str(size.cores)), *size.able.items()]
            sku = {"resourceType": "virtualMachines", "name": name, "family": size.family, "locations": [wanted[1]]}
            sku |= {"locationInfo": [place], "capabilities": [{"name": name, "value": value} for name, value in able]}
            if size.restricted:
                sku["restrictions"] = [{"type": "Location", "values": [wanted[1]], "reasonCode": size.restricted}]
            found.append(sku)
        return self._page(call, found if wanted[1] == self.world.region else [])

    def _reservation_group(self, call: Call) -> Json:
        name = call.path["capacityReservationGroupName"]
        if name not in self.world.reservations:
            text = f"The Resource 'Microsoft.Compute/capacityReservationGroups/{name}' was not found."
            raise Refusal(404, "ResourceNotFound", text)
        one = self.world.reservations[name]
        properties: Json = {"reservationType": one.kind}
        if call.query.get("$expand") == "instanceView":
            inside = [{"id": vm.raw["id"]} for vm in self.world.vms.values() if vm.reserved == name]
            used = {"currentCapacity": one.count, "virtualMachinesAllocated": inside}
            properties["instanceView"] = {"capacityReservations": [{"name": "places", "utilizationInfo": used}]}
        id = self.world.id(
            "resourceGroups", "held", "providers", "Microsoft.Compute", "capacityReservationGroups", name
        )
        return {"id": id, "name": name, "location": self.world.region, "properties": properties}

    def _reservations(self, call: Call) -> Json:
        one = self.world.reservations[call.path["capacityReservationGroupName"]]
        raw = {"name": "places", "location": self.world.region, "sku": {"name": one.size, "capacity": one.count}}
        return self._page(call, [raw | ({"zones": [one.zone]} if one.zone else {})])

    # ---- lists
    def _page(self, call: Call, found: Iterable[Any]) -> Json:
        every, first = list(found), int(call.query.get("$skiptoken") or 0)
        last = first + self.world.page
        path = f"{self._url()}{call.headers['x-path']}"
        query = urlencode(dict(call.query) | {"$skiptoken": str(last)})
        return {"value": every[first:last]} | ({"nextLink": f"{path}?{query}"} if every[last:] else {})


def _tags_are_sound(tags: Json) -> None:
    for key, value in tags.items():
        if len(key) > 512 or len(value) > 256 or set("<>%&\\?/") & set(key):
            raise Refusal(400, "InvalidTagNameCharacters", f"The tag name '{key}' or its value isn't allowed.")
    if len(tags) > 50:
        raise Refusal(400, "InvalidNumberOfTags", "there are more than 50 tags")
