"""The provider servicer: protocol on this side, specs (lab.aws_plugin.resources) on the other."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2 as pb

from lab.aws_plugin import state as st
from lab.aws_plugin.endpoints import Clients, config_problems, parse
from lab.aws_plugin.invokes import INVOKES
from lab.aws_plugin.resources import REFUSED, RESOURCES
from lab.aws_plugin.schema import args_class, policies_as_text, registry
from lab.aws_plugin.spec import Aws, Gone, Resource, code_of, is_gone
from lab.provider.changes import changes, replaces, top
from lab.provider.fence import OutsideLab
from lab.provider.schema import problems
from lab.provider.service import KINDS, PluginError, StandIn, answered, short
from lab.provider.wire import UNKNOWN, Props, decode, encode, has_unknown, plain, rewrap, secret

VERSION = "7.51.1+ironburst.lab.stand.in"
LABEL = "stand-in of the ironburst lab for the aws plugin (not the official plugin)"
DEFAULT_LIMIT_S = 600.0
BROKEN = (BotoCoreError, ResponseParserError)
EXPECTED = (ClientError, *BROKEN, PluginError, OutsideLab, ValueError)


def _sentence(error: Exception) -> str:
    if isinstance(error, ClientError):
        message = error.response["Error"].get("Message", "")
        return f"{error.operation_name} was refused by the lab's AWS: {code_of(error)}: {message}"
    if isinstance(error, ResponseParserError):
        return (
            "the lab's AWS answered with something that is not AWS's protocol: it may lack this action, or failed in it"
        )
    return str(error)


class AwsStandIn(StandIn):
    """One process, one provider configuration."""

    package, version = "aws", VERSION

    def __init__(self, engine: str | None = None):
        super().__init__(engine)
        self.clients: Clients | None = None

    def sentence(self, error: Exception) -> str | None:
        return _sentence(error) if isinstance(error, EXPECTED) else None

    # ---- the plugin and its configuration
    @answered
    def CheckConfig(self, request: Any, _context: Any) -> Any:
        wrong = config_problems(plain(decode(request.news)))
        return pb.CheckResponse(inputs=request.news, failures=[pb.CheckFailure(property=p, reason=r) for p, r in wrong])

    @answered
    def DiffConfig(self, request: Any, _context: Any) -> Any:
        old = decode(request.old_inputs if request.HasField("old_inputs") else request.olds)
        new = decode(request.news)
        moved = sorted(
            k for k in {*old, *new} - {"version"} if not k.startswith("__") and plain(old.get(k)) != plain(new.get(k))
        )
        return pb.DiffResponse(
            changes=pb.DiffResponse.DIFF_SOME if moved else pb.DiffResponse.DIFF_NONE,
            diffs=moved,
            replaces=[k for k in moved if k == "region"],
        )

    @answered
    def Configure(self, request: Any, _context: Any) -> Any:
        raw = plain(decode(request.args)) or {k.rsplit(":", 1)[-1]: v for k, v in request.variables.items()}
        if wrong := [f"aws:{path}: {reason}" for path, reason in config_problems(raw)]:
            raise PluginError("; ".join(wrong))
        self.clients = Clients(parse(raw))
        self.log(f"aws: {LABEL}, endpoints {sorted(set(self.clients.config['endpoints'][0].values()))}")
        return pb.ConfigureResponse(acceptSecrets=True, supportsPreview=True, acceptResources=False)

    def _aws(self, props: Props, limit_s: float = 0) -> Aws:
        if self.clients is None:
            raise PluginError("the provider is not configured")
        return Aws(self.clients, props.get("region"), limit_s or DEFAULT_LIMIT_S, self.cancelled)

    @property
    def _default_tags(self) -> dict[str, str]:
        return self.clients.default_tags if self.clients else {}

    def _spec(self, urn: str) -> Resource:
        token = urn.split("::", 3)[2].rsplit("$", 1)[-1]
        if token in RESOURCES:
            return RESOURCES[token]
        if token in REFUSED:
            raise PluginError(REFUSED[token])
        known = (
            "is known, but not implemented by"
            if token in registry()
            else "is no resource of pulumi-aws 7.51.1, let alone of"
        )
        raise PluginError(f"the type {token} {known} the lab's stand-in for the aws plugin")

    # ---- resources: plan
    @answered
    def Check(self, request: Any, _context: Any) -> Any:
        spec, news, olds = self._spec(request.urn), decode(request.news), decode(request.olds)
        clear, made = plain(news), []
        if spec.name and spec.name not in clear:
            kept = olds.get(spec.name) if spec.name in plain(olds.get(st.DEFAULTS, [])) else None
            news[spec.name] = kept or st.auto_name(request.urn.split("::", 3)[3], request.randomSeed)
            made.append(spec.name)
        if made:
            news[st.DEFAULTS] = made
        if spec.tag:
            tags = st.all_tags(self._default_tags, plain(news.get("tags")))
            if tags:
                news["tagsAll"] = rewrap(tags, news.get("tags"))
        for key in spec.secret.split():
            if key in news:
                news[key] = secret(news[key])
        clear = {k: v for k, v in plain(news).items() if k != "tagsAll"}
        wrong = [*problems(args_class(spec.token), spec.tree, clear), *spec.check(plain(olds), clear)]
        checked = news if wrong else policies_as_text(args_class(spec.token), news)
        return pb.CheckResponse(
            inputs=encode(checked), failures=[pb.CheckFailure(property=p, reason=r) for p, r in wrong]
        )

    @answered
    def Diff(self, request: Any, _context: Any) -> Any:
        spec, news = self._spec(request.urn), plain(decode(request.news))
        olds = plain(decode(request.old_inputs if request.HasField("old_inputs") else request.olds))
        lost = set(spec.lost(olds))
        olds = {k: v for k, v in olds.items() if (k in spec.tree or k in ("tagsAll", st.DEFAULTS)) and k not in lost}
        moved = changes(olds, news)
        hard = {p for p in moved if replaces(p, self._rules(spec, news))}
        named = (
            bool(hard)
            and spec.name
            and spec.name not in news.get(st.DEFAULTS, [])
            and olds.get(spec.name) == news.get(spec.name)
        )
        detail = {p: pb.PropertyDiff(kind=KINDS[kind, p in hard], inputDiff=True) for p, kind in moved.items()}
        return pb.DiffResponse(
            changes=pb.DiffResponse.DIFF_SOME if moved else pb.DiffResponse.DIFF_NONE,
            diffs=sorted({top(p) for p in moved}),
            replaces=sorted({top(p) for p in hard}),
            deleteBeforeReplace=bool(named),
            detailedDiff=detail,
            hasDetailedDiff=bool(moved),
        )

    @staticmethod
    def _rules(spec: Resource, news: Props) -> frozenset[str]:
        """The rules that hold for these inputs: `userData` replaces only where userDataReplaceOnChange says so."""
        return frozenset(
            r.split("?")[0] for r in spec.replacing if "?" not in r or news.get(r.split("?")[1]) in (True, "true")
        )

    # ---- resources: do
    @answered
    def Create(self, request: Any, context: Any) -> Any:
        spec, inputs = self._spec(request.urn), decode(request.properties)
        if request.preview:
            return pb.CreateResponse(properties=encode(self._planned(spec, {}, inputs)))
        new = self._known(inputs)
        aws = self._aws(new, request.timeout)
        rid = spec.create(aws, new)
        try:
            if spec.finish and spec.apply:
                spec.apply(aws, rid, {}, new)
            if spec.ready:
                aws.wait(f"{rid} ready", lambda: spec.ready(aws, rid))
            outputs, _ = self._observe(spec, aws, rid, inputs, {})
        except (ClientError, *BROKEN, PluginError) as error:
            self.half_made(context, rid, inputs, inputs, f"{short(request.urn)}: {rid} exists, but: {_sentence(error)}")
        if outputs is None:
            raise PluginError(f"{rid} was created and is gone again")
        return pb.CreateResponse(id=rid, properties=encode(outputs))

    @answered
    def Update(self, request: Any, _context: Any) -> Any:
        spec, inputs, state = self._spec(request.urn), decode(request.news), decode(request.olds)
        old = plain(decode(request.old_inputs if request.HasField("old_inputs") else request.olds))
        if request.preview:
            return pb.UpdateResponse(properties=encode(self._planned(spec, state, inputs, old)))
        new = self._known(inputs)
        aws = self._aws(new, request.timeout)
        if old == new:  # the last create or update was left half done
            if (seen := spec.read(aws, request.id, plain(state))) is None:
                raise PluginError(f"{request.id} is gone: run a refresh")
            old = st.as_observed(new, st.split_tags(seen, new, self._default_tags))
        put, drop = _tag_changes(old, new)
        if spec.tag and (put or drop):
            spec.tag(aws, request.id, {**plain(state), **new}, put, drop)
        body = {k for k in {*old, *new} - {"tags", "tagsAll"} if not k.startswith("__") and old.get(k) != new.get(k)}
        if body:
            if spec.apply is None:
                raise PluginError(f"a change of {', '.join(sorted(body))} in place is not implemented by the stand-in")
            spec.apply(aws, request.id, old, new)
        if spec.ready:
            aws.wait(f"{request.id} ready", lambda: spec.ready(aws, request.id))
        outputs, _ = self._observe(spec, aws, request.id, inputs, state)
        if outputs is None:
            raise PluginError(f"{request.id} is gone: run a refresh")
        return pb.UpdateResponse(properties=encode(outputs))

    @answered
    def Read(self, request: Any, _context: Any) -> Any:
        spec, state, inputs = self._spec(request.urn), decode(request.properties), decode(request.inputs)
        aws = self._aws(plain(state))
        outputs, now = self._observe(spec, aws, request.id, inputs, state)
        if outputs is None:
            return pb.ReadResponse()  # an empty id: it is gone
        return pb.ReadResponse(id=request.id, properties=encode(outputs), inputs=encode(now))

    @answered
    def Delete(self, request: Any, _context: Any) -> Any:
        spec, state = self._spec(request.urn), plain(decode(request.properties))
        try:
            spec.delete(self._aws(state, request.timeout), request.id, state)
        except (ClientError, Gone) as error:
            if not is_gone(error):
                raise
        return empty_pb2.Empty()

    @answered
    def Invoke(self, request: Any, _context: Any) -> Any:
        if request.tok not in INVOKES:
            raise PluginError("this function is not implemented by the lab's stand-in for the aws plugin")
        names, call = INVOKES[request.tok]
        args = plain(decode(request.args))
        wrong = [
            pb.CheckFailure(property=k, reason=f"is not implemented by the stand-in (allowed: {names or 'none'})")
            for k in args
            if k not in names.split()
        ]
        if wrong:
            return pb.InvokeResponse(failures=wrong)
        return pb.InvokeResponse(**{"return": encode(call(self._aws(args), args))})

    # ---- helpers
    @staticmethod
    def _known(inputs: Props) -> Props:
        clear = plain(inputs)
        if has_unknown(clear):
            raise PluginError("the engine sent an unknown value outside a preview")
        return clear

    @staticmethod
    def _planned(spec: Resource, state: Props, inputs: Props, old: Props | None = None) -> Props:
        """Outputs as a preview knows them; what is missing is unknown to the program."""
        out = {k: v for k, v in state.items() if k not in (old or {})}
        if old is not None and any(not k.startswith(("tags", "__")) for k in map(top, changes(old, plain(inputs)))):
            out.update(dict.fromkeys(spec.volatile.split(), UNKNOWN))
        return {**out, **{k: v for k, v in inputs.items() if not k.startswith("__")}}

    def _observe(self, spec: Resource, aws: Aws, rid: str, inputs: Props, state: Props) -> tuple[Props | None, Props]:
        """(outputs, inputs) as AWS shows them, with the secret marks of what was known; (None, {}) when the thing is
        gone.
        """
        known = {**plain(state), **plain(inputs)}
        try:
            seen = spec.read(aws, rid, known)
        except (ClientError, Gone) as error:
            if not is_gone(error):
                raise
            seen = None
        if seen is None:
            return None, {}
        seen = st.split_tags({**seen, **({"region": aws.region} if spec.regional else {})}, known, self._default_tags)
        # A resource that is read by its id alone (`.get`) takes its inputs from what is there.
        basis = plain(inputs) or {
            k: v for k, v in seen.items() if k in spec.tree and k != "region" and v not in (None, "", [], {})
        }
        now = st.as_observed(basis, seen)
        outputs = {**seen, **{k: v for k, v in now.items() if not k.startswith("__")}}
        marks = {**state, **inputs}
        outputs, now = rewrap(outputs, marks), rewrap(now, marks)
        for key in spec.secret.split():
            for props in (outputs, now):
                if key in props:
                    props[key] = secret(props[key])
        return outputs, now


def _tag_changes(old: Props, new: Props) -> tuple[dict[str, str], list[str]]:
    before, after = old.get("tagsAll") or {}, new.get("tagsAll") or {}
    return {k: v for k, v in after.items() if before.get(k) != v}, [k for k in before if k not in after]
