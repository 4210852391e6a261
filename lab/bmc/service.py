"""One node's BMC: its state, its login, its power button, and the Redfish service over HTTP.

Every request is appended to a log, one JSON object a line.
"""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from email.message import Message
from functools import lru_cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from lab.bmc.bios import JOBS, Bios
from lab.bmc.documents import HOST, MANAGER, RESET, ROOT, SESSIONS, Document, documents
from lab.bmc.faults import Fault, read_faults
from lab.bmc.machine import Machine
from lab.bmc.media import SETUP, Media, Refused
from lab.bmc.server import Server
from lab.bmc.shapes import expanded, host_path, plain_path
from lab.bmc.updates import BMC_RESET, PUSH, SIMPLE, Updates

USERNAME = "admin"
MAX_SESSIONS = 16  # real BMCs have few; one that leaks them locks its owner out
RESTARTS = ("GracefulRestart", "ForceRestart", "PowerCycle")
STARTS = 4
FEW = 2
NO_FAULT = Fault()


class Power(Protocol):
    """A machine's power, as its BMC switches it. Calls return when it is done."""

    def is_on(self) -> bool: ...
    def start(self) -> None: ...
    def stop(self) -> None:
        """A clean shutdown."""

    def off(self) -> None:
        """A power cut."""

    def start_from(self, url: str) -> bool:
        """Power on, from a medium: what is on it runs. True: it wants the machine to start anew."""


class Bmc:
    """One node's BMC. `port` 0 takes a free one; raises OSError where the address is in use.
    `certificate`: PEM with its key, for https.
    """

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
        certificate: Path | None = None,
    ) -> None:
        self.declared, self.power, self.log = machine, power, log
        self._faults, self._served, self._lock = faults, Counter[str](), threading.Lock()
        self._basic = "Basic " + base64.b64encode(f"{USERNAME}:{password}".encode()).decode()
        self._login = {"UserName": USERNAME, "Password": password}
        self._now = self.most_at_once = self.connections = 0
        self.sessions: dict[str, str] = {}
        """session id: token"""
        self.host = host_path(machine.vendor)
        self.media = Media(self._quirks)
        self.bios = Bios(machine.vendor, self._quirks)
        self.updates = Updates(machine.vendor, self._quirks, self.reset)
        self._in_setup = False
        self.closing = threading.Event()
        self.resets: list[threading.Thread] = []
        """what the button does meanwhile"""
        self._button = threading.Lock()
        self._server = _Server((address, port), _Handler)
        self._server.bmc = self
        host, actual = self._server.socket.getsockname()
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        scheme = "https" if certificate else "http"
        self.url = f"{scheme}://{host}:{actual}" if actual != 80 else f"{scheme}://{host}"
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
        """What is wrong with it now; NO_FAULT is nothing."""
        return (read_faults(self._faults) if self._faults else {}).get(self.declared.name, NO_FAULT)

    def _quirks(self) -> frozenset[str]:
        return frozenset(self.fault().quirks)

    def is_on(self) -> bool:
        """With a system, or in its firmware's setup."""
        return self._in_setup or self.power.is_on()

    def machine(self) -> Machine:
        """The hardware as it is now, with the fault's changes."""
        changes: dict[str, Any] = {**self.fault().hardware}
        changes = {key: tuple(value) if isinstance(value, list) else value for key, value in changes.items()}
        return replace(self.declared, **changes)

    def documents(self, path: str = "") -> dict[str, Document]:
        """All that Redfish says of it now, by path. What is shown late is shown at reads of its own `path`."""
        sessions = tuple(self.sessions) if path.startswith(SESSIONS) else ()
        found = dict(_known(self.machine(), self.is_on(), sessions))
        if HOST in found and MANAGER in found:  # another maker's paths have no media
            found |= {each: dict(found[each]) for each in (HOST, MANAGER)}
            self.media.add(found, path)
        elif self.host in found:
            found[self.host] = dict(found[self.host])
            self.media.add_boot(found, path, self.host)
        self.updates.add(found, path)
        self.bios.add(found, path.partition("?")[0])
        for changed, properties in self.fault().documents.items():
            found[changed] = found.get(changed, {}) | properties
        return found

    def document(self, path: str) -> Document | None:
        """What is at a path; `?$expand` as its maker's BMC answers it. None: nothing."""
        plain, _, expand = path.partition("$expand")
        documents = self.documents(path)
        return expanded(documents, plain.rstrip("?&"), self.declared.vendor) if expand else documents.get(path)

    def answer_fault(self, path: str) -> str | None:
        """The fault that this request meets, counting those that are limited to a number of times."""
        fault = self.fault()
        if fault.answer is None or fault.path not in path:
            return None
        with self._lock:
            key = json.dumps(asdict(fault), sort_keys=True)
            self._served[key] += 1
            number = self._served[key] - fault.after
            return fault.answer if number > 0 and (fault.times is None or number <= fault.times) else None

    @contextlib.contextmanager
    def one_more(self) -> Iterator[int]:
        """A request that is answered meanwhile; how many there are with it."""
        with self._lock:
            self._now += 1
            number = self._now
            self.most_at_once = max(self.most_at_once, number)
        try:
            yield number
        finally:
            with self._lock:
                self._now -= 1

    def record(self, method: str, path: str, status: int | str) -> None:
        """Write a request to the log; `status` is the HTTP status, or the fault that it met."""
        if self.log:
            line = json.dumps({"node": self.declared.name, "method": method, "path": path, "status": status})
            with self._lock, self.log.open("a") as file:
                file.write(line + "\n")

    # ---- login

    def allowed(self, headers: Message) -> bool:
        """True for a request of an open session, or with the right name and password."""
        if self.fault().wrong_password:
            return False
        token = headers.get("X-Auth-Token", "")
        known = any(secrets.compare_digest(token, opened) for opened in self.sessions.values())
        return known or secrets.compare_digest(headers.get("Authorization", ""), self._basic)

    def open_session(self, login: Any) -> tuple[str, str] | None:
        """(id, token); None: refused."""
        if login != self._login or self.fault().wrong_password:
            return None
        with self._lock:
            if len(self.sessions) >= (2 if "few-sessions" in self.fault().quirks else MAX_SESSIONS):
                return None
            key, token = secrets.token_hex(4), secrets.token_hex(16)
            self.sessions[key] = token
            return key, token

    # ---- power

    def reset(self, kind: str) -> None:
        """Press the button; returns at once, as a real BMC does: poll PowerState. Raises Refused."""
        quirks, on = self.fault().quirks, self.is_on()
        if kind == "On" and on and "on-twice-refused" in quirks:
            raise Refused(400, "InvalidOperationForSystemState", "iLO: the system is on.")
        if "power-lags" in quirks:
            self.media.late("power", "On" if on else "Off")
        thread = threading.Thread(target=self._reset, args=(kind,), daemon=True)
        self.resets = [each for each in self.resets if each.is_alive()] + [thread]
        thread.start()

    def _reset(self, kind: str) -> None:
        with self._button:
            was_on = self.is_on()
            if kind in ("GracefulShutdown", "GracefulRestart") and self.power.is_on():
                self.power.stop()
            if kind in ("ForceOff", "ForceRestart", "PowerCycle"):
                self.power.off()
            if kind != "On":
                self._in_setup = False
            if was_on and not self.is_on():
                self.media.powered_off()
            if kind in ("On", *RESTARTS) and not self.is_on():
                self._start()

    def _start(self) -> None:
        self.bios.started()
        self.updates.started()
        for _ in range(STARTS):  # a medium that is started from again and again would do so for ever
            url = self.media.next_start()
            if url == SETUP:
                self._in_setup = True
                return
            if url is None:
                self.power.start()
                return
            if not self.power.start_from(url):
                return


@lru_cache(maxsize=1024)
def _known(machine: Machine, is_on: bool, sessions: tuple[str, ...]) -> dict[str, Document]:
    """Some makers' take 10 ms, and every request needs them."""
    return documents(machine, is_on, {}, list(sessions))


class Answer(NamedTuple):
    """What a request gets."""

    status: int
    document: Document | None = None
    headers: dict[str, str] | None = None


def _refusal(status: int, code: str, message: str, headers: dict[str, str] | None = None, related: str = "") -> Answer:
    extended = [{"Message": message, "Severity": "Critical", "MessageId": f"Base.1.18.{code}"}]
    if related:
        extended[0] |= {"RelatedProperties": [f"#/{related}"], "MessageArgs": [related]}  # type: ignore[dict-item]
    error = {"code": f"Base.1.18.{code}", "message": message, "@Message.ExtendedInfo": extended}
    return Answer(status, {"error": error}, headers)


class _Server(Server):
    bmc: Bmc


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer goes out as one piece
    server: _Server

    def log_message(self, *_: object) -> None:
        """Bmc.record writes the log."""

    def setup(self) -> None:
        """A connection."""
        super().setup()
        self.server.bmc.connections += 1

    def do_any(self) -> None:
        """Every request."""
        with self.server.bmc.one_more() as number:
            self._do(number)

    def _do(self, number: int) -> None:
        """A fault may drop it, delay it or garble what it gets. `number`: of requests that are answered now."""
        bmc, path = self.server.bmc, self.path.rstrip("/")
        if self.command != "GET":
            path = plain_path(path, bmc.declared.vendor)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = bmc.answer_fault(path)
        if fault:
            bmc.record(self.command, path, fault)
        if fault == "silent":
            bmc.closing.wait(600)
        if not bmc.updates.answers():
            bmc.sessions.clear()
            fault = "reset"
        if fault in ("silent", "reset"):
            self._hang_up()
            return
        if fault in ("huge", "drip"):
            self._never_end(bmc, fault)
            return
        if number > FEW and "few-at-once" in bmc.fault().quirks:
            fault = "unavailable"
        answer = self._answer(bmc, path, body, fault)
        if fault == "late":
            self._hang_up()
            return
        if not fault:
            bmc.record(self.command, path, answer.status)  # before the answer: who has the answer finds it in the log
        text = b"" if answer.document is None else json.dumps(answer.document).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        if self.close_connection:  # sushy asks for it
            self.send_header("Connection", "close")
        self.close_connection |= fault == "half" or "drops-kept" in bmc.fault().quirks  # without a word
        half = text[: len(text) // 2]
        self.send_header("Content-Length", str(len(half if fault == "garbled" else text)))
        for name, value in (answer.headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(half if fault in ("half", "garbled") else text)

    def _hang_up(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close with RST
        self.close_connection = True

    do_GET = do_POST = do_PATCH = do_DELETE = do_any

    def _never_end(self, bmc: Bmc, fault: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        part, pause = (b" " * 65536, 0.0) if fault == "huge" else (b" ", 0.05)
        while not bmc.closing.wait(pause):
            self.wfile.write(part)
            self.wfile.flush()

    def _answer(self, bmc: Bmc, path: str, body: bytes, fault: str | None) -> Answer:
        if fault == "unavailable":
            reason = "The service is temporarily unavailable."
            return _refusal(503, "ServiceTemporarilyUnavailable", reason, {"Retry-After": "1"})
        if fault == "redirect":
            return Answer(302, None, {"Location": "https://evil.example/redfish/v1"})
        if fault == "forbidden":
            return _refusal(403, "InsufficientPrivilege", "There are insufficient privileges.")
        if fault == "missing":
            return _refusal(404, "ResourceMissingAtURI", f"{path} is not here.")
        if fault == "echo":
            echo = f"{body.decode(errors='replace')} {dict(self.headers)}"
            return _refusal(400, "MalformedJSON", f"Could not understand: {echo}")
        try:
            sent = json.loads(body) if body and path != PUSH else {}
        except ValueError:
            return _refusal(400, "MalformedJSON", "The request body was malformed JSON.")
        if (self.command, path) == ("POST", SESSIONS):
            return self._log_in(bmc, sent)
        if path != ROOT and not bmc.allowed(self.headers):
            login = {"WWW-Authenticate": 'Basic realm="bmc"'}
            return _refusal(401, "NoValidSession", "There is no valid session.", login)
        if self.command == "DELETE" and path.removeprefix(SESSIONS + "/") in bmc.sessions:
            del bmc.sessions[path.removeprefix(SESSIONS + "/")]
            return Answer(204)
        if self.command in ("POST", "PATCH"):
            return Answer(204) if fault == "lie" else self._change(bmc, path, sent if body else None, body)
        told = bmc.updates.read(path) if self.command == "GET" else None
        if told:
            return Answer(*told)
        document = bmc.document(path) if self.command == "GET" else None
        if document is None:
            return _refusal(404, "ResourceMissingAtURI", f"{self.command} {path} is not here.")
        tag = bmc.bios.tag(path, document.get("@odata.etag"))
        return Answer(200, document, {"ETag": tag} if tag else None)

    def _change(self, bmc: Bmc, path: str, sent: Any, body: bytes) -> Answer:
        """A POST or PATCH behind the login; `sent`: None without a body."""
        try:
            if self.command == "PATCH" and bmc.bios.is_mine(path):
                tag = self.headers.get("If-Match")
                return Answer(bmc.bios.patch(path, sent or {}, tag, bmc.documents()))
            if (self.command, path) == ("POST", JOBS):
                bmc.bios.make_job(sent or {})
                return Answer(200)
            if (self.command, path) == ("POST", SIMPLE):
                return Answer(*bmc.updates.simple(sent or {}))
            if (self.command, path) == ("POST", PUSH):
                return Answer(*bmc.updates.push(body, self.headers.get("Content-Type", "")))
            if (self.command, path) == ("POST", BMC_RESET):
                bmc.updates.restart()
                return Answer(204)
            if (self.command, path) == ("POST", RESET):
                host = bmc.documents()[bmc.host]["Actions"]["#ComputerSystem.Reset"]
                kinds = host["ResetType@Redfish.AllowableValues"]
                if (sent or {}).get("ResetType") not in kinds:
                    raise Refused(400, "ActionParameterNotSupported", f"ResetType is one of {', '.join(kinds)}.")
                bmc.reset(sent["ResetType"])
                return Answer(204)
            if (self.command, path) == ("PATCH", HOST):
                bmc.media.patch(sent or {}, self.headers.get("If-Match"), bmc.documents()[bmc.host]["@odata.etag"])
                return Answer(204)
            if self.command == "POST" and "/VirtualMedia/" in path:
                status = bmc.media.act(path, sent)
                return Answer(status, None, {"Location": f"{ROOT}/TaskService/Tasks/1"} if status == 202 else None)
        except Refused as refused:
            return _refusal(refused.status, refused.code, refused.message, related=refused.related)
        except KeyError:
            pass
        return _refusal(404, "ResourceMissingAtURI", f"{self.command} {path} is not here.")

    def _log_in(self, bmc: Bmc, login: Any) -> Answer:
        opened = bmc.open_session(login)
        if opened is None:
            return _refusal(401, "ResourceAtUriUnauthorized", "The login was refused.")
        key, token = opened
        place = f"{SESSIONS}/{key}"
        document = {"@odata.id": place, "Id": key, "Name": "session", "UserName": USERNAME}
        return Answer(201, document, {"X-Auth-Token": token, "Location": place})
