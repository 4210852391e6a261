"""`python -m lab.kubernetes.difficult`: a way to the API server on which that is difficult. What comes through is the
real server's; the refusals are a stand-in's, with the words and at the places of the real one:

- every `EACH`th request is answered 429 by priority and fairness: plain text and Retry-After, for the caller to repeat
- of two writes (PUT, PATCH) of an object the first is a conflict: somebody changed it in between
- a watch is cut in the middle of its stream after `WATCH_S`, and what it has seen has expired: its next try is told
  410, as the answer or as the first event, each in turn
"""

from __future__ import annotations

import argparse
import json
import ssl
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests

EACH = 9
WATCH_S = 7.0
BUSY, CONFLICT, CUT, EXPIRED = "too many requests (429)", "conflicts (409)", "watches cut", "watches expired (410)"
ANSWER_S = 60.0
_OWN = {"host", "connection", "transfer-encoding", "content-length", "accept-encoding"}  # of one connection


class Trouble:
    """What is in the way of which request, and how often it was; for all threads."""

    def __init__(self, told: Path):
        self._told, self._lock = told, threading.Lock()
        self._count, self._requests = Counter[str](), 0
        self._written, self._cut = set[tuple[str, str]](), set[str]()
        self._say()

    def of(self, method: str, path: str, watch: bool) -> str:
        """Why this request isn't let through; empty: it is."""
        with self._lock:
            self._requests += 1
            if watch and path in self._cut:
                self._cut.remove(path)
                return self._met(EXPIRED)
            if method in ("PUT", "PATCH"):
                if (method, path) not in self._written:
                    self._written.add((method, path))
                    return self._met(CONFLICT)
                self._written.remove((method, path))
            return self._met(BUSY) if self._requests % EACH == 0 else ""

    def cut(self, path: str) -> None:
        """A watch was cut."""
        with self._lock:
            self._cut.add(path)
            self._met(CUT)

    def times(self, what: str) -> int:
        """How often that happened."""
        return self._count[what]

    def _met(self, what: str) -> str:
        self._count[what] += 1
        self._say()
        return what

    def _say(self) -> None:
        new = self._told.with_suffix(".new")
        new.write_text(json.dumps({BUSY: 0, CONFLICT: 0, CUT: 0, EXPIRED: 0} | self._count))
        new.replace(self._told)


def status_of(code: int, reason: str, message: str) -> dict[str, Any]:
    """The Status object of a refusal."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message} | {
        "reason": reason,
        "code": code,
    }


class Handler(BaseHTTPRequestHandler):
    """Of one connection. `server` is a Way."""

    protocol_version = "HTTP/1.1"
    server: Way

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (OSError, requests.RequestException):  # one of the two sides has gone: so does the other
            self.close_connection = True

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        watch = parse_qs(url.query).get("watch", [""])[0] in ("1", "true")
        trouble = self.server.trouble.of(self.command, url.path, watch)
        if trouble == BUSY:
            self._answer(429, "text/plain; charset=utf-8", b"Too many requests, please try again later.\n")
        elif trouble == CONFLICT:
            said = f'Operation cannot be fulfilled on "{url.path.rsplit("/", 1)[-1]}": the object has been modified; '
            said += "please apply your changes to the latest version and try again"
            self._refuse(status_of(409, "Conflict", said))
        elif trouble == EXPIRED:
            gone = status_of(410, "Expired", "too old resource version: 1 (2)")
            if self.server.trouble.times(EXPIRED) % 2:
                self._refuse(gone)
            else:
                self._answer(200, "application/json", json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
        else:
            self._forward(body, url.path if watch else "")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _refuse(self, status: dict[str, Any]) -> None:
        self._answer(status["code"], "application/json", json.dumps(status).encode())

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if code == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def _forward(self, body: bytes, watched: str) -> None:
        """To the real server, and its answer back. `watched`: the path of a watch, which is cut on the way."""
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
        url, wait = self.server.target + self.path, (5.0, WATCH_S if watched else ANSWER_S)
        with self.server.session.request(
            self.command, url, data=body or None, headers=headers, stream=True, timeout=wait
        ) as answer:
            if watched and answer.ok:
                self._stream(answer, watched)
                return
            content = answer.content
            self.send_response_only(answer.status_code)
            for name, value in answer.headers.items():
                if name.lower() not in _OWN:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def _stream(self, answer: requests.Response, watched: str) -> None:
        """Its end is missing, unless the server itself ends it before."""
        until, self.close_connection = time.monotonic() + WATCH_S, True
        self.send_response_only(200)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for part in answer.iter_content(None):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                if time.monotonic() > until:
                    break
            else:
                self.wfile.write(b"0\r\n\r\n")
                return
        except requests.RequestException:  # nothing came for so long
            pass
        self.server.trouble.cut(watched)

    def log_message(self, format: str, *args: Any) -> None:
        """The controller's log tells."""


class Way(ThreadingHTTPServer):
    """Listens with the API server's own certificate at another port."""

    daemon_threads = True

    def __init__(self, listen: tuple[str, int], target: str, certificates: Path, told: Path):
        super().__init__(listen, Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "apiserver.crt", certificates / "apiserver.key")
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.session = requests.Session()
        self.session.trust_env, self.session.verify = False, str(certificates / "ca.crt")
        self.session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=32))
        self.target, self.trouble = target, Trouble(told)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m lab.kubernetes.difficult",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--listen", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--target", required=True, metavar="URL", help="the API server")
    parser.add_argument("--certificates", required=True, type=Path, metavar="FOLDER", help="the API server's")
    parser.add_argument("--told", required=True, type=Path, metavar="FILE", help="how often each happened, as JSON")
    given = parser.parse_args()
    address, _, port = given.listen.rpartition(":")
    Way((address, int(port)), given.target, given.certificates, given.told).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
