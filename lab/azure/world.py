"""What is there in the stand-in's subscription: groups, machines, interfaces, disks, operations, and a clock by which
things happen.
"""

from __future__ import annotations

import ipaddress
import itertools
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lab.machines import Machines
from lab.timeline import Timeline

Json = dict[str, Any]
_PROVISIONING_S = 1200.0  # in which a machine has to report that it is up: "20 minutes"


class Refusal(Exception):
    """An HTTP error as ARM says it."""

    def __init__(self, status: int, code: str, message: str, **headers: str):
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers


@dataclass
class Assumptions:
    """What no source says. Each is one of several answers that the real API may give; tests try them all."""

    there_already: int = 412  # to If-None-Match: *, where there is one; or 409
    quota_at_once: bool = True  # 409 to the request; False: the operation fails
    capacity_at_once: bool = False  # 409; False: the operation fails (documented for spot: at once)
    failed_stays: bool = True  # a machine that failed is there (DS, SKY); False: it isn't
    cause_in_view: bool = True  # the code of a failure is in its instance view
    cause_in_operation: bool = True  # and in its operation
    power_missing: int = 0  # of the next statusOnly list: so many lack ("may be missing")
    off_while_made: bool = False  # a machine that is being made is shown as stopped ("might", "briefly")
    nic_reserved_s: float = 0.0  # an interface of a machine that failed can't be deleted for so long (180 s were seen)
    deleted_twice: str = "accepted"  # what a second delete gets while the first works; or "conflict"


@dataclass
class Delays:
    """Seconds that things take."""

    create_s: float = 0.0
    delete_s: float = 0.0
    evict_s: float = 30.0
    image_s: float = 0.0
    list_s: float = 0.0  # until lists show a machine or a group


@dataclass
class Size:
    """Of machines. `zones`: where it is offered; `restricted`: why not to this subscription."""

    family: str = "standardNDSH100v5Family"
    cores: int = 96
    zones: tuple[str, ...] = ("1", "2", "3")
    restricted: str = ""
    able: dict[str, str] = field(default_factory=dict)  # capabilities beside its vCPUs


@dataclass
class Reservation:
    size: str
    zone: str
    count: int
    kind: str = "Targeted"


@dataclass
class Workflow:
    """Of Logic Apps, as it is looked at. `runs`: when they began (seconds since 1970), and how they ended."""

    state: str = "Enabled"
    runs: list[tuple[float, str]] = field(default_factory=list)


@dataclass
class Vm:
    """A machine. `raw`: as the API shows it."""

    raw: Json
    group: str
    made_s: float
    power: str = ""
    error: tuple[str, str] | None = None
    reserved: str = ""  # the reservation that it runs in
    allocated: bool = False
    console: str = ""
    user_data: str = ""  # in base64
    generalized: bool = False
    view: Json = field(default_factory=dict)  # what its instance view has more

    @property
    def name(self) -> str:
        return self.raw["name"]

    @property
    def properties(self) -> Json:
        return self.raw["properties"]

    @property
    def size(self) -> str:
        return self.properties["hardwareProfile"]["vmSize"]

    @property
    def priority(self) -> str:
        return self.properties.get("priority", "Regular")

    @property
    def zone(self) -> str:
        return (self.raw.get("zones") or [""])[0]

    @property
    def scale_set(self) -> str:
        return self.properties.get("virtualMachineScaleSet", {}).get("id", "").lower()


class World(Timeline):
    """One subscription with one region. Things happen when their time has come: at `passes`, or at the next request."""

    def __init__(
        self,
        region: str = "eastus",
        seed: int = 1,
        clock: Callable[[], float] = time.time,
        machines: Machines | None = None,
    ):
        """`machines`: what stands behind those here, and reports to the wire server that it is up; None: nothing, and
        each is up at once.
        """
        super().__init__(clock)
        self.machines, self._report = machines or Machines(), machines is not None
        self._booting: dict[str, Callable[[tuple[str, str] | None], None]] = {}  # by id, with what waits for them
        self.subscription, self.region = str(uuid.UUID(int=seed)), region
        self.assumed, self.delays = Assumptions(), Delays()
        self.sizes: dict[str, Size] = {}
        self.capacity: dict[tuple[str, str, str], int] = {}  # (size, zone, priority); missing: enough
        self.clusters: dict[str, int] = {}  # size -> machines of one scale set; missing: enough
        self.quota: dict[str, int] = {}  # cores by family, "cores", "lowPriorityCores"; missing: enough
        self.in_use: dict[str, int] = {}  # of those, beside what is here
        self.providers: dict[str, str] = {}  # resource provider -> its state; missing: Registered
        self.actions: list[str] = ["*"]  # that the caller may do
        self.refused: list[str] = []  # of those
        self.workflows: dict[str, Workflow] = {}  # by name
        self.spot_usd: dict[str, float] = {}
        self.reservations: dict[str, Reservation] = {}  # by the name of their group
        self.images: dict[str, Json] = {}  # gallery image versions, by id in lower case
        self.definitions: dict[str, Json] = {}  # of images in galleries, by id in lower case: what differs
        self.market: dict[str, list[str]] = {}  # publisher:offer:sku -> versions
        self.groups: dict[str, Json] = {}  # by name in lower case
        self.scale_sets: dict[str, Json] = {}  # by id in lower case
        self.fails: Callable[[Vm], Json | None] = lambda _: None  # why a machine fails: {code, message, details?}
        self.vms: dict[str, Vm] = {}  # by id in lower case
        self.nics: dict[str, Json] = {}  # by id
        self.reserved_s: dict[str, float] = {}  # id of an interface -> until when it is kept for a machine that failed
        self.disks: dict[str, str] = {}  # id -> its machine's id in lower case; empty: of none
        self.made: list[str] = []  # names of all machines that there ever were
        self.operations: dict[str, Json] = {}
        self.group_shown_s: dict[str, float] = {}
        self.page = 100
        self._addresses = itertools.count(4)
        self._random = random.Random(seed)

    # ---- names
    def id(self, *parts: str) -> str:
        return "/".join((f"/subscriptions/{self.subscription}", *parts))

    def vm_id(self, group: str, name: str) -> str:
        return self.id("resourceGroups", group, "providers", "Microsoft.Compute", "virtualMachines", name)

    def number(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128)))

    def address(self, subnet: str = "") -> str:
        """In a subnet that was declared, by its id; else in some other."""
        n, declared = next(self._addresses), getattr(self, "declared", None)
        if cidr := declared.cidr(subnet) if declared and subnet else "":
            return str(ipaddress.ip_network(cidr)[n])
        return f"10.20.{n // 250}.{n % 250}"

    # ---- operations
    def operation(self) -> tuple[str, Json]:
        name = self.number()
        self.operations[name] = {"name": name, "status": "InProgress", "startTime": self.stamp()}
        return name, self.operations[name]

    def done(self, operation: Json, error: tuple[str, str] | Json | None = None) -> None:
        operation |= {"status": "Failed" if error else "Succeeded", "endTime": self.stamp()}
        if error and self.assumed.cause_in_operation:
            whole = {"code": error[0], "message": error[1]} if isinstance(error, tuple) else error
            operation["error"] = whole

    # ---- what there is
    def group(self, name: str) -> Json:
        found = self.groups.get(name.lower())
        if found is None:
            raise Refusal(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")
        return found

    def vm(self, group: str, name: str) -> Vm:
        self.group(group)
        found = self.vms.get(self.vm_id(group, name).lower())
        if found is None:
            text = (
                f"The Resource 'Microsoft.Compute/virtualMachines/{name}' under resource group '{group}' was not found."
            )
            raise Refusal(404, "ResourceNotFound", text)
        return found

    def shown(self, group: str = "") -> Iterator[Vm]:
        for vm in self.vms.values():
            if vm.made_s + self.delays.list_s <= self.now() and group.lower() in ("", vm.group.lower()):
                yield vm

    def view(self, vm: Vm) -> Json:
        """Its instance view."""
        state = vm.properties["provisioningState"].lower()
        code = f"ProvisioningState/{state}"
        status = {"code": code, "level": "Info", "displayStatus": f"Provisioning {state}", "time": self.stamp()}
        if vm.error and self.assumed.cause_in_view:
            status |= {"code": f"{code}/{vm.error[0]}", "level": "Error", "message": vm.error[1]}
        shown = "stopped" if self.assumed.off_while_made and state == "creating" else vm.power
        power = {"code": f"PowerState/{shown}", "level": "Info", "displayStatus": f"VM {shown}"}
        return {"statuses": [status, power] if shown else [status]} | vm.view

    def named(self, pattern: str) -> list[Vm]:
        """Those whose names fit."""
        return [vm for vm in self.vms.values() if re.search(pattern, vm.name)]

    # ---- its beginning
    def boots(self, vm: Vm, up: Callable[[tuple[str, str] | None], None]) -> None:
        """It has its place, and boots. `up`: it is, or why not."""
        id = vm.raw["id"].lower()
        vm.allocated, vm.power, self._booting[id] = True, "running", up
        self.machines.launch(vm, image_name(vm.properties["storageProfile"]["imageReference"]))
        if not self._report:
            return self.reported(vm)
        text = f"OS Provisioning for VM '{vm.name}' did not finish in the allotted time."
        return self.after(_PROVISIONING_S, lambda: self.reported(vm, ("OSProvisioningTimedOut", text)))

    def reported(self, vm: Vm, error: tuple[str, str] | None = None) -> None:
        """Its agent says that it is up, or nothing in time."""
        if up := self._booting.pop(vm.raw["id"].lower(), None):
            up(error)

    # ---- the end of things
    def remove(self, vm: Vm) -> None:
        """It is gone; what was to stay stays."""
        id = vm.raw["id"].lower()
        self.vms.pop(id, None)
        self.machines.end(vm)
        self.reported(vm, ("OperationPreempted", "The operation has been preempted by a more recent operation."))
        for nic, raw in list(self.nics.items()):
            if raw["properties"].get("virtualMachine", {}).get("id", "").lower() == id:
                kept = vm.properties["networkProfile"]["networkInterfaces"][0]["properties"].get("deleteOption")
                if kept == "Delete":
                    del self.nics[nic]
                else:
                    del raw["properties"]["virtualMachine"]
        option = vm.properties["storageProfile"]["osDisk"].get("deleteOption")
        for disk, of in list(self.disks.items()):
            if of == id and option == "Delete":
                del self.disks[disk]
            elif of == id:
                self.disks[disk] = ""

    def ends(self, vm: Vm, seconds: float) -> None:
        vm.raw["properties"]["provisioningState"] = "Deleting"
        self.after(seconds, lambda: self.remove(vm))

    def ends_group(self, name: str) -> None:
        """A group goes with all that is in it, in some time."""
        group = self.group(name)
        group["properties"]["provisioningState"] = "Deleting"
        key = group["name"].lower()
        inside = f"/resourcegroups/{key}/"
        for vm in self.vms.values():
            if vm.group.lower() == key:
                vm.properties["provisioningState"] = "Deleting"

        def gone() -> None:
            now = self.now()
            held = {
                id: nic for id, nic in self.nics.items() if inside in id.lower() and self.reserved_s.get(id, 0) > now
            }
            for vm in [each for each in self.vms.values() if each.group.lower() == key]:
                self.remove(vm)
            for store in (self.nics, self.disks, self.scale_sets):
                for id in [each for each in store if inside in each.lower()]:
                    del store[id]  # type: ignore[attr-defined]
            if held:  # a group with something that can't be deleted is there again, without the rest
                self.nics |= held
                group["properties"]["provisioningState"] = "Succeeded"
            else:
                self.groups.pop(key, None)

        self.after(self.delays.delete_s, gone)

    # ---- what happens to machines without anybody asking
    def evict(self, vm: Vm) -> None:
        """Azure takes a spot machine back."""
        if vm.properties.get("evictionPolicy") == "Delete":
            self.ends(vm, self.delays.evict_s)
        else:
            self.deallocates(vm)

    def stops(self, vm: Vm) -> None:
        """From inside: it stays, and is paid for."""
        self.machines.off(vm)
        vm.power = "stopped"

    def deallocates(self, vm: Vm) -> None:
        """It is off, and only its disk is paid for."""
        self.machines.off(vm)
        vm.power, vm.allocated = "deallocated", False

    def service(self, vm: Vm, begins: str) -> None:
        planned = {"isCustomerInitiatedMaintenanceAllowed": True, "maintenanceWindowStartTime": begins}
        vm.view["maintenanceRedeployStatus"] = planned

    def left_over(self) -> dict[str, list[str]]:
        """What costs money or stands in the way: nothing, at the end."""
        found = {"machines": self.vms, "interfaces": self.nics, "disks": self.disks, "groups": self.groups}
        return {what: sorted(there) for what, there in found.items() if there}


def image_name(reference: Json) -> str:
    """What an image reference names, in short: IMAGE-VERSION of a gallery, or publisher:offer:sku:version."""
    if "id" not in reference:
        return ":".join(reference[key] for key in ("publisher", "offer", "sku", "version"))
    _, _, within = reference["id"].partition("/images/")
    return within.replace("/versions/", "-")
