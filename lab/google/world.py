"""What is there in the stand-in's project: machines, operations, capacity, and a clock by which things happen."""

from __future__ import annotations

import ipaddress
import itertools
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from lab.google.iam import Iam
from lab.google.vm import Json, Vm
from lab.machines import Machines
from lab.timeline import Timeline

GOOGLE = "https://www.googleapis.com/compute/v1/"
PREEMPTED = "compute.instances.preempted"
_HTTP = {"POOL_EXHAUSTED": 503, "QUOTA": 403, "NOT_FOUND": 404}  # of an operation's error, by a part of its code


class Refusal(Exception):
    """An HTTP error as Compute Engine says it. `reason`: notFound, quotaExceeded, ..."""

    def __init__(self, status: int, reason: str, message: str):
        super().__init__(message)
        self.status, self.reason = status, reason


@dataclass
class Assumptions:
    """What no source says. Each is one of several answers that the real API may give; tests try them all."""

    reused_request_id: str = "first operation"  # what a repeat gets, of whatever body; or "invalid"
    request_id_s: float = 3600.0  # for how long an id is remembered
    operations_kept_s: float = 14 * 86400.0  # after their end; documented is "a limited time"
    quota_at_once: bool = True  # HTTP 403 to the request; False: the operation fails (both are documented)
    capacity_at_once: bool = False  # HTTP 503; False: the operation fails (both are documented)
    cause_in_bulk: bool = False  # beside VM_MIN_COUNT_NOT_REACHED; False: only in the single operations
    deleted_twice: str = "resourceNotReady"  # what a second delete gets while the first works; or "accepted"
    silent_zone: str = "fails"  # an aggregated list with a zone that isn't reached: 503; or "warned"
    condition_sees: str = "name"  # of an instance that a call names by its number; or "number"
    notices_s: Sequence[int] = (0, 120)  # values of preemptionNoticeDuration that are taken; none: an unknown field
    bulk_at_once: int = 10  # operations that run side by side; one more: rateLimitExceeded (documented)
    failed_stays: str = ""  # status of an instance that is there though its insert failed (seen); empty: it isn't there


@dataclass
class Delays:
    """Seconds that things take."""

    insert_s: float = 0.0
    roll_back_s: float = 0.0
    delete_s: float = 0.0
    preempt_s: float = 30.0  # from the power button to the end
    image_s: float = 0.0
    list_s: float = 0.0  # until lists show an instance
    operations_s: float = 0.0  # until lists show an operation


class World(Timeline):
    """One project with one region. Things happen when their time has come: at `passes`, or at the next request."""

    def __init__(
        self,
        project: str = "lab-project",
        region: str = "us-central1",
        zones: Sequence[str] = ("us-central1-a", "us-central1-b", "us-central1-c"),
        seed: int = 1,
        clock: Callable[[], float] = time.time,
        machines: Machines | None = None,
    ):
        super().__init__(clock)
        self.machines = machines or Machines()
        self.project, self.region, self.zones = project, region, list(zones)
        self.assumed, self.delays = Assumptions(), Delays()
        self.capacity: dict[tuple[str, str, str], int] = {}  # (type, zone, model); missing: enough
        self.quota: dict[str, int] = {}  # by machine type, in the region; missing: enough
        self.reservations: dict[str, tuple[str, str, int]] = {}  # name -> zone, type, count
        self.images: dict[str, str] = {}  # name -> family
        self.image_facts: dict[str, Json] = {}  # name -> what isn't as every image has it
        self.made_of: dict[str, Json] = {}  # URL of a disk -> initializeParams
        self.reservation_facts: dict[str, Json] = {}  # name -> what isn't as every reservation has it
        self.metrics: dict[str, tuple[float, float]] = {}  # of quotas: limit, usage
        self.status = "UP"  # of the region
        self.not_offered: set[tuple[str, str]] = set()  # (zone, machine type)
        self.static_addresses: list[Json] = []
        self.disabled: set[str] = set()  # APIs
        self.refused: set[str] = set()  # permissions that a caller lacks in the project
        self.spot_usd: dict[str, float] = {}  # by machine type
        self.silent: set[str] = set()  # zones that give no answer
        self.fails: Callable[[str, Json], Json | None] = lambda *_: None  # zone, properties -> why an insert fails
        self.vms: dict[str, Vm] = {}  # by number
        self.iam = Iam()
        self.secrets: dict[str, bytes] = {}  # projects/P/secrets/NAME
        self.metadata: dict[str, str] = {}  # of the project: attributes
        self.disks: dict[str, str] = {}  # URL -> number of its instance
        self.operations: list[Json] = []
        self.request_ids: dict[str, tuple[float, Json]] = {}
        self._shown_s: dict[str, float] = {}  # operation -> when lists show it
        self.addresses = itertools.count(2)
        self._random = random.Random(seed)

    # ---- names
    def url(self, *parts: str) -> str:
        return GOOGLE + "/".join(("projects", self.project, *parts))

    def number(self) -> str:
        return str(self._random.randrange(10**18, 10**19))

    # ---- operations
    def operation(self, kind: str, zone: str, target: Vm | None = None, **more: Any) -> Json:
        """One that has begun."""
        number = self.number()
        name = f"operation-{number[:13]}-{number[13:]}"
        said = {
            "kind": "compute#operation",
            "id": number,
            "name": name,
            "operationType": kind,
            "status": "RUNNING",
            "progress": 0,
            "insertTime": self.stamp(),
            "startTime": self.stamp(),
            "zone": self.url("zones", zone),
            "selfLink": self.url("zones", zone, "operations", name),
            "user": "controller@lab-project.iam.gserviceaccount.com",
        }
        if target:
            said |= {"targetId": target.raw["id"], "targetLink": target.raw["selfLink"]}
        self.operations.append(said | more)
        self._shown_s[name] = self.now() + self.delays.operations_s
        return self.operations[-1]

    def done(self, operation: Json, *errors: Json) -> None:
        """`errors`: {code, message, errorDetails?}"""
        operation |= {"status": "DONE", "progress": 100, "endTime": self.stamp()}
        if errors:
            operation["error"] = {"errors": list(errors)}
            status = next((_HTTP[word] for word in _HTTP if word in errors[-1]["code"]), 400)
            operation |= {"httpErrorStatusCode": status, "httpErrorMessage": HTTPStatus(status).phrase.upper()}
        self.after(self.assumed.operations_kept_s, lambda: self.operations.remove(operation))

    def shown_operations(self) -> Iterator[tuple[str, Json]]:
        """(zone, operation) of those that lists show."""
        for each in self.operations:
            if self._shown_s[each["name"]] <= self.now():
                yield each["zone"].rpartition("/")[2], each

    # ---- machines
    def address(self, nic: int, host: int, subnetwork: str) -> str:
        """Of a declared subnetwork's range; where nothing was declared, of one for each NIC."""
        declared = getattr(self, "declared", None)
        if cidr := declared.cidr(subnetwork) if declared else "":
            return str(ipaddress.ip_network(cidr)[host])
        return f"10.{20 + nic}.{host // 250}.{host % 250}"

    def add(self, vm: Vm, image: str) -> None:
        """It is there, and boots. `image`: name of its boot disk's."""
        self.vms[vm.raw["id"]] = vm
        self.machines.launch(vm, image)

    def find(self, zone: str, named: str) -> Vm:
        """By name or number."""
        for vm in self.vms.values():
            if vm.zone == zone and named in (vm.name, vm.raw["id"]):
                return vm
        raise self.missing("zones", zone, "instances", named)

    def knows(self, resource: str) -> bool:
        """Whether something that a launch names is there; where nothing was ever declared, all is."""
        declared = getattr(self, "declared", None)
        return declared is None or not any(declared.held.values()) or declared.knows(resource)

    def resource(self, parameters: Json) -> str:
        """The name that a condition sees, of what a call names: an instance's, else its project's."""
        named = parameters.get("instance")
        if not named:
            return f"projects/{self.project}"
        found = (vm.name for vm in self.vms.values() if named == vm.raw["id"] and self.assumed.condition_sees == "name")
        return f"projects/{self.project}/zones/{parameters['zone']}/instances/{next(found, named)}"

    def missing(self, *path: str) -> Refusal:
        return Refusal(404, "notFound", f"The resource '{'/'.join(('projects', self.project, *path))}' was not found")

    def running(self, kind: str, zone: str, model: str) -> int:
        return sum(
            (vm.machine_type, vm.zone, vm.model) == (kind, zone, model) and not vm.reservation
            for vm in self.vms.values()
        )

    def shown(self, vm: Vm) -> bool:
        return vm.made_s + self.delays.list_s <= self.now()

    def remove(self, vm: Vm) -> None:
        """It is gone, and with it its disks that go with it."""
        self.vms.pop(vm.raw["id"], None)
        self.machines.end(vm)
        kept = {each["source"] for each in vm.raw["disks"] if not each.get("autoDelete")}
        self.disks = {url: number for url, number in self.disks.items() if number != vm.raw["id"] or url in kept}

    def ends(self, vm: Vm, operation: Json, seconds: float) -> None:
        """It stops, and is gone then; `operation` is done with that."""
        vm.raw["status"] = "STOPPING"

        def gone() -> None:
            self.remove(vm)
            if operation["status"] != "DONE":
                self.done(operation)

        self.after(seconds, gone)

    # ---- what happens to machines without anybody asking
    def preempt(self, vm: Vm, lead_s: float | None = None) -> None:
        """Google takes a spot instance back: its metadata say so, its power button is pressed, and then it ends.
        `lead_s`: between the first two, instead of what its launch asked for; without such a wish there is none.
        """
        vm.preempted = True
        asked_s = float(vm.raw["scheduling"].get("preemptionNoticeDuration", {}).get("seconds", 0))
        self.after(asked_s if lead_s is None else min(asked_s, lead_s), lambda: self._shuts_down(vm))
        self.settle()

    def _shuts_down(self, vm: Vm) -> None:
        if vm.raw["id"] not in self.vms or vm.raw["status"] != "RUNNING":
            return  # it was faster
        self.machines.press(vm)
        operation = self.operation(PREEMPTED, vm.zone, vm)
        self.done(operation)
        if vm.raw["scheduling"].get("instanceTerminationAction") == "DELETE":
            self.ends(vm, operation, self.delays.preempt_s)
        else:
            self.stops(vm)

    def stops(self, vm: Vm) -> None:
        """From inside: it stays, and its disks are paid for."""
        self.machines.off(vm)
        vm.raw["status"] = "TERMINATED"

    def service(self, vm: Vm, begins: str) -> None:
        planned = {"type": "SCHEDULED", "maintenanceStatus": "PENDING", "windowStartTime": begins}
        vm.raw["resourceStatus"] = {"upcomingMaintenance": planned}

    def named(self, pattern: str) -> list[Vm]:
        """Those whose names fit."""
        return [vm for vm in self.vms.values() if re.search(pattern, vm.name)]
