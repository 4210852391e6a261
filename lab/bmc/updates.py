"""The emulated BMC's update service: it fetches an image or is handed one, and a task tells how far it is.

An image is JSON, {"component": Id of the firmware inventory, "version": ...}. A task goes on with every read of it, so
nothing here waits for a clock. What a maker does otherwise is a row of SHAPES; docs/adr/0070 lists the sources.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from email import message_from_bytes

from lab.bmc.documents import MANAGER
from lab.bmc.media import Refused
from lab.bmc.parts import ROOT, UPDATE, Document, collection, link

TASKS = f"{ROOT}/TaskService/Tasks"
MONITORS = f"{ROOT}/TaskService/TaskMonitors"
SIMPLE = f"{UPDATE}/Actions/UpdateService.SimpleUpdate"
PUSH = f"{UPDATE}/update-multipart"
INVENTORY = f"{UPDATE}/FirmwareInventory"
BMC_RESET = f"{MANAGER}/Actions/Manager.Reset"
STEPS = ("New", "Starting", "Running", "Running", "Completed")
DOWN = 8  # requests that a restarting BMC does not answer
LAG = 3  # reads
ENDED = ("Completed", "Exception", "Killed", "Cancelled")
APPLY_TIME = "@Redfish.OperationApplyTime"
_DELL = {"location-is-the-task", "empty-answer", "refuses-targets", "task-waits-for-a-start"}
_PUSHED = {"no-simple-update", "no-location"}
SHAPES: dict[str, frozenset[str]] = {
    "lab": frozenset(),
    "dgx": frozenset({"location-is-the-task"}),
    "nvidia-hgx": frozenset(_PUSHED | {"version-after-a-start", "lists-staged"}),
    "nvidia-gb200": frozenset(_PUSHED | {"version-after-a-start", "lists-staged"}),
    "nvidia-gh200": frozenset(_PUSHED | {"version-after-a-start", "lists-staged"}),
    "supermicro-gb300": frozenset(_PUSHED | {"version-after-a-start", "lists-staged"}),
    "supermicro": frozenset({"protocols-in-action-info"}),
    "supermicro-x14": frozenset({"protocols-in-action-info", "apply-time-offered"}),
    "dell": frozenset(_DELL | {"apply-time-offered"}),
    "dell-idrac8": frozenset(_DELL | {"no-push", "task-vanishes"}),
    "hpe-ilo5": frozenset({"refuses-targets", "no-push", "version-after-a-start"}),
    "hpe-ilo6": frozenset({"refuses-targets", "version-after-a-start"}),
    "hpe-ilo7": frozenset({"refuses-targets", "version-after-a-start"}),
    "lenovo-xcc": frozenset({"no-simple-update", "hides-payload"}),
    "lenovo-xcc2": frozenset({"no-simple-update"}),
}
"""quirks that a maker's update service has anyway"""


@dataclass
class Task:
    """One update. `steps` is how often it was read while it could go on."""

    number: int
    component: str
    version: str
    sent: Document
    targets: tuple[str, ...] = ()
    steps: int = 0
    state: str = "New"
    status: str = "OK"


@dataclass
class Updates:
    """`own`: the quirks of now, asked at every use. `press`: the machine's button. `flashed`: every (component,
    version) that was written, in order; `broken`: what was being written when the machine was started.
    """

    vendor: str
    own: Callable[[], frozenset[str]]
    press: Callable[[str], None]
    versions: dict[str, str] = field(default_factory=dict)
    staged: dict[str, str] = field(default_factory=dict)
    tasks: dict[int, Task] = field(default_factory=dict)
    flashed: list[tuple[str, str]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    posts: int = 0
    down: int = 0
    refused: int = 0
    others: int = 0
    """updates of somebody else that go on, as reads of them"""
    _late: list[tuple[str, str | None]] = field(default_factory=list)
    """(component, the version that is still shown; None: the machine's own)"""

    def quirks(self) -> frozenset[str]:
        """The maker's, and those of now."""
        return self.own() | SHAPES[self.vendor]

    def answers(self) -> bool:
        """False while the BMC restarts."""
        self.down = max(0, self.down - 1)
        return self.down == 0

    # ---- documents

    def add(self, documents: dict[str, Document], path: str) -> None:
        """The service, its tasks, and the versions that are shown; `path`: of the one that is read."""
        quirks = self.quirks()
        allowed = ["NFS", "TFTP"] if "no-simple-update" in quirks else ["HTTP", "HTTPS", "TFTP"]
        simple: Document = {"target": SIMPLE}
        if "protocols-in-action-info" in quirks:
            simple["@Redfish.ActionInfo"] = f"{UPDATE}/SimpleUpdateActionInfo"
            parameter = {"Name": "TransferProtocol", "AllowableValues": allowed}
            documents[f"{UPDATE}/SimpleUpdateActionInfo"] = {
                "@odata.type": "#ActionInfo.v1_4_2.ActionInfo",
                "Id": "Info",
                "Parameters": [parameter],
            }
        else:
            simple["TransferProtocol@Redfish.AllowableValues"] = allowed
        service: Document = {"Actions": {"#UpdateService.SimpleUpdate": simple}}
        times = {"@Redfish.OperationApplyTimeSupport": {"SupportedValues": ["Immediate", "OnReset"]}}
        if "apply-time-offered" in quirks:
            simple |= times
        if "no-push" not in quirks:
            service["MultipartHttpPushUri"] = PUSH
            if "apply-time-offered" in quirks:
                service |= {f"MultipartHttpPushUri{name}": value for name, value in times.items()}
        documents[UPDATE] = documents[UPDATE] | service
        documents[ROOT] = documents[ROOT] | {"Tasks": link(f"{ROOT}/TaskService")}
        kind = "#TaskService.v1_2_1.TaskService"
        service = {"@odata.type": kind, "Id": "TaskService", "Name": "Tasks", "Tasks": link(TASKS)}
        documents[f"{ROOT}/TaskService"] = service
        theirs = [f"{TASKS}/other"] if self.others else []
        documents[TASKS] = collection("Task", [f"{TASKS}/{number}" for number in self.tasks] + theirs)
        if theirs:
            documents[theirs[0]] = _other()
        for number, task in self.tasks.items():
            documents[f"{TASKS}/{number}"] = self._task(task)
        self._inventory(documents, path)

    def _inventory(self, documents: dict[str, Document], path: str) -> None:
        for component, version in self.versions.items():
            at = _place(documents, component)
            if at is None:
                continue
            late = next((each for each in self._late if each[0] == component), None)
            if late and (path == at or (path.startswith(INVENTORY) and "$expand" in path)):
                self._late.remove(late)
            if late:
                version = late[1] or documents[at]["Version"]
            _shows(documents, at, version)
        for at in [each for each in documents if each.startswith(f"{INVENTORY}/")]:
            documents[at] = documents[at] | {"Updateable": True}
        if "lists-staged" in self.quirks():
            for component, version in self.staged.items():
                at = f"{INVENTORY}/{component}_pending"
                documents[at] = documents[f"{INVENTORY}/{component}"] | {"@odata.id": at, "Version": version}
                documents[at]["Id"] = f"{component}_pending"
            more = [link(f"{INVENTORY}/{component}_pending") for component in self.staged]
            documents[INVENTORY] = documents[INVENTORY] | {"Members": documents[INVENTORY]["Members"] + more}

    def _task(self, task: Task) -> Document:
        shown: Document = {
            "@odata.id": f"{TASKS}/{task.number}",
            "@odata.type": "#Task.v1_7_4.Task",
            "Id": str(task.number),
            "Name": "Firmware update",
            "TaskState": task.state,
            "TaskStatus": task.status,
            "TaskMonitor": f"{MONITORS}/{task.number}",
            "PercentComplete": min(100, task.steps * 25),
            "Messages": [],
        }
        if "hides-payload" not in self.quirks():
            shown["Payload"] = {"HttpOperation": "POST", "TargetUri": SIMPLE, "JsonBody": json.dumps(task.sent)}
        else:
            shown["HidePayload"] = True
        return shown

    def read(self, path: str) -> tuple[int, Document] | None:
        """A GET of a task, of its monitor, or of all in one: the tasks go on by it. (HTTP status, document); None: it
        is any other document, or none.
        """
        if path == f"{TASKS}/other":
            self.others = max(0, self.others - 1)
            return 200, _other()
        if path.startswith(f"{TASKS}?$expand"):  # all of them are read at once
            self.others = max(0, self.others - 1)
            for each in list(self.tasks.values()):
                self._go_on(each)
            return None
        place, _, number = path.rpartition("/")
        task = self.tasks.get(int(number)) if number.isdecimal() and place in (TASKS, MONITORS) else None
        if task is None:
            return None
        self._go_on(task)
        if place == MONITORS and task.state not in ENDED:
            return 202, self._task(task)
        if self.down or (task.state in ENDED and "task-vanishes" in self.quirks()):
            self.tasks.pop(task.number, None)
        return 200, self._task(task)

    def _go_on(self, task: Task) -> None:
        quirks = self.quirks()
        if task.state in ENDED or task.state == "Suspended":
            return
        task.steps += 1
        task.state = STEPS[min(task.steps, len(STEPS) - 1)]
        when = task.sent.get(APPLY_TIME)
        if task.state == "Running" and ("task-waits-for-a-start" in quirks or when == "OnReset"):
            task.state = "Suspended"
            if when == "Immediate":  # Dell's starts the machine itself, whatever runs on it
                self.press("ForceRestart")
            return  # the rest is the start's, which may be done by now
        if task.state == "Running" and "task-fails" in quirks:
            task.state, task.status = "Exception", "Critical"
        if task.steps == 3 and "bmc-restarts" in quirks:
            self._write(task)
            self.down, self.tasks = DOWN, {}
        if task.state == "Completed":
            if "completed-critical" in quirks:
                task.status = "Critical"
            elif "completed-and-old" not in quirks:
                self._write(task)

    def _write(self, task: Task) -> None:
        named = [each.rsplit("/", 1)[-1].split("__")[-1] for each in task.targets] or [task.component]
        for component in named:
            self.flashed.append((component, task.version))
            if "version-after-a-start" in self.quirks():
                self.staged[component] = task.version
            else:
                self._now(component, task.version)

    def _now(self, component: str, version: str) -> None:
        if "version-lags" in self.quirks():
            self._late += [(component, self.versions.get(component))] * LAG
        self.versions[component] = version

    # ---- changes

    def simple(self, sent: Document) -> tuple[int, Document | None, dict[str, str]]:
        """SimpleUpdate. Raises Refused."""
        quirks, scheme = self.quirks(), str(sent.get("ImageURI", "")).partition(":")[0].upper()
        self._understood(sent)
        if "no-simple-update" in quirks or sent.get("TransferProtocol", scheme) != scheme:
            raise Refused(400, "ActionParameterNotSupported", "The protocol is not supported.", "TransferProtocol")
        self._admit()
        try:
            with urllib.request.urlopen(sent["ImageURI"], timeout=5) as answer:
                image = answer.read()
        except OSError:
            raise Refused(400, "ResourceAtUriUnauthorized", "The image can't be had.", "ImageURI") from None
        return self._begin(image, sent)

    def push(self, body: bytes, kind: str) -> tuple[int, Document | None, dict[str, str]]:
        """A multipart POST of the parameters and of the image. Raises Refused."""
        whole = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
        parts = {}
        for part in whole.get_payload() if whole.is_multipart() else []:
            name = re.search(r'name="(\w+)"', str(part.get("Content-Disposition", "")))  # type: ignore[union-attr]
            parts[name[1] if name else ""] = part.get_payload(decode=True)  # type: ignore[union-attr]
        if list(parts)[:2] != ["UpdateParameters", "UpdateFile"]:  # the order is the specification's
            raise Refused(400, "ActionParameterMissing", "UpdateParameters, then UpdateFile.", "UpdateParameters")
        sent = json.loads(parts["UpdateParameters"])
        self._understood(sent)
        self._admit()
        return self._begin(parts["UpdateFile"], sent)

    def _understood(self, sent: Document) -> None:
        quirks = self.quirks()
        if "Targets" in sent and "refuses-targets" in quirks:
            raise Refused(400, "ActionParameterUnknown", "Targets is unknown.", "Targets")
        if APPLY_TIME in sent and "apply-time-offered" not in quirks:
            raise Refused(400, "ActionParameterUnknown", "OperationApplyTime.", APPLY_TIME)

    def _admit(self) -> None:
        running = [task for task in self.tasks.values() if task.state not in ENDED]
        if self.others or running:
            raise Refused(503, "ServiceTemporarilyUnavailable", "Another update is going on.")
        if "update-busy" in self.quirks() and self.refused < LAG:
            self.refused += 1
            raise Refused(409, "ResourceInUse", "The service is busy.")

    def _begin(self, image: bytes, sent: Document) -> tuple[int, Document | None, dict[str, str]]:
        try:
            found = json.loads(image)
        except ValueError:
            raise Refused(400, "InvalidObject", "This is no image.") from None
        self.posts += 1
        task = Task(self.posts, found["component"], found["version"], sent, tuple(sent.get("Targets", ())))
        self.tasks[task.number] = task
        quirks = self.quirks()
        if "gateway-gives-up" in quirks:
            return 502, None, {}
        place = TASKS if "location-is-the-task" in quirks else MONITORS
        where = {} if "no-location" in quirks else {"Location": f"{place}/{task.number}"}
        return 202, None if "empty-answer" in quirks else self._task(task), where

    def started(self) -> None:
        """The machine goes through its self-test: what is staged is in force, and a task that waited for it goes on.
        What is being written right then is broken.
        """
        self.broken += [task.component for task in self.tasks.values() if task.state in STEPS[:-1]]
        for component, version in self.staged.items():
            self._now(component, version)
        self.staged = {}
        for task in self.tasks.values():
            if task.state == "Suspended":
                self._write(task)
                task.state, task.steps = "Completed", len(STEPS) - 1

    def restart(self) -> None:
        """The BMC restarts: it is away, and forgets its tasks."""
        self.down, self.tasks = DOWN, {}


def _other() -> Document:
    kind = "#Task.v1_7_4.Task"
    return {
        "@odata.id": f"{TASKS}/other",
        "@odata.type": kind,
        "Id": "other",
        "Name": "Firmware update",
        "TaskState": "Running",
    }


def _place(documents: dict[str, Document], component: str) -> str | None:
    """Where a component is listed; Dell has its version in the path."""
    if f"{INVENTORY}/{component}" in documents:
        return f"{INVENTORY}/{component}"
    dells = (at for at in documents if at.startswith(f"{INVENTORY}/Installed-") and at.endswith(f"__{component}"))
    return next(dells, None)


def _shows(documents: dict[str, Document], at: str, version: str) -> None:
    own = at.rsplit("/", 1)[1]
    if not own.startswith("Installed-"):
        documents[at] = documents[at] | {"Version": version}
        return
    before = documents.pop(at)
    new = f"Installed-159-{version}__{own.split('__')[-1]}"
    documents[f"{INVENTORY}/{new}"] = before | {"@odata.id": f"{INVENTORY}/{new}", "Id": new, "Version": version}
    for page in [each for each in documents if each == INVENTORY or each.startswith(f"{INVENTORY}?")]:
        listed = [
            link(f"{INVENTORY}/{new}") if each["@odata.id"] == at else each for each in documents[page]["Members"]
        ]
        documents[page] = documents[page] | {"Members": listed}
