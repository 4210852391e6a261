"""The provider servicer: objects of the API server. Releases of Helm are `releases`'."""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Callable
from typing import Any

import pulumi_kubernetes
from google.protobuf import empty_pb2
from pulumi import _types
from pulumi.runtime.proto import provider_pb2 as pb

from lab.kubernetes_plugin import objects, settings
from lab.kubernetes_plugin.api import APPLY, JSON_PATCH, Api, ApiError, Kind, NoMatch, Unreachable, active, parsed
from lab.kubernetes_plugin.objects import annotation, id_of, kind_of, meta, normal, pruned
from lab.kubernetes_plugin.releases import RELEASE, STATUS, Releases
from lab.provider import schema
from lab.provider.changes import changes, replaces
from lab.provider.fence import OutsideLab
from lab.provider.service import KINDS, PluginError, StandIn, answered, short
from lab.provider.wire import Props, decode, encode, has_unknown, plain, rewrap

VERSION = "4.34.2+ironburst.lab.stand.in"
LABEL = "stand-in of the ironburst lab for the kubernetes plugin (not the official plugin)"
LIMIT_S, SETTLE_S, PAUSE_S = 600.0, 60.0, 0.2
RETRIES, FIRST_RETRY_S = 5, 1.0  # where a namespace or a kind isn't there yet; each pause is twice the one before
EXPECTED = (ApiError, NoMatch, Unreachable, PluginError, OutsideLab, ValueError)
AWAITED = (
    *("Deployment", "DaemonSet", "StatefulSet", "ReplicationController", "Job", "Pod", "Service", "Ingress"),
    *("PersistentVolume", "PersistentVolumeClaim", "CustomResourceDefinition"),
)
"""kinds that the official plugin waits for, or changes, in a way of their own"""
registry = functools.partial(schema.registry, pulumi_kubernetes)


class KubernetesStandIn(StandIn):
    """One process, one provider configuration."""

    package, version = "kubernetes", VERSION

    def __init__(self, engine: str | None = None):
        super().__init__(engine)
        self.api: Api | None = None
        self.settings: Props = {}
        self.namespace, self.unreachable = "default", "the provider is not configured"

    def sentence(self, error: Exception) -> str | None:
        return str(error) if isinstance(error, EXPECTED) else None

    # ---- the plugin and its configuration
    @answered
    def CheckConfig(self, request: Any, _context: Any) -> Any:
        wrong = settings.problems(plain(decode(request.news)))
        return pb.CheckResponse(inputs=request.news, failures=_failures(wrong))

    @answered
    def DiffConfig(self, request: Any, _context: Any) -> Any:
        """Another server or authority is another cluster: all of it is made anew. Another token isn't."""
        old = settings.known(plain(decode(request.old_inputs if request.HasField("old_inputs") else request.olds)))
        new = settings.known(plain(decode(request.news)))
        moved = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
        was, will = settings.cluster_of(old), settings.cluster_of(new)
        named = [old.get("clusterIdentifier"), new.get("clusterIdentifier")]
        if all(named):
            hard = ["clusterIdentifier"] if named[0] != named[1] else []
        else:
            hard = [key for key in ("kubeconfig", "context", "cluster") if key in moved] if was != will else []
        some = pb.DiffResponse.DIFF_SOME if moved else pb.DiffResponse.DIFF_NONE
        return pb.DiffResponse(changes=some, diffs=moved, replaces=hard)

    @answered
    def Configure(self, request: Any, _context: Any) -> Any:
        raw = plain(decode(request.args)) or {k.rsplit(":", 1)[-1]: v for k, v in request.variables.items()}
        if wrong := [f"kubernetes:{path}: {reason}" for path, reason in settings.problems(raw)]:
            raise PluginError("; ".join(wrong))
        self.settings = settings.known(raw)
        cluster, user, self.namespace = active(parsed(raw["kubeconfig"]), self.settings)
        self.api, self.unreachable = Api(cluster, user), ""
        try:
            self.api.call("GET", "/version")
        except (Unreachable, ApiError) as error:
            self.unreachable = str(error)
        self.log(f"kubernetes: {LABEL}, server {self.api.server}")
        return pb.ConfigureResponse(acceptSecrets=True, supportsPreview=True, acceptResources=False)

    @property
    def _there(self) -> Api:
        """The API server. Raises PluginError where it wasn't reached."""
        if self.api is None or self.unreachable:
            raise PluginError(f"configured Kubernetes cluster is unreachable: {self.unreachable}")
        return self.api

    def _kind(self, urn: str) -> Kind | None:
        """None: a release."""
        token = urn.split("::", 3)[2].rsplit("$", 1)[-1]
        if token == RELEASE:
            return None
        kind = kind_of(token)
        own = token not in registry() and "." in kind.api_version  # a custom resource
        plain_api = re.fullmatch(r"([a-z0-9.-]+/)?v\d\w*", kind.api_version) and "helm.sh/" not in kind.api_version
        odd = not plain_api or kind.name in AWAITED or kind.name.endswith(("List", "Patch"))
        if odd or not (own or token in registry()):
            raise PluginError(f"the type {token} is not implemented by the lab's stand-in for the kubernetes plugin")
        return kind

    @property
    def _releases(self) -> Releases:
        return Releases(self._there, self.namespace)

    # ---- plan
    @answered
    def Check(self, request: Any, _context: Any) -> Any:
        kind, news, olds = self._kind(request.urn), decode(request.news), plain(decode(request.olds))
        token = request.urn.split("::", 3)[2].rsplit("$", 1)[-1]
        clear = plain(news)
        wrong = list(schema.problems(schema.args_class(pulumi_kubernetes, token), None, clear)) if _sdk(token) else []
        logical = request.urn.split("::", 3)[3]
        if kind is None:
            checked, more = Releases.check(clear, olds, logical, request.randomSeed, self.namespace)
            return pb.CheckResponse(inputs=encode(rewrap(checked, news)), failures=_failures([*wrong, *more]))
        checked = normal(clear)
        data = checked.setdefault("metadata", {})
        if isinstance(data, dict):
            self._name(data, meta(olds), logical, request.randomSeed)
            if data.get("generateName"):
                raise PluginError("the `.metadata.generateName` field is not supported in Server-Side Apply mode")
            if not data.get("namespace") and not self.unreachable and self._namespaced(kind):
                data["namespace"] = self.namespace
        return pb.CheckResponse(inputs=encode(rewrap(checked, news)), failures=_failures(wrong))

    @staticmethod
    def _name(data: Props, old: Props, logical: str, seed: bytes) -> None:
        if data.get("name") or data.get("generateName"):
            return
        kept = old.get("name") if (old.get("annotations") or {}).get(objects.AUTONAMED) == "true" else None
        data["name"] = kept or objects.auto_name(logical, seed)
        data.setdefault("annotations", {})[objects.AUTONAMED] = "true"

    def _namespaced(self, kind: Kind) -> bool:
        try:
            return self._there.place(kind).namespaced
        except NoMatch:
            return True  # a custom resource whose definition isn't there yet

    @answered
    def Diff(self, request: Any, _context: Any) -> Any:
        kind, news = self._kind(request.urn), plain(decode(request.news))
        asked, live = objects.split(plain(decode(request.olds)))
        if kind is None:
            olds, rules, dbr = asked, frozenset(("name", "namespace")), False
        else:
            olds, news = pruned(live, normal(asked)), normal(news)
            meta(olds)["name"] = meta(live)["name"]
            rules = objects.replacing(kind.name, self.settings)
            same_place = all(meta(news).get(key) == meta(live).get(key) for key in ("name", "namespace"))
            dbr = same_place and annotation(news, objects.AUTONAMED) != "true"
        moved = {path: how for path, how in changes(olds, news).items() if not _ignored(path, request.ignoreChanges)}
        hard = {path for path in moved if replaces(path, rules)}
        detail = {path: pb.PropertyDiff(kind=KINDS[how, path in hard], inputDiff=True) for path, how in moved.items()}
        return pb.DiffResponse(
            changes=pb.DiffResponse.DIFF_SOME if moved else pb.DiffResponse.DIFF_NONE,
            replaces=sorted(hard),
            deleteBeforeReplace=bool(hard) and dbr,
            detailedDiff=detail,
            hasDetailedDiff=True,
        )

    # ---- do
    @answered
    def Create(self, request: Any, context: Any) -> Any:
        kind, inputs = self._kind(request.urn), decode(request.properties)
        clear = plain(inputs)
        if request.preview and (has_unknown(clear) or self.unreachable):
            return pb.CreateResponse(properties=request.properties)
        if kind is None:
            self.log(STATUS, request.urn)
            if request.preview:
                return pb.CreateResponse(properties=encode(Releases.planned(inputs)))
            state = self._releases.create(_known(clear))
            return pb.CreateResponse(id=id_of({"metadata": clear}), properties=encode(_release_state(state, inputs)))
        manager = objects.manager_of({}, clear, os.urandom(8))
        if request.preview:
            return pb.CreateResponse(properties=encode(self._planned_creation(kind, inputs, manager)))
        live = self._settled(kind, self._made(kind, _known(clear), manager, request.urn), request.timeout)
        if not objects.settled(live):
            message = f"{short(request.urn)}: {id_of(live)} exists, but did not become ready in time"
            self.half_made(context, id_of(live), objects.checkpoint(clear, live, inputs, manager), None, message)
        return pb.CreateResponse(id=id_of(live), properties=encode(objects.checkpoint(clear, live, inputs, manager)))

    def _planned_creation(self, kind: Kind, inputs: Props, manager: str) -> Props:
        """What the server says that it would make (dryRun=All); the inputs where it can't say it yet: the namespace or
        the kind isn't there, the right is missing, or the object that it replaces still is there.
        """
        clear = plain(inputs)
        try:
            live = self._post(kind, clear, manager, preview=True)
        except NoMatch:
            return inputs
        except ApiError as error:
            if error.status in (403, 404) or error.reason == "AlreadyExists":
                return inputs
            raise
        live.pop("status", None)
        return objects.checkpoint(clear, live, inputs, manager)

    def _post(self, kind: Kind, body: Props, manager: str, preview: bool = False) -> Props:
        place = self._there.place(kind)
        dry = {"dryRun": "All"} if preview else {}
        namespace, name = meta(body).get("namespace", ""), meta(body)["name"]
        if self.settings.get("upsertExistingObjects") == "true":
            force = str(objects.forced(body, None, self.settings, preview)).lower()
            query = {"fieldManager": manager, "force": force, **dry}
            return self._there.call("PATCH", place.path(namespace, name), body, APPLY, **query)
        return self._there.call("POST", place.path(namespace), body, fieldManager=objects.CREATOR, **dry)

    def _made(self, kind: Kind, body: Props, manager: str, urn: str) -> Props:
        pause = FIRST_RETRY_S
        for left in range(RETRIES, -1, -1):
            try:
                return self._post(kind, body, manager)
            except (ApiError, NoMatch) as error:
                early = isinstance(error, NoMatch) or error.status == 404
                if not early or not left:
                    raise PluginError(_not_created(error)) from None
            self.log(f"creation failed, tried again in {pause:g} s", urn)
            if self.cancelled.wait(pause):
                raise PluginError("cancelled while waiting for its namespace or its kind")
            pause *= 2
        raise AssertionError("unreachable")

    def _settled(self, kind: Kind, live: Props, limit_s: float) -> Props:
        """The object, once its controllers have done their part, or as it was when the time was over."""
        last = [live]

        def done() -> bool:
            last[0] = last[0] if objects.settled(last[0]) else self._get(kind, id_of(live)) or live
            return objects.settled(last[0])

        self._until(done, limit_s or SETTLE_S)
        return last[0]

    @answered
    def Read(self, request: Any, _context: Any) -> Any:
        kind, inputs, state = self._kind(request.urn), decode(request.inputs), decode(request.properties)
        if self.unreachable and self.settings.get("deleteUnreachable") == "true":
            return pb.ReadResponse()
        if kind is None:
            asked, _ = objects.split(plain(state))
            found = self._releases.read(plain(state))
            if found is None:
                return pb.ReadResponse()
            marks = inputs or state
            known = encode(rewrap(asked, marks))
            return pb.ReadResponse(id=request.id, properties=encode(_release_state(found, marks)), inputs=known)
        try:
            live = self._get(kind, request.id)
        except NoMatch:
            live = None
        if live is None:
            return pb.ReadResponse()  # an empty id: it is gone
        asked = normal(plain(inputs)) or _inputs_of(request.urn, live)
        now = pruned(live, asked)
        manager = objects.manager_of(plain(state), now, os.urandom(8))
        outputs = objects.checkpoint(now, live, {**state, **inputs}, manager)
        return pb.ReadResponse(id=request.id, properties=encode(outputs), inputs=encode(rewrap(now, inputs)))

    def _get(self, kind: Kind, rid: str) -> Props | None:
        try:
            return self._there.call("GET", self._there.place(kind).path(*objects.split_id(rid)))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    @answered
    def Update(self, request: Any, context: Any) -> Any:
        kind, inputs, state = self._kind(request.urn), decode(request.news), decode(request.olds)
        clear = plain(inputs)
        if request.preview and (has_unknown(clear) or self.unreachable):
            return pb.UpdateResponse(properties=request.news)
        if kind is None:
            planned = Releases.planned(inputs)
            done = (
                planned
                if request.preview
                else _release_state(self._releases.update(_known(clear), plain(state)), inputs)
            )
            return pb.UpdateResponse(properties=encode(done))
        old = self._get(kind, request.id)
        if old is None:
            raise PluginError(f"update of {request.id} failed: it is gone; run a refresh")
        manager = objects.manager_of(plain(state), clear, os.urandom(8))
        try:
            live = self._applied(kind, request.id, _known(normal(clear)), old, manager, request.preview)
            live = live if request.preview else self._settled(kind, live, request.timeout)
        except ApiError as error:
            if request.preview and error.status == 403:
                return pb.UpdateResponse(properties=request.news)
            live = self._get(kind, request.id) or old
            outputs = objects.checkpoint(clear, live, inputs, manager)
            self.half_made(context, request.id, outputs, None, f"{short(request.urn)}: {_conflict(error, manager)}")
        return pb.UpdateResponse(properties=encode(objects.checkpoint(clear, live, inputs, manager)))

    def _applied(self, kind: Kind, rid: str, body: Props, old: Props, manager: str, preview: bool) -> Props:
        path = self._there.place(kind).path(*objects.split_id(rid))
        if not preview and (mine := objects.taken_over(old, manager)):
            version = meta(old)["resourceVersion"]
            swap = [
                {"op": "replace", "path": "/metadata/managedFields", "value": mine},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            ]
            old = self._there.call("PATCH", path, swap, JSON_PATCH)
        force = str(objects.forced(body, old, self.settings, preview)).lower()
        dry = {"dryRun": "All"} if preview else {}
        return self._there.call("PATCH", path, body, APPLY, fieldManager=manager, force=force, **dry)

    @answered
    def Delete(self, request: Any, context: Any) -> Any:
        kind, state = self._kind(request.urn), decode(request.properties)
        if self.unreachable and self.settings.get("deleteUnreachable") == "true":
            return empty_pb2.Empty()
        if kind is None:
            self._releases.delete(plain(state))
            return empty_pb2.Empty()
        asked, last = objects.split(plain(state))
        policy = {"orphan": "Orphan", "background": "Background"}.get(
            annotation(asked, objects.PROPAGATION).lower(), "Foreground"
        )
        try:
            path = self._there.place(kind).path(*objects.split_id(request.id))
            self._there.call("DELETE", path, propagationPolicy=policy)
        except NoMatch:
            return empty_pb2.Empty()
        except ApiError as error:
            if error.status != 404:
                raise
        limit_s = request.timeout or LIMIT_S
        if not self._until(lambda: self._get(kind, request.id) is None, limit_s):
            last = self._get(kind, request.id) or last
            held = ", ".join(meta(last).get("finalizers") or (last.get("spec") or {}).get("finalizers") or ["none"])
            message = f"{short(request.urn)}: not gone within {limit_s:g} s: finalizers might prevent it ({held})"
            manager = plain(state).get(objects.MANAGER, "")
            self.half_made(context, request.id, objects.checkpoint(asked, last, state, manager), None, message)
        return empty_pb2.Empty()

    def _until(self, condition: Callable[[], bool], limit_s: float) -> bool:
        end = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > end or self.cancelled.wait(PAUSE_S):
                return False
        return True


def _failures(wrong: Any) -> list[pb.CheckFailure]:
    return [pb.CheckFailure(property=path, reason=reason) for path, reason in wrong]


def _sdk(token: str) -> bool:
    return token in registry()


def _ignored(path: str, ignore: Any) -> bool:
    return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in ignore)


def _known(inputs: Props) -> Props:
    if has_unknown(inputs):
        raise PluginError("the engine sent an unknown value outside a preview")
    return inputs


def _release_state(state: Props, inputs: Props) -> Props:
    return {**rewrap(state, inputs), objects.INPUTS: rewrap(plain(inputs), inputs)}


def _inputs_of(urn: str, live: Props) -> Props:
    """What `.get` and an import take for inputs: all that the SDK would take."""
    token = urn.split("::", 3)[2].rsplit("$", 1)[-1]
    names = _types.input_type_types(schema.args_class(pulumi_kubernetes, token)) if _sdk(token) else live
    return normal({key: value for key, value in live.items() if key in names and key != "status"})


def _not_created(error: Exception) -> str:
    text = f"was not successfully created by the Kubernetes API server: {error}"
    if isinstance(error, ApiError) and error.reason == "AlreadyExists":
        text += (
            "; the object is there, and not Pulumi's: rename with an alias, adopt it with `pulumi import`, or set "
            "upsertExistingObjects on the provider"
        )
    if isinstance(error, NoMatch):
        text += "; verify that any required CRDs have been created"
    return text


def _conflict(error: ApiError, manager: str) -> str:
    if error.reason != "Conflict":
        return f"update failed: {error}"
    return f"server-side apply field conflict: the resource managed by field manager {manager!r} had one: {error}"
