"""The metadata server, for every instance of a `World`: who asks is known by the source address, or by `who`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lab.google.vm import Vm
from lab.google.world import World

PREFIX = "/computeMetadata/v1/"
_LOOK_S = 0.05  # between two looks for a change


def tree(world: World, vm: Vm) -> dict[str, Any]:
    """What the server has for an instance, as its recursive answer has it (camel case); paths are written with
    hyphens.
    """
    raw = vm.raw
    project = {"projectId": world.project, "numericProjectId": 1, "attributes": world.metadata}
    accounts = {
        name: {"email": each["email"], "scopes": each["scopes"], "aliases": ["default"]}
        for each in raw.get("serviceAccounts", [])
        for name in ("default", each["email"])
    }
    nics = {n: {"ip": each["networkIP"]} for n, each in enumerate(raw["networkInterfaces"])}
    instance = {
        "id": raw["id"],
        "name": raw["name"],
        "hostname": f"{raw['name']}.{vm.zone}.c.{world.project}.internal",
        "zone": f"projects/1/zones/{vm.zone}",
        "machineType": f"projects/1/machineTypes/{vm.machine_type}",
        "networkInterfaces": nics,
        "attributes": {each["key"]: each["value"] for each in raw.get("metadata", {}).get("items", [])},
        "maintenanceEvent": vm.maintenance,
        "preempted": "TRUE" if vm.preempted else "FALSE",
        "serviceAccounts": accounts,
    }
    return {"instance": instance, "project": project}


def _camel(name: str) -> str:
    first, *rest = name.split("-")
    return first + "".join(each.title() for each in rest)


class Metadata(ThreadingHTTPServer):
    """`who`: source address -> instance; None: by its first interface's address."""

    daemon_threads = True

    def __init__(
        self, world: World, address: tuple[str, int] = ("127.0.0.1", 0), who: Callable[[str], Vm | None] | None = None
    ):
        self.world, self.who = world, who or self._by_address
        self.waiting = 0  # requests that wait for a change
        self.deaf = False  # they get no answer, whatever changes
        super().__init__(address, _Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def _by_address(self, address: str) -> Vm | None:
        found = (vm for vm in list(self.world.vms.values()) if vm.raw["networkInterfaces"][0]["networkIP"] == address)
        return next(found, None)

    def answer(self, vm: Vm, path: str, asked: dict[str, str]) -> tuple[int, str]:
        """Status and text."""
        if path.startswith("instance/service-accounts/") and path.endswith("/token"):
            accounts = vm.raw.get("serviceAccounts", [])
            if not accounts:
                return 404, ""
            token = secrets.token_urlsafe(20)
            self.world.iam.tokens[token] = accounts[0]["email"]
            return 200, json.dumps({"access_token": token, "expires_in": 3599, "token_type": "Bearer"})
        found: Any = tree(self.world, vm)
        at = [part for part in path.split("/") if part]
        for n, part in enumerate(at):
            keys = {part, _camel(part)} if at[1:n] != ["attributes"] else {part}
            key = next((key for key in found if str(key) in keys), None) if isinstance(found, dict) else None
            if key is None:
                return 404, ""
            found = found[key]
        if asked.get("recursive") == "true":
            return 200, json.dumps(found)
        if isinstance(found, dict):
            return 200, "".join(f"{key}{'/' if isinstance(each, dict) else ''}\n" for key, each in found.items())
        return 200, str(found)


def _etag(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class _Handler(BaseHTTPRequestHandler):
    server: Metadata
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = {key: values[0] for key, values in parse_qs(url.query).items()}
        vm = self.server.who(self.client_address[0])
        if self.headers.get("Metadata-Flavor") != "Google" or self.headers.get("X-Forwarded-For"):
            return self._send(403, "")
        if vm is None or not url.path.startswith(PREFIX):
            return self._send(404, "")
        until = time.monotonic() + float(asked.get("timeout_sec", 60))
        waits = asked.get("wait_for_change") == "true"
        self.server.waiting += waits
        while True:
            status, text = self.server.answer(vm, url.path.removeprefix(PREFIX), asked)
            same = asked.get("last_etag") == _etag(text) or self.server.deaf
            if not (waits and same) or time.monotonic() > until:
                self.server.waiting -= waits
                return self._send(status, text)
            time.sleep(_LOOK_S)

    def _send(self, status: int, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("ETag", _etag(text))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with contextlib.suppress(OSError):  # who asked is off
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""
