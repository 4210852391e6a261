"""A provider servicer whose resources lie in a stand-in of a cloud as they are declared: its inputs are checked by the
SDK's own classes, to the last key.
"""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import Collection, Mapping
from types import ModuleType
from typing import Any, ClassVar
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2 as pb

from lab.provider import schema
from lab.provider.changes import changes, replaces, same, top
from lab.provider.fence import in_lab
from lab.provider.schema import problems
from lab.provider.service import KINDS as DIFFS
from lab.provider.service import PluginError, StandIn, answered
from lab.provider.wire import UNKNOWN, Props, decode, encode, has_unknown, plain, rewrap


class DeclaredStandIn(StandIn):
    """One process, one provider configuration. A subclass names the plugin and its SDK; `endpoint`: the setting that
    leads to the lab's stand-in; `kinds`: the types that it knows; `fixed`: of every type the inputs that can't be
    changed in place, "*" of all; `root`: where the stand-in has what is declared (POST makes, PUT changes, GET shows,
    DELETE takes away TYPE[?id]).
    """

    sdk: ClassVar[ModuleType]
    endpoint: ClassVar[str]
    example: ClassVar[str]  # of the setting's value
    kinds: ClassVar[Collection[str]]
    fixed: ClassVar[Mapping[str, str]]
    root: ClassVar[str]
    reshaped: ClassVar[frozenset[str]] = frozenset()  # inputs that are shown in another shape: a preview lacks them

    def __init__(self, engine: str | None = None):
        super().__init__(engine)
        self.settings: Props = {}
        self._opener = build_opener(ProxyHandler({}))

    # ---- the plugin and its configuration
    @answered
    def CheckConfig(self, request: Any, _context: Any) -> Any:
        said = _settings(plain(decode(request.news)))
        wrong = list(problems(importlib.import_module(f"{self.sdk.__name__}.provider").ProviderArgs, None, said))
        at = said.get(self.endpoint)
        if at != UNKNOWN and not (at and in_lab(_url(at))):
            wrong.append((self.endpoint, f"{at!r} is outside the lab" if at else self._no_endpoint()))
        return pb.CheckResponse(inputs=request.news, failures=[pb.CheckFailure(property=p, reason=r) for p, r in wrong])

    @answered
    def DiffConfig(self, request: Any, _context: Any) -> Any:
        old = decode(request.old_inputs if request.HasField("old_inputs") else request.olds)
        moved = sorted(changes(_settings(plain(old)), _settings(plain(decode(request.news)))))
        some = pb.DiffResponse.DIFF_SOME if moved else pb.DiffResponse.DIFF_NONE
        return pb.DiffResponse(changes=some, diffs=moved)

    @answered
    def Configure(self, request: Any, _context: Any) -> Any:
        raw = plain(decode(request.args)) or {k.rsplit(":", 1)[-1]: v for k, v in request.variables.items()}
        self.settings = _settings(raw)
        if not in_lab(_url(self.settings.get(self.endpoint))):
            raise PluginError(self._no_endpoint())
        its = f"stand-in of the ironburst lab for the {self.package} plugin (not the official one)"
        self.log(f"{self.package}: {its}, {self.settings[self.endpoint]}")
        return pb.ConfigureResponse(acceptSecrets=True, supportsPreview=True, acceptResources=False)

    def _no_endpoint(self) -> str:
        return (
            f"{self.package}:{self.endpoint} is not set: this is the lab's stand-in for the {self.package} plugin and "
            f"speaks only to the lab's own cloud; set it to that, for example {self.example}"
        )

    # ---- resources: plan
    @answered
    def Check(self, request: Any, _context: Any) -> Any:
        token, news = self._token(request.urn), decode(request.news)
        cls = schema.args_class(self.sdk, token)
        self.named(token, cls, news, request.urn.split("::", 3)[3])
        wrong = list(problems(cls, None, plain(news)))
        failures = [pb.CheckFailure(property=path, reason=why) for path, why in wrong]
        return pb.CheckResponse(inputs=encode(news), failures=failures)

    @answered
    def Diff(self, request: Any, _context: Any) -> Any:
        token, news = self._token(request.urn), plain(decode(request.news))
        olds = plain(decode(request.old_inputs if request.HasField("old_inputs") else request.olds))
        moved = changes(olds, news)
        rules = frozenset(f"{self.fixed['*']} {self.fixed.get(token.rpartition(':')[2], '')}".split())
        hard = {path for path in moved if replaces(path, rules)}
        detail = {p: pb.PropertyDiff(kind=DIFFS[kind, p in hard], inputDiff=True) for p, kind in moved.items()}
        return pb.DiffResponse(
            changes=pb.DiffResponse.DIFF_SOME if moved else pb.DiffResponse.DIFF_NONE,
            diffs=sorted({top(path) for path in moved}),
            replaces=sorted({top(path) for path in hard}),
            deleteBeforeReplace=bool(hard),  # its name is given, and a project has it once
            detailedDiff=detail,
            hasDetailedDiff=bool(moved),
        )

    # ---- resources: do
    @answered
    def Create(self, request: Any, _context: Any) -> Any:
        inputs = decode(request.properties)
        if request.preview:
            return pb.CreateResponse(properties=encode(self._foreseen(inputs)))
        made = self._ask("POST", self._token(request.urn), "", _known(inputs))
        return pb.CreateResponse(id=made["id"], properties=encode(_shown(made, inputs)))

    @answered
    def Update(self, request: Any, _context: Any) -> Any:
        inputs, state = decode(request.news), decode(request.olds)
        if request.preview:
            return pb.UpdateResponse(properties=encode({**state, **self._foreseen(inputs)}))
        made = self._ask("PUT", self._token(request.urn), request.id, _known(inputs))
        return pb.UpdateResponse(properties=encode(_shown(made, inputs)))

    @answered
    def Read(self, request: Any, _context: Any) -> Any:
        inputs = decode(request.inputs)
        try:
            found = self._ask("GET", self._token(request.urn), request.id)
        except _Missing:
            return pb.ReadResponse()  # an empty id: it is gone
        there = found.get("inputs", found)  # where what is shown has another shape than what is written
        now = {
            key: value if same(plain(value), there[key]) else rewrap(there[key], value)
            for key, value in inputs.items()
            if key in there
        }
        return pb.ReadResponse(id=request.id, properties=encode(_shown(found, inputs)), inputs=encode(now))

    @answered
    def Delete(self, request: Any, _context: Any) -> Any:
        with contextlib.suppress(_Missing):
            self._ask("DELETE", self._token(request.urn), request.id)
        return empty_pb2.Empty()

    @answered
    def Invoke(self, _request: Any, _context: Any) -> Any:
        raise PluginError(f"this function is not implemented by the lab's stand-in for the {self.package} plugin")

    def _foreseen(self, inputs: Props) -> Props:
        return {key: value for key, value in inputs.items() if key not in self.reshaped}

    def named(self, token: str, cls: type, news: Props, name: str) -> None:
        """Give a resource its name, as the plugin does, where its inputs lack it. `name`: the logical one."""

    def _ask(self, verb: str, token: str, its_id: str, said: Props | None = None) -> Props:
        at = urlsplit(_url(self.settings[self.endpoint]))
        url = f"{at.scheme}://{at.netloc}{self.root}/{token}" + (f"?{quote(its_id, safe='')}" if its_id else "")
        body = None if said is None else json.dumps(said).encode()
        try:
            with self._opener.open(Request(url, data=body, method=verb), timeout=60) as answer:
                found: Props = json.load(answer)
                return found
        except HTTPError as error:
            refused = json.load(error)
            kind = _Missing if error.code == 404 and verb != "POST" else PluginError
            raise kind(f"Error {error.code}: {refused['message']}, {refused['reason']}") from None

    def _token(self, urn: str) -> str:
        token = urn.split("::", 3)[2].rsplit("$", 1)[-1]
        if token not in self.kinds:
            known = token in schema.registry(self.sdk)
            name = self.sdk.__name__.replace("_", "-")
            what = "is known, but not implemented by" if known else f"is no resource of {name}, let alone of"
            raise PluginError(f"the type {token} {what} the lab's stand-in for the {self.package} plugin")
        return token


class _Missing(PluginError):
    """The stand-in knows no such thing."""


def _settings(raw: Props) -> Props:
    return {key: value for key, value in raw.items() if key not in ("version", "pluginDownloadURL") and key[:2] != "__"}


def _url(said: Any) -> str:
    """Of the setting, which is a URL or a host with its port."""
    return str(said) if "://" in str(said) else f"http://{said}"


def _known(inputs: Props) -> Props:
    clear = plain(inputs)
    if has_unknown(clear):
        raise PluginError("the engine sent an unknown value outside a preview")
    return {key: value for key, value in clear.items() if key[:2] != "__"}


def _shown(found: Props, inputs: Props) -> Props:
    """Outputs, with the marks of what was secret."""
    return {key: rewrap(value, inputs.get(key)) for key, value in found.items() if key not in ("id", "inputs")}
