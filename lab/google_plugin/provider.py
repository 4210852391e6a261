"""The provider servicer: resources are checked by pulumi-gcp's classes, to the last key, and put into lab.google."""

from __future__ import annotations

import contextlib
import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

import pulumi_gcp
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi_gcp import provider as sdk

from lab.google.declared import KINDS, ROOT
from lab.provider import schema
from lab.provider.changes import changes, replaces, same, top
from lab.provider.fence import in_lab
from lab.provider.schema import problems
from lab.provider.service import KINDS as DIFFS
from lab.provider.service import PluginError, StandIn, answered
from lab.provider.wire import UNKNOWN, Props, decode, encode, has_unknown, plain, rewrap

ENDPOINT = "computeCustomEndpoint"
LABEL = "stand-in of the ironburst lab for the gcp plugin (not the official plugin)"
NO_ENDPOINT = (
    "gcp:computeCustomEndpoint is not set: this is the lab's stand-in for the gcp plugin and speaks only to the lab's "
    "Compute Engine; set it to that, for example http://127.0.0.1:8080/compute/v1/"
)
# Of every type what can't be changed in place, as its Terraform resource has it (ForceNew), of the inputs used here
FIXED = {
    "*": "name project region zone network",
    "Network": "autoCreateSubnetworks networkProfile",
    "Subnetwork": "ipCidrRange",
    "Firewall": "direction",
    "Router": "encryptedInterconnectRouter",
    "RouterNat": "router",
    "RouterInterface": "router ipRange vpnTunnel interconnectAttachment",
    "RouterPeer": "router interface",
    "ExternalVpnGateway": "redundancyType interfaces",
    "VPNTunnel": "vpnGateway vpnGatewayInterface peerExternalGateway peerExternalGatewayInterface sharedSecret router",
    "InterconnectAttachment": "interconnect router type",
    "ResourcePolicy": "groupPlacementPolicy",
    "Instance": "machineType bootDisk networkInterfaces scratchDisks reservationAffinity resourcePolicies",
    "Account": "accountId",
    "IAMCustomRole": "roleId",
    "IAMMember": "role member condition serviceAccountId",
    "SecretIamMember": "role member secretId",
    "WorkloadIdentityPool": "workloadIdentityPoolId",
    "WorkloadIdentityPoolProvider": "workloadIdentityPoolId workloadIdentityPoolProviderId",
    "Budget": "billingAccount",
}


class GoogleStandIn(StandIn):
    """One process, one provider configuration."""

    package, version = "gcp", "10.2.0+ironburst.lab.stand.in"

    def __init__(self, engine: str | None = None):
        super().__init__(engine)
        self.settings: Props = {}
        self._opener = build_opener(ProxyHandler({}))

    # ---- the plugin and its configuration
    @answered
    def CheckConfig(self, request: Any, _context: Any) -> Any:
        said = _settings(plain(decode(request.news)))
        wrong = [(path, why) for path, why in problems(sdk.ProviderArgs, None, said)]
        at = said.get(ENDPOINT)
        if at != UNKNOWN and not (at and in_lab(str(at))):
            wrong.append((ENDPOINT, f"{at!r} is outside the lab" if at else NO_ENDPOINT))
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
        if not in_lab(str(self.settings.get(ENDPOINT))):
            raise PluginError(NO_ENDPOINT)
        self.log(
            f"gcp: stand-in of the ironburst lab for the gcp plugin (not the official one), {self.settings[ENDPOINT]}"
        )
        return pb.ConfigureResponse(acceptSecrets=True, supportsPreview=True, acceptResources=False)

    # ---- resources: plan
    @answered
    def Check(self, request: Any, _context: Any) -> Any:
        token, news = _token(request.urn), decode(request.news)
        cls = schema.args_class(pulumi_gcp, token)
        if "name" in schema._input_types(cls) and not token.endswith("IAMMember") and "name" not in news:
            news["name"] = request.urn.split("::", 3)[3].lower()
        wrong = list(problems(cls, None, plain(news)))
        failures = [pb.CheckFailure(property=path, reason=why) for path, why in wrong]
        return pb.CheckResponse(inputs=encode(news), failures=failures)

    @answered
    def Diff(self, request: Any, _context: Any) -> Any:
        token, news = _token(request.urn), plain(decode(request.news))
        olds = plain(decode(request.old_inputs if request.HasField("old_inputs") else request.olds))
        moved = changes(olds, news)
        rules = frozenset(f"{FIXED['*']} {FIXED.get(token.rpartition(':')[2], '')}".split())
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
            return pb.CreateResponse(properties=encode(inputs))
        made = self._ask("POST", _token(request.urn), "", _known(inputs))
        return pb.CreateResponse(id=made["id"], properties=encode(_shown(made, inputs)))

    @answered
    def Update(self, request: Any, _context: Any) -> Any:
        inputs, state = decode(request.news), decode(request.olds)
        if request.preview:
            return pb.UpdateResponse(properties=encode({**state, **inputs}))
        made = self._ask("PUT", _token(request.urn), request.id, _known(inputs))
        return pb.UpdateResponse(properties=encode(_shown(made, inputs)))

    @answered
    def Read(self, request: Any, _context: Any) -> Any:
        inputs = decode(request.inputs)
        try:
            found = self._ask("GET", _token(request.urn), request.id)
        except _Missing:
            return pb.ReadResponse()  # an empty id: it is gone
        now = {
            key: value if same(plain(value), found[key]) else rewrap(found[key], value)
            for key, value in inputs.items()
            if key in found
        }
        return pb.ReadResponse(id=request.id, properties=encode(_shown(found, inputs)), inputs=encode(now))

    @answered
    def Delete(self, request: Any, _context: Any) -> Any:
        with contextlib.suppress(_Missing):
            self._ask("DELETE", _token(request.urn), request.id)
        return empty_pb2.Empty()

    @answered
    def Invoke(self, _request: Any, _context: Any) -> Any:
        raise PluginError("this function is not implemented by the lab's stand-in for the gcp plugin")

    def _ask(self, verb: str, token: str, its_id: str, said: Props | None = None) -> Props:
        at = urlsplit(self.settings[ENDPOINT])
        url = f"{at.scheme}://{at.netloc}{ROOT}/{token}" + (f"?{quote(its_id, safe='')}" if its_id else "")
        body = None if said is None else json.dumps(said).encode()
        try:
            with self._opener.open(Request(url, data=body, method=verb), timeout=60) as answer:
                found: Props = json.load(answer)
                return found
        except HTTPError as error:
            refused = json.load(error)
            kind = _Missing if error.code == 404 and verb != "POST" else PluginError
            raise kind(f"googleapi: Error {error.code}: {refused['message']}, {refused['reason']}") from None


class _Missing(PluginError):
    """The stand-in knows no such thing."""


def _settings(raw: Props) -> Props:
    return {key: value for key, value in raw.items() if key not in ("version", "pluginDownloadURL") and key[:2] != "__"}


def _token(urn: str) -> str:
    token = urn.split("::", 3)[2].rsplit("$", 1)[-1]
    if token not in KINDS:
        known = token in schema.registry(pulumi_gcp)
        what = "is known, but not implemented by" if known else "is no resource of pulumi-gcp, let alone of"
        raise PluginError(f"the type {token} {what} the lab's stand-in for the gcp plugin")
    return token


def _known(inputs: Props) -> Props:
    clear = plain(inputs)
    if has_unknown(clear):
        raise PluginError("the engine sent an unknown value outside a preview")
    return {key: value for key, value in clear.items() if key[:2] != "__"}


def _shown(found: Props, inputs: Props) -> Props:
    """Outputs, with the marks of what was secret."""
    return {key: rewrap(value, inputs.get(key)) for key, value in found.items() if key != "id"}
