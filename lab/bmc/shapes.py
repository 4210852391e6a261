"""Turns the plain documents of a machine into those of a maker's BMC, by the table of lab/bmc/vendors.py."""

from __future__ import annotations

import json
import re
from typing import Any

from lab.bmc import readings
from lab.bmc.machine import Machine
from lab.bmc.parts import BOARD, CHASSIS, HOST, ROOT, SUBSYSTEM, UPDATE, Document, collection, link, members
from lab.bmc.vendors import PCI_IDS, VENDORS, Vendor

Documents = dict[str, Document]


def shaped(documents: Documents, machine: Machine) -> Documents:
    """The plain documents of a machine as its maker's BMC has them."""
    vendor = VENDORS[machine.vendor]
    if machine.vendor == "lab":
        return documents
    documents[ROOT] |= {"Vendor": None} | vendor.root
    documents[HOST]["Manufacturer"] = documents[CHASSIS]["Manufacturer"] = vendor.manufacturer
    if machine.gpus:
        _gpus(documents, machine, vendor)
    readings.power(documents, vendor)
    readings.sensors(documents, vendor)
    _memory(documents, vendor)
    _identity(documents, machine, vendor)
    if not vendor.lists_drives:
        documents = {path: document for path, document in documents.items() if not path.startswith(f"{SUBSYSTEM}/")}
        del documents[SUBSYSTEM]["Controllers"]
        documents[SUBSYSTEM] |= {"Drives": [], "Drives@odata.count": 0}
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
    """The document at a path with those inside that it links to, one level, as `?$expand=.` answers; None: there is
    none. By the DMTF (DSP0266): a collection's members, and every link of a document that isn't in its Links.
    """
    document = documents.get(path)
    how = VENDORS[vendor].expand
    if not isinstance(document, dict) or how == "no":
        return document

    def inside(value: Any) -> Any:
        if isinstance(value, list):
            return [inside(each) for each in value]
        if not isinstance(value, dict):
            return value
        if list(value) != ["@odata.id"]:
            return {key: each if key == "Links" else inside(each) for key, each in value.items()}
        found = documents.get(str(value["@odata.id"]).rstrip("/"), value)
        if how == "right" or not isinstance(found, dict):
            return found
        return {key: each for key, each in found.items() if key not in ("Id", "Name")}  # AMI's lacks them

    answer: Document = inside(document)
    if next_page := document.get("Members@odata.nextLink"):
        answer["Members@odata.nextLink"] = f"{next_page}&$expand=.($levels=1)"
    return answer


def _gpus(documents: Documents, machine: Machine, vendor: Vendor) -> None:
    board = {path: documents.pop(path) for path in list(documents) if path.startswith(BOARD)}
    gpus = [document for document in board.values() if document.get("ProcessorType") == "GPU"]
    device = f"{CHASSIS}/PCIeDevices/GPU"
    if vendor.gpus == "board":
        documents.update(board)
        _on_board(documents, vendor, gpus)
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


def _on_board(documents: Documents, vendor: Vendor, gpus: list[Document]) -> None:
    """Superchips: not on PCIe, or nameless, or two with one serial number."""
    for n, gpu in enumerate(gpus):
        if vendor.gpu_lanes == "one":
            gpu["SystemInterface"]["PCIe"] |= {"LanesInUse": 1, "MaxLanes": 1}
        if vendor.gpu_lanes == "unsaid":
            del gpu["SystemInterface"]
        if vendor.gpu_called == "nothing":
            documents.pop(gpu.pop("Links")["PCIeDevice"]["@odata.id"], None)
            del gpu["Model"]
        if vendor.gpu_serials == "board":
            gpu |= {"UUID": f"8b1e7f0e-0000-4000-8000-{n:012x}", "SerialNumber": gpus[n - n % 2]["SerialNumber"]}
        if vendor.gpu_serials == "none":
            del gpu["SerialNumber"]
    cards = documents[f"{CHASSIS}/PCIeDevices"]
    cards["Members"] = [each for each in cards["Members"] if each["@odata.id"] in documents]


def _as_processors(documents: Documents, machine: Machine, vendor: Vendor, gpus: list[Document]) -> None:
    path = f"{HOST}/Processors"
    listed = [each["@odata.id"] for each in documents[path]["Members"]]
    for n, gpu in enumerate(gpus, 1):
        key, place = vendor.gpu_id.format(n=n), f"{CHASSIS}/PCIeDevices/GPU{n}"
        here = gpu | {"@odata.id": f"{path}/{key}", "Id": key, "Name": key}
        if vendor.gpu_lanes == "unsaid":
            del here["SystemInterface"], here["Links"]
        if vendor.gpu_called == "name":
            here |= {"Name": machine.gpu_model, "Model": "900-21010-0320-030"}
        if vendor.gpu_called == "pci id":
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
    """HPE: everything in a slot is a server device; GPUs are nowhere else. An HGX board and its switches are listed as
    GPUs, too (recorded of an XL675d Gen10+ with iLO 5).
    """
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
    if sxm := re.search(r"A100-SXM4|H[12]00(?! NVL| PCIe)|B[23]00", machine.gpu_model):
        board = {"DeviceType": "GPU", "Manufacturer": "NVIDIA", "SerialNumber": f"{machine.uuid[-4:]}-B"}
        name = f"NVIDIA HGX {sxm[0][:4]} {machine.gpus} GPU 40"
        found["90"] = {**board, "Name": name, "Location": "GPU Baseboard"}
        found["91"] = {**board, "Name": "NVIDIA NV Switch", "Location": "PCI-E Slot 9", "SerialNumber": ""}
    plain = members(path, "HpeServerDevice", "v2_1_0", found)
    documents |= {where: {"@odata.id": where} | document for where, document in plain.items()}
    documents[CHASSIS]["Oem"] = {"Hpe": {"Links": {"Devices": link(path)}}}


def _memory(documents: Documents, vendor: Vendor) -> None:
    if vendor.memory == "missing":
        del documents[HOST]["MemorySummary"]
    elif vendor.memory == "text":
        summary = documents[HOST]["MemorySummary"]
        summary["TotalSystemMemoryGiB"] = str(summary["TotalSystemMemoryGiB"])
    elif vendor.memory == "board" and BOARD in documents:
        documents[BOARD] |= {name: documents[HOST].pop(name) for name in ("MemorySummary", "Memory")}


def _identity(documents: Documents, machine: Machine, vendor: Vendor) -> None:
    """What has the machine's serial number, and what has another."""
    host, chassis = documents[HOST], documents[CHASSIS]
    if vendor.tagged:
        host |= {"SerialNumber": f"CN{machine.serial}", "Oem": {"Dell": {"DellSystem": {"NodeID": machine.serial}}}}
    if vendor.bears_name == "system":
        chassis["SerialNumber"] = f"{machine.serial}-C"
        return
    for name in ("SerialNumber", "Manufacturer", "Model"):
        del host[name]
    path = f"{ROOT}/Chassis/BMC_0"
    host["Links"]["Chassis"] = [link(path)]
    documents[path] = {
        "@odata.id": path,
        "@odata.type": "#Chassis.v1_21_0.Chassis",
        "Id": "BMC_0",
        "Name": "BMC_0",
        "ChassisType": "Component",
        "SerialNumber": f"{machine.serial}-B",
        "Links": {"ComputerSystems": [link(HOST)]},
    }
    documents[f"{ROOT}/Chassis"] |= collection("Chassis", [path, CHASSIS])
    chassis["ChassisType"] = "Shelf" if vendor.bears_name == "chassis" else "Component"
    if vendor.bears_name == "board" and BOARD in documents:
        chassis["SerialNumber"] = f"{machine.serial}-C"
        documents[BOARD] |= {"SerialNumber": machine.serial, "Model": ""}


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
