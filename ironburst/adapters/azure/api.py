"""Calls of Azure's API (ARM) by its own clients: tried once, waited for once, and read as the JSON that was sent.

The clients' models keep what they don't know and lack nothing that is missing, so answers are read as they came. A
call that Azure slowed down isn't made again before the time that it gave.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from azure.core.rest import HttpRequest
from azure.identity import DefaultAzureCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.resource.resources import ResourceManagementClient

from ironburst.adapters.azure import errors
from ironburst.ports import OutcomeUnknown, Refused, Throttled

ENDPOINT = "AZURE_RESOURCE_MANAGER_URL"
"""for a stand-in; none: Azure's own"""
_SCOPE = "https://management.azure.com/.default"

Json = Mapping[str, Any]


class Api:
    """A subscription's ARM. Every method raises CloudError. Safe to use from several threads."""

    def __init__(
        self,
        subscription: str,
        *,
        credential: Any = None,
        endpoint: str | None = None,
        timeout_s: float = 30.0,
        now: Callable[[], float] = time.time,
    ):
        """`endpoint`: http://127.0.0.1:8080; None: that of ENDPOINT. `credential`: None: as azure-identity finds one
        (the environment's, workload identity, the machine's). `now`: for tests.
        """
        self.subscription, self._now = subscription, now
        endpoint = endpoint or os.environ.get(ENDPOINT)
        # of a stand-in on the loopback: the client sends a token in plain text only if it is told so with each call
        self._options = {"enforce_https": False} if (endpoint or "").startswith("http://") else {}
        more: dict[str, Any] = {"retry_total": 0, "connection_timeout": timeout_s, "read_timeout": timeout_s}
        more |= {"credential_scopes": [_SCOPE]} | ({"base_url": endpoint} if endpoint else {})
        credential = credential or DefaultAzureCredential()
        self._compute = ComputeManagementClient(credential, subscription, **more)
        resources = ResourceManagementClient(credential, subscription, **more)
        self._of = {
            "resource_groups": resources,
            "providers": resources,
            "tags": resources,
            "network_interfaces": NetworkManagementClient(credential, subscription, **more),
        }
        self._not_before: dict[str, float] = {}  # by call

    def get(self, call: str, *path: Any, **more: Any) -> Json:
        """One resource, by a call as `virtual_machines.get`."""
        return _object(call, self._answers(call, *path, **more)[-1])

    def put(self, call: str, *path: Any, **more: Any) -> tuple[Json, str]:
        """A resource as it is when Azure has taken the request, and the URL of what goes on behind it; empty: Azure
        names none.
        """
        polling = {"polling": False} if ".begin_" in call else {}
        answer = self._answers(call, *path, **more, **polling)[-1]
        url = answer.headers.get("Azure-AsyncOperation") or answer.headers.get("Location") or ""
        return _object(call, answer), str(url)

    def delete(self, call: str, *path: Any, **more: Any) -> None:
        """Azure has taken the request; it is done later."""
        self._answers(call, *path, **more, polling=False)

    def act(self, call: str, *path: Any, **more: Any) -> None:
        """What is done when it is answered, and answered with nothing."""
        self._answers(call, *path, **more)

    def operation(self, url: str) -> Json:
        """What goes on behind a request: {status, error?}."""
        request = HttpRequest("GET", url)
        return _object("operations.get", self._answers("operations.get", request)[-1])

    def at(self, call: str, path: str, version: str) -> Json:
        """A resource of a provider that there is no client for here. `call`: operations.NAME, for people and tests."""
        request = HttpRequest("GET", path, params={"api-version": version})
        return _object(call, self._answers(call, request)[-1])

    def all(self, call: str, *path: Any, **more: Any) -> list[Json]:
        """All pages of a list."""
        found: list[Json] = []
        for answer in self._answers(call, *path, **more):
            page = _object(call, answer).get("value")
            if not isinstance(page, list) or not all(isinstance(each, Mapping) for each in page):
                raise OutcomeUnknown(f"{call}: the answer has no list")
            found += page
        return found

    def several(self, call: str, *path: Any, **more: Any) -> list[Json]:
        """A list that is a bare array, and has no pages."""
        answer = self._answers(call, *path, **more)[-1]
        try:
            said = answer.json()
        except ValueError:
            said = None
        if not isinstance(said, list) or not all(isinstance(each, Mapping) for each in said):
            raise OutcomeUnknown(f"{call}: the answer is no list")
        return said

    def _answers(self, call: str, *args: Any, **more: Any) -> list[Any]:
        """The HTTP answers to a call: one, or one for each page."""
        wait_s = self._not_before.get(call, 0.0) - self._now()
        if wait_s > 0:
            raise Throttled(f"{call}: Azure asked to wait {wait_s:.0f} s more", "TooManyRequests")
        answers: list[Any] = []
        more |= self._options | {"raw_response_hook": lambda seen: answers.append(seen.http_response)}
        try:
            result = self._method(call)(*args, **more)
            if hasattr(result, "by_page"):
                _read_all(call, result.by_page())
            elif call.startswith("operations."):
                result.raise_for_status()
        except errors.raised as error:
            found = errors.of(error, call)
            if isinstance(found, Throttled):
                self._not_before[call] = self._now() + errors.retry_after_s(error)
            raise found from None
        if not answers:
            raise OutcomeUnknown(f"{call}: no answer")
        return answers

    def _method(self, call: str) -> Callable[..., Any]:
        room, _, name = call.partition(".")
        if room == "operations":
            return self._compute.send_request
        method: Callable[..., Any] = getattr(getattr(self._of.get(room, self._compute), room), name)
        return method


def _read_all(call: str, pages: Any) -> None:
    before = set[str]()
    for page in pages:
        list(page)
        token = pages.continuation_token
        if token and token in before:
            raise OutcomeUnknown(f"{call}: the list goes round in a circle")
        before.add(token)


def _object(call: str, answer: Any) -> Json:
    try:
        said = answer.json()
    except ValueError:
        raise OutcomeUnknown(f"{call}: the answer is no JSON") from None
    if not isinstance(said, Mapping):
        raise OutcomeUnknown(f"{call}: the answer is {type(said).__name__}, no object")
    return said


def refused(text: str) -> Refused:
    """An id or a reference that isn't Azure's."""
    return Refused(text, "NotAzures")
