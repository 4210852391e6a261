"""How rented nodes join: by a bootstrap token that is good for an hour or two, and a client certificate that is signed
only for a node that was asked for. Anyone with only the token gets nothing (docs/adr/0037).

Sources: Kubernetes' reference, "Authenticating with Bootstrap Tokens", "TLS bootstrapping", "Certificate Signing
Requests".
"""

from __future__ import annotations

import base64
import secrets
import string
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from ironburst.adapters.kubernetes.client import ApiError, Client
from ironburst.adapters.kubernetes.nodes import NodesRecord
from ironburst.kubernetes_rights import BOOTSTRAPPERS, SIGNER
from ironburst.ports import SchedulerError

Json = dict[str, Any]
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_TOKENS = "/api/v1/namespaces/kube-system/secrets"
_LEAST_S = 3600.0  # so long a token is good, or twice as long as a boot may take
_LETTERS = string.ascii_lowercase + string.digits
_USAGES = ({"digital signature", "client auth"}, {"digital signature", "key encipherment", "client auth"})
Deliver = Callable[[str], None]  # puts a text where rented nodes read it. Raises SchedulerError


Give = Callable[[Mapping[str, str]], None]  # keeps whose request was chosen, by node. Raises SchedulerError


def permitted(kept: NodesRecord, permits: frozenset[str]) -> NodesRecord:
    """These nodes have a permit. What was given to a node before its permit counts no more. Pure."""
    still = permits & kept.permits
    return replace(kept, permits=permits, given={name: uid for name, uid in kept.given.items() if name in still})


def given(kept: NodesRecord, new: Mapping[str, str]) -> NodesRecord:
    """Requests are chosen, of nodes that have a permit. Pure."""
    return replace(kept, given={**kept.given, **{name: uid for name, uid in new.items() if name in kept.permits}})


class Joining:
    """The tokens of one cluster, and the answers to those who ask for a certificate with them."""

    def __init__(self, client: Client, boot_s: float, deliver: Deliver):
        """`boot_s`: the longest time from a launch until its node has joined."""
        self._client, self._deliver = client, deliver
        self.lasts(boot_s)
        self._delivered_until_s = 0.0
        self._made: tuple[str, float] | None = None  # a token that isn't delivered yet, and until when it is good

    def lasts(self, boot_s: float) -> None:
        """From now on a boot may take so long."""
        self._lives_s = max(_LEAST_S, 2 * boot_s)

    def token(self) -> None:
        """See to it that what nodes read is good for as long as a boot may take. Raises SchedulerError."""
        needed_s = self._client.now() + self._lives_s / 2
        if self._delivered_until_s >= needed_s:
            return
        if self._made is None or self._made[1] < needed_s:
            id, secret, ends_s = _random(6), _random(16), self._client.now() + self._lives_s
            self._client.create(_TOKENS, _token(id, secret, ends_s))
            self._made = f"{id}.{secret}", ends_s
        text, ends_s = self._made
        self._deliver(text)
        self._delivered_until_s, self._made = ends_s, None

    def approve(
        self, awaited: Collection[str], ours: Collection[str], given: Mapping[str, str], give: Give
    ) -> list[str]:
        """Approve the requests of these nodes, one each, and deny what else is asked for nodes that are `ours`: it
        comes too late, or isn't theirs. Those of others may be another stack's. Returns sentences: requests that
        nobody should have made.
        `given`: node to the uid of the request that was approved, or is to be; `give`: writes another one down, which
        comes first: a controller that starts again approves no second one.
        """
        mine, odd, failed = dict(given), list[str](), list[ApiError]()
        for raw in self._client.get(REQUESTS, {"fieldSelector": f"spec.signerName={SIGNER}"}).body["items"] or ():
            if (asked := _asked(raw)) is None:
                continue
            name, uid = str(raw["metadata"]["name"]), str(raw["metadata"]["uid"])
            why = asked.error
            if not why and asked.node not in awaited:
                why = f"node {asked.node} was not asked for, or no more, or is there already"
            elif not why and mine.setdefault(asked.node, uid) != uid:
                why = f"another one is for node {asked.node}"
            try:
                if why:
                    done = "is denied" if asked.node in ours else "isn't approved"
                    odd.append(f"the certificate request {name} of {asked.user} {done}: {why}")
                    if asked.node in ours:
                        self._answer(name, raw, "Denied", "NotRented", why)
                else:
                    if asked.node not in given:
                        give({asked.node: uid})
                    self._answer(name, raw, "Approved", "Rented", "ironburst asked for this node")
            except ApiError as error:  # of this one: the others may be answered
                failed.append(error)
        if failed:
            raise failed[0]
        return odd

    def _answer(self, name: str, raw: Json, what: str, reason: str, message: str) -> None:
        condition = {"type": what, "status": "True", "reason": reason, "message": message}
        try:
            path = f"{REQUESTS}/{quote(name, safe='')}/approval"  # a kubelet's own names of requests have capitals
            self._client.update(path, {**raw, "status": {"conditions": [condition]}})
        except ApiError as error:
            if error.status not in (404, 409):  # it is gone, or somebody else answers: seen at the next tick
                raise


class _Asked(NamedTuple):
    """A request by one of our tokens. `error`: why it can't be a kubelet's."""

    user: str
    node: str
    error: str = ""


def _asked(raw: Json) -> _Asked | None:
    """None: it was answered, or isn't made with a token of ours."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    if status.get("conditions") or BOOTSTRAPPERS not in (spec.get("groups") or ()):
        return None
    user = str(spec.get("username") or "")
    if set(spec.get("usages") or ()) not in _USAGES:
        return _Asked(user, "", f"it asks for {', '.join(spec.get('usages') or ()) or 'no usage'}")
    try:
        return _Asked(user, _node_of(base64.b64decode(spec["request"])))
    except (KeyError, ValueError) as error:
        return _Asked(user, "", f"{error}")


def _node_of(pem: bytes) -> str:
    """The node of a kubelet's request, PKCS #10 in PEM. Raises ValueError for any other."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    request = x509.load_pem_x509_csr(pem)
    common = [str(each.value) for each in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [str(each.value) for each in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    kind, _, name = (common[0] if len(common) == 1 else "").rpartition(":")
    if groups != ["system:nodes"] or kind != "system:node" or not name:
        raise ValueError(f"its subject is {request.subject.rfc4514_string()!r}, not a node's")
    if any(isinstance(each.value, x509.SubjectAlternativeName) for each in request.extensions):
        raise ValueError("it asks for other names, too")
    return name


def _token(id: str, secret: str, ends_s: float) -> Json:
    """The Secret of a bootstrap token: to authenticate with, nothing else."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"bootstrap-token-{id}", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": id,
            "token-secret": secret,
            "expiration": f"{datetime.fromtimestamp(ends_s, UTC):%Y-%m-%dT%H:%M:%SZ}",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": BOOTSTRAPPERS,
            "description": "ironburst: rented nodes join with it",
        },
    }


def _random(length: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))


def refuse(_: str) -> None:
    """The Deliver of who only looks."""
    raise SchedulerError("rented nodes get no token to join with: none can be delivered from here")
