"""instances.bulkInsert: what is asked for is looked at, made one by one, and taken back where not all could be made."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lab.google.vm import Json, Vm
from lab.google.world import Refusal, World

_GPUS = re.compile(r"(a2|a3|a4|a4x|g2|g4)-")
_KEY, _VALUE = re.compile(r"[a-z][a-z0-9_-]{0,62}"), re.compile(r"[a-z0-9_-]{0,63}")
_NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_METADATA, _VALUE_BYTES = 512 * 1024, 262_144
_POOL = "ZONE_RESOURCE_POOL_EXHAUSTED"


def insert(world: World, zone: str, body: Json, request_id: str | None) -> Json:
    """The operation of a request, which may be one that there was before. Raises Refusal."""
    if request_id and (before := _before(world, request_id)):
        return before
    names, properties = _names(body), body.get("instanceProperties", {})
    _sound(world, properties, names)
    running = [each for each in world.operations if each["operationType"] == "bulkInsert" and each["status"] != "DONE"]
    if len(running) >= world.assumed.bulk_at_once:
        raise Refusal(403, "rateLimitExceeded", "Rate Limit Exceeded: too many bulk operations at the same time")
    kind, model = properties["machineType"], properties.get("scheduling", {}).get("provisioningModel", "STANDARD")
    in_use = sum(vm.machine_type == kind for vm in world.vms.values())
    if world.assumed.quota_at_once and in_use + len(names) > world.quota.get(kind, in_use + len(names)):
        raise Refusal(403, "quotaExceeded", f"Quota for {kind} exceeded. Limit: {world.quota[kind]}.0 in region")
    free = world.capacity.get((kind, zone, model), len(names) + world.running(kind, zone, model))
    if world.assumed.capacity_at_once and world.running(kind, zone, model) + len(names) > free:
        raise Refusal(503, "insufficientCapacity", f"The zone '{zone}' does not have enough resources available")
    return _Bulk(world, zone, body, names, request_id).operation


def _before(world: World, request_id: str) -> Json | None:
    at_s, operation = world.request_ids.get(request_id, (0.0, {}))
    if not operation or world.now() - at_s > world.assumed.request_id_s:
        return None
    if world.assumed.reused_request_id == "invalid":
        raise Refusal(400, "invalid", f"Invalid value for field 'requestId': '{request_id}'. It was used before.")
    return operation


def _names(body: Json) -> list[str]:
    names, count = list(body.get("perInstanceProperties", {})), int(body.get("count", 0))
    if "namePattern" in body:
        raise Refusal(501, "notImplemented", "this stand-in knows no namePattern")
    if not names or len(names) != count:
        raise Refusal(400, "invalid", "Invalid value for field 'count': it must be that of perInstanceProperties")
    for name in names:
        if not _NAME.fullmatch(name):
            raise Refusal(400, "invalid", f"Invalid value for field 'perInstanceProperties': '{name}'")
    return names


def _sound(world: World, properties: Json, names: list[str]) -> None:
    def refuse(field: str, why: str) -> None:
        raise Refusal(400, "invalid", f"Invalid value for field 'resource.instanceProperties.{field}': {why}")

    for key, value in properties.get("labels", {}).items():
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            refuse("labels", f"'{key}': '{value}'")
    sizes = [len(each["key"]) + len(each["value"].encode()) for each in properties.get("metadata", {}).get("items", [])]
    if sum(sizes) > _METADATA or max(sizes, default=0) > _VALUE_BYTES + 128:
        refuse("metadata", "it is too large")
    disks = properties.get("disks", [])
    if not any(each.get("boot") for each in disks):
        refuse("disks", "there is no boot disk")
    for disk in disks:
        image = disk.get("initializeParams", {}).get("sourceImage")
        if disk.get("boot") and (not image or image.rpartition("/")[2] not in world.images):
            refuse("disks[0].initializeParams.sourceImage", f"'{image}'. The referenced image cannot be found.")
    if not properties.get("networkInterfaces"):
        refuse("networkInterfaces", "at least one network interface is required")
    for n, nic in enumerate(properties["networkInterfaces"]):
        if not world.knows(nic.get("subnetwork", "")):
            refuse(f"networkInterfaces[{n}].subnetwork", f"'{nic.get('subnetwork')}'. The resource was not found.")
    _scheduled(properties, refuse, world.assumed.notices_s)
    affinity = properties.get("reservationAffinity", {})
    specific = affinity.get("consumeReservationType") == "SPECIFIC_RESERVATION"
    if specific and affinity.get("key") != "compute.googleapis.com/reservation-name":
        refuse("reservationAffinity", "the key of a specific reservation is compute.googleapis.com/reservation-name")
    if specific and affinity.get("values", [""])[0].rpartition("/")[2] not in world.reservations:
        refuse("reservationAffinity", f"the reservation {affinity.get('values')} was not found")
    if properties.get("scheduling", {}).get("provisioningModel") == "RESERVATION_BOUND" and not specific:
        refuse("scheduling.provisioningModel", "RESERVATION_BOUND needs a specific reservation")
    if len(names) > 5000:
        refuse("count", "it is too large")


def _scheduled(properties: Json, refuse: Any, notices_s: Sequence[int]) -> None:
    said = properties.get("scheduling", {})
    if (notice := said.get("preemptionNoticeDuration")) and int(notice["seconds"]) not in notices_s:
        refuse("scheduling.preemptionNoticeDuration", f"{notice['seconds']} s")
    if "preemptionNoticeDuration" in said and said.get("provisioningModel") != "SPOT":
        refuse("scheduling.preemptionNoticeDuration", "it is for spot instances alone")
    if _GPUS.match(properties.get("machineType", "")) and said.get("onHostMaintenance") != "TERMINATE":
        refuse("scheduling.onHostMaintenance", "instances with guest accelerators do not support live migration")
    if said.get("provisioningModel") == "SPOT" and said.get("automaticRestart", True):
        refuse("scheduling.automaticRestart", "spot instances can't be restarted automatically")
    if "maxRunDuration" in said and "instanceTerminationAction" not in said:
        refuse("scheduling.instanceTerminationAction", "it must be set with maxRunDuration")


class _Bulk:
    """One launch under way."""

    def __init__(self, world: World, zone: str, body: Json, names: list[str], request_id: str | None):
        self.world, self.zone, self.body, self.names = world, zone, body, names
        self.group, self.made, self.failed = world.number(), list[Vm](), list[Json]()
        self.status: Json = {"status": "CREATING", "targetVmCount": len(names), "createdVmCount": 0}
        where = {"perLocationStatus": {f"zones/{zone}": self.status}}
        more: Json = {"operationGroupId": self.group, "instancesBulkInsertOperationMetadata": where}
        if request_id:
            more["clientOperationId"] = request_id
        self.operation = world.operation("bulkInsert", zone, **more)
        if request_id:
            world.request_ids[request_id] = world.now(), self.operation
        self.inserts: list[Json] = []
        for n, name in enumerate(names):
            world.after(world.delays.insert_s * (n + 1) / (len(names) + 1), lambda name=name: self._make(name))
        world.after(world.delays.insert_s, self._judge)

    def _make(self, name: str) -> None:
        world, properties = self.world, self.body["instanceProperties"]
        if any(vm.zone == self.zone and vm.name == name for vm in world.vms.values()):
            link = f"projects/{world.project}/zones/{self.zone}/instances/{name}"
            self._fails(name, "RESOURCE_ALREADY_EXISTS", f"The resource '{link}' already exists")
            return
        affinity = properties.get("reservationAffinity", {})
        kind = properties["machineType"]
        held = self._reserved(affinity, kind)
        model = properties.get("scheduling", {}).get("provisioningModel", "STANDARD")
        in_use = sum(vm.machine_type == kind for vm in world.vms.values())
        if said := world.fails(self.zone, properties):
            if world.assumed.failed_stays:
                self._starts(name, properties, held or "").raw["status"] = world.assumed.failed_stays
            self._failed(name, said)
        elif in_use >= world.quota.get(kind, in_use + 1):
            self._fails(name, "QUOTA_EXCEEDED", f"Quota for {kind} exceeded. Limit: {world.quota[kind]}.0 in region")
        elif held is None:
            text = "Specified reservation 'it' does not have available resources for the request."
            self._fails(name, "RESERVATION_CAPACITY", text)
        elif not held and world.running(kind, self.zone, model) >= world.capacity.get((kind, self.zone, model), 10**6):
            text = f"The zone '{self.zone}' does not have enough resources available to fulfill the request."
            self._fails(name, _POOL, text)
        else:
            vm = self._starts(name, properties, held)
            self.made.append(vm)
            self.status["createdVmCount"] = len(self.made)
            self.inserts.append(world.operation("insert", self.zone, vm, operationGroupId=self.group))

    def _reserved(self, affinity: Json, kind: str) -> str | None:
        """The reservation that it runs in; empty: in none. None: the one that it must run in is full."""
        world, consumed = self.world, affinity.get("consumeReservationType", "ANY_RESERVATION")
        if consumed == "NO_RESERVATION":
            return ""
        wanted = [each.rpartition("/")[2] for each in affinity.get("values", [])]
        for name, (zone, reserved, count) in world.reservations.items():
            fits = (zone, reserved) == (self.zone, kind) and (consumed != "SPECIFIC_RESERVATION" or name in wanted)
            if fits and sum(vm.reservation == name for vm in world.vms.values()) < count:
                return name
        return None if consumed == "SPECIFIC_RESERVATION" else ""

    def _fails(self, name: str, code: str, text: str) -> None:
        self._failed(name, {"code": code, "message": text})

    def _failed(self, name: str, error: Json) -> None:
        self.failed.append(error)
        self.status["failedToCreateVmCount"] = len(self.failed)
        one = self.world.operation("insert", self.zone, operationGroupId=self.group)
        one["targetLink"] = self.world.url("zones", self.zone, "instances", name)
        self.world.done(one, error)

    def _starts(self, name: str, properties: Json, reservation: str) -> Vm:
        world, number = self.world, self.world.number()
        disks = []
        for n, disk in enumerate(properties["disks"]):
            source = world.url("zones", self.zone, "disks", name if n == 0 else f"{name}-{n}")
            shown = {key: value for key, value in disk.items() if key != "initializeParams"}
            disks.append({"index": n, "kind": "compute#attachedDisk", "source": source, **shown})
            world.disks[source] = number
            world.made_of[source] = disk.get("initializeParams", {})
        nics, host = [], next(world.addresses)
        for n, nic in enumerate(properties["networkInterfaces"]):
            address = world.address(n, host, nic.get("subnetwork", ""))
            nics.append({"name": f"nic{n}", "networkIP": address, "kind": "compute#networkInterface", **nic})
        kept = ("labels", "metadata", "tags", "serviceAccounts", "scheduling", "reservationAffinity")
        raw: Json = {
            "kind": "compute#instance",
            "id": number,
            "name": name,
            "zone": world.url("zones", self.zone),
            "selfLink": world.url("zones", self.zone, "instances", name),
            "machineType": world.url("zones", self.zone, "machineTypes", properties["machineType"]),
            "status": "STAGING" if world.delays.insert_s else "RUNNING",
            "creationTimestamp": world.stamp(),
            "disks": disks,
            "networkInterfaces": nics,
            **{key: properties[key] for key in kept if key in properties},
        }
        raw.setdefault("scheduling", {})
        vm = Vm(raw, self.zone, world.now(), reservation=reservation)
        boots = next(disk["initializeParams"]["sourceImage"] for disk in properties["disks"] if disk.get("boot"))
        world.add(vm, boots.rpartition("/")[2])
        if longest := raw["scheduling"].get("maxRunDuration"):
            world.after(float(longest["seconds"]), lambda: self._ran_long(vm))
        return vm

    def _ran_long(self, vm: Vm) -> None:
        if vm.raw["id"] in self.world.vms:
            operation = self.world.operation("compute.instances.maxRunDuration", vm.zone, vm)  # its name: an assumption
            self.world.ends(vm, operation, self.world.delays.delete_s)

    def _judge(self) -> None:
        for each in self.inserts:
            self.world.done(each)
        if not self.failed:
            for vm in self.made:
                if vm.raw["status"] == "STAGING":
                    vm.raw["status"] = "RUNNING"
            self._over()
            return
        self.status["status"] = "ROLLING_BACK"
        for vm in self.made:
            vm.raw["status"] = "STOPPING"
        self.world.after(self.world.delays.roll_back_s, self._taken_back)

    def _taken_back(self) -> None:
        for vm in self.made:
            if vm.raw["id"] in self.world.vms:
                self.world.remove(vm)
        self.status["deletedVmCount"] = len(self.made)
        n = len(self.names)
        text = f"Requested minimum count of {n} VMs could not be created."
        summary = {"code": "VM_MIN_COUNT_NOT_REACHED", "message": text}
        causes = (
            [each for m, each in enumerate(self.failed) if each not in self.failed[:m]]
            if self.world.assumed.cause_in_bulk
            else []
        )
        self._over(summary, *causes)

    def _over(self, *errors: Json) -> None:
        self.status["status"] = "DONE"
        self.world.done(self.operation, *errors)
