"""Cloud Storage's JSON API, as far as a node asks it: objects.list and objects.get, whose parameters are those of its
own description (storage.v1.json of google-api-python-client). What is assumed of it: README.md.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import gzip
import json
import re
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from googleapiclient.discovery_cache import get_static_doc

from lab.google.iam import Iam
from lab.served import LOOPBACK, Answering, Server

_PATH = re.compile(r"/storage/v1/b/([^/]+)/o(?:/([^/]+))?")
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_FIELDS = re.compile(r"nextPageToken,items\(([A-Za-z0-9,]+)\)")
_PAGE = 1000  # the description has it in words: "1,000 items, whichever is smaller"
_CONDITION = "At least one of the pre-conditions you specified did not hold."
Answer = tuple[int, dict[str, str], bytes]


@functools.cache
def _described() -> Any:
    return json.loads(get_static_doc("storage", "v1"))


@dataclass(frozen=True)
class Stored:
    """An object in one of its generations. `encoding`: its Content-Encoding."""

    content: bytes
    generation: int
    encoding: str = ""


@dataclass
class Fault:
    """What happens instead of `times` answers to requests whose path has `of` in it. `status` 0: the true answer breaks
    off in its middle.
    """

    of: str
    status: int = 0
    times: int = 1
    retry_after: str = ""


class CloudStorage(Server):
    """`held`: bucket -> name -> Stored. `asked`: (path, query, headers) of each request. `requester_pays`: buckets."""

    def __init__(self, iam: Iam, address: tuple[str, int] = LOOPBACK):
        self.iam, self.page = iam, _PAGE
        self.held: dict[str, dict[str, Stored]] = {}
        self.requester_pays: set[str] = set()
        self.faults: list[Fault] = []
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self._generation, self._lock = 1_700_000_000_000_000, threading.Lock()
        super().__init__(address, _Handler)

    def handle_error(self, *_: Any) -> None:
        """Who asked hung up."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/storage/v1/"

    def put(self, bucket: str, name: str, content: bytes, encoding: str = "") -> None:
        """An object, in a new generation."""
        self._generation += 1
        self.held.setdefault(bucket, {})[name] = Stored(content, self._generation, encoding)

    def fault(self, path: str) -> Fault | None:
        with self._lock:
            found = next((each for each in self.faults if each.times and each.of in path), None)
            if found:
                found.times -= 1
            return found

    def answer(self, target: str, headers: dict[str, str]) -> Answer:
        """Status, headers and body."""
        split = urlsplit(target)
        query = dict(parse_qsl(split.query, keep_blank_values=True))
        self.asked.append((split.path, query, headers))
        at = _PATH.fullmatch(split.path)
        if at is None:
            return _error(404, "notFound", "Not Found")
        bucket, name = unquote(at[1]), unquote(at[2]) if at[2] else ""
        method = _described()["resources"]["objects"]["methods"]["get" if name else "list"]
        if unknown := set(query) - set(method["parameters"]) - set(_described()["parameters"]):
            return _error(400, "invalidParameter", f"Unknown parameter: {', '.join(sorted(unknown))}")
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.iam.tokens:
            return _error(401, "authError", "Invalid Credentials")
        if bucket not in self.held:
            return _error(404, "notFound", "The specified bucket does not exist.")
        if bucket in self.requester_pays and "userProject" not in query:
            return _error(400, "required", "Bucket is a requester pays bucket but no user project provided.")
        where = f"projects/_/buckets/{bucket}"
        call, resource = ("storage.objects.get", f"{where}/objects/{name}") if name else ("storage.objects.list", where)
        if self.iam.refusal(token, call, resource):
            text = f"{self.iam.tokens[token]} does not have {call} access to the Google Cloud Storage "
            return _error(403, "forbidden", text + ("object." if name else "bucket."))
        return self._media(bucket, name, query, headers) if name else self._list(bucket, query)

    def _list(self, bucket: str, query: dict[str, str]) -> Answer:
        fields = _FIELDS.fullmatch(query.get("fields", ""))
        known = _described()["schemas"]["Object"]["properties"]
        if not fields or set(fields[1].split(",")) - set(known):
            return _error(400, "invalidParameter", f"Invalid field selection {query.get('fields', '')}")
        after = base64.b64decode(query.get("pageToken", "")).decode()
        names = sorted(name for name in self.held[bucket] if name.startswith(query.get("prefix", "")) and name > after)
        items = []
        for name in names[: self.page]:
            its = self.held[bucket][name]
            whole = {"name": name, "generation": str(its.generation), "size": str(len(its.content))}
            items.append({key: whole[key] for key in fields[1].split(",")})
        said: dict[str, Any] = {"items": items} if items else {}  # an empty list has none
        if len(names) > self.page:
            said["nextPageToken"] = base64.b64encode(names[self.page - 1].encode()).decode()
        return 200, {"Content-Type": "application/json"}, json.dumps(said).encode()

    def _media(self, bucket: str, name: str, query: dict[str, str], headers: dict[str, str]) -> Answer:
        its = self.held[bucket].get(name)
        if its is None:
            return _error(404, "notFound", f"No such object: {bucket}/{name}")
        if query.get("ifGenerationMatch", str(its.generation)) != str(its.generation):
            return _error(412, "conditionNotMet", _CONDITION)
        if query.get("alt") != "media":
            return _error(501, "notImplemented", "this stand-in shows no object's metadata")
        if its.encoding == "gzip" and "gzip" not in headers.get("accept-encoding", ""):
            return 200, {"Transfer-Encoding": "none of a length"}, gzip.decompress(its.content)  # of whatever range
        kind = {"Content-Encoding": its.encoding} if its.encoding else {}
        part = _RANGE.fullmatch(headers.get("range", ""))
        if part is None:
            return 200, kind, its.content
        first, last, size = int(part[1]), int(part[2]), len(its.content)
        if first >= size:
            return _error(416, "requestedRangeNotSatisfiable", "Request range not satisfiable")
        kind["Content-Range"] = f"bytes {first}-{min(last, size - 1)}/{size}"
        return 206, kind, its.content[first : last + 1]


def _error(status: int, reason: str, text: str) -> Answer:
    one = {"message": text, "domain": "global", "reason": reason}
    return status, {}, json.dumps({"error": {"code": status, "message": text, "errors": [one]}}).encode()


class _Handler(Answering):
    server: CloudStorage
    wbufsize = 65536  # an answer is one piece

    def do_GET(self) -> None:
        fault = self.server.fault(self.path)
        if fault and fault.status:
            status, headers, content = _error(fault.status, "backendError", "injected")
            headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
        else:
            status, headers, content = self.server.answer(
                self.path, {key.lower(): value for key, value in self.headers.items()}
            )
        self.send_response(status)
        unknown = headers.pop("Transfer-Encoding", "")
        for key, value in headers.items():
            self.send_header(key, value)
        if unknown:  # it ends where the connection does
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with contextlib.suppress(OSError):  # who asked waits no more
            self.wfile.write(content[: len(content) // 2] if fault and not fault.status else content)
        if unknown or (fault and not fault.status):
            self.close_connection = True
