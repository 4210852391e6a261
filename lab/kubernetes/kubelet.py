"""A kubelet's way into a cluster: a stand-in that signs in as a real one does.

TLS bootstrap with a real signing request, which somebody has to approve; then its own certificate, and no other rights.
What it reads and leaves on the disk is where kubelet has it, so that the node's own programs find it. What runs on the
node is kwok's part (`nodes`, `stages`).
"""

import base64
import hashlib
import os
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lab.kubernetes import nodes
from lab.kubernetes.access import Api, Refused
from lab.kubernetes.authority import CURVE, private_text
from lab.kubernetes.commands import ALIVE
from lab.kubernetes.nodes import NodeSpec
from lab.system import LabError

SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
BOOTSTRAP = "etc/kubernetes/bootstrap-kubelet.conf"
CERTIFICATE = "var/lib/kubelet/pki/kubelet-client-current.pem"
KEY = "var/lib/kubelet/pki/kubelet-client.key.tmp"  # a second try shows the same key, so it is the same request


class Crashed(LabError):
    """Kubelet ends with an error; systemd starts it again."""


class Kubelet:
    """Of the node `name`, whose files are below `disk`. Made from the bootstrap kubeconfig that lies there."""

    def __init__(self, disk: Path, name: str):
        self.disk, self.name = disk, name
        config = yaml.safe_load((disk / BOOTSTRAP).read_text())
        cluster = config["clusters"][0]["cluster"]
        self.server, self._token = cluster["server"], config["users"][0]["user"]["token"]
        self._authority = disk / cluster["certificate-authority"].lstrip("/")

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
        text = base64.b64encode(asked.public_bytes(serialization.Encoding.PEM)).decode()
        spec = {"request": text, "signerName": SIGNER, "usages": ["digital signature", "client auth"]}
        try:
            self._stranger().call("POST", CSRS, {"metadata": {"name": name}, "spec": spec})
        except Refused as refusal:
            if refusal.reason != "AlreadyExists":
                raise Crashed(f"cannot create certificate signing request: {refusal.status} {refusal}") from None
        return name

    def signed(self, name: str) -> bool:
        """Whether the certificate is there by now; then it is kept. Crashed if the request is refused, or may not be
        looked at any more.
        """
        try:
            status = self._stranger().call("GET", f"{CSRS}/{name}")["status"]
        except Refused as refusal:
            raise Crashed(f"certificate signing request {name}: {refusal.status} {refusal}") from None
        if bad := [each for each in status.get("conditions", ()) if each["type"] in ("Denied", "Failed")]:
            raise Crashed(f"certificate signing request {name} is {bad[0]['type']}: {bad[0].get('message', '')}")
        if not status.get("certificate"):
            return False
        own = base64.b64decode(status["certificate"]).decode() + (self.disk / KEY).read_text()
        _write(self.disk / CERTIFICATE, own)
        (self.disk / KEY).unlink()
        return True

    def register(self, spec: NodeSpec, annotations: dict[str, str]) -> None:
        """Make the Node; one that is there is taken over as it is, and alive again. Crashed if it is refused."""
        api = Api(self.server, self._authority, certificate=self.disk / CERTIFICATE)
        body = nodes.manifest(spec)
        body["metadata"]["annotations"] |= annotations
        try:
            try:
                api.call("POST", "/api/v1/nodes", body)
            except Refused as refusal:
                if refusal.reason != "AlreadyExists":
                    raise
                again = {"labels": {ALIVE: "true"}, "annotations": annotations}
                api.call("PATCH", f"/api/v1/nodes/{self.name}", {"metadata": again})
        except Refused as refusal:
            raise Crashed(f"unable to register node with API server: {refusal.status} {refusal}") from None

    def _key(self) -> ec.EllipticCurvePrivateKey:
        path = self.disk / KEY
        if not path.exists():
            _write(path, private_text(ec.generate_private_key(CURVE)))
        key = serialization.load_pem_private_key(path.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key

    def _stranger(self) -> Api:
        """With the bootstrap token."""
        return Api(self.server, self._authority, self._token)


def _write(path: Path, text: str) -> None:
    """Root's alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    aside.rename(path)
