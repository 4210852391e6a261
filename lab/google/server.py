"""The stand-in over HTTP, and faults: calls that fail, wait, are lost, or are answered with something else."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from lab.google import declared, project, sign_in
from lab.google.calls import Calls
from lab.google.description import ROOT, Call, Wrong, call, check
from lab.google.vm import Json
from lab.google.world import Refusal, World


@dataclass
class Fault:
    """What happens to matching calls: a wait, then an error, a lost connection, other words, or the true answer."""

    name: str  # instances.bulkInsert; "*" is every call
    status: int = 0  # of an error; 0: none
    reason: str = "backendError"
    message: str = "injected"
    times: int = 1  # -1: until it is taken out of the list
    delay_s: float = 0.0
    drop: bool = False
    after: bool = False  # the call takes effect first
    rewrite: Callable[[Json], Any] | None = None  # of the answer; bytes are sent as they are
    when: Callable[[Call], bool] = lambda _: True
    hits: int = 0


class Cloud(World):
    """A project of Compute Engine on the loopback."""

    def __init__(self, address: tuple[str, int] = ("127.0.0.1", 0), **world: Any):
        super().__init__(**world)
        self.calls: list[Call] = []  # in order, refused ones too
        self.faults: list[Fault] = []
        self.wrong: list[str] = []  # answers of ours that the API's description doesn't have: none may be
        self._answers, self._lock = Calls(self), threading.Lock()
        self.declared = declared.Declared(self)
        self._server = ThreadingHTTPServer(address, _Handler)
        self._server.daemon_threads = True
        self._server.cloud = self  # type: ignore[attr-defined]
        self.at = f"http://{address[0]}:{self._server.server_port}"
        self.url_of_api = f"{self.at}{ROOT}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @contextlib.contextmanager
    def settled(self) -> Iterator[None]:
        """What is due is done; nobody else changes anything meanwhile."""
        with self._lock:
            self.settle()
            yield

    def fault(self, name: str, status: int = 0, **more: Any) -> Fault:
        self.faults.append(Fault(name, status, **more))
        return self.faults[-1]

    def asked(self, name: str) -> list[Call]:
        """The calls of that name."""
        return [each for each in self.calls if each.id == f"compute.{name}"]

    def handle(self, verb: str, url: str, body: bytes, bearer: str = "") -> tuple[int, bytes] | None:
        """Status and body of an answer; None: the connection is lost. `bearer`: the caller's token."""
        with self._lock:
            if url.startswith(declared.ROOT):
                return self.declared.handle(verb, unquote(url), body)
            try:
                members = self.declared.held["gcp:serviceaccount/iAMMember:IAMMember"]
                other = sign_in.answer(self.iam, members, verb, url, body, bearer)
                if other is not None or (other := project.other_api(self, verb, url, body)) is not None:
                    return 200, json.dumps(other).encode()
                asked = call(verb, url, body)
                if asked is None:
                    raise Refusal(404, "notFound", f"there is no call {verb} {url}")
            except Wrong as error:
                return _said(Refusal(400, "invalid", str(error)))
            except Refusal as error:
                return _said(error)
            self.calls.append(asked)
            if refused := self.iam.refusal(bearer, asked.id, self.resource(asked.parameters)):
                return _said(Refusal(403, "forbidden", refused))
            fault = self._hit(asked)
            self.settle()
            if fault is None or fault.after or fault.rewrite:
                status, answer = self._true(asked)
            else:
                status, answer = 0, {}
        return self._faulty(fault, asked, status, answer) if fault else (status, json.dumps(answer).encode())

    def _hit(self, asked: Call) -> Fault | None:
        for fault in self.faults:
            if fault.times and fault.name in ("*", asked.id.removeprefix("compute.")) and fault.when(asked):
                fault.times, fault.hits = fault.times - 1, fault.hits + 1
                return fault
        return None

    def _true(self, asked: Call) -> tuple[int, Json]:
        try:
            answer = self._answers.answer(asked)
        except Refusal as error:
            status, said = _said(error)
            return status, json.loads(said)
        try:
            check(answer, {"$ref": asked.response}, "", output=True)
        except Wrong as error:
            self.wrong.append(f"{asked.id}: {error}")
        return 200, answer

    def _faulty(self, fault: Fault, asked: Call, status: int, answer: Json) -> tuple[int, bytes] | None:
        if fault.delay_s:
            time.sleep(fault.delay_s)
        if fault.drop:
            return None
        if fault.status:
            return _said(Refusal(fault.status, fault.reason, fault.message))
        if fault.rewrite:
            other = fault.rewrite(answer)
            return status, other if isinstance(other, bytes) else json.dumps(other).encode()
        if not answer:
            with self._lock:
                status, answer = self._true(asked)
        return status, json.dumps(answer).encode()


def _said(error: Refusal) -> tuple[int, bytes]:
    domain = "usageLimits" if error.reason.endswith("Exceeded") else "global"
    one = {"message": str(error), "domain": domain, "reason": error.reason}
    return error.status, json.dumps({"error": {"code": error.status, "message": str(error), "errors": [one]}}).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # an answer is one piece

    def _do(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        answer = self.server.cloud.handle(self.command, self.path, body, bearer)  # type: ignore[attr-defined]
        if answer is None:
            self.close_connection = True
            self.connection.close()
            return
        status, said = answer
        with contextlib.suppress(OSError):  # who asked waits no more
            self._send(status, said)

    def _send(self, status: int, said: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _do

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""
