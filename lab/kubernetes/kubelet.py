"""A kubelet's way into a cluster, and what it says of its node: a stand-in that signs in as a real one does.

TLS bootstrap with a real signing request, which somebody has to approve; then its own certificate, and no other rights.
What runs on the node is kwok's part (`nodes`, `stages`).
"""

import base64
import hashlib
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lab.kubernetes import nodes
from lab.kubernetes.access import Api, Refused
from lab.kubernetes.authority import private_text
from lab.kubernetes.commands import ALIVE
from lab.kubernetes.nodes import NodeSpec
from lab.system import LabError

SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
BOOTSTRAP, CA = "etc/kubernetes/bootstrap-kubelet.conf", "etc/kubernetes/pki/ca.crt"
CERTIFICATE = "var/lib/kubelet/pki/kubelet-client-current.pem"
KEY = "var/lib/kubelet/pki/kubelet-client.key.tmp"  # a second try shows the same key, so it is the same request
Say = Callable[[str], None]


class Crashed(LabError):
    """Kubelet ends with an error; systemd starts it again."""


class Kubelet:
    """Of the node `name`, whose files are below `disk`; `server` is the API server's URL."""

    def __init__(self, disk: Path, name: str, server: str):
        self.disk, self.name, self.server = disk, name, server
        self.path = f"/api/v1/nodes/{name}"

    # --- joining

    def configure(self, authority: str, token: str) -> None:
        """What ironburst-join leaves it: whom to trust, and the bootstrap token."""
        _write(self.disk / CA, authority)
        user = {"name": "bootstrap", "user": {"token": token}}
        _write(self.disk / BOOTSTRAP, yaml.safe_dump({"server": self.server, "users": [user]}))

    def bootstrapped(self) -> bool:
        """It has its own certificate."""
        return (self.disk / CERTIFICATE).exists()

    def request(self) -> str:
        """Ask for a certificate with the bootstrap token; the request's name. Crashed if it is refused."""
        key, form = self._key(), serialization.PublicFormat.SubjectPublicKeyInfo
        name = f"node-csr-{hashlib.sha256(key.public_key().public_bytes(serialization.Encoding.DER, form)).hexdigest()}"
        subject = [(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, f"system:node:{self.name}")]
        about = x509.Name([x509.NameAttribute(kind, value) for kind, value in subject])
        asked = x509.CertificateSigningRequestBuilder().subject_name(about).sign(key, hashes.SHA256())
        spec = {
            "request": base64.b64encode(asked.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": SIGNER,
            "usages": ["digital signature", "client auth"],
        }
        meta = {"name": name}
        body = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": meta,
            "spec": spec,
        }
        try:
            self._stranger().call("POST", CSRS, body)
        except Refused as refusal:
            if refusal.reason != "AlreadyExists":
                raise Crashed(f"cannot create certificate signing request: {refusal.status} {refusal}") from None
        return name

    def signed(self, name: str) -> bool:
        """Whether the certificate is there by now; it is kept then, and the token removed. Crashed if the request is
        refused, or may not be looked at any more.
        """
        try:
            status = self._stranger().call("GET", f"{CSRS}/{name}")["status"]
        except Refused as refusal:
            raise Crashed(f"certificate signing request {name}: {refusal.status} {refusal}") from None
        if bad := [each for each in status.get("conditions", ()) if each["type"] in ("Denied", "Failed")]:
            raise Crashed(f"certificate signing request {name} is {bad[0]['type']}: {bad[0].get('message', '')}")
        if not status.get("certificate"):
            return False
        _write(
            self.disk / CERTIFICATE, base64.b64decode(status["certificate"]).decode() + (self.disk / KEY).read_text()
        )
        for path in (BOOTSTRAP, KEY):
            (self.disk / path).unlink()
        return True

    def _key(self) -> ec.EllipticCurvePrivateKey:
        path = self.disk / KEY
        if not path.exists():
            _write(path, private_text(ec.generate_private_key(ec.SECP256R1())))
        key = serialization.load_pem_private_key(path.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key

    def _stranger(self) -> Api:
        """With the bootstrap token."""
        token = yaml.safe_load((self.disk / BOOTSTRAP).read_text())["users"][0]["user"]["token"]
        return Api(self.server, self.disk / CA, token)

    # --- the node

    def api(self) -> Api:
        """With its own certificate."""
        return Api(self.server, self.disk / CA, certificate=self.disk / CERTIFICATE)

    def register(self, spec: NodeSpec, annotations: dict[str, str]) -> None:
        """Make the Node; one that is there is taken over as it is, and alive again. Crashed if it is refused."""
        body = nodes.manifest(spec)
        body["metadata"]["annotations"] |= annotations
        try:
            try:
                self.api().call("POST", "/api/v1/nodes", body)
            except Refused as refusal:
                if refusal.reason != "AlreadyExists":
                    raise
                again = {"labels": {ALIVE: "true"}, "annotations": annotations}
                self.api().call("PATCH", self.path, {"metadata": again})
        except Refused as refusal:
            raise Crashed(f"unable to register node with API server: {refusal.status} {refusal}") from None

    def condition(self, kind: str, status: str, reason: str, message: str) -> None:
        """Write a condition of its own Node's status."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        said = {"type": kind, "status": status, "reason": reason, "message": message}
        said |= {"lastHeartbeatTime": now, "lastTransitionTime": now}
        self.api().call("PATCH", f"{self.path}/status", {"status": {"conditions": [said]}}, patch="strategic-merge")

    def look(self) -> dict[str, Any]:
        """Its own Node; LabError if the API server doesn't show it."""
        return self.api().call("GET", self.path)

    def busy(self) -> bool:
        """Whether pods of a workload are on it: those of a DaemonSet don't count."""
        query = f"fieldSelector=spec.nodeName={self.name},status.phase!=Succeeded,status.phase!=Failed"
        pods = self.api().call("GET", f"/api/v1/pods?{query}")["items"]
        owners = [pod["metadata"].get("ownerReferences", ()) for pod in pods]
        return any(all(owner["kind"] != "DaemonSet" for owner in each) for each in owners)


def _write(path: Path, text: str) -> None:
    """Root's alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    aside.rename(path)
