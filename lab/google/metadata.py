"""The metadata server, for every instance of a `World`: who asks is known by the source address, or by `who`."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lab.google.vm import Vm
from lab.google.world import World
from lab.served import LOOPBACK, Answering, Server

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


class Metadata(Server):
    """`who`: source address -> instance; None: by its first interface's address."""

    def __init__(
        self, world: World, address: tuple[str, int] = LOOPBACK, who: Callable[[str], Vm | None] | None = None
    ):
        self.world, self.who = world, who or self._by_address
        self.waiting = 0  # requests that wait for a change
        self.deaf = False  # they get no answer, whatever changes
        super().__init__(address, _Handler)

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


class _Handler(Answering):
    server: Metadata

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
        kind = {"Content-Type": "application/text", "Metadata-Flavor": "Google", "ETag": _etag(text)}
        self.send(status, text.encode(), kind)
