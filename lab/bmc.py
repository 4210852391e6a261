"""The lab's BMCs: a Redfish service a node, whose power button is the node's host.

    python -m lab.bmc --prefix P        serves every bare-metal node of the lab P on its BMC address, until it is ended

The protocol is real Redfish (the parts of it that sushy and an inventory need), the hardware is made up. GPUs are
listed as on an HGX server: under a computer system of their own, HGX_Baseboard_0. Faults are read from one JSON file at
every request, {node: fault}; see Fault for what there is. Every request is appended to a log, one JSON object a line.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import secrets
import signal
import socket
import struct
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Protocol

ROOT = "/redfish/v1"
USERNAME = "admin"
PASSWORD_VARIABLE = "LAB_BMC_PASSWORD"
RESET_TYPES = ["On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle"]
MAX_SESSIONS = 16  # real BMCs have few; one that leaks them locks its owner out


class Power(Protocol):
    """A machine's power, as its BMC switches it. Calls return when it is done."""

    def is_on(self) -> bool: ...
    def start(self) -> None: ...
    def stop(self) -> None:
        """A clean shutdown."""

    def off(self) -> None:
        """A power cut."""


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


@dataclass(frozen=True)
class Fault:
    """What is wrong with one BMC.

    `answer`: "reset" drops the connection, "silent" never answers, "half" breaks off in the middle of the body,
    "garbled" sends half of the JSON as if it were all, "unavailable" is HTTP 503, "echo" is HTTP 400 that repeats what
    was sent. Only for paths that contain `path`, and only `times` times (None: always). `wrong_password`: every login
    is refused. `hardware` replaces fields of Machine.
    """

    answer: Literal["reset", "silent", "half", "garbled", "unavailable", "echo"] | None = None
    path: str = ""
    times: int | None = None
    wrong_password: bool = False
    hardware: dict[str, Any] = field(default_factory=dict)


def read_faults(path: Path) -> dict[str, Fault]:
    """{node: fault} of the control file; no file, no faults. Raises ValueError or TypeError for one that isn't
    understood.
    """
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    return {node: Fault(**fault) for node, fault in json.loads(text).items()} if text.strip() else {}


def write_fault(path: Path, node: str, fault: Fault | None) -> None:
    """Set or (None) clear the fault of one node in the control file; it holds from the next request on."""
    faults = {name: each.__dict__ for name, each in read_faults(path).items() if name != node}
    if fault is not None:
        faults[node] = fault.__dict__
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(faults, indent=1))
    temporary.replace(path)


class Bmc:
    """One node's BMC. `port` 0 takes a free one; raises OSError where the address is in use."""

    def __init__(
        self,
        machine: Machine,
        power: Power,
        password: str,
        *,
        address: str = "127.0.0.1",
        port: int = 80,
        faults: Path | None = None,
        log: Path | None = None,
    ) -> None:
        self.declared, self.power, self.log = machine, power, log
        self._faults, self._served, self._lock = faults, Counter[str](), threading.Lock()
        self._basic = "Basic " + base64.b64encode(f"{USERNAME}:{password}".encode()).decode()
        self._login = {"UserName": USERNAME, "Password": password}
        self.sessions: dict[str, str] = {}
        """session id: token"""
        self.boot = {
            "BootSourceOverrideTarget": "None",
            "BootSourceOverrideEnabled": "Disabled",
            "BootSourceOverrideMode": "UEFI",
        }
        self.closing = threading.Event()
        self._server = _Server((address, port), _Handler)
        self._server.bmc = self
        host, actual = self._server.server_address[:2]
        self.url = f"http://{host}:{actual}" if actual != 80 else f"http://{host}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    def __enter__(self) -> Bmc:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    # ---- state

    def fault(self) -> Fault:
        return (read_faults(self._faults) if self._faults else {}).get(self.declared.name, Fault())

    def machine(self) -> Machine:
        """The hardware as it is now, with the fault's changes."""
        changes = {
            key: tuple(value) if isinstance(value, list) else value for key, value in self.fault().hardware.items()
        }
        return replace(self.declared, **changes)

    def answer_fault(self, path: str) -> str | None:
        """The fault that this request meets, counting those that are limited to a number of times."""
        fault = self.fault()
        if fault.answer is None or fault.path not in path:
            return None
        with self._lock:
            key = json.dumps(fault.__dict__, sort_keys=True)
            self._served[key] += 1
            return fault.answer if fault.times is None or self._served[key] <= fault.times else None

    def record(self, method: str, path: str, status: int | str) -> None:
        if self.log:
            line = json.dumps({"node": self.declared.name, "method": method, "path": path, "status": status})
            with self._lock, self.log.open("a") as file:
                file.write(line + "\n")

    # ---- login

    def allowed(self, headers: Any) -> bool:
        if self.fault().wrong_password:
            return False
        token = headers.get("X-Auth-Token", "")
        known = any(secrets.compare_digest(token, each) for each in self.sessions.values())
        return known or secrets.compare_digest(headers.get("Authorization", ""), self._basic)

    def open_session(self, login: Any) -> tuple[str, str] | None:
        """(id, token); None: refused."""
        if login != self._login or self.fault().wrong_password:
            return None
        with self._lock:
            if len(self.sessions) >= MAX_SESSIONS:
                return None
            key, token = secrets.token_hex(4), secrets.token_hex(16)
            self.sessions[key] = token
            return key, token

    # ---- power

    def reset(self, kind: str) -> None:
        """Press the button; returns at once, as a real BMC does: poll PowerState."""
        threading.Thread(target=self._reset, args=(kind,), daemon=True).start()

    def _reset(self, kind: str) -> None:
        if kind in ("GracefulShutdown", "GracefulRestart") and self.power.is_on():
            self.power.stop()
        if kind in ("ForceOff", "ForceRestart", "PowerCycle"):
            self.power.off()
        if kind in ("On", "GracefulRestart", "ForceRestart", "PowerCycle") and not self.power.is_on():
            self.power.start()
        if self.boot["BootSourceOverrideEnabled"] == "Once":
            self.boot |= {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"}


# ---- the Redfish documents: {path: document}


def documents(machine: Machine, is_on: bool, boot: dict[str, str], sessions: list[str]) -> dict[str, dict[str, Any]]:
    """Every resource that can be read with GET, by path."""
    host, board, bmc = f"{ROOT}/Systems/1", f"{ROOT}/Systems/HGX_Baseboard_0", f"{ROOT}/Managers/bmc"
    has_gpus = machine.gpus > 0
    found = {
        ROOT: {
            "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot",
            "Id": "RootService",
            "Name": "lab BMC (emulated)",
            "RedfishVersion": "1.15.0",
            "UUID": machine.uuid,
            **_links(ROOT, "Systems", "Chassis", "Managers", "SessionService"),
            "Links": {"Sessions": {"@odata.id": f"{ROOT}/SessionService/Sessions"}},
        },
        f"{ROOT}/SessionService": {
            "@odata.type": "#SessionService.v1_1_8.SessionService",
            "Id": "SessionService",
            "Name": "Session Service",
            "ServiceEnabled": True,
            "SessionTimeout": 1800,
            **_links(f"{ROOT}/SessionService", "Sessions"),
        },
        f"{ROOT}/SessionService/Sessions": _collection(
            "Session", [f"{ROOT}/SessionService/Sessions/{key}" for key in sessions]
        ),
        f"{ROOT}/Systems": _collection("ComputerSystem", [host, board] if has_gpus else [host]),
        f"{ROOT}/Chassis": _collection("Chassis", [f"{ROOT}/Chassis/1"]),
        f"{ROOT}/Managers": _collection("Manager", [bmc]),
        host: {
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
            **_OK,
            "ProcessorSummary": {"Count": machine.cpus, "Model": machine.cpu_model},
            "MemorySummary": {"TotalSystemMemoryGiB": machine.memory_gib},
            **_links(host, "EthernetInterfaces", "Processors"),
            "Links": {"ManagedBy": [{"@odata.id": bmc}], "Chassis": [{"@odata.id": f"{ROOT}/Chassis/1"}]},
            "Actions": {
                "#ComputerSystem.Reset": {
                    "target": f"{host}/Actions/ComputerSystem.Reset",
                    "ResetType@Redfish.AllowableValues": RESET_TYPES,
                }
            },
        },
        f"{ROOT}/Chassis/1": {
            "@odata.type": "#Chassis.v1_21_0.Chassis",
            "Id": "1",
            "Name": machine.name,
            "ChassisType": "RackMount",
            "Manufacturer": machine.manufacturer,
            "Model": machine.model,
            "SerialNumber": machine.serial,
            "PowerState": "On" if is_on else "Off",
            **_OK,
            "Links": {"ComputerSystems": [{"@odata.id": host}], "ManagedBy": [{"@odata.id": bmc}]},
        },
        bmc: {
            "@odata.type": "#Manager.v1_15_0.Manager",
            "Id": "bmc",
            "Name": "lab BMC (emulated)",
            "ManagerType": "BMC",
            "FirmwareVersion": "lab-1.0",
            **_OK,
            "Links": {"ManagerForServers": [{"@odata.id": host}]},
        },
    }
    nics = {
        f"NIC{i}": {"Name": f"Port {i}", "MACAddress": mac, "PermanentMACAddress": mac}
        for i, mac in enumerate(machine.macs)
    }
    found |= _members(f"{host}/EthernetInterfaces", "EthernetInterface", "v1_9_0", nics)
    cpu = {
        "ProcessorType": "CPU",
        "Manufacturer": "Intel",
        "Model": machine.cpu_model,
        "TotalCores": 56,
        "TotalThreads": 112,
    }
    found |= _members(
        f"{host}/Processors",
        "Processor",
        "v1_18_0",
        {f"CPU{i}": {"Socket": f"CPU{i}", **cpu} for i in range(machine.cpus)},
    )
    if has_gpus:
        gpu = {"ProcessorType": "GPU", "Manufacturer": "NVIDIA", "Model": machine.gpu_model}
        found[board] = {
            "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
            "Id": "HGX_Baseboard_0",
            "Name": "HGX Baseboard",
            "SystemType": "Physical",
            "Manufacturer": "NVIDIA",
            **_OK,
            **_links(board, "Processors"),
        }
        found |= _members(
            f"{board}/Processors", "Processor", "v1_18_0", {f"GPU_SXM_{i + 1}": gpu for i in range(machine.gpus)}
        )
    return {path: {"@odata.id": path} | document for path, document in found.items()}


_OK = {"Status": {"State": "Enabled", "Health": "OK"}}


def _links(path: str, *names: str) -> dict[str, Any]:
    return {name: {"@odata.id": f"{path}/{name}"} for name in names}


def _collection(kind: str, paths: list[str]) -> dict[str, Any]:
    return {
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "Name": f"{kind} Collection",
        "Members@odata.count": len(paths),
        "Members": [{"@odata.id": path} for path in paths],
    }


def _members(path: str, kind: str, version: str, each: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """A collection and its members, {path: document}; `each` is {Id: properties}."""
    found = {path: _collection(kind, [f"{path}/{key}" for key in each])}
    for key, properties in each.items():
        found[f"{path}/{key}"] = {
            "@odata.type": f"#{kind}.{version}.{kind}",
            "Id": key,
            "Name": key,
            **_OK,
            **properties,
        }
    return found


# ---- HTTP


class _Server(ThreadingHTTPServer):
    bmc: Bmc
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # clients hang up, that's no error of ours
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Bmc.record writes the log."""

    def do_any(self) -> None:
        bmc, path = self.server.bmc, self.path.rstrip("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = bmc.answer_fault(path)
        if fault:
            bmc.record(self.command, path, fault)
        if fault == "silent":
            bmc.closing.wait(600)
        if fault in ("silent", "reset"):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close with RST
            self.close_connection = True
            return
        status, document, headers = self._answer(bmc, path, body, fault)
        if not fault:
            bmc.record(self.command, path, status)  # before the answer: who has the answer finds it in the log
        text = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        half = text[: len(text) // 2]
        self.send_header("Content-Length", str(len(half if fault == "garbled" else text)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(half if fault in ("half", "garbled") else text)

    do_GET = do_POST = do_PATCH = do_DELETE = do_any

    def _answer(
        self, bmc: Bmc, path: str, body: bytes, fault: str | None
    ) -> tuple[int, dict[str, Any] | None, dict[str, str]]:
        """(status, document, headers)"""
        if fault == "unavailable":
            return (
                503,
                _error("ServiceTemporarilyUnavailable", "The service is temporarily unavailable."),
                {"Retry-After": "1"},
            )
        if fault == "echo":
            sent = f"{body.decode(errors='replace')} {dict(self.headers)}"
            return 400, _error("MalformedJSON", f"Could not understand: {sent}"), {}
        try:
            sent = json.loads(body) if body else {}
        except ValueError:
            return 400, _error("MalformedJSON", "The request body was malformed JSON."), {}
        sessions = f"{ROOT}/SessionService/Sessions"
        if (self.command, path) == ("POST", sessions):
            opened = bmc.open_session(sent)
            if opened is None:
                return 401, _error("ResourceAtUriUnauthorized", "The login was refused."), {}
            place = f"{sessions}/{opened[0]}"
            document = {"@odata.id": place, "Id": opened[0], "Name": "session", "UserName": USERNAME}
            return 201, document, {"X-Auth-Token": opened[1], "Location": place}
        if path != ROOT and not bmc.allowed(self.headers):
            return (
                401,
                _error("NoValidSession", "There is no valid session."),
                {"WWW-Authenticate": 'Basic realm="bmc"'},
            )
        host = f"{ROOT}/Systems/1"
        if self.command == "DELETE" and path.removeprefix(sessions + "/") in bmc.sessions:
            del bmc.sessions[path.removeprefix(sessions + "/")]
            return 204, None, {}
        if (self.command, path) == ("POST", f"{host}/Actions/ComputerSystem.Reset"):
            if sent.get("ResetType") not in RESET_TYPES:
                return 400, _error("ActionParameterNotSupported", f"ResetType is one of {', '.join(RESET_TYPES)}."), {}
            bmc.reset(sent["ResetType"])
            return 204, None, {}
        if (self.command, path) == ("PATCH", host):
            bmc.boot |= {key: value for key, value in sent.get("Boot", {}).items() if key in bmc.boot}
            return 204, None, {}
        document = (
            documents(bmc.machine(), bmc.power.is_on(), bmc.boot, list(bmc.sessions)).get(path)
            if self.command == "GET"
            else None
        )
        if document is None:
            return 404, _error("ResourceMissingAtURI", f"{self.command} {path} is not here."), {}
        return 200, document, {}


def _error(code: str, message: str) -> dict[str, Any]:
    extended = [{"Message": message, "Severity": "Critical"}]
    return {"error": {"code": f"Base.1.18.{code}", "message": message, "@Message.ExtendedInfo": extended}}


# ---- the daemon: the BMCs of a lab's bare-metal hosts


def lab_password() -> str:
    """The lab's BMC password: $LAB_BMC_PASSWORD, else the file that the lab's stack refers to."""
    return os.environ.get(PASSWORD_VARIABLE) or Path(__file__).with_name("bmc.password").read_text().strip()


def lab_machine(name: str) -> Machine:
    """What the BMC of this lab host reports: the same facts that the host itself shows."""
    from lab import hardware, names

    there = hardware.bare_metal(name)
    return Machine(
        name=name,
        serial=names.serial_of(name),
        uuid=names.uuid_of(name),
        macs=(names.mac_of(name),),
        manufacturer=there.vendor,
        model=there.product,
        gpus=there.gpus,
    )


class HostPower:
    """The power button of a lab host (lab.site has defined what the host is)."""

    def __init__(self, prefix: str, name: str) -> None:
        from lab import box, host

        self._host = host.Host(box.Box(prefix), name)

    def is_on(self) -> bool:
        return self._host.state() == "on"

    def start(self) -> None:
        self._host.start()

    def stop(self) -> None:
        self._host.stop()

    def off(self) -> None:
        self._host.off()


def main(argv: list[str] | None = None, power: Callable[[str, str], Power] = HostPower) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m lab.bmc", description="Redfish BMCs of a lab's bare-metal hosts, in its box"
    )
    parser.add_argument("--prefix", required=True, help="the lab's prefix")
    arguments = parser.parse_args(argv)
    from lab import box, names

    folder = box.Box(arguments.prefix).dir / "bmc"
    folder.mkdir(parents=True, exist_ok=True)
    password, running = lab_password(), []
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        for name, address in names.BMC_ADDRESSES.items():
            files = {"faults": folder / "faults.json", "log": folder / "requests.jsonl"}
            running.append(
                Bmc(lab_machine(name), power(arguments.prefix, name), password, address=address, **files).__enter__()
            )
    except OSError as error:
        reason = f"{error.strerror}; it runs in the lab's box, once"
        print(f"lab.bmc: the BMC of {name} cannot listen on {address}:80: {reason}", file=sys.stderr)
        return 1
    print("ready: " + ", ".join(f"{bmc.declared.name} {bmc.url}" for bmc in running), flush=True)
    ended.wait()
    for bmc in running:
        bmc.__exit__()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
