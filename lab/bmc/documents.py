"""The Redfish documents of one machine: {path: document}, all that can be read with GET.

GPUs are listed as on an HGX server: under a computer system of their own, HGX_Baseboard_0.
"""

from __future__ import annotations

from lab.bmc import shapes
from lab.bmc.machine import Machine
from lab.bmc.parts import BOARD, CHASSIS, HOST, OK, ROOT, UPDATE, Document, parts
from lab.bmc.parts import collection as _collection
from lab.bmc.parts import link as _link
from lab.bmc.parts import members as _members

SESSIONS = f"{ROOT}/SessionService/Sessions"
MANAGER = f"{ROOT}/Managers/bmc"
RESET = f"{HOST}/Actions/ComputerSystem.Reset"
RESET_TYPES = ["On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle"]


def documents(machine: Machine, is_on: bool, boot: dict[str, str], sessions: list[str]) -> dict[str, Document]:
    """Every resource that can be read with GET, by path."""
    resources = {
        ROOT: _service_root(machine),
        **_session_service(sessions),
        f"{ROOT}/Systems": _collection("ComputerSystem", [HOST, BOARD] if machine.gpus else [HOST]),
        f"{ROOT}/Chassis": _collection("Chassis", [CHASSIS]),
        f"{ROOT}/Managers": _collection("Manager", [MANAGER]),
        HOST: _host(machine, is_on, boot),
        CHASSIS: _chassis(machine, is_on),
        MANAGER: _manager(machine),
        UPDATE: _update_service(),
        **parts(machine),
        **_ports(machine),
        **_processors(machine),
        **(_baseboard(machine) if machine.gpus else {}),
    }
    plain = {path: {"@odata.id": path} | document for path, document in resources.items()}
    return shapes.shaped(plain, machine)


def _service_root(machine: Machine) -> Document:
    return {
        "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot",
        "Id": "RootService",
        "Name": "lab BMC (emulated)",
        "RedfishVersion": "1.15.0",
        "UUID": machine.uuid,
        **_links(ROOT, "Systems", "Chassis", "Managers", "SessionService", "UpdateService"),
        "Links": {"Sessions": _link(SESSIONS)},
    }


def _session_service(sessions: list[str]) -> dict[str, Document]:
    service = {
        "@odata.type": "#SessionService.v1_1_8.SessionService",
        "Id": "SessionService",
        "Name": "Session Service",
        "ServiceEnabled": True,
        "SessionTimeout": 1800,
        **_links(f"{ROOT}/SessionService", "Sessions"),
    }
    return {
        f"{ROOT}/SessionService": service,
        SESSIONS: _collection("Session", [f"{SESSIONS}/{key}" for key in sessions]),
    }


def _host(machine: Machine, is_on: bool, boot: dict[str, str]) -> Document:
    reset = {"target": RESET, "ResetType@Redfish.AllowableValues": RESET_TYPES}
    return {
        "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
        "Id": "1",
        "Name": machine.name,
        "HostName": machine.name,
        "SystemType": "Physical",
        "Manufacturer": machine.manufacturer,
        "Model": machine.model,
        "SerialNumber": machine.serial,
        "UUID": machine.uuid,
        "PowerState": "On" if is_on else "Off",
        "BiosVersion": machine.bios_version,
        "Boot": boot,
        **OK,
        "ProcessorSummary": {"Count": machine.cpus, "Model": machine.cpu_model},
        "MemorySummary": {"TotalSystemMemoryGiB": machine.memory_there_gib},
        **_links(HOST, "EthernetInterfaces", "Processors", "Memory", "Storage"),
        "Links": {"ManagedBy": [_link(MANAGER)], "Chassis": [_link(CHASSIS)]},
        "Actions": {"#ComputerSystem.Reset": reset},
    }


def _chassis(machine: Machine, is_on: bool) -> Document:
    return {
        "@odata.type": "#Chassis.v1_21_0.Chassis",
        "Id": "1",
        "Name": machine.name,
        "ChassisType": "RackMount",
        "Manufacturer": machine.manufacturer,
        "Model": machine.model,
        "SerialNumber": machine.serial,
        "PowerState": "On" if is_on else "Off",
        "HeightMm": round(machine.height_u * 44.45, 2),
        **OK,
        **_links(CHASSIS, "NetworkAdapters", "PCIeDevices", "PCIeSlots", "PowerSubsystem", "Sensors"),
        "Links": {"ComputerSystems": [_link(HOST)], "ManagedBy": [_link(MANAGER)]},
    }


def _update_service() -> Document:
    return {
        "@odata.type": "#UpdateService.v1_14_0.UpdateService",
        "Id": "UpdateService",
        "Name": "Update Service",
        "ServiceEnabled": True,
        **_links(UPDATE, "FirmwareInventory"),
    }


def _manager(machine: Machine) -> Document:
    return {
        "@odata.type": "#Manager.v1_15_0.Manager",
        "Id": "bmc",
        "Name": "lab BMC (emulated)",
        "ManagerType": "BMC",
        "FirmwareVersion": machine.bmc_version,
        **OK,
        "Links": {"ManagerForServers": [_link(HOST)]},
    }


def _ports(machine: Machine) -> dict[str, Document]:
    ports = {
        f"NIC{i}": {"Name": f"Port {i}", "MACAddress": mac, "PermanentMACAddress": mac}
        for i, mac in enumerate(machine.macs)
    }
    return _members(f"{HOST}/EthernetInterfaces", "EthernetInterface", "v1_9_0", ports)


def _processors(machine: Machine) -> dict[str, Document]:
    cpu = {
        "ProcessorType": "CPU",
        "Manufacturer": "Intel",
        "Model": machine.cpu_model,
        "TotalCores": 56,
        "TotalThreads": 112,
    }
    cpus = {f"CPU{i}": {"Socket": f"CPU{i}", **cpu} for i in range(machine.cpus)}
    return _members(f"{HOST}/Processors", "Processor", "v1_18_0", cpus)


def _baseboard(machine: Machine) -> dict[str, Document]:
    board = {
        "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
        "Id": "HGX_Baseboard_0",
        "Name": "HGX Baseboard",
        "SystemType": "Physical",
        "Manufacturer": "NVIDIA",
        **OK,
        **_links(BOARD, "Processors"),
    }
    gpus = {f"GPU_SXM_{n}": _gpu(machine, n) for n in range(1, machine.gpus + 1)}
    return {BOARD: board, **_members(f"{BOARD}/Processors", "Processor", "v1_18_0", gpus)}


def _gpu(machine: Machine, n: int) -> Document:
    lanes = {"LanesInUse": machine.gpu_lanes, "MaxLanes": 16, "PCIeType": "Gen5", "MaxPCIeType": "Gen5"}
    lost = {"Status": {"State": "UnavailableOffline", "Health": "Critical"}}
    return {
        "ProcessorType": "GPU",
        "Manufacturer": "NVIDIA",
        "Model": machine.gpu_model,
        "SerialNumber": f"{machine.uuid[-4:]}-G{n}",
        "FirmwareVersion": machine.gpu_firmware,
        "SystemInterface": {"InterfaceType": "PCIe", "PCIe": lanes},
        "Links": {"PCIeDevice": _link(f"{CHASSIS}/PCIeDevices/GPU{n}")},
        **(lost if n in machine.lost_gpus else {}),
    }


def _links(path: str, *names: str) -> Document:
    return {name: _link(f"{path}/{name}") for name in names}
