"""The calls that the stand-in answers. One that it doesn't know is refused, never answered with nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from lab.google import bulk
from lab.google.description import Call, Wrong
from lab.google.filters import holds
from lab.google.images import Images
from lab.google.project import Project
from lab.google.vm import Json
from lab.google.world import Refusal, World

_PAGE = 500


class Calls:
    """Of one project."""

    def __init__(self, world: World):
        self.world = world
        self._of_project = Project(world, self._fits, self._page)
        self._known: dict[str, Callable[[Call], Json]] = {
            "advice.capacityHistory": self._capacity_history,
            "globalOperations.aggregatedList": self._all_operations,
            "instances.aggregatedList": self._all_instances,
            "instances.bulkInsert": self._bulk_insert,
            "instances.delete": self._delete,
            "instances.get": self._get,
            "instances.getSerialPortOutput": self._serial,
            "instances.list": self._instances,
            "regions.get": self._region,
            "zoneOperations.get": self._operation,
            "zoneOperations.list": self._operations,
            **Images(world, self._everywhere, self._fits, self._page).known,
            **self._of_project.known,
        }

    def answer(self, call: Call) -> Json:
        """Raises Refusal."""
        name = call.id.removeprefix("compute.")
        if name not in self._known:
            raise Refusal(501, "notImplemented", f"this stand-in doesn't know {call.id}")
        if call.parameters["project"] != self.world.project:
            path = f"projects/{call.parameters['project']}"
            raise Refusal(404, "notFound", f"The resource '{path}' was not found")
        zone = call.parameters.get("zone")
        if zone is not None and zone not in self.world.zones:
            raise Refusal(400, "invalid", f"Invalid value for field 'zone': '{zone}'. Unknown zone.")
        if zone in self.world.silent:
            raise Refusal(503, "backendError", f"'compute' in location '{zone}' cannot accept requests.")
        return copy.deepcopy(self._known[name](call))

    # ---- instances
    def _bulk_insert(self, call: Call) -> Json:
        return bulk.insert(self.world, call.parameters["zone"], call.body, call.parameters.get("requestId"))

    def _get(self, call: Call) -> Json:
        return self.world.find(call.parameters["zone"], call.parameters["instance"]).raw

    def _delete(self, call: Call) -> Json:
        vm = self.world.find(call.parameters["zone"], call.parameters["instance"])
        if vm.raw["status"] == "STOPPING" and self.world.assumed.deleted_twice == "resourceNotReady":
            raise Refusal(400, "resourceNotReady", f"The resource '{vm.raw['selfLink']}' is not ready")
        operation = self.world.operation("delete", vm.zone, vm)
        self.world.ends(vm, operation, self.world.delays.delete_s)
        return operation

    def _serial(self, call: Call) -> Json:
        vm = self.world.find(call.parameters["zone"], call.parameters["instance"])
        text = self.world.machines.console(vm)
        return {"kind": "compute#serialPortOutput", "contents": text, "start": "0", "next": str(len(text))}

    def _shown(self) -> list[tuple[str, Json]]:
        return [(vm.zone, vm.raw) for vm in self.world.vms.values() if self.world.shown(vm)]

    def _instances(self, call: Call) -> Json:
        return {"kind": "compute#instanceList"} | self._zonal(call, self._shown())

    def _all_instances(self, call: Call) -> Json:
        return {"kind": "compute#instanceAggregatedList"} | self._everywhere(call, "instances", self._shown())

    # ---- operations
    def _operation(self, call: Call) -> Json:
        zone, name = call.parameters["zone"], call.parameters["operation"]
        for each in self.world.operations:
            if each["name"] == name and each["zone"].endswith(f"/{zone}"):
                return each
        raise self.world.missing("zones", zone, "operations", name)

    def _operations(self, call: Call) -> Json:
        return {"kind": "compute#operationList"} | self._zonal(call, self.world.shown_operations())

    def _all_operations(self, call: Call) -> Json:
        kind = {"kind": "compute#operationAggregatedList"}
        return kind | self._everywhere(call, "operations", self.world.shown_operations())

    # ---- what else there is
    def _region(self, call: Call) -> Json:
        name = call.parameters["region"]
        if name != self.world.region:
            raise self.world.missing("regions", name)
        zones = [self.world.url("zones", zone) for zone in self.world.zones]
        said = {"kind": "compute#region", "name": name, "status": self.world.status, "zones": zones}
        return said | {"quotas": self._of_project.quotas(False)}

    def _capacity_history(self, call: Call) -> Json:
        kind = call.body["instanceProperties"]["machineType"]
        if kind not in self.world.spot_usd:
            raise Refusal(400, "invalid", f"Invalid value for field 'instanceProperties.machineType': '{kind}'")
        usd = self.world.spot_usd[kind]
        price = {"currencyCode": "USD", "units": str(int(usd)), "nanos": round(usd % 1 * 1e9)}
        old = {"interval": {"startTime": "2026-07-01T00:00:00Z"}, "listPrice": price | {"units": "1"}}
        now = {"interval": {"startTime": "2026-08-01T00:00:00Z"}, "listPrice": price}
        return {"machineType": kind, "priceHistory": [now, old]}

    # ---- lists
    def _zonal(self, call: Call, all: Iterable[tuple[str, Json]]) -> Json:
        found = [raw for zone, raw in all if zone == call.parameters["zone"] and self._fits(call, raw)]
        page, more = self._page(call, found)
        if not page:
            more["warning"] = _nothing(call.parameters["zone"])
        return more | ({"items": page} if page else {})

    def _everywhere(self, call: Call, key: str, all: Iterable[tuple[str, Json]]) -> Json:
        silent = sorted(self.world.silent)
        if silent and self.world.assumed.silent_zone == "fails":
            raise Refusal(503, "backendError", f"'compute' in location '{silent[0]}' cannot accept requests.")
        found = [(zone, raw) for zone, raw in all if zone not in silent and self._fits(call, raw)]
        page, more = self._page(call, found)
        items: Json = {}
        for zone in [*self.world.zones, "asia-east1-a"]:
            there = [raw for of, raw in page if of == zone]
            items[f"zones/{zone}"] = {key: there} if there else {"warning": _nothing(f"zones/{zone}")}
        for zone in silent:
            warning = {"code": "UNREACHABLE", "message": "A given scope cannot be reached."}
            items[f"zones/{zone}"] = {"warning": warning}
        more |= {"unreachables": [f"zones/{zone}" for zone in silent]} if silent else {}
        return more | {"items": items}

    def _fits(self, call: Call, raw: Json) -> bool:
        filter = call.parameters.get("filter")
        try:
            return filter is None or holds(filter, raw)
        except Wrong as error:
            raise Refusal(400, "invalid", str(error)) from None

    def _page(self, call: Call, found: list[Any]) -> tuple[list[Any], Json]:
        first = int(call.parameters.get("pageToken") or 0)
        last = first + int(call.parameters.get("maxResults", _PAGE))
        return found[first:last], {"nextPageToken": str(last)} if found[last:] else {}


def _nothing(scope: str) -> Json:
    text = f"There are no results for scope '{scope}' on this page."
    return {"code": "NO_RESULTS_ON_PAGE", "message": text, "data": [{"key": "scope", "value": scope}]}
