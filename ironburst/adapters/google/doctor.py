"""What the doctor asks of a project: Compute Engine's API, and two more for its APIs and the caller's permissions. All
of it reads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, TypeVar

import google.auth
import httplib2
from google.api_core.client_options import ClientOptions
from google_auth_httplib2 import AuthorizedHttp
from googleapiclient.discovery import build_from_document
from googleapiclient.discovery_cache import get_static_doc

from ironburst.adapters.google import errors, launching
from ironburst.adapters.google.api import Api, Json
from ironburst.adapters.google.instances import tail
from ironburst.adapters.google.spot import SpotPrices
from ironburst.doctor.checks import Unasked
from ironburst.doctor.google import services
from ironburst.doctor.google.project import ImageFacts, Left, Quota, Reservation
from ironburst.ports import CloudError, OutcomeUnknown, Refused
from ironburst.system.google import renewed

CALLS = {
    "addresses": ("list",),
    "disks": ("aggregatedList",),
    "images": ("get",),
    "machineTypes": ("get",),
    "projects": ("get",),
    "reservations": ("get",),
}
"""beside a controller's"""
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_ARCHITECTURES = {"X86_64": "x86_64", "ARM64": "aarch64"}
_AT_ONCE = 100  # permissions of one question
T = TypeVar("T")


class GoogleProject:
    """A Project (ironburst.doctor.google.project)."""

    def __init__(self, project: str, region: str, *, credentials: Any = None, endpoint: str | None = None):
        """`endpoint`: of a stand-in for all APIs, for tests."""
        self._project, self._region, self._credentials = project, region, credentials
        compute = f"{endpoint}compute/v1/" if endpoint else None
        self._endpoint = endpoint
        self._api = Api(project, more=CALLS, credentials=credentials, endpoint=compute)
        self._spot = SpotPrices(self._api, region, time.time)

    def services(self) -> Set[str]:
        """One question each: a list is of hundreds."""

        def enabled(name: str) -> bool:
            full = f"projects/{self._project}/services/{name}"
            said = self._other("serviceusage", "v1", lambda api: api.services().get(name=full))
            return bool(said.get("state") == "ENABLED")

        return {name for name in services.NEEDED if enabled(name)}

    def allowed(self, permissions: Sequence[str]) -> Set[str]:
        """By projects.testIamPermissions."""
        found = set[str]()
        for first in range(0, len(permissions), _AT_ONCE):
            body = {"permissions": list(permissions[first : first + _AT_ONCE])}
            ask = lambda api, body=body: api.projects().testIamPermissions(resource=self._project, body=body)  # noqa: E731
            found |= set(self._other("cloudresourcemanager", "v1", ask).get("permissions", []))
        return found

    def quotas(self) -> Mapping[str, Quota]:
        """The region's, and the project's."""
        region = self._asked(lambda: self._api.call("regions", "get", region=self._region))
        project = self._asked(lambda: self._api.call("projects", "get"))
        return {
            str(each["metric"]): Quota(float(each["limit"]), float(each["usage"]))
            for each in (*project.get("quotas", []), *region.get("quotas", []))
        }

    def zones(self) -> Mapping[str, str]:
        """All of a region that is up are; Compute Engine shows no others."""
        said = self._asked(lambda: self._api.call("regions", "get", region=self._region))
        return {tail(url): str(said.get("status", "UP")) for url in said.get("zones", [])}

    def offered(self, zone: str, machine_type: str) -> bool:
        """Whether the zone has the type."""
        return self._there("machineTypes", zone=zone, machineType=machine_type) is not None

    def reservation(self, zone: str, name: str) -> Reservation | None:
        """Of this project, or projects/P/reservations/NAME of one that shares it."""
        parts = name.split("/")
        project = parts[1] if len(parts) > 1 else self._project
        raw = self._there("reservations", zone=zone, reservation=parts[-1], project=project)
        if raw is None:
            return None
        held = raw.get("specificReservation") or {}
        return Reservation(
            machine_type=str((held.get("instanceProperties") or {}).get("machineType", "")),
            count=int(held.get("count", 0)),
            in_use=int(held.get("inUseCount", 0)),
            specific=bool(raw.get("specificReservationRequired")),
            status=str(raw.get("status", "")),
        )

    def image(self, reference: str) -> ImageFacts | None:
        """projects/P/global/images/NAME, or …/family/NAME."""
        parts = reference.split("/")
        method, key = ("getFromFamily", "family") if parts[-2] == "family" else ("get", "image")
        raw = self._there("images", method, project=parts[1], **{key: parts[-1]})
        if raw is None:
            return None
        architecture = _ARCHITECTURES.get(str(raw.get("architecture", "")), "")
        return ImageFacts(str(raw["name"]), str(raw.get("status", "")), int(raw.get("diskSizeGb", 0)), architecture)

    def spot_usd(self, machine_type: str) -> float | None:
        """Google's list price."""
        try:
            return self._spot.usd(machine_type)
        except CloudError as error:
            if error.code == "invalid":  # it isn't sold there
                return None
            raise _unasked(error) from None

    def left(self, cluster: str) -> Sequence[Left]:
        """By our label. A machine is of no use once it is TERMINATED."""
        query = f'labels.{launching.CLUSTER} = "{launching.label_value(cluster)}"'

        def everywhere(kind: str) -> list[Json]:
            return self._asked(lambda: self._api.listed_everywhere(kind, kind, self._region, query))

        found = [
            Left("disk", str(raw["name"]), tail(str(raw["zone"])), tail(next(iter(raw.get("users") or [""]))))
            for raw in everywhere("disks")
        ]
        machines = [raw for raw in everywhere("instances") if launching.LEASE in (raw.get("labels") or {})]
        found += [
            Left("machine", str(raw["name"]), tail(str(raw["zone"])), "" if raw["status"] == "TERMINATED" else "runs")
            for raw in machines
        ]
        pages = self._asked(lambda: list(self._api.pages("addresses", "list", region=self._region, filter=query)))
        for page in pages:
            for raw in page.get("items", []):
                used = "" if raw.get("status") == "RESERVED" else "in use"
                found.append(Left("address", str(raw["name"]), self._region, used))
        return found

    def _there(self, resource: str, method: str = "get", **named: str) -> Json | None:
        """None: it isn't there."""
        try:
            return self._api.call(resource, method, **named)
        except CloudError as error:
            if errors.is_missing(error, resource):
                return None
            raise _unasked(error) from None

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except CloudError as error:
            raise _unasked(error) from None

    def _other(self, name: str, version: str, ask: Callable[[Any], Any]) -> Json:
        """A call of another API than Compute Engine's."""
        endpoint = self._endpoint or os.environ.get(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name.upper()}")
        options = ClientOptions(api_endpoint=endpoint) if endpoint else None
        service = build_from_document(get_static_doc(name, version), http=httplib2.Http(), client_options=options)
        try:
            credentials = self._credentials or google.auth.default(scopes=[_SCOPE])[0]
            http = AuthorizedHttp(renewed(credentials), http=httplib2.Http(timeout=30))
            answer: Json = ask(service).execute(http=http)
            return answer
        except errors.raised as error:
            raise _unasked(errors.of(error, name)) from None


def _unasked(error: CloudError) -> Unasked:
    """No right, no API, no credentials or no answer."""
    if error.code in ("accessNotConfigured", "SERVICE_DISABLED"):
        return Unasked(str(error), "enable that API in the project: gcloud services enable")
    if isinstance(error, OutcomeUnknown):
        return Unasked(str(error), "run again when it answers")
    what = "sign in: gcloud auth application-default login, or as docs/how-to/google.md says"
    todo = "give who runs this the right to look: `ironburst rights` prints a role" if type(error) is Refused else what
    return Unasked(str(error), what if error.code.endswith(("Error", "CredentialsError")) else todo)
