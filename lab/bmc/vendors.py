"""What makers' BMCs do otherwise with the same Redfish, as a table, and what turns plain documents into theirs.

By the makers' own documentation and by recorded answers in public projects: NVIDIA's DGX user guides (an AMI BMC) and
HGX baseboards (a second computer system), Supermicro's Redfish guide (Power and Thermal until X13, PowerSubsystem since
X14; GPUs also listed as nameless PCIe devices), Dell iDRAC 8 and 9 (System.Embedded.1; GPUs as processors named
Video.Slot.1-1, or only as PCIe devices), HPE iLO 5 and 6 (GPUs in Chassis/1/Devices under Oem.Hpe, links in small
letters), Lenovo XCC and XCC2 (GPUs as processors without a model, known by the PCI ids of their functions).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from lab.bmc.machine import Machine
from lab.bmc.parts import BOARD, CHASSIS, HOST, OK, ROOT, UPDATE, Document, collection, link, members

Documents = dict[str, Document]


@dataclass(frozen=True)
class Vendor:
    """One kind of BMC. The defaults are the lab's own."""

    root: Document = field(default_factory=dict)
    """beside what every service root has"""
    manufacturer: str = ""
    system: str = "1"
    chassis: str = "1"
    manager: str = "bmc"
    gpus: Literal["board", "processors", "devices", "pcie"] = "board"
    gpu_id: str = "GPU{n}"
    gpu_named: bool = True
    board_gpus_twice: bool = False
    """also PCIe devices, without a name"""
    power: Literal["subsystem", "legacy"] = "subsystem"
    sensors: Literal["collection", "thermal"] = "collection"
    memory: Literal["number", "text", "missing"] = "number"
    ports: Literal["Ports", "NetworkPorts"] = "Ports"
    expand: Literal["no", "right", "poor"] = "no"
    """poor: answers, but leaves required properties of the members out"""
    page: int | None = None
    """members a page"""
    wrong_count: bool = False
    """Members@odata.count isn't the number of members"""
    small_links: bool = False
    lacks: tuple[str, ...] = ()
    """linked, and answered with 404"""
    nulls: tuple[str, ...] = ()
    """properties that are null everywhere"""
    previous_firmware: bool = False


AMI_ROOT = {"Vendor": "AMI", "Product": "AMI Redfish Server", "RedfishVersion": "1.11.0", "Oem": {"Ami": {}}}
EXPAND = {"ExpandQuery": {"ExpandAll": True, "Levels": True, "Links": True, "NoLinks": True, "MaxLevels": 2}}
VENDORS: dict[str, Vendor] = {
    "lab": Vendor(),
    "dgx": Vendor(
        root=AMI_ROOT | {"ProtocolFeaturesSupported": EXPAND},
        manufacturer="NVIDIA",
        system="DGX",
        chassis="DGX",
        manager="BMC",
        expand="poor",
        nulls=("ChassisType",),
    ),
    "nvidia-hgx": Vendor(
        root={"Vendor": "NVIDIA", "ProtocolFeaturesSupported": EXPAND},
        manufacturer="NVIDIA",
        system="System_0",
        chassis="Chassis_0",
        manager="BMC_0",
        gpu_id="GPU_SXM_{n}",
        expand="right",
    ),
    "supermicro": Vendor(
        root={"Vendor": "Supermicro", "Oem": {"Supermicro": {}}},
        manufacturer="Supermicro",
        manager="1",
        board_gpus_twice=True,
        power="legacy",
        sensors="thermal",
        lacks=("/PCIeSlots",),
    ),
    "supermicro-x14": Vendor(
        root={"Vendor": "Supermicro", "Oem": {"Supermicro": {}}, "ProtocolFeaturesSupported": EXPAND},
        manufacturer="Supermicro",
        manager="1",
        board_gpus_twice=True,
        expand="right",
    ),
    "dell": Vendor(
        root={
            "Vendor": "Dell",
            "Product": "Integrated Dell Remote Access Controller",
            "Oem": {"Dell": {"ServiceTag": "LAB0001"}},
            "ProtocolFeaturesSupported": EXPAND,
        },
        manufacturer="Dell Inc.",
        system="System.Embedded.1",
        chassis="System.Embedded.1",
        manager="iDRAC.Embedded.1",
        gpus="processors",
        gpu_id="Video.Slot.{n}-1",
        power="legacy",
        sensors="thermal",
        expand="right",
        page=50,
        nulls=("LineInputVoltage",),
        previous_firmware=True,
    ),
    "dell-idrac8": Vendor(
        root={"Oem": {"Dell": {}}, "RedfishVersion": "1.4.0"},
        manufacturer="Dell Inc.",
        system="System.Embedded.1",
        chassis="System.Embedded.1",
        manager="iDRAC.Embedded.1",
        gpus="pcie",
        power="legacy",
        sensors="thermal",
        ports="NetworkPorts",
        lacks=("/PCIeSlots",),
        previous_firmware=True,
    ),
    "hpe-ilo5": Vendor(
        root={"Oem": {"Hpe": {"Manager": [{"ManagerType": "iLO 5"}]}}, "RedfishVersion": "1.6.0"},
        manufacturer="HPE",
        manager="1",
        gpus="devices",
        power="legacy",
        sensors="thermal",
        ports="NetworkPorts",
        lacks=("/PCIeSlots",),
        nulls=("LineInputStatus",),
    ),
    "hpe-ilo6": Vendor(
        root={"Vendor": "HPE", "Oem": {"Hpe": {"Manager": [{"ManagerType": "iLO 6"}]}}},
        manufacturer="HPE",
        manager="1",
        gpus="devices",
        sensors="thermal",
        small_links=True,
    ),
    "lenovo-xcc": Vendor(
        root={"Vendor": "Lenovo", "Oem": {"Lenovo": {}}},
        manufacturer="Lenovo",
        manager="1",
        gpus="processors",
        gpu_named=False,
        power="legacy",
        sensors="thermal",
        memory="text",
        wrong_count=True,
    ),
    "lenovo-xcc2": Vendor(
        root={"Vendor": "Lenovo", "Oem": {"Lenovo": {}}, "ProtocolFeaturesSupported": EXPAND},
        manufacturer="Lenovo",
        manager="1",
        gpus="processors",
        gpu_named=False,
        memory="missing",
        expand="right",
        page=4,
    ),
}
PCI_IDS = {
    "NVIDIA H100 80GB HBM3": "0x2330",
    "NVIDIA H200": "0x2335",
    "NVIDIA B200": "0x2901",
    "NVIDIA H100 NVL": "0x2321",
    "NVIDIA L40S": "0x26b9",
    "NVIDIA A100 80GB PCIe": "0x20b5",
    "NVIDIA A100-SXM4-80GB": "0x20b2",
    "NVIDIA A100-SXM4-40GB": "0x20b0",
}
"""of the functions of these GPUs"""


def shaped(documents: Documents, machine: Machine) -> Documents:
    """The plain documents of a machine as its maker's BMC has them."""
    vendor = VENDORS[machine.vendor]
    if machine.vendor == "lab":
        return documents
    documents[ROOT] |= {"Vendor": None} | vendor.root
    documents[HOST]["Manufacturer"] = documents[CHASSIS]["Manufacturer"] = vendor.manufacturer
    if machine.gpus:
        _gpus(documents, machine, vendor)
    if vendor.power == "legacy":
        _legacy_power(documents)
    if vendor.sensors == "thermal":
        _thermal(documents)
    _memory(documents, vendor)
    if vendor.ports == "NetworkPorts":
        _network_ports(documents)
    if vendor.previous_firmware:
        _previous(documents)
    documents = {path: document for path, document in documents.items() if not path.endswith(vendor.lacks or ("?",))}
    documents = _renamed(documents, vendor)
    if vendor.page:
        documents = _paged(documents, vendor.page)
    if vendor.wrong_count:
        for document in documents.values():
            if "Members" in document:
                document["Members@odata.count"] = len(document["Members"]) + 1
    return documents


def plain_path(path: str, vendor: str) -> str:
    """The lab's own path for one of the vendor's: what the service's actions are known by."""
    for ours, theirs in _names(VENDORS[vendor]):
        if path.lower() == theirs.lower() or path.lower().startswith(theirs.lower() + "/"):
            return ours + path[len(theirs) :]
    return path


def host_path(vendor: str) -> str:
    """Where the machine itself is, in the vendor's spelling."""
    return _names(VENDORS[vendor])[0][1]


def expanded(documents: Documents, path: str, vendor: str) -> Document | None:
    """The document at a path with its members in it, as `?$expand` answers; None: there is none."""
    document = documents.get(path)
    how = VENDORS[vendor].expand
    listed = document.get("Members") if isinstance(document, dict) else None
    if document is None or how == "no" or not isinstance(listed, list):
        return document
    inside = [documents.get(str(each.get("@odata.id")), each) if isinstance(each, dict) else each for each in listed]
    if how == "poor":  # AMI's: an embedded member lacks Id and Name
        inside = [{key: value for key, value in each.items() if key not in ("Id", "Name")} for each in inside]
    answer = document | {"Members": inside}
    if next_page := document.get("Members@odata.nextLink"):
        answer["Members@odata.nextLink"] = f"{next_page}&$expand=.($levels=1)"
    return answer


def _gpus(documents: Documents, machine: Machine, vendor: Vendor) -> None:
    board = {path: documents.pop(path) for path in list(documents) if path.startswith(BOARD)}
    gpus = [document for document in board.values() if document.get("ProcessorType") == "GPU"]
    device = f"{CHASSIS}/PCIeDevices/GPU"
    if vendor.gpus == "board":
        documents.update(board)
        if vendor.board_gpus_twice:
            for path in [path for path in documents if path.startswith(device)]:
                documents[path] |= {
                    "Name": path.rsplit("/", 1)[1],
                    "Model": "",
                    "Oem": {"Supermicro": {"GPUDevice": {}}},
                }
        return
    documents[f"{ROOT}/Systems"] = collection("ComputerSystem", [HOST])
    if vendor.gpus == "processors":
        _as_processors(documents, machine, vendor, gpus)
    elif vendor.gpus == "devices":
        _as_devices(documents, machine)


def _as_processors(documents: Documents, machine: Machine, vendor: Vendor, gpus: list[Document]) -> None:
    path = f"{HOST}/Processors"
    listed = [each["@odata.id"] for each in documents[path]["Members"]]
    for n, gpu in enumerate(gpus, 1):
        key, place = vendor.gpu_id.format(n=n), f"{CHASSIS}/PCIeDevices/GPU{n}"
        here = gpu | {"@odata.id": f"{path}/{key}", "Id": key, "Name": key}
        if not vendor.gpu_named:
            function = f"{place}/PCIeFunctions/{key}.00"
            here = {name: value for name, value in here.items() if name not in ("Model", "SystemInterface")}
            here["ProcessorId"] = {"VendorId": "0x10de"}
            here["Links"] = {"PCIeDevice": link(place), "PCIeFunctions": [link(function)]}
            documents[function] = {
                "@odata.id": function,
                "@odata.type": "#PCIeFunction.v1_2_3.PCIeFunction",
                "Id": f"{key}.00",
                "Name": "PCIe function",
                "DeviceClass": "ProcessingAccelerators",
                "VendorId": "0x10de",
                "DeviceId": PCI_IDS.get(machine.gpu_model, "0x0000"),
            }
            documents.get(place, {}).pop("Model", None)
        documents[here["@odata.id"]] = here
        listed.append(here["@odata.id"])
    documents[path] |= collection("Processor", listed)


def _as_devices(documents: Documents, machine: Machine) -> None:
    """HPE: everything in a slot is a server device; GPUs are nowhere else."""
    path = f"{CHASSIS}/Devices"
    for each in [each for each in documents if each.startswith(f"{CHASSIS}/PCIeDevices/GPU")]:
        del documents[each]
    kept = [each for each in documents[f"{CHASSIS}/PCIeDevices"]["Members"] if "GPU" not in each["@odata.id"]]
    documents[f"{CHASSIS}/PCIeDevices"] |= {"Members": kept, "Members@odata.count": len(kept)}
    found: dict[str, Document] = {"1": {"DeviceType": "LOM/NIC", "Name": "BCM 1Gb 4-port", "Location": "Embedded LOM"}}
    for n in range(1, machine.gpus + 1):
        lost = {"Status": {"State": "UnavailableOffline", "Health": "Critical"}} if n in machine.lost_gpus else {}
        found[str(n + 1)] = {
            "DeviceType": "GPU",
            "Name": machine.gpu_model,
            "Manufacturer": "NVIDIA",
            "Location": f"PCI-E Slot {n}",
            "SerialNumber": f"{machine.uuid[-4:]}-G{n}",
            "FirmwareVersion": {"Current": {"VersionString": machine.gpu_firmware}},
            **lost,
        }
    plain = members(path, "HpeServerDevice", "v2_1_0", found)
    documents |= {where: {"@odata.id": where} | document for where, document in plain.items()}
    documents[CHASSIS]["Oem"] = {"Hpe": {"Links": {"Devices": link(path)}}}


def _legacy_power(documents: Documents) -> None:
    """Power with its supplies inside, instead of PowerSubsystem."""
    path = f"{CHASSIS}/Power"
    old = f"{CHASSIS}/PowerSubsystem"
    group = documents[old]["PowerSupplyRedundancy"]
    supplies = []
    for where in [where for where in documents if where.startswith(old)]:
        document = documents.pop(where)
        if "PowerCapacityWatts" in document:
            volts = 0 if document["LineInputStatus"] == "LossOfInput" else 230
            known = {
                key: document[key]
                for key in ("Name", "SerialNumber", "FirmwareVersion", "PowerCapacityWatts", "Status")
            }
            supplies.append(known | {"MemberId": document["Id"], "LineInputVoltage": volts})
    redundancy = [
        {
            "Name": "PSU Redundancy",
            "MemberId": "0",
            "Mode": "N+m" if len(supplies) > 1 else "NotRedundant",
            "MinNumNeeded": each["MinNeededInGroup"],
            "MaxNumSupported": each["MaxSupportedInGroup"],
            **OK,
        }
        for each in group
    ]
    documents[path] = {
        "@odata.id": path,
        "@odata.type": "#Power.v1_7_1.Power",
        "Id": "Power",
        "Name": "Power",
        "PowerControl": [{"MemberId": "0", "Name": "System Power Control", "PowerConsumedWatts": 3150}],
        "PowerSupplies": supplies,
        "PowerSupplies@odata.count": len(supplies),
        "Redundancy": redundancy,
    }
    del documents[CHASSIS]["PowerSubsystem"]
    documents[CHASSIS]["Power"] = link(path)


def _thermal(documents: Documents) -> None:
    """Thermal with its temperatures inside, instead of Sensors."""
    path, old = f"{CHASSIS}/Thermal", f"{CHASSIS}/Sensors"
    readings = [documents.pop(where) for where in [where for where in documents if where.startswith(old)]]
    temperatures = [
        {"MemberId": str(n), "Name": each["Name"], "ReadingCelsius": each["Reading"], **OK}
        for n, each in enumerate(each for each in readings if each.get("ReadingUnits") == "Cel")
    ]
    documents[path] = {
        "@odata.id": path,
        "@odata.type": "#Thermal.v1_7_1.Thermal",
        "Id": "Thermal",
        "Name": "Thermal",
        "Temperatures": [*temperatures, {"MemberId": "99", "Name": "Empty", "ReadingCelsius": None}],
    }
    del documents[CHASSIS]["Sensors"]
    documents[CHASSIS]["Thermal"] = link(path)


def _memory(documents: Documents, vendor: Vendor) -> None:
    if vendor.memory == "missing":
        del documents[HOST]["MemorySummary"]
    elif vendor.memory == "text":
        summary = documents[HOST]["MemorySummary"]
        summary["TotalSystemMemoryGiB"] = str(summary["TotalSystemMemoryGiB"])


def _network_ports(documents: Documents) -> None:
    """NetworkPorts (before 2020) instead of Ports."""
    for path in [path for path in documents if path.startswith(f"{CHASSIS}/NetworkAdapters/")]:
        document = documents[path]
        if "Ports" in document:
            document["NetworkPorts"] = link(document.pop("Ports")["@odata.id"])
        if "CurrentSpeedGbps" in document:
            document["CurrentLinkSpeedMbps"] = document.pop("CurrentSpeedGbps") * 1000
            document["LinkStatus"] = "Up"


def _previous(documents: Documents) -> None:
    """Dell lists what was installed before, too."""
    path = f"{UPDATE}/FirmwareInventory"
    now = [where for where in documents if where.startswith(f"{path}/")]
    listed = []
    for where in now:
        document, key = documents.pop(where), where.rsplit("/", 1)[1]
        for kind, version in (("Installed", document["Version"]), ("Previous", "0.9")):
            name = f"{kind}-159-{version}__{key}"
            listed.append(f"{path}/{name}")
            documents[listed[-1]] = document | {"@odata.id": listed[-1], "Id": name, "Name": key, "Version": version}
    documents[path] |= collection("SoftwareInventory", listed)


def _names(vendor: Vendor) -> tuple[tuple[str, str], ...]:
    """(our path, theirs)"""
    kinds = (
        (HOST, f"{ROOT}/Systems/{vendor.system}"),
        (CHASSIS, f"{ROOT}/Chassis/{vendor.chassis}"),
        (f"{ROOT}/Managers/bmc", f"{ROOT}/Managers/{vendor.manager}"),
    )
    if vendor.small_links:  # all but the last name
        return tuple(
            (ours, theirs.replace("Systems", "systems").replace("Chassis", "chassis")) for ours, theirs in kinds
        )
    return kinds


def _renamed(documents: Documents, vendor: Vendor) -> Documents:
    names = _names(vendor)

    def name(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: None if key in vendor.nulls else name(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [name(inner) for inner in value]
        if isinstance(value, str) and value.startswith(ROOT):
            for ours, theirs in names:
                if value == ours or value.startswith(ours + "/"):
                    return theirs + value[len(ours) :]
        return value

    renamed = {str(name(path)): name(document) for path, document in documents.items()}
    for ours, theirs in names:
        document = renamed[theirs]
        if document.get("Id") == ours.rsplit("/", 1)[1]:
            document["Id"] = theirs.rsplit("/", 1)[1]
    return renamed


def _paged(documents: Documents, size: int) -> Documents:
    """Collections in pages, each with the link to the next."""
    pages: Documents = {}
    for path, document in documents.items():
        every = document.get("Members")
        if not isinstance(every, list) or len(every) <= size:
            pages[path] = document
            continue
        for start in range(0, len(every), size):
            here = path if start == 0 else f"{path}?$skip={start}"
            pages[here] = document | {"Members": every[start : start + size]}
            if start + size < len(every):
                pages[here]["Members@odata.nextLink"] = f"{path}?$skip={start + size}"
    return json.loads(json.dumps(pages))  # type: ignore[no-any-return]
