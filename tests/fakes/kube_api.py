"""An API server in memory, over HTTP: what Kubernetes' refuses, delays and says in part, for the kinds that the
adapter uses. A stand-in: no admission, no defaulting, no controllers; kube-scheduler and kubelet are the test's hands.

What it holds calls to: RBAC, patch types, resourceVersion and uid conditions, which fields of a pod may change,
disruption budgets, field selectors, pages of lists, expired resourceVersions.
"""

from __future__ import annotations

import base64
import copy
import json
import re
import threading
import time
import uuid
from collections import deque
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import yaml

RESOURCES = {  # group/version resource: kind, namespaced, fields that can be selected by
    "v1 pods": ("Pod", True, ("metadata.name", "spec.nodeName", "spec.schedulerName", "status.phase")),
    "v1 nodes": ("Node", False, ("metadata.name", "spec.unschedulable")),
    "v1 namespaces": ("Namespace", False, ("metadata.name",)),
    "v1 persistentvolumeclaims": ("PersistentVolumeClaim", True, ("metadata.name",)),
    "storage.k8s.io/v1 storageclasses": ("StorageClass", False, ("metadata.name",)),
    "v1 persistentvolumes": ("PersistentVolume", False, ("metadata.name",)),
    "v1 resourcequotas": ("ResourceQuota", True, ("metadata.name",)),
    "v1 configmaps": ("ConfigMap", True, ("metadata.name",)),
    "batch/v1 jobs": ("Job", True, ("metadata.name",)),
    "coordination.k8s.io/v1 leases": ("Lease", True, ("metadata.name",)),
    "v1 secrets": ("Secret", True, ("metadata.name", "type")),
    "certificates.k8s.io/v1 certificatesigningrequests": (
        "CertificateSigningRequest",
        False,
        ("metadata.name", "spec.signerName"),
    ),
    "policy/v1 poddisruptionbudgets": ("PodDisruptionBudget", True, ("metadata.name",)),
    "scheduling.k8s.io/v1alpha2 podgroups": ("PodGroup", True, ("metadata.name",)),
    "resource.k8s.io/v1 deviceclasses": ("DeviceClass", False, ("metadata.name",)),
    "resource.k8s.io/v1 resourceslices": ("ResourceSlice", False, ("metadata.name", "spec.nodeName", "spec.driver")),
    "resource.k8s.io/v1 resourceclaims": ("ResourceClaim", True, ("metadata.name",)),
}
PATH = re.compile(r"^/(?:api/(v1)|apis/([^/]+/[^/]+))(?:/namespaces/([^/]+)(?=/))?/([^/]+)(?:/([^/]+))?(?:/([^/]+))?$")
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Refusal(Exception):
    def __init__(self, code, reason, message, *, causes=(), retry_after=None):
        self.code, self.retry_after = code, retry_after
        details = {"causes": [{"reason": cause, "message": said} for cause, said in causes]} if causes else {}
        self.status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": code,
            "reason": reason,
            "message": message,
            "details": details,
        }


class KubeApi:
    """`rules`: (group, resource, verb, namespace, name) -> may it; None: everything."""

    page = 500
    resources = RESOURCES

    def __init__(self, token="secret"):
        self.token, self.allowed = token, None
        self.lock = threading.Condition()
        self.objects = {}  # (resource, namespace, name) -> object
        self.version, self.compacted = 100, 0
        self.history = []  # (version, type, resource, object, object before)
        self.calls = deque(maxlen=100_000)  # (verb, group, resource, namespace, name)
        self.faults = deque()  # (predicate, Refusal): each once
        self.conflicts = 0  # so many conditional writes meet another writer first
        self.skew_s = 0.0  # of this server's clock
        self.muted = False  # streams stay open and say nothing
        self.bookmark_s = 0.2
        self.generation = 0  # streams of an older one end at once
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        with self.lock:
            self.generation += 1
            self.lock.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def now(self):
        return time.time() + self.skew_s

    # ---- the test's hands
    def put(self, resource, raw):
        """Create or replace, as a controller with every right does."""
        with self.lock:
            meta = raw["metadata"]
            key = (resource, meta.get("namespace", ""), meta["name"])
            before = self.objects.get(key)
            meta.setdefault("uid", before["metadata"]["uid"] if before else str(uuid.uuid4()))
            meta.setdefault("creationTimestamp", _time(self.now()))
            self._store(key, raw, before)
            return raw

    def edit(self, resource, namespace, name, change):
        with self.lock:
            raw = copy.deepcopy(self.objects[resource, namespace, name])
            change(raw)
            return self.put(resource, raw)

    def remove(self, resource, namespace, name):
        with self.lock:
            self._remove((resource, namespace, name))

    def get(self, resource, namespace, name):
        return self.objects.get((resource, namespace, name))

    def drop_streams(self):
        with self.lock:
            self.generation += 1
            self.lock.notify_all()

    def compact(self):
        """Forget all that was: watches from before are told 410."""
        with self.lock:
            self.compacted, self.history = self.version, []

    def fail(self, refusal, times=1, when=lambda call: True):
        self.faults.extend([(when, refusal)] * times)

    def verbs(self, verb):
        return [call for call in self.calls if call[0] == verb]

    # ---- storage
    def _store(self, key, raw, before):
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = raw
        self.history.append((self.version, "MODIFIED" if before else "ADDED", key[0], copy.deepcopy(raw), before))
        self.lock.notify_all()

    def _remove(self, key):
        raw = copy.deepcopy(self.objects.pop(key))
        before = copy.deepcopy(raw)
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, "DELETED", key[0], raw, before))
        self.lock.notify_all()

    def _found(self, key):
        if key not in self.objects:
            raise Refusal(404, "NotFound", f'{key[0].split()[1]} "{key[2]}" not found')
        return self.objects[key]

    def _checked(self, meta, found, resource):
        """A write's conditions."""
        if self.conflicts and meta.get("resourceVersion"):
            self.conflicts -= 1
            self._store((resource, found["metadata"].get("namespace", ""), found["metadata"]["name"]), found, found)
        for what in ("uid", "resourceVersion"):
            if meta.get(what) and meta[what] != found["metadata"][what]:
                text = "the object has been modified; please apply your changes to the latest version and try again"
                raise Refusal(409, "Conflict", text)

    def write(self, key, new, manager):
        before = self._found(key)
        self._checked(new["metadata"], before, key[0])
        for what in ("uid", "creationTimestamp"):
            new["metadata"][what] = before["metadata"][what]
        if key[0] == "v1 pods":
            _pod_update(before, new)
        new["metadata"]["managedFields"] = _managed(before, new, manager, _time(self.now()))
        size = sum(len(k) + len(v) for k, v in (new["metadata"].get("annotations") or {}).items())
        if size > 256 * 1024:
            raise Refusal(422, "Invalid", "metadata.annotations: Too long: may not be more than 262144 bytes")
        unchanged = _without(before) == _without(new)
        if not unchanged:
            self._store(key, new, before)
        return self.objects[key]

    def create(self, resource, namespace, raw, manager):
        if raw.get("kind") != self.resources[resource][0]:
            raise Refusal(400, "BadRequest", f"the object provided is unrecognized: {raw.get('kind')}")
        meta = raw["metadata"]
        if meta.get("namespace", namespace) != namespace or meta.get("resourceVersion"):
            raise Refusal(400, "BadRequest", "namespace or resourceVersion of the object don't fit the request")
        key = (resource, namespace, meta["name"])
        if key in self.objects:
            raise Refusal(409, "AlreadyExists", f'{resource.split()[1]} "{meta["name"]}" already exists')
        meta |= {"namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": _time(self.now())}
        if "stringData" in raw:
            given = {name: base64.b64encode(text.encode()).decode() for name, text in raw.pop("stringData").items()}
            raw["data"] = {**raw.get("data", {}), **given}
        meta["managedFields"] = _managed({}, raw, manager, _time(self.now()))
        self._store(key, raw, None)
        return raw

    def patch(self, key, body, kind, manager):
        found = self._found(key)
        if kind == MERGE:
            new = _merged(found, body)
        elif kind == JSON_PATCH:
            new = _json_patched(found, body)
        else:  # a strategic merge is taken by the real one; the adapter has no use for it
            text = f"the body of the request was in an unknown format - accepted media types include: {JSON_PATCH}"
            raise Refusal(415, "UnsupportedMediaType", text)
        return self.write(key, copy.deepcopy(new), manager)

    def delete(self, key, options):
        found = self._found(key)
        conditions = (options or {}).get("preconditions") or {}
        self._checked(conditions, found, key[0])
        if key[0] == "v1 pods" and found["spec"].get("nodeName") and not found["metadata"].get("deletionTimestamp"):
            new = copy.deepcopy(found)
            new["metadata"]["deletionTimestamp"] = _time(self.now() + 30)
            self._store(key, new, found)
            return new
        if not found["metadata"].get("deletionTimestamp"):
            self._remove(key)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def evict(self, key, body):
        pod, options = self._found(key), body.get("deleteOptions") or {}
        if body.get("kind") != "Eviction" or body["metadata"]["name"] != key[2]:
            raise Refusal(400, "BadRequest", "name in URL does not match name in Eviction object")
        self._checked(options.get("preconditions") or {}, pod, key[0])
        dry, labels = bool(options.get("dryRun")), pod["metadata"].get("labels") or {}
        ready = any(
            each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions") or ()
        )
        budgets = [
            at
            for at, raw in self.objects.items()
            if at[:2] == ("policy/v1 poddisruptionbudgets", key[1])
            and raw["spec"]["selector"]["matchLabels"].items() <= labels.items()
        ]
        if len(budgets) > 1:
            raise Refusal(
                500, "InternalError", "This pod has more than one PodDisruptionBudget, which is not supported."
            )
        for budget in budgets if ready else ():  # of those that aren't ready this stand-in lets all go
            if (allowed := self.objects[budget]["status"]["disruptionsAllowed"]) < 1:
                said = f"The disruption budget {budget[2]} needs 1 healthy pods and has 1 currently"
                text = "Cannot evict pod as it would violate the pod's disruption budget."
                raise Refusal(429, "TooManyRequests", text, causes=[("DisruptionBudget", said)])
            if not dry:
                self.edit(*budget, change=lambda raw, left=allowed - 1: raw["status"].update(disruptionsAllowed=left))
        if not dry:
            self.delete(key, None)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def approve(self, key, body, manager):
        """The subresource changes nothing but the conditions; a right to the signer is asked for beside RBAC's own."""
        found = self._found(key)
        signer = found["spec"]["signerName"]
        if self.allowed and not self.allowed("approve", "certificates.k8s.io", "signers", "", signer):
            text = f'certificatesigningrequests "{key[2]}" is forbidden: user not permitted to approve requests with '
            raise Refusal(403, "Forbidden", f'{text}signerName "{signer}"')
        conditions = (body.get("status") or {}).get("conditions") or []
        kinds = {each["type"] for each in conditions}
        before = {each["type"] for each in (found.get("status") or {}).get("conditions") or []}
        if (
            {"Approved", "Denied"} <= kinds
            or before - kinds
            or any(each.get("status") != "True" for each in conditions)
        ):
            raise Refusal(422, "Invalid", "status.conditions: Forbidden: Approved and Denied conditions are exclusive")
        new = {**copy.deepcopy(found), "metadata": dict(body["metadata"])}
        new["status"] = {**(found.get("status") or {}), "conditions": conditions}
        return self.write(key, new, manager)

    # ---- lists and watches
    def listed(self, resource, namespace, query):
        fields = _fields(self.resources[resource], query.get("fieldSelector", ""))
        every = sorted(key for key in self.objects if key[0] == resource and (not namespace or key[1] == namespace))
        limit, start, version = int(query.get("limit", 0) or 0), 0, self.version
        if token := query.get("continue"):
            version, start = map(int, token.split(":"))
            if version < self.compacted:
                text = "The provided continue parameter is too old to display a consistent list result."
                raise Refusal(410, "Expired", text)
        items = [self.objects[key] for key in every if _selected(self.objects[key], fields)]
        items = [raw for raw in items if _labelled(raw, query.get("labelSelector", ""))]
        page = items[start : start + limit] if limit else items
        meta = {"resourceVersion": str(version)}
        if limit and start + limit < len(items):
            meta |= {"continue": f"{version}:{start + limit}", "remainingItemCount": len(items) - start - limit}
        return {"kind": self.resources[resource][0] + "List", "apiVersion": "v1", "metadata": meta, "items": page}

    def events(self, resource, query, mine):
        """Generator of lists of events; runs without the lock between them. `mine`: the generation of the call."""
        since = int(query.get("resourceVersion") or 0)
        fields = _fields(self.resources[resource], query.get("fieldSelector", ""))
        ends = time.monotonic() + float(query.get("timeoutSeconds", 1800))
        if since < self.compacted:
            text = f"too old resource version: {since} ({self.compacted})"
            yield [{"type": "ERROR", "object": Refusal(410, "Expired", text).status}]
            return
        while True:
            with self.lock:
                if self.generation != mine or time.monotonic() > ends:
                    return
                if not self.muted:
                    new = [row for row in self.history if row[0] > since and row[2] == resource]
                    since = max(since, self.version)
                else:
                    new = []
                if not new:
                    self.lock.wait(self.bookmark_s)
                    muted, at = self.muted, since
            if new:
                yield [event for row in new if (event := _event(row, fields))]
            elif not muted:
                meta = {"resourceVersion": str(at), "creationTimestamp": None}
                yield [{"type": "BOOKMARK", "object": {"kind": self.resources[resource][0], "metadata": meta}}]

    def serve(self, call, resource, path, query, body, kind, manager):
        namespace, name, sub = path
        key, method = (resource, namespace, name), call[0]
        for fault in list(self.faults):
            if fault[0](call):
                self.faults.remove(fault)
                raise fault[1]
        if sub == "eviction":
            return self.evict(key, body)
        if sub == "approval":
            return self.approve(key, body, manager)
        if sub == "status" and method == "patch":  # whatever else is in the body isn't looked at
            body = {"metadata": body.get("metadata", {}), "status": body.get("status", {})}
        if method == "get":
            return self._found(key)
        if method == "list":
            return self.listed(resource, namespace, query)
        if method == "create":
            return self.create(resource, namespace, body, manager)
        if method == "update":
            return self.write(key, body, manager)
        if method == "patch":
            return self.patch(key, body, kind, manager)
        return self.delete(key, body)


def kubeconfig_of(api, path, token="secret", **user):
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": {"server": api.url}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me"}}],
        "users": [{"name": "me", "user": user or {"token": token}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def _handler(api):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *args):
            pass

        def date_time_string(self, timestamp=None):
            return formatdate(api.now(), usegmt=True)

        def do(self):
            length = int(self.headers.get("Content-Length") or 0)
            data = self.rfile.read(length) if length else b""
            try:
                self._do(json.loads(data) if data else None)
            except Refusal as refusal:
                self._send(refusal.code, refusal.status, refusal.retry_after)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do

        def _do(self, body):
            url = urlsplit(self.path)
            query = dict(parse_qsl(url.query))
            if self.headers.get("Authorization") != f"Bearer {api.token}":
                raise Refusal(401, "Unauthorized", "Unauthorized")
            match = PATH.match(url.path)
            if not match:
                raise Refusal(404, "NotFound", "the server could not find the requested resource")
            core, group_version, namespace, plural, name, sub = match.groups()
            group = "" if core else group_version.partition("/")[0]
            verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
            watch = query.get("watch") in ("1", "true")
            verb = verbs.get(self.command) or ("get" if name else "watch" if watch else "list")
            call = (verb, group, f"{plural}/{sub}" if sub else plural, namespace or "", name or "")
            generation = api.generation  # a stream that is dropped once its call is seen ends, begun or not
            api.calls.append(call)
            if api.allowed is not None and not api.allowed(*call):
                where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
                what = f'cannot {verb} resource "{call[2]}" in API group "{group}" {where}'
                text = f'{plural} is forbidden: User "test" {what}'
                raise Refusal(403, "Forbidden", text)
            resource = f"{core or group_version} {plural}"
            if resource not in api.resources:
                raise Refusal(404, "NotFound", "the server could not find the requested resource")
            if verb == "watch":
                return self._watch(resource, query, generation)
            if verb == "create" and not sub and api.resources[resource][1] != bool(namespace):
                raise Refusal(
                    405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
                )
            kind, manager = self.headers.get("Content-Type"), (self.headers.get("User-Agent") or "?").partition("/")[0]
            with api.lock:
                path = namespace or "", name or "", sub or ""
                answer = json.dumps(api.serve(call, resource, path, query, body, kind, manager))
            return self._send(201 if verb == "create" else 200, answer)

        def _watch(self, resource, query, generation):
            with api.lock:
                for fault in list(api.faults):
                    if fault[0](api.calls[-1]):
                        api.faults.remove(fault)
                        raise fault[1]
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for events in api.events(resource, query, generation):
                if events:
                    data = b"".join(json.dumps(event).encode() + b"\n" for event in events)
                    self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")

        def _send(self, code, answer, retry_after=None):
            data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if retry_after is not None:
                self.send_header("Retry-After", str(retry_after))
            self.end_headers()
            self.wfile.write(data)

    return Handler


# ---- what the real one checks


def _pod_update(old, new):
    """Tolerations may be added; labels, annotations and images may change; nothing else here."""
    said = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`, "
    had, has = old["spec"].get("tolerations") or [], new["spec"].get("tolerations") or []
    if any(toleration not in has for toleration in had):
        text = "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
        raise Refusal(422, "Invalid", text)
    for toleration in has:
        if not re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?", toleration.get("value", "")):
            raise Refusal(422, "Invalid", f"spec.tolerations: Invalid value: {toleration.get('value')!r}")
    before, after = ({k: v for k, v in each["spec"].items() if k != "tolerations"} for each in (old, new))
    if before != after or old.get("status") != new.get("status"):
        raise Refusal(422, "Invalid", said)


def _merged(old, patch):
    if not isinstance(patch, dict):
        return patch
    new = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = _merged(new.get(key), value)
    return new


def _json_patched(found, patch):
    new = copy.deepcopy(found)
    for step in patch:
        *parents, last = step["path"].strip("/").split("/")
        at = new
        for part in parents:
            if part not in at:
                raise Refusal(422, "Invalid", "the server rejected our request due to an error in our request")
            at = at[part]
        if step["op"] == "test":
            if at.get(last) != step["value"]:
                raise Refusal(422, "Invalid", f"testing value {step['path']} failed")
        elif step["op"] == "add" and last == "-":
            at.append(step["value"])
        elif step["op"] == "add":
            at[last] = step["value"]
        else:
            raise Refusal(400, "BadRequest", f"Unexpected kind: {step['op']}")
    return new


def _managed(before, new, manager, at):
    """Who wrote which fields last, and when: here of spec alone."""
    entries = [
        entry for entry in (before.get("metadata") or {}).get("managedFields") or [] if entry["manager"] != manager
    ]
    fields = {f"f:{name}": {} for name in (new.get("spec") or {})}
    return [*entries, {"manager": manager, "operation": "Update", "time": at, "fieldsV1": {"f:spec": fields}}]


def _without(raw):
    meta = {key: value for key, value in raw["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return {**raw, "metadata": meta}


def _fields(kind, selector):
    found = []
    for part in filter(None, selector.split(",")):
        name, differs, value = re.fullmatch(r"([^!=]+)(!?)==?(.*)", part).groups()
        if name not in kind[2]:
            raise Refusal(400, "BadRequest", f"field label not supported: {name}")
        found.append((name, bool(differs), value))
    return found


def _selected(raw, fields):
    def value(name):
        at = raw
        for part in name.split("."):
            at = (at or {}).get(part)
        return at or ""

    return all((value(name) != wanted) == differs for name, differs, wanted in fields)


def _labelled(raw, selector):
    """`key`, `!key`, `key=value` or `key in (a,b)`, with commas between; other forms aren't known here."""
    return all(_has_label(raw["metadata"].get("labels") or {}, each) for each in re.split(r",(?![^(]*\))", selector))


def _has_label(labels, selector):
    if not selector:
        return True
    if named := re.fullmatch(r"(!?)([\w./-]+)", selector):
        return (named[2] in labels) != bool(named[1])
    key, one, several = re.fullmatch(r"([\w./-]+)(?:=([\w.-]*)| in \(([\w.,-]+)\))", selector).groups()
    return labels.get(key) in (several.split(",") if several else [one])


def _event(row, fields):
    """An object that is selected no more is deleted to who selects."""
    _, what, _, raw, before = row
    was = before is not None and _selected(before, fields)
    is_ = what != "DELETED" and _selected(raw, fields)
    if is_:
        return {"type": "MODIFIED" if was else "ADDED", "object": raw}
    return {"type": "DELETED", "object": raw} if was else None


def _time(at_s):
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
