"""The instance metadata service (IMDS), for every machine of a `World`: who asks is known by the source address, or by
`who`. With its scheduled events, and tokens for a machine's managed identity.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from lab.azure.world import Json, Vm, World
from lab.served import LOOPBACK, Answering, Server

# path below /metadata/: versions that this stand-in answers
VERSIONS = {
    "instance": {"2021-02-01", "2021-08-01", "2021-12-13"},
    "scheduledevents": {"2020-07-01"},
    "identity/oauth2/token": {"2018-02-01"},
}


def tree(world: World, vm: Vm) -> Json:
    """What the service says of a machine (a part of it)."""
    system = vm.properties.get("osProfile", {})
    keys = system.get("linuxConfiguration", {}).get("ssh", {}).get("publicKeys", [])
    compute = {
        "azEnvironment": "AzurePublicCloud",
        "location": world.region,
        "name": vm.name,
        "osProfile": {"adminUsername": system.get("adminUsername", ""), "computerName": system.get("computerName", "")},
        "publicKeys": keys,
        "resourceGroupName": vm.group,
        "resourceId": vm.raw["id"],
        "subscriptionId": world.subscription,
        "tags": ";".join(f"{key}:{text}" for key, text in vm.raw.get("tags", {}).items()),
        "userData": vm.user_data,
        "vmId": vm.properties["vmId"],
        "vmSize": vm.size,
        "zone": vm.zone,
    }
    addresses = [
        {"privateIpAddress": each["properties"]["privateIPAddress"], "publicIpAddress": ""}
        for nic in list(world.nics.values())
        if nic["properties"].get("virtualMachine", {}).get("id", "").lower() == vm.raw["id"].lower()
        for each in nic["properties"]["ipConfigurations"]
    ]
    return {"compute": compute, "network": {"interface": [{"ipv4": {"ipAddress": addresses}}]}}


class Metadata(Server):
    """`who`: source address -> machine; None: by its interface's address. `events`: what is scheduled, as all
    machines are shown it. `tokens`: those given, by what they are for and whose identity. `given`: what gives one.
    """

    def __init__(
        self, world: World, address: tuple[str, int] = LOOPBACK, who: Callable[[str], Vm | None] | None = None
    ):
        self.world, self.who = world, who or self._by_address
        self.given: Callable[[str, str], str] = lambda _resource, _identity: secrets.token_urlsafe(20)
        self.events: list[Json] = []
        self.asked_for_events = 0
        self.tokens: dict[str, tuple[str, str]] = {}  # token -> (resource, identity's id in lower case)
        super().__init__(address, _Handler)

    def _by_address(self, address: str) -> Vm | None:
        its = f'"{address}"'
        return next((vm for vm in list(self.world.vms.values()) if its in json.dumps(tree(self.world, vm))), None)

    def schedule(self, kind: str, vm: Vm, not_before: str = "", status: str = "Scheduled") -> None:
        """An event of a machine. `not_before`: as in HTTP's dates; empty: it has begun."""
        event = {"EventId": self.world.number(), "EventType": kind, "ResourceType": "VirtualMachine"}
        event |= {"Resources": [vm.name], "EventStatus": status, "NotBefore": not_before}
        self.events.append(event | {"Description": "", "EventSource": "Platform", "DurationInSeconds": -1})

    def answer(self, vm: Vm, path: str, asked: dict[str, str]) -> tuple[int, Json]:
        """Status and body."""
        if path not in VERSIONS:
            return 404, {"error": "Not found"}
        if asked.pop("api-version", "") not in VERSIONS[path]:
            return 400, {"error": f"Bad request. api-version is invalid or was not specified: {sorted(VERSIONS[path])}"}
        if path == "scheduledevents":
            self.asked_for_events += 1
            return 200, {"DocumentIncarnation": len(self.events) + 1, "Events": self.events}
        return (200, tree(self.world, vm)) if path == "instance" else self._token(vm, asked)

    def _token(self, vm: Vm, asked: dict[str, str]) -> tuple[int, Json]:
        given = [id.lower() for id in vm.raw.get("identity", {}).get("userAssignedIdentities", {})]
        if len(given) != 1:
            why = "Identity not found" if not given else "Multiple user assigned identities exist, please specify one"
            return 400, {"error": "invalid_request", "error_description": why}
        token = self.given(asked["resource"], given[0])
        self.tokens[token] = asked["resource"], given[0]
        return 200, {
            "access_token": token,
            "expires_in": "86399",
            "resource": asked["resource"],
            "token_type": "Bearer",
        }


class _Handler(Answering):
    server: Metadata

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = {key: values[0] for key, values in parse_qs(url.query).items()}
        vm = self.server.who(self.client_address[0])
        if self.headers.get("Metadata") != "true" or self.headers.get("X-Forwarded-For"):
            return self.send(400, {"error": "Bad request. Required metadata header not specified"})
        if vm is None:
            return self.send(404, {"error": "Not found"})
        return self.send(*self.server.answer(vm, url.path.removeprefix("/metadata/"), asked))
