"""The parts of one machine as Redfish documents: memory, drives, network adapters, PCIe, power, sensors, firmware.

Written the plain way of the DMTF's schemas; what a maker does otherwise is done to them in lab/bmc/shapes.py.
"""

from __future__ import annotations

from typing import Any

from lab.bmc.machine import Machine

ROOT = "/redfish/v1"
HOST = f"{ROOT}/Systems/1"
BOARD = f"{ROOT}/Systems/HGX_Baseboard_0"
CHASSIS = f"{ROOT}/Chassis/1"
SUBSYSTEM = f"{HOST}/Storage/1"
UPDATE = f"{ROOT}/UpdateService"
Document = dict[str, Any]
OK = {"Status": {"State": "Enabled", "Health": "OK"}}


def link(path: str) -> dict[str, str]:
    """A link to a resource."""
    return {"@odata.id": path}


def collection(kind: str, paths: list[str]) -> Document:
    """A collection of the resources at these paths."""
    return {
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "Name": f"{kind} Collection",
        "Members@odata.count": len(paths),
        "Members": [link(path) for path in paths],
    }


def members(path: str, kind: str, version: str, properties: dict[str, Document]) -> dict[str, Document]:
    """A collection and its members, {path: document}; `properties` is {Id: properties}."""
    listed = {
        f"{path}/{key}": {"@odata.type": f"#{kind}.{version}.{kind}", "Id": key, "Name": key, **OK, **own}
        for key, own in properties.items()
    }
    return {path: collection(kind, list(listed)), **listed}


def parts(machine: Machine) -> dict[str, Document]:
    """All parts, by path."""
    return {
        **memory(machine),
        **storage(machine),
        **adapters(machine),
        **pcie(machine),
        **power(machine),
        **sensors(machine),
        **firmware(machine),
    }


def memory(machine: Machine) -> dict[str, Document]:
    """One document a DIMM; a missing one's socket stays, Absent."""
    each = machine.memory_gib * 1024 // machine.dimms if machine.dimms else 0
    module = {"MemoryDeviceType": "DDR5", "MemoryType": "DRAM", "CapacityMiB": each, "OperatingSpeedMhz": 4800}
    absent = {"Status": {"State": "Absent"}, "CapacityMiB": 0}
    found = {
        f"DIMM{n}": {**module, "DeviceLocator": f"DIMM_{n}", "SerialNumber": f"{machine.uuid[-4:]}-M{n}"}
        | (absent if n in machine.missing_dimms else {})
        for n in range(1, machine.dimms + 1)
    }
    return members(f"{HOST}/Memory", "Memory", "v1_17_0", found)


def storage(machine: Machine) -> dict[str, Document]:
    """One controller with all drives."""
    path = f"{HOST}/Storage"
    drive = {"MediaType": "SSD", "Protocol": "NVMe", "CapacityBytes": 3_840_755_982_336, "Model": "Lab NVMe 3.84TB"}
    drives = {
        f"{path}/1/Drives/Disk{n}": {
            "@odata.type": "#Drive.v1_17_0.Drive",
            "Id": f"Disk{n}",
            "Name": f"Disk {n}",
            "SerialNumber": f"{machine.uuid[-4:]}-D{n}",
            **OK,
            **drive,
        }
        for n in range(1, machine.drives + 1)
    }
    listed = {"Drives": [link(each) for each in drives], "Drives@odata.count": len(drives)}
    controllers = members(f"{path}/1/Controllers", "StorageController", "v1_7_0", {"1": {"Model": "Lab NVMe"}})
    subsystem = {"1": listed | {"Controllers": link(f"{path}/1/Controllers")}}
    return {**members(path, "Storage", "v1_15_0", subsystem), **controllers, **drives}


def adapters(machine: Machine) -> dict[str, Document]:
    """The HCAs of the compute fabric: one port each, known by a GUID, not by a MAC."""
    path = f"{CHASSIS}/NetworkAdapters"
    found: dict[str, Document] = {}
    listed = {}
    for n in range(1, machine.hcas + 1):
        here = f"{path}/HCA{n}"
        listed[f"HCA{n}"] = {"Manufacturer": "NVIDIA", "Model": "ConnectX-7", "Ports": link(f"{here}/Ports")}
        port = {
            "LinkStatus": "LinkUp",
            "CurrentSpeedGbps": 400,
            "PortProtocol": "InfiniBand",
            "InfiniBand": {"AssociatedPortGUIDs": [f"a0:88:c2:03:00:{n:02x}:00:01"]},
        }
        found |= members(f"{here}/Ports", "Port", "v1_9_0", {"1": port})
    return {**members(path, "NetworkAdapter", "v1_9_0", listed), **found}


def pcie(machine: Machine) -> dict[str, Document]:
    """The slots, and what is in them: GPUs and HCAs."""
    path = f"{CHASSIS}/PCIeDevices"
    wide = {"MaxLanes": 16, "PCIeType": "Gen5", "MaxPCIeType": "Gen5"}
    gpus = {
        f"GPU{n}": {
            "Manufacturer": "NVIDIA",
            "Model": machine.gpu_model,
            "PCIeInterface": {"LanesInUse": machine.gpu_lanes, **wide},
        }
        for n in range(1, machine.gpus + 1)
        if n not in machine.lost_gpus
    }
    hcas = {
        f"HCA{n}": {
            "Manufacturer": "NVIDIA",
            "Model": "ConnectX-7",
            "PCIeInterface": {"LanesInUse": 16, **wide},
        }
        for n in range(1, machine.hcas + 1)
    }
    devices = members(path, "PCIeDevice", "v1_11_0", gpus | hcas)
    slots = {
        "@odata.type": "#PCIeSlots.v1_5_0.PCIeSlots",
        "Id": "PCIeSlots",
        "Name": "PCIe slots",
        "Slots": [
            {
                "Lanes": 16,
                "PCIeType": "Gen5",
                "SlotType": "FullLength",
                "Location": {"PartLocation": {"ServiceLabel": f"Slot {n}"}},
                "Links": {"PCIeDevice": [link(device)]},
                **OK,
            }
            for n, device in enumerate(list(devices)[1:], 1)
        ],
    }
    return {**devices, f"{CHASSIS}/PCIeSlots": slots}


def power(machine: Machine) -> dict[str, Document]:
    """PowerSubsystem and its power supplies; one without input says so."""
    path = f"{CHASSIS}/PowerSubsystem"
    dead = {"LineInputStatus": "LossOfInput", "Status": {"State": "UnavailableOffline", "Health": "Critical"}}
    supplies = {
        f"PSU{n}": {
            "PowerCapacityWatts": machine.psu_watts,
            "SerialNumber": f"{machine.uuid[-4:]}-P{n}",
            "FirmwareVersion": "1.5",
            "LineInputStatus": "Normal",
        }
        | (dead if n in machine.dead_psus else {})
        for n in range(1, machine.psus + 1)
    }
    needed = max(1, machine.psus // 2)
    redundancy = {
        "RedundancyType": "NPlusM" if machine.psus > 1 else "NotRedundant",
        "MinNeededInGroup": needed,
        "MaxSupportedInGroup": machine.psus,
        "RedundancyGroup": [link(f"{path}/PowerSupplies/{key}") for key in supplies],
        **OK,
    }
    subsystem = {
        "@odata.type": "#PowerSubsystem.v1_1_0.PowerSubsystem",
        "Id": "PowerSubsystem",
        "Name": "Power Subsystem",
        "PowerSupplies": link(f"{path}/PowerSupplies"),
        "PowerSupplyRedundancy": [redundancy] if supplies else [],
        **OK,
    }
    return {path: subsystem, **members(f"{path}/PowerSupplies", "PowerSupply", "v1_5_0", supplies)}


def sensors(machine: Machine) -> dict[str, Document]:
    """A few sensors: inlet, each GPU, input power."""
    celsius = {"ReadingType": "Temperature", "ReadingUnits": "Cel"}
    found = {
        "Inlet": {"Reading": 24.5, "PhysicalContext": "Intake", **celsius},
        "Input": {"Reading": 3150, "ReadingType": "Power", "ReadingUnits": "W", "PhysicalContext": "Chassis"},
    } | {f"GPU{n}_Temp": {"Reading": 41, "PhysicalContext": "GPU", **celsius} for n in range(1, machine.gpus + 1)}
    return members(f"{CHASSIS}/Sensors", "Sensor", "v1_8_0", found)


def firmware(machine: Machine) -> dict[str, Document]:
    """UpdateService's list of what is installed."""
    found: dict[str, Document] = {
        "BIOS": {"Version": machine.bios_version},
        "BMC": {"Version": machine.bmc_version},
        **{f"GPU{n}": {"Version": machine.gpu_firmware} for n in range(1, machine.gpus + 1)},
    }
    return members(f"{UPDATE}/FirmwareInventory", "SoftwareInventory", "v1_10_0", found)
