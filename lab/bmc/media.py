"""The emulated BMC's virtual media and next start: what it shows of them, and what their actions do, with quirks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from lab.bmc.documents import HOST, MANAGER, Document

LAG = 3  # reads
SETUP = "setup"
"""what a start into the firmware's setup is from"""
TARGETS = ["None", "Pxe", "Cd", "UsbCd", "Hdd", "BiosSetup", "UefiHttp"]
DRIVES = ("Screen", "CD1")
LEDS = {"IndicatorLED", "LocationIndicatorActive"}


class Refused(Exception):
    """HTTP status, Redfish's code, and the sentence; `related`: the property that is meant."""

    def __init__(self, status: int, code: str, message: str, related: str = ""):
        super().__init__(message)
        self.status, self.code, self.message, self.related = status, code, message, related


class _Shown(NamedTuple):
    value: Any
    reads: int


class Media:
    """What is inserted, what the next start is from, and the lamp. `quirks`: asked at every use."""

    def __init__(self, quirks: Callable[[], frozenset[str]]):
        self._quirks = quirks
        self.medium: str | None = None
        self.boot: dict[str, Any] = {
            "BootSourceOverrideTarget": "None",
            "BootSourceOverrideEnabled": "Disabled",
            "BootSourceOverrideMode": "UEFI",
            "HttpBootUri": None,
        }
        self.lamp: dict[str, Any] = {"IndicatorLED": "Off", "LocationIndicatorActive": False}
        self._shown: dict[str, _Shown] = {}

    # ---- what is shown late

    def late(self, what: str, old: Any) -> None:
        """For some reads `what` is shown as it was."""
        self._shown[what] = _Shown(old, LAG)

    def shown(self, what: str, value: Any) -> Any:
        """What a read shows of `what`, which is `value` by now."""
        old = self._shown.pop(what, None)
        if old is None:
            return value
        if old.reads > 1:
            self._shown[what] = _Shown(old.value, old.reads - 1)
        return old.value

    # ---- documents

    def add(self, documents: dict[str, Document], path: str) -> None:
        """Add what can be read of the media to the documents; `path`: of the one that is read."""
        quirks = self._quirks()
        owner = HOST if "media-of-system" in quirks else MANAGER
        place = f"{owner}/VirtualMedia"
        names = DRIVES if "drive-of-the-screen" in quirks else DRIVES[1:]
        documents[owner]["VirtualMedia"] = {"@odata.id": place}
        documents[place] = {
            "@odata.id": place,
            "@odata.type": "#VirtualMediaCollection.VirtualMediaCollection",
            "Name": "Virtual Media",
            "Members@odata.count": len(names),
            "Members": [{"@odata.id": f"{place}/{name}"} for name in names],
        }
        for name in names:
            at = f"{place}/{name}"
            medium = None
            if name == DRIVES[1]:
                medium = self.shown("medium", self.medium) if path == at else self.medium
            documents[at] = _drive(at, name, medium, quirks)
        self.add_boot(documents, path, HOST)

    def add_boot(self, documents: dict[str, Document], path: str, at: str) -> None:
        """The next start, the lamp and the power button of the machine `at` this path."""
        quirks, host = self._quirks(), documents[at]
        host["Boot"] = self.boot | {"BootSourceOverrideTarget@Redfish.AllowableValues": self._targets()}
        host |= self.lamp
        if path == at:
            host["PowerState"] = self.shown("power", host["PowerState"])
        lacks = ("GracefulShutdown", "GracefulRestart") if "no-clean-off" in quirks else ()
        lacks += ("GracefulRestart", "PowerCycle") if "no-clean-restart" in quirks else ()
        if lacks:
            reset = host["Actions"]["#ComputerSystem.Reset"]
            kinds = [kind for kind in reset["ResetType@Redfish.AllowableValues"] if kind not in lacks]
            reset = reset | {"ResetType@Redfish.AllowableValues": kinds}
            host["Actions"] = host["Actions"] | {"#ComputerSystem.Reset": reset}
        host["@odata.etag"] = etag(host)

    # ---- actions

    def act(self, path: str, sent: Any) -> int:
        """A POST below a drive; the HTTP status. Raises Refused, or KeyError where there is no such action."""
        quirks, action = self._quirks(), path.rsplit("/", 1)[-1]
        if action == "VirtualMedia.EjectMedia":
            if "eject-needs-body" in quirks and sent is None:
                raise Refused(400, "MalformedJSON", "A body is needed.")
            if "stale-medium" in quirks:
                self.late("medium", self.medium)
            self.medium = None
            return 204
        if action != "VirtualMedia.InsertMedia":
            raise KeyError(path)
        sent = sent or {}
        if not sent.get("Image"):
            raise Refused(400, "ActionParameterMissing", "Image is needed.", "Image")
        if "needs-protocol" in quirks and "TransferProtocolType" not in sent:
            message = "The action requires the parameter TransferProtocolType."
            raise Refused(400, "ActionParameterMissing", message, "TransferProtocolType")
        if "refuses-defaults" in quirks and {"Inserted", "WriteProtected"} & set(sent):
            raise Refused(400, "ActionParameterUnknown", "Inserted and WriteProtected are not known.")
        if self.medium and "second-medium-refused" in quirks:
            raise Refused(409, "ResourceInUse", "A medium is inserted already.")
        if "insert-is-a-task" in quirks:
            self.late("medium", self.medium)
        self.medium = sent["Image"]
        return 202 if "insert-is-a-task" in quirks else 204

    def patch(self, sent: dict[str, Any], given: str | None, current: str) -> None:
        """A PATCH of the system; `given`: its If-Match, `current`: the entity tag. Raises Refused."""
        quirks, boot = self._quirks(), sent.get("Boot", {})
        if "needs-etag" in quirks and given is None:
            raise Refused(428, "PreconditionRequired", "If-Match is needed.")
        if given not in (None, current):
            raise Refused(412, "PreconditionFailed", "The ETag did not match.")
        target = boot.get("BootSourceOverrideTarget", "None")
        if target not in self._targets():
            raise Refused(400, "PropertyValueNotInList", f"{target} is none of {', '.join(self._targets())}.")
        if "needs-mode" in quirks and target != "None" and boot.get("BootSourceOverrideMode") != "UEFI":
            raise Refused(400, "PropertyValueConflict", "BootSourceOverrideMode must be UEFI.")
        if "no-mode" in quirks and "BootSourceOverrideMode" in boot:
            raise Refused(400, "PropertyNotWritable", "BootSourceOverrideMode is read only.")
        if "setup-once" in quirks and target == "BiosSetup" and boot.get("BootSourceOverrideEnabled") != "Once":
            raise Refused(400, "PropertyValueConflict", "BiosSetup can be for one start alone.")
        self.boot |= {key: value for key, value in boot.items() if key in self.boot}
        self.lamp |= {key: value for key, value in sent.items() if key in LEDS}

    def _targets(self) -> list[str]:
        return [each for each in TARGETS if each != "BiosSetup" or "no-setup" not in self._quirks()]

    def next_start(self) -> str | None:
        """What the machine starts from now (None: its disk). An override for one start is used up."""
        quirks, boot = self._quirks(), self.boot
        target, enabled = boot["BootSourceOverrideTarget"], boot["BootSourceOverrideEnabled"]
        if enabled == "Once" and "once-kept" not in quirks:
            self.forget()
        if enabled not in ("Once", "Continuous"):
            return None
        if target == "BiosSetup":
            return SETUP
        disc = ("UsbCd",) if "cd-is-usb" in quirks else ("Cd", "UsbCd")
        if target in disc:
            return self.medium
        return boot["HttpBootUri"] if target == "UefiHttp" else None

    def powered_off(self) -> None:
        """What a loss of power does to the next start."""
        if "once-lost" in self._quirks():
            self.forget()

    def forget(self) -> None:
        """The next start is the usual one."""
        self.boot |= {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"}


def etag(document: Document) -> str:
    """The entity tag of a document."""
    content = {key: value for key, value in document.items() if key != "@odata.etag"}
    return '"' + hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16] + '"'


def _drive(at: str, name: str, medium: str | None, quirks: frozenset[str]) -> Document:
    verbs = [f"VirtualMedia.{verb}" for verb in ("InsertMedia", "EjectMedia")]
    actions = {f"#{verb}": {"target": f"{at}/Actions/{verb}"} for verb in verbs}
    return {
        "@odata.id": at,
        "@odata.type": "#VirtualMedia.v1_6_0.VirtualMedia",
        "Id": name,
        "Name": name,
        "MediaTypes": ["CD", "DVD"],
        "ConnectedVia": "URI" if medium else "NotConnected",
        "Inserted": medium is not None,
        "Image": None if "name-alone" in quirks else medium,
        "ImageName": medium.rsplit("/", 1)[-1] if medium else None,
        "WriteProtected": True,
        **({"Actions": actions} if name != DRIVES[0] else {}),
    }
