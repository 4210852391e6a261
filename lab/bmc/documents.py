"""The Redfish documents of one machine: {path: document}, all that can be read with GET.

GPUs are listed as on an HGX server: under a computer system of their own, HGX_Baseboard_0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ROOT = "/redfish/v1"
SESSIONS = f"{ROOT}/SessionService/Sessions"
HOST = f"{ROOT}/Systems/1"
BOARD = f"{ROOT}/Systems/HGX_Baseboard_0"
CHASSIS = f"{ROOT}/Chassis/1"
MANAGER = f"{ROOT}/Managers/bmc"
RESET = f"{HOST}/Actions/ComputerSystem.Reset"
RESET_TYPES = ["On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle"]
OK = {"Status": {"State": "Enabled", "Health": "OK"}}
Document = dict[str, Any]


@dataclass(frozen=True)
class Machine:
    """The hardware that a BMC reports; memory in GiB."""

    name: str
    serial: str
    uuid: str
    macs: tuple[str, ...]
    manufacturer: str = "LabCorp (simulated)"
    model: str = "HGX-8H100"
    gpus: int = 8
    gpu_model: str = "NVIDIA H100 80GB HBM3"
    cpus: int = 2
    cpu_model: str = "Intel(R) Xeon(R) Platinum 8480C"
    memory_gib: int = 2048


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
        MANAGER: _manager(),
        **_ports(machine),
        **_processors(machine),
        **(_baseboard(machine) if machine.gpus else {}),
    }
    return {path: {"@odata.id": path} | document for path, document in resources.items()}


def _service_root(machine: Machine) -> Document:
    return {
        "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot",
        "Id": "RootService",
        "Name": "lab BMC (emulated)",
        "RedfishVersion": "1.15.0",
        "UUID": machine.uuid,
        **_links(ROOT, "Systems", "Chassis", "Managers", "SessionService"),
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
        "BiosVersion": "1.0",
        "Boot": boot,
        **OK,
        "ProcessorSummary": {"Count": machine.cpus, "Model": machine.cpu_model},
        "MemorySummary": {"TotalSystemMemoryGiB": machine.memory_gib},
        **_links(HOST, "EthernetInterfaces", "Processors"),
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
        **OK,
        "Links": {"ComputerSystems": [_link(HOST)], "ManagedBy": [_link(MANAGER)]},
    }


def _manager() -> Document:
    return {
        "@odata.type": "#Manager.v1_15_0.Manager",
        "Id": "bmc",
        "Name": "lab BMC (emulated)",
        "ManagerType": "BMC",
        "FirmwareVersion": "lab-1.0",
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
    gpu = {"ProcessorType": "GPU", "Manufacturer": "NVIDIA", "Model": machine.gpu_model}
    gpus = {f"GPU_SXM_{i + 1}": gpu for i in range(machine.gpus)}
    return {BOARD: board, **_members(f"{BOARD}/Processors", "Processor", "v1_18_0", gpus)}


def _link(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def _links(path: str, *names: str) -> Document:
    return {name: _link(f"{path}/{name}") for name in names}


def _collection(kind: str, paths: list[str]) -> Document:
    return {
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "Name": f"{kind} Collection",
        "Members@odata.count": len(paths),
        "Members": [_link(path) for path in paths],
    }


def _members(path: str, kind: str, version: str, properties: dict[str, Document]) -> dict[str, Document]:
    """A collection and its members, {path: document}; `properties` is {Id: properties}."""
    members = {
        f"{path}/{key}": {"@odata.type": f"#{kind}.{version}.{kind}", "Id": key, "Name": key, **OK, **own}
        for key, own in properties.items()
    }
    return {path: _collection(kind, list(members)), **members}
