"""Prometheus' text exposition format, and a server of it. What a scrape gets was made before: it waits for nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Literal, NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SLOW_S = 10.0  # a client that takes longer to ask is hung up on


class Family(NamedTuple):
    """One metric: its samples are (labels, value). A label without a value, or None, is left out."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    samples: Iterable[tuple[Mapping[str, str | None], float]]


def text(families: Iterable[Family]) -> str:
    """Those that have samples, in that order."""
    return "".join(map(_family, families))


def _family(family: Family) -> str:
    lines = [f"{family.name}{_labels(labels)} {value:.15g}\n" for labels, value in family.samples]
    head = f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.kind}\n"
    return head + "".join(lines) if lines else ""


def _labels(labels: Mapping[str, str | None]) -> str:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in labels.items() if value]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escaped(value: str) -> str:
    value = value.encode("utf-8", "replace").decode()  # halves of surrogate pairs
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Server:
    """GET /metrics at an address, from threads of its own that end with the process."""

    def __init__(self, host: str, port: int, read: Callable[[], str]):
        """`read` gives the text, at once and from any thread. Raises OSError where the address can't be had."""
        handler = type("Handler", (_Handler,), {"read": staticmethod(read)})
        self._server = (_SixServer if ":" in host else _FourServer)((host, port), handler)
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    @property
    def port(self) -> int:
        """That it has, where 0 was asked for."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """No more answers."""
        self._server.shutdown()
        self._server.server_close()


class _FourServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


class _SixServer(_FourServer):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    read: ClassVar[Callable[[], str]]
    timeout = _SLOW_S
    server_version, sys_version = "ironburst", ""

    def do_GET(self) -> None:
        """Only `/metrics`."""
        found = self.path.partition("?")[0] == "/metrics"
        body = (type(self).read() if found else "see /metrics\n").encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads a line for each scrape."""
