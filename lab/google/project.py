"""What a doctor asks of a project: quotas, machine types, reservations, addresses; and of two other APIs which services
are enabled, and what the caller may do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from lab.google.description import Call
from lab.google.vm import Json
from lab.google.world import Refusal, World

Page = Callable[[Call, list[Any]], tuple[list[Any], Json]]
_SERVICE = re.compile(r"/v1/projects/([^/?]+)/services/([^/?]+)")
_PERMISSIONS = re.compile(r"/v1/projects/([^/?:]+):testIamPermissions")


class Project:
    """Of one project."""

    def __init__(
        self,
        world: World,
        fits: Callable[[Call, Json], bool],
        page: Page,
    ):
        self.world, self._fits, self._page = world, fits, page
        self.known: dict[str, Callable[[Call], Json]] = {
            "addresses.list": self._addresses,
            "machineTypes.get": self._machine_type,
            "projects.get": self._project,
            "reservations.get": self._reservation,
        }

    def _project(self, _: Call) -> Json:
        return {"kind": "compute#project", "name": self.world.project, "quotas": self.quotas(True)}

    def quotas(self, of_project: bool) -> list[Json]:
        """As a region or a project shows them."""
        kept = {key: value for key, value in self.world.metrics.items() if key.endswith("_ALL_REGIONS") == of_project}
        return [{"metric": key, "limit": limit, "usage": usage} for key, (limit, usage) in kept.items()]

    def _machine_type(self, call: Call) -> Json:
        zone, name = call.parameters["zone"], call.parameters["machineType"]
        if (zone, name) in self.world.not_offered:
            raise self.world.missing("zones", zone, "machineTypes", name)
        return {"kind": "compute#machineType", "name": name, "zone": zone}

    def _reservation(self, call: Call) -> Json:
        zone, name = call.parameters["zone"], call.parameters["reservation"]
        at, kind, count = self.world.reservations.get(name, ("", "", 0))
        if at != zone:
            raise self.world.missing("zones", zone, "reservations", name)
        in_use = sum(vm.reservation == name for vm in self.world.vms.values())
        held = {"count": str(count), "inUseCount": str(in_use), "instanceProperties": {"machineType": kind}}
        said: Json = {"kind": "compute#reservation", "name": name, "specificReservation": held, "status": "READY"}
        return said | {"specificReservationRequired": True} | self.world.reservation_facts.get(name, {})

    def _addresses(self, call: Call) -> Json:
        found = [raw for raw in self.world.static_addresses if self._fits(call, raw)]
        page, more = self._page(call, found)
        return {"kind": "compute#addressList"} | more | ({"items": page} if page else {})


def other_api(world: World, verb: str, url: str, body: bytes) -> Json | None:
    """serviceusage and cloudresourcemanager; None: it is none of them. Raises Refusal."""
    if verb == "GET" and (asked := _SERVICE.fullmatch(url.partition("?")[0])):
        name = f"projects/{asked[1]}/services/{asked[2]}"
        return {"name": name, "state": "DISABLED" if asked[2] in world.disabled else "ENABLED"}
    if verb == "POST" and (asked := _PERMISSIONS.fullmatch(url.partition("?")[0])):
        wanted = json.loads(body)
        if wanted.keys() != {"permissions"} or len(wanted["permissions"]) > 100:
            raise Refusal(400, "invalid", "at most 100 permissions, and nothing else")
        if asked[1] != world.project:
            raise Refusal(403, "forbidden", "The caller does not have permission")
        return {"permissions": [each for each in wanted["permissions"] if each not in world.refused]}
    return None
