"""The emulated BMC's BIOS: what is in force, what waits for the next start, and what a PATCH of it may be refused for.

Each maker has the same two documents in other places and with other conditions: a table. By the makers' Redfish guides
and by public projects that cope with them; docs/adr/0070 lists the sources.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from lab.bmc.documents import HOST
from lab.bmc.media import Refused, etag
from lab.bmc.parts import ROOT, Document, collection, link
from lab.bmc.shapes import host_path

LAG = 3  # reads, and refusals of a BMC that is busy
JOBS = f"{ROOT}/Managers/bmc/Jobs"
REGISTRY = f"{ROOT}/Registries/BiosAttributeRegistry"
ENTRIES: tuple[Document, ...] = (
    {"AttributeName": "BootMode", "Type": "Enumeration", "Value": [{"ValueName": "Uefi"}, {"ValueName": "Bios"}]},
    {
        "AttributeName": "ProcVirtualization",
        "Type": "Enumeration",
        "Value": [{"ValueName": "Enabled"}, {"ValueName": "Disabled"}],
    },
    {"AttributeName": "NumaNodes", "Type": "Integer", "LowerBound": 1, "UpperBound": 4},
    {"AttributeName": "QuietBoot", "Type": "Boolean"},
    {"AttributeName": "AssetName", "Type": "String", "MinLength": 0, "MaxLength": 10},
    {"AttributeName": "CpuStepping", "Type": "String", "ReadOnly": True},
    {"AttributeName": "SetupPassword", "Type": "Password"},
)
FACTORY: dict[str, Any] = {
    "BootMode": "Bios",
    "ProcVirtualization": "Disabled",
    "NumaNodes": 1,
    "QuietBoot": True,
    "AssetName": "",
    "CpuStepping": "8",
    "SetupPassword": None,
}


_BOUNDS = ("LowerBound", "UpperBound")


@dataclass(frozen=True)
class Shape:
    """One maker's. `job`: settings are taken only by a job, which a PATCH with an apply time makes, or a POST to the
    manager's Jobs. `whole`: the settings show everything, not only what waits.
    """

    place: str = "Bios"
    settings: str = "Bios/Settings"
    times: tuple[str, ...] = ("OnReset",)
    etag: bool = False
    job: Literal["no", "by time", "posted"] = "no"
    whole: bool = False
    takes_time: bool = True


SHAPES = {
    "lab": Shape(),
    "dgx": Shape(settings="Bios/SD", times=(), etag=True, takes_time=False),
    "nvidia-hgx": Shape(times=()),
    "nvidia-gb200": Shape(times=()),
    "nvidia-gh200": Shape(times=()),
    "supermicro-gb300": Shape(times=()),
    "supermicro": Shape(settings="Bios/SD", times=(), takes_time=False),
    "supermicro-x14": Shape(settings="Bios/SD", times=(), etag=True, takes_time=False),
    "dell": Shape(times=("OnReset", "AtMaintenanceWindowStart", "InMaintenanceWindowOnReset"), job="by time"),
    "dell-idrac8": Shape(times=(), job="posted", takes_time=False),
    "hpe-ilo5": Shape(place="bios", settings="bios/settings/", times=(), whole=True),
    "hpe-ilo6": Shape(place="bios", settings="bios/settings/", times=("OnReset",), whole=True),
    "hpe-ilo7": Shape(place="bios", settings="bios/settings/", times=("OnReset",), whole=True),
    "lenovo-xcc": Shape(settings="Bios/Pending", etag=True, whole=True),
    "lenovo-xcc2": Shape(settings="Bios/Pending", etag=True, whole=True),
}


class Bios:
    """`quirks`: asked at every use."""

    def __init__(self, vendor: str, quirks: Callable[[], frozenset[str]]):
        self._shape, self._quirks, self._host = SHAPES[vendor], quirks, host_path(vendor)
        self.attributes = dict(FACTORY)
        self.pending: dict[str, Any] = {}
        self.job, self.starts, self._busy = False, 0, 0
        self._late: list[tuple[str, dict[str, Any]]] = []

    @property
    def shape(self) -> Shape:
        """The maker's, as the quirks change it."""
        quirks, shape = self._quirks(), self._shape
        if {"bios-needs-etag", "bios-weak-etag"} & quirks:
            shape = replace(shape, etag=True)
        if "bios-refuses-time" in quirks:
            shape = replace(shape, takes_time=False, times=())
        if "bios-needs-job" in quirks:
            shape = replace(shape, job="by time", takes_time=True, times=("OnReset",))
        if "bios-unlinked" in quirks:
            shape = replace(shape, settings="Bios/SD")
        return shape

    # ---- documents

    def add(self, documents: dict[str, Document], path: str) -> None:
        """Its documents, with the machine's link to them; `path`: of the one that is read."""
        shape, quirks = self.shape, self._quirks()
        if self._host not in documents or "bios-nowhere" in quirks:
            return
        at, settings = f"{self._host}/{shape.place}", f"{self._host}/{shape.settings}"
        host = documents[self._host] = dict(documents[self._host])
        host["Bios"] = link(at)
        told: Document = {"@odata.type": "#Settings.v1_3_5.Settings", "SettingsObject": link(settings), "Messages": []}
        if shape.times:
            told["SupportedApplyTimes"] = list(shape.times)
        unsaid = "bios-unsaid-before-a-start" in quirks and not self.starts
        documents[at] = {
            "@odata.id": at,
            "@odata.type": "#Bios.v1_2_2.Bios",
            "Id": "Bios",
            "Name": "BIOS",
            "AttributeRegistry": "BiosAttributeRegistry.v1_0_0",
            "Attributes": {} if unsaid else self._shown("attributes", self.attributes, path == at),
            **({} if "bios-unlinked" in quirks else {"@Redfish.Settings": told}),
        }
        waiting = self._shown("pending", self.pending, path == settings.rstrip("/"))
        documents[settings.rstrip("/")] = {
            "@odata.id": settings,
            "@odata.type": "#Bios.v1_2_2.Bios",
            "Id": "Settings",
            "Name": "BIOS, from the next start on",
            "Attributes": self.attributes | waiting if shape.whole else waiting,
        }
        for place in (at, settings.rstrip("/")):
            documents[place]["@odata.etag"] = etag(documents[place])
        if "bios-without-registry" not in quirks:
            self._registry(documents)

    def _registry(self, documents: dict[str, Document]) -> None:
        file = f"{REGISTRY}/BiosAttributeRegistry.v1_0_0.json"
        documents[ROOT] = documents[ROOT] | {"Registries": link(f"{ROOT}/Registries")}
        documents[f"{ROOT}/Registries"] = collection("MessageRegistryFile", [f"{ROOT}/Registries/Base", REGISTRY])
        documents[f"{ROOT}/Registries/Base"] = _registry_file("Base", "Base.1.18", [])
        elsewhere = {"Language": "de", "Uri": f"{file}-de"}
        here = {"Language": "en", "Uri": file, "PublicationUri": "https://maker.example/x.json"}
        documents[REGISTRY] = _registry_file("BiosAttributeRegistry", "BiosAttributeRegistry.1.0", [elsewhere, here])
        documents[file] = {
            "@odata.type": "#AttributeRegistry.v1_3_8.AttributeRegistry",
            "Id": "BiosAttributeRegistry.v1_0_0",
            "RegistryEntries": {"Attributes": list(ENTRIES)},
        }

    def _shown(self, what: str, value: dict[str, Any], read: bool) -> dict[str, Any]:
        """As it was, for some reads, where that is a quirk."""
        old = next((each for each in self._late if each[0] == what), None)
        if old is None:
            return dict(value)
        if read:
            self._late.remove(old)
        return dict(old[1])

    def _lag(self, what: str, old: dict[str, Any]) -> None:
        if "bios-lags" in self._quirks():
            self._late += [(what, dict(old))] * LAG

    # ---- changes

    def tag(self, path: str, tag: str | None) -> str | None:
        """The ETag in the header of a document, which has `tag` as its own."""
        weak = tag and "bios-weak-etag" in self._quirks() and path == f"{self._host}/{self.shape.settings}".rstrip("/")
        return f"W/{tag}" if weak else tag

    def is_mine(self, path: str) -> bool:
        """A PATCH of this path, in the lab's own spelling, is for the BIOS."""
        return path.lower() in (f"{HOST}/{place}".rstrip("/").lower() for place in (self.shape.settings, "Bios"))

    def patch(self, path: str, sent: dict[str, Any], given: str | None, documents: dict[str, Document]) -> int:
        """The HTTP status; Dell's is 202, for a job. Raises Refused."""
        shape, quirks = self.shape, self._quirks()
        if path.lower().endswith("/bios"):
            raise Refused(405, "OperationNotAllowed", "The BIOS in force is read only.")
        current = documents[f"{self._host}/{shape.settings}".rstrip("/")]["@odata.etag"]
        if shape.etag and given is None:
            raise Refused(428, "PreconditionRequired", "If-Match is needed.")
        if given not in (None, current):
            raise Refused(412, "PreconditionFailed", "The ETag did not match.")
        if "bios-busy" in quirks and self._busy < LAG:
            self._busy += 1
            raise Refused(503, "ServiceTemporarilyUnavailable", "The system is in POST.")
        if self.job:
            raise Refused(400, "PropertyNotUpdated", "A configuration job is scheduled already.")
        timed = "@Redfish.SettingsApplyTime" in sent
        if timed and not shape.takes_time:
            raise Refused(400, "PropertyUnknown", "What is SettingsApplyTime?", "@Redfish.SettingsApplyTime")
        for name, value in sent.get("Attributes", {}).items():
            self._accept(name, value)
        self._lag("pending", self.pending)
        self.pending |= sent.get("Attributes", {})
        if shape.job == "by time":
            self.job = timed
        return 202 if self.job else 200

    def _accept(self, name: str, value: Any) -> None:
        entry = next((each for each in ENTRIES if each["AttributeName"] == name), None)
        if entry is None:
            raise Refused(400, "PropertyUnknown", f"{name} is unknown.", name)
        if entry.get("ReadOnly"):
            raise Refused(400, "PropertyNotWritable", f"{name} is read only.", name)
        kind = {"Integer": int, "Boolean": bool}.get(entry["Type"], str)
        if type(value) is not kind:
            raise Refused(400, "PropertyValueTypeError", f"{name} is no {entry['Type']}.", name)
        size = len(value) if isinstance(value, str) else value
        least, most = (entry.get(each) for each in (("MinLength", "MaxLength") if kind is str else _BOUNDS))
        if (least is not None and size < least) or (most is not None and size > most):
            raise Refused(400, "PropertyValueOutOfRange", f"{name} is from {least} to {most}.", name)
        if "Value" in entry and value not in [each["ValueName"] for each in entry["Value"]]:
            raise Refused(400, "PropertyValueNotInList", f"{name} is not {value}.", name)

    def make_job(self, sent: dict[str, Any]) -> None:
        """Dell's older ones: what waits is taken only by a job for it. Raises Refused."""
        if self.shape.job != "posted" or not str(sent.get("TargetSettingsURI", "")).endswith(self.shape.settings):
            raise Refused(400, "ActionParameterUnknown", "TargetSettingsURI is that of the settings.")
        if not self.pending or self.job:
            raise Refused(400, "PropertyNotUpdated", "There is nothing that waits for a job.")
        self.job = True

    def started(self) -> None:
        """The machine goes through its self-test: what waits is taken, or not."""
        self.starts += 1
        if self.shape.job != "no" and not self.job:
            return
        if "bios-waits-a-start" in self._quirks() and self.starts < 2:
            return
        before = dict(self.attributes)
        dropped = {"NumaNodes"} if "bios-drops" in self._quirks() else set()
        self.attributes |= {name: value for name, value in self.pending.items() if name not in dropped}
        self.pending, self.job = {}, False
        if before != self.attributes:
            self._lag("attributes", before)


def _registry_file(key: str, registry: str, places: list[Document]) -> Document:
    kind = "#MessageRegistryFile.v1_1_4.MessageRegistryFile"
    return {"@odata.type": kind, "Id": key, "Name": key, "Registry": registry, "Location": places}
