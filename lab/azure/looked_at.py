"""What a doctor asks: resource providers, permissions, quotas, disks, and the workflow that ends leases. Permissions
and workflows are calls of APIs whose SDKs aren't here: their shapes are those of Azure's pages ("Permissions - List For
Resource Group", 2022-04-01; "Workflows - Get" and "Workflow Runs - List", 2019-05-01).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from lab.azure.description import Call
from lab.azure.world import Json, Refusal, World

FAMILIES = ("cores", "lowPriorityCores")


class LookedAt:
    """The calls of one subscription. `page`: makes a page of a list."""

    def __init__(self, world: World, page: Callable[[Call, Iterable[Json]], Json]):
        self.world, self._page = world, page
        self.known = {
            "disks.list": self._disks,
            "network_interfaces.list_all": lambda call: page(call, world.nics.values()),
            "operations.permissions": self._permissions,
            "operations.runs": self._runs,
            "operations.workflow": self._workflow,
            "providers.get": self._provider,
            "usage.list": self._usage,
        }

    def _provider(self, call: Call) -> Json:
        name = call.path["resourceProviderNamespace"]
        return {"namespace": name, "registrationState": self.world.providers.get(name, "Registered")}

    def _permissions(self, call: Call) -> Json:
        self.world.group(call.path["resourceGroupName"])
        one = {"actions": list(self.world.actions), "notActions": list(self.world.refused)}
        return {"value": [one | {"dataActions": [], "notDataActions": []}]}

    def _usage(self, call: Call) -> Json:
        families = {size.family for size in self.world.sizes.values()}
        found = []
        for name in sorted({*families, *FAMILIES}):
            limit, used = self.world.quota.get(name, 10_000), self.world.in_use.get(name, 0)
            one = {"unit": "Count", "currentValue": used, "limit": limit}
            found.append(one | {"name": {"value": name, "localizedValue": f"{name} vCPUs"}})
        return self._page(call, found)

    def _disks(self, call: Call) -> Json:
        def shown(id: str, of: str) -> Json:
            raw = {"id": id, "name": id.rpartition("/")[2], "location": self.world.region}
            return raw | ({"managedBy": of} if of else {})

        return self._page(call, [shown(id, of) for id, of in self.world.disks.items()])

    def _workflow(self, call: Call) -> Json:
        self.world.group(call.path["resourceGroupName"])
        name = call.path["workflowName"]
        found = self.world.workflows.get(name)
        if found is None:
            text = f"The Resource 'Microsoft.Logic/workflows/{name}' under resource group was not found."
            raise Refusal(404, "ResourceNotFound", text)
        return {"name": name, "type": "Microsoft.Logic/workflows", "properties": {"state": found.state}}

    def _runs(self, call: Call) -> Json:
        self._workflow(call)
        runs = self.world.workflows[call.path["workflowName"]].runs
        stamp = lambda at_s: datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")  # noqa: E731
        return {"value": [{"properties": {"startTime": stamp(at_s), "status": status}} for at_s, status in runs]}
