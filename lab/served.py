"""Stand-ins over HTTP: their servers, answers of a known length, and faults: calls that fail, wait, are lost, or are
answered with something else.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, ClassVar

from lab.timeline import Timeline

LOOPBACK = ("127.0.0.1", 0)


class Server(ThreadingHTTPServer):
    """One that serves as soon as it is made."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]):
        super().__init__(address, handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    """Prints nothing, and keeps connections."""

    protocol_version = "HTTP/1.1"

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def bearer(self) -> str:
        """The caller's token; empty: none."""
        return self.headers.get("Authorization", "").removeprefix("Bearer ")

    def send(self, status: int, said: Any, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        """`said`: bytes as they are, anything else as JSON."""
        content = said if isinstance(said, bytes) else json.dumps(said).encode()
        kind = {"Content-Type": "application/json; charset=utf-8"}
        self.send_response(status)
        for key, value in {**kind, **headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        with contextlib.suppress(OSError):  # who asked waits no more
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@dataclass
class Fault:
    """What happens to matching calls: a wait, then an error, a lost connection, other words, or the true answer."""

    name: str  # instances.bulkInsert; virtual_machines.create_or_update; "*" is every call
    status: int = 0  # of an error; 0: none
    reason: str = "injected"
    message: str = "injected"
    times: int = 1  # -1: until it is taken out of the list
    delay_s: float = 0.0
    drop: bool = False
    after: bool = False  # the call takes effect first
    rewrite: Callable[[dict[str, Any]], Any] | None = None  # of the answer; bytes are sent as they are
    when: Callable[[Any], bool] = lambda _: True
    headers: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)  # of the error
    hits: int = 0


class Api(Timeline):
    """Of a stand-in's world: its API, with calls that have a `name`."""

    reason: ClassVar[str]
    """of an injected error, unless another is given"""

    def serve(self, address: tuple[str, int]) -> None:
        self.calls: list[Any] = []  # in order, refused ones too
        self.faults: list[Fault] = []
        self.wrong: list[str] = []  # answers of ours that the cloud's own description doesn't have: none may be
        self._lock = threading.Lock()
        self._server = Server(address, type("Handler", (_ApiHandler,), {"api": self}))
        self.at = f"http://{address[0]}:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @contextlib.contextmanager
    def settled(self) -> Iterator[None]:
        """What is due is done; nobody else changes anything meanwhile."""
        with self._lock:
            self.settle()
            yield

    def handle(self, verb: str, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[Any, ...] | None:
        """Status, body and headers of an answer; None: the connection is lost."""
        raise NotImplementedError

    def fault(self, name: str, status: int = 0, **more: Any) -> Fault:
        self.faults.append(Fault(name, status, **{"reason": self.reason, **more}))
        return self.faults[-1]

    def asked(self, name: str) -> list[Any]:
        """The calls of that name."""
        return [each for each in self.calls if each.name == name]

    def hit(self, asked: Any) -> Fault | None:
        """The fault that a call meets."""
        for fault in self.faults:
            if fault.times and fault.name in ("*", asked.name) and fault.when(asked):
                fault.times, fault.hits = fault.times - 1, fault.hits + 1
                return fault
        return None


class _ApiHandler(Answering):
    api: Api
    wbufsize = 65536  # an answer is one piece

    def _do(self) -> None:
        answer = self.api.handle(self.command, self.path, self.body(), self.headers)
        if answer is None:
            self.close_connection = True
            self.connection.close()
        else:
            self.send(*answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _do
