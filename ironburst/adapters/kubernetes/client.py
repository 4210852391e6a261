"""Requests to a Kubernetes API server: JSON in, JSON out, and each refusal as one sentence.

The official client reads the kubeconfig, runs credential plugins and makes the TLS connection; its model objects are
left out, for they take seconds for thousands of pods.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import urllib3

from ironburst.ports import SchedulerError, WrongShape

Json = dict[str, Any]
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
ANSWER_S = 30.0  # so long an answer may take
_CONNECT_S = 10.0
_TRIES = 5  # of a call that is slowed down (429), or whose object was changed by others in between (409)
_MOST_RETRY_S = 5.0  # what a Retry-After may ask for
_SAID = 300  # characters of what the server says
_NAME = re.compile(r"[a-z0-9]([a-z0-9.:-]*[a-z0-9])?")
_PATH = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?"
)


class ApiError(SchedulerError):
    """A refusal by the API server. `causes`: its machine-readable causes."""

    def __init__(self, text: str, status: int, causes: tuple[str, ...] = ()):
        super().__init__(text)
        self.status, self.causes = status, causes


class Call(NamedTuple):
    """A request in the words of Kubernetes' authorization."""

    verb: str
    group: str  # empty: the core API
    version: str
    resource: str  # with its subresource: pods/eviction
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {kind}{f' {self.name}' if self.name else ''}{where}"


def call_of(method: str, path: str, *, watch: bool = False) -> Call:
    """What a request is called. Raises ValueError for a path that is no resource's."""
    if not (found := _PATH.fullmatch(path)):
        raise ValueError(f"{path} is no path of a resource")
    verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    verb = verbs.get(method) or ("watch" if watch else "get" if found["name"] else "list")
    resource = found["resource"] + (f"/{found['sub']}" if found["sub"] else "")
    group, version = found["group"] or "", found["version"] or found["core"]
    return Call(verb, group, version, resource, found["namespace"] or "", found["name"] or "")


def checked(name: str) -> str:
    """A name as Kubernetes allows it, so that it can stand in a path. Raises SchedulerError."""
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise SchedulerError(f"{name!r} is no name of a Kubernetes object")
    return name


@dataclass(frozen=True)
class Access:
    """How to reach a cluster. With neither `kubeconfig` nor `read`: as a pod of it, by its service account."""

    kubeconfig: Path | None
    context: str = ""  # empty: the kubeconfig's current one
    read: Callable[[], str] | None = None  # a kubeconfig's text, wherever it is kept. Raises SchedulerError
    said: str = ""  # what that one is called

    def __str__(self) -> str:
        context = f", context {self.context}" if self.context else ""
        found = self.kubeconfig or self.said
        return f"{found}{context}" if found else "the pod's service account"


@dataclass(frozen=True)
class _Request:
    """One request, as it goes over the wire."""

    method: str
    path: str
    body: Json | list[Json] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    kind: str = "application/json"  # of the body
    read_s: float = ANSWER_S  # so long nothing may come
    stream: bool = False  # the answer is read as it comes: a watch

    @property
    def call(self) -> Call:
        """What it is called."""
        return call_of(self.method, self.path, watch=self.stream)


class ApiResponse(NamedTuple):
    """What came back, and when, by the API server's clock (None: it didn't say)."""

    body: Json
    at_s: float | None


class Stream:
    """The events of a watch, as they come. Ends when the server ends it, or when nothing came for the read timeout."""

    def __init__(self, response: urllib3.BaseHTTPResponse, what: str):
        self._response, self._what = response, what

    def __iter__(self) -> Iterator[Json]:
        rest = b""
        try:
            for part in self._response.stream(1 << 20):
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield self._event(line)
        except urllib3.exceptions.ReadTimeoutError:
            return  # silent for too long: it is opened again
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise SchedulerError(f"{self._what}: the stream broke: {error}") from None

    def _event(self, line: bytes) -> Json:
        event = json.loads(line)
        if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
            raise WrongShape(f"{self._what}: {line[:80]!r} is no event")
        return event

    def close(self) -> None:
        """From any thread: a read that is under way ends."""
        try:
            self._response.shutdown()
        except (AttributeError, OSError, RuntimeError, ValueError):  # it has ended already
            self._response.close()


class Client:
    """Of one API server; for all threads. All methods raise SchedulerError."""

    def __init__(self, access: Access, *, wait: Callable[[float], object] = time.sleep):
        self._access, self._wait, self._lock = access, wait, threading.Lock()
        self._generation = 0  # of the credentials
        self._server: tuple[float, float] | None = None  # its clock, and ours when it was heard
        self._connect()

    def now(self) -> float:
        """Seconds since 1970 by the API server's clock, as it was heard last; by this host's before that."""
        return self._server[0] + time.monotonic() - self._server[1] if self._server else time.time()

    def get(self, path: str, query: Mapping[str, str] | None = None) -> ApiResponse:
        """An object, or one page of a list."""
        return self._ask(_Request("GET", path, query=query or {}))

    def create(self, path: str, body: Json) -> ApiResponse:
        """POST."""
        return self._ask(_Request("POST", path, body))

    def update(self, path: str, body: Json) -> ApiResponse:
        """PUT; the body's resourceVersion is the condition."""
        return self._ask(_Request("PUT", path, body))

    def patch(self, path: str, body: Json | list[Json], kind: str = MERGE) -> ApiResponse:
        """PATCH."""
        return self._ask(_Request("PATCH", path, body, kind=kind))

    def delete(self, path: str, body: Json | None = None) -> ApiResponse:
        """DELETE, with options as the body."""
        return self._ask(_Request("DELETE", path, body))

    def change(self, path: str, changed: Callable[[Json], Json | None]) -> Json:
        """Read an object and patch it (merge patch) if it is still the same then; read again where it was changed in
        between. `changed`: the patch for what was read; None: nothing is to be done. Returns the object as it is now.
        """
        for attempt in range(_TRIES):
            found = self.get(path).body
            patch = changed(found)
            if patch is None:
                return found
            meta = {**patch.get("metadata", {}), "resourceVersion": found["metadata"]["resourceVersion"]}
            try:
                return self.patch(path, {**patch, "metadata": meta}).body
            except ApiError as error:
                if error.status != 409 or attempt == _TRIES - 1:
                    raise
        raise AssertionError("unreachable")

    def watch(self, path: str, query: Mapping[str, str], silent_s: float) -> Stream:
        """Open a watch. `silent_s`: it ends when nothing comes for so long."""
        request = _Request("GET", path, query={**query, "watch": "1"}, read_s=silent_s, stream=True)
        response = self._sent(request)
        if response.status != 200:
            data = response.read(1 << 16)
            response.close()
            raise self._refused(request.call, response.status, _json(data))
        return Stream(response, str(request.call))

    # ---- the connection
    def _connect(self) -> None:
        self._configuration = configuration_of(self._access)
        from kubernetes.client import rest  # loads 60 MB of models: only where a cluster is used

        self._host = str(self._configuration.host).rstrip("/")
        self._configuration.connection_pool_maxsize = 32
        self._pool = rest.RESTClientObject(self._configuration).pool_manager

    def _headers(self, request: _Request) -> dict[str, str]:
        with self._lock:  # a credential plugin that refreshes its token runs once
            settings = self._configuration.auth_settings()
        headers = {"Accept": "application/json", "User-Agent": "ironburst"}
        if request.body is not None:
            headers["Content-Type"] = request.kind
        if token := settings.get("BearerToken", {}).get("value"):
            headers["Authorization"] = token
        return headers

    def _ask(self, request: _Request) -> ApiResponse:
        for attempt in range(_TRIES):
            response = self._sent(request)
            answer = _json(response.data)
            if response.status < 300:
                if not isinstance(answer, dict):
                    raise WrongShape(f"{request.call}: the answer is no object: {response.data[:80]!r}")
                if (at_s := _date(response)) is not None:
                    self._server = at_s, time.monotonic()
                return ApiResponse(answer, at_s)
            error = self._refused(request.call, response.status, answer)
            if response.status != 429 or error.causes or attempt == _TRIES - 1:
                break
            self._wait(_retry_after(response))
        raise error

    def _sent(self, request: _Request) -> urllib3.BaseHTTPResponse:
        """One call; a second one with credentials that are read again where the first were refused."""
        generation = self._generation
        response = self._sent_once(request)
        if response.status == 401:
            response.close()
            with self._lock:
                if generation == self._generation:
                    self._generation += 1
                    self._connect()
            response = self._sent_once(request)
        return response

    def _sent_once(self, request: _Request) -> urllib3.BaseHTTPResponse:
        url = f"{self._host}{request.path}{'?' if request.query else ''}{urlencode(request.query)}"
        try:
            response: urllib3.BaseHTTPResponse = self._pool.request(
                request.method,
                url,
                body=None if request.body is None else json.dumps(request.body).encode(),
                headers=self._headers(request),
                timeout=urllib3.Timeout(connect=_CONNECT_S, read=request.read_s),
                retries=False,
                redirect=False,
                preload_content=not request.stream,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            why = " ".join(str(error).split())[:_SAID]
            raise SchedulerError(f"{request.call}: {self._host} can't be reached: {why}") from None
        return response

    def _refused(self, call: Call, status: int, answer: Any) -> ApiError:
        told: Json = answer if isinstance(answer, dict) else {}
        said = " ".join(str(told.get("message") or "no message").split())[:_SAID]
        details = told.get("details") or {}
        causes = tuple(str(cause.get("reason")) for cause in details.get("causes") or () if cause.get("reason"))
        said_by = "; ".join(str(cause["message"]) for cause in details.get("causes") or () if cause.get("message"))
        if status == 401:
            text = (
                f"the credentials of {self._access} are refused (401): they have expired or were withdrawn; renew them"
            )
        elif status == 403:
            text = f"{self._access} has no right to {call}: give it the rules that ironburst declares ({said})"
        elif status == 404 and not call.name:
            api = f"{call.group}/{call.version}" if call.group else call.version
            text = f"{call}: the API server has no {call.resource} of {api}: install what serves that version"
        elif status == 429 and not causes:
            text = f"{call}: the API server slows us down (429), {_TRIES} times in a row: {said}"
        elif status == 409:
            text = f"{call}: it was changed by somebody else at the same time (409): {said}"
        else:
            text = f"{call} is refused ({status}): {said}{f' ({said_by})' if said_by else ''}"
        return ApiError(text, status, causes)


def configuration_of(access: Access) -> Any:
    """The official client's Configuration. Raises SchedulerError."""
    import yaml
    from kubernetes import client, config

    configuration = client.Configuration()
    configuration.retries = False
    path = access.kubeconfig
    try:
        if access.read:
            held: Any = yaml.safe_load(access.read())
            if not isinstance(held, dict):
                raise SchedulerError(f"{access} holds no kubeconfig")
            config.load_kube_config_from_dict(
                held, context=access.context or None, client_configuration=configuration, persist_config=False
            )
        elif path is None:
            config.load_incluster_config(client_configuration=configuration)
            return configuration
        elif not os.access(path, os.R_OK):
            raise SchedulerError(f"there is no kubeconfig {path} that can be read: give the path of one")
        else:
            config.load_kube_config(
                str(path), context=access.context or None, client_configuration=configuration, persist_config=False
            )
    except (config.ConfigException, yaml.error.YAMLError, KeyError, TypeError, ValueError) as error:
        raise SchedulerError(f"{access} can't be used: {' '.join(str(error).split())[:_SAID]}") from None
    if not configuration.api_key and not configuration.cert_file:
        why = "no token and no client certificate, or its credential plugin failed"
        raise SchedulerError(f"{access} gives no credentials: {why}")
    return configuration


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _date(response: urllib3.BaseHTTPResponse) -> float | None:
    try:
        return parsedate_to_datetime(response.headers.get("Date", "")).timestamp()
    except (TypeError, ValueError):
        return None


def _retry_after(response: urllib3.BaseHTTPResponse) -> float:
    try:
        asked = float(response.headers.get("Retry-After", "1"))
    except ValueError:
        asked = 1.0
    return min(max(asked, 0.1), _MOST_RETRY_S)
