"""Calls of Compute Engine's API: one at a time for each thread, tried once, and lists that say whether they are whole.

The client is built from the description of the API that lies in google-api-python-client's own package: nothing is
asked for it. It checks the parameters of a call, never its body. Of a thousand methods it is given those that are
called: it writes a page of help for each, whenever a resource is looked at.
"""

from __future__ import annotations

import functools
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import google.auth
import httplib2
from google.api_core.client_options import ClientOptions
from google_auth_httplib2 import AuthorizedHttp
from googleapiclient.discovery import build_from_document
from googleapiclient.discovery_cache import get_static_doc

from ironburst.adapters.google import errors
from ironburst.ports import Malformed, OutcomeUnknown, Refused
from ironburst.system.google import renewed

_SCOPE = "https://www.googleapis.com/auth/compute"
_ENDPOINT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE"
"""gcloud's own variable, for a stand-in"""
_PAGE = 500  # the most that a page has
_WHOLE = {"", "NO_RESULTS_ON_PAGE"}  # warnings of a list that lacks nothing

CALLS = {
    "advice": ("capacityHistory",),
    "globalOperations": ("aggregatedList",),
    "images": ("getFromFamily",),
    "instances": ("aggregatedList", "bulkInsert", "delete", "get", "getSerialPortOutput", "list"),
    "regions": ("get",),
    "zoneOperations": ("get", "list"),
}
"""those that a controller makes"""

Json = Mapping[str, Any]


@functools.cache
def _api_v1() -> dict[str, Any]:
    said: dict[str, Any] = json.loads(get_static_doc("compute", "v1"))
    return said


def _description(calls: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    known = _api_v1()["resources"]
    made = {
        resource: {"methods": {name: known[resource]["methods"][name] for name in names}}
        for resource, names in calls.items()
    }
    return _api_v1() | {"resources": made}


class Api:
    """A project's Compute Engine, by its v1 API. Every method raises CloudError."""

    def __init__(
        self,
        project: str,
        *,
        more: Mapping[str, Sequence[str]] = MappingProxyType({}),
        credentials: Any = None,
        endpoint: str | None = None,
        timeout_s: float = 30.0,
    ):
        """`more`: calls beside CALLS. `endpoint`: with its path, as http://127.0.0.1:8080/compute/v1/; None: Google's,
        or as gcloud's variable says.
        `credentials`: None: as google-auth finds them (GOOGLE_APPLICATION_CREDENTIALS, the service account of the
        machine, ...).
        """
        self.project = project
        self._credentials, self._timeout_s, self._local = credentials, timeout_s, threading.local()
        calls = {each: (*CALLS.get(each, ()), *more.get(each, ())) for each in (*CALLS, *more)}
        endpoint = endpoint or os.environ.get(_ENDPOINT)
        options = ClientOptions(api_endpoint=endpoint) if endpoint else None
        service = build_from_document(_description(calls), http=httplib2.Http(), client_options=options)
        self._resources = {resource: getattr(service, resource)() for resource in calls}

    def _http(self) -> Any:
        """A connection of this thread's own: httplib2's are no two threads' at a time."""
        if not hasattr(self._local, "http"):
            if self._credentials is None:
                self._credentials, _ = google.auth.default(scopes=[_SCOPE])
            self._local.http = AuthorizedHttp(self._credentials, http=httplib2.Http(timeout=self._timeout_s))
        renewed(self._credentials)
        return self._local.http

    def call(self, resource: str, method: str, **parameters: Any) -> Json:
        """One call, as `instances`, `get`; its answer, which is an object. `project`: another one than ours."""
        what = f"{resource}.{method}"
        try:
            asked = getattr(self._resources[resource], method)(**{"project": self.project} | parameters)
        except TypeError as error:  # the client's own: nothing was sent
            raise Malformed(f"{what}: {error}", "ParameterError") from None
        try:
            answer = asked.execute(http=self._http(), num_retries=0)
        except errors.raised as error:
            raise errors.of(error, what) from None
        except ValueError as error:  # of something in between
            raise OutcomeUnknown(f"{what}: the answer is no JSON ({error})") from None
        if not isinstance(answer, Mapping):
            raise OutcomeUnknown(f"{what}: the answer is {type(answer).__name__}, no object")
        return answer

    def pages(self, resource: str, method: str, **parameters: Any) -> Iterator[Json]:
        """All pages of a list."""
        token, before = None, set[str]()
        while True:
            page = self.call(resource, method, maxResults=_PAGE, pageToken=token, **parameters)
            yield page
            token = page.get("nextPageToken")
            if not token:
                return
            if token in before:
                raise OutcomeUnknown(f"{resource}.{method}: the list goes round in a circle")
            before.add(token)

    def listed(self, resource: str, zone: str, query: str) -> list[Json]:
        """All of a zone that a filter finds. A list that may lack some is none: OutcomeUnknown."""
        found: list[Json] = []
        for page in self.pages(resource, "list", zone=zone, filter=query):
            _whole(page, f"{resource}.list", zone)
            found += page.get("items", [])
        return found

    def listed_everywhere(self, resource: str, key: str, region: str, query: str) -> list[Json]:
        """All of a region's zones that a filter finds. One zone of it that isn't reached: OutcomeUnknown; others of the
        project don't matter. `key`: what a zone's part of the answer has them under.
        """
        found: list[Json] = []
        for page in self.pages(resource, "aggregatedList", filter=query):
            what = f"{resource}.aggregatedList"
            silent = [scope for scope in page.get("unreachables", []) if _in_region(scope, region)]
            if silent:
                raise OutcomeUnknown(f"{what}: {', '.join(silent)} gave no answer", "UNREACHABLE")
            if page.get("warning", {}).get("code", "") not in (*_WHOLE, "UNREACHABLE"):
                _whole(page, what, region)
            for scope, part in page.get("items", {}).items():
                if _in_region(scope, region):
                    _whole(part, what, scope)
                    found += part.get(key, [])
        return found


def _whole(part: Json, what: str, where: str) -> None:
    warning = part.get("warning") or {}
    if warning.get("code", "") not in _WHOLE:
        said = f"{warning['code']}: {warning.get('message', '')}".rstrip(": ")
        raise OutcomeUnknown(f"{what}: the list of {where} isn't whole ({said})", str(warning["code"]))


def _in_region(scope: str, region: str) -> bool:
    """Of us-central1: zones/us-central1-a, and us-central1-ai1a; and whatever is no zone's name."""
    name = scope.rpartition("/")[2]
    return f"{name}-".startswith(f"{region}-") or not name


def refused(text: str) -> Refused:
    """An id or a reference that isn't Google's."""
    return Refused(text, "NotGoogles")
