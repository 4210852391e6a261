"""A head signs in at Google with a certificate (cloud.controller): its tokens come over TLS that shows it."""

import base64
import datetime as dt
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ironburst.adapters.google.api import Api
from ironburst.adapters.google.cloud import Google
from ironburst.ports import Refused
from lab.google.iam import Binding
from lab.google.server import Cloud

EMAIL = "ib-lab-controller@lab-project.iam.gserviceaccount.com"
LOOKS = Binding(f"serviceAccount:{EMAIL}", frozenset({"compute.instances.list"}))


def certificate(folder, name, issuer=None):
    """(certificate, key) of a new pair, which is written; `issuer`: the same of who signs it, None: itself."""
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    signer, its_key = issuer or (None, key)
    made = x509.CertificateBuilder(signer.subject if signer else subject, subject, key.public_key())
    made = made.serial_number(x509.random_serial_number())
    made = made.not_valid_before(now - dt.timedelta(hours=1)).not_valid_after(now + dt.timedelta(hours=1))
    made = made.add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), True)
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
    signed = made.sign(its_key, hashes.SHA256())
    (folder / f"{name}.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption(), serialization.PrivateFormat.PKCS8
    (folder / f"{name}.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, plain[1], plain[0]))
    return signed, key


class Sts(BaseHTTPRequestHandler):
    """Gives the token of whoever showed a certificate of the authority."""

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        shown = self.connection.getpeercert(binary_form=True)
        self.server.shown.append((asked, base64.b64encode(shown).decode()))
        said = {"access_token": "t-1", "token_type": "Bearer", "expires_in": 3600}
        content = json.dumps(said | {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Nothing is printed."""


@pytest.fixture
def sts(tmp_path):
    authority = certificate(tmp_path, "ca")
    certificate(tmp_path, "sts", authority)
    certificate(tmp_path, "head", authority)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "sts.pem", tmp_path / "sts.key")
    context.load_verify_locations(tmp_path / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    server = HTTPServer(("127.0.0.1", 0), Sts)
    server.shown, server.socket = [], context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def world():
    world = Cloud(seed=1)
    world.iam.tokens["t-1"] = EMAIL
    yield world
    world.close()


def test_the_token_of_a_certificate_comes_over_tls_with_it(sts, world, tmp_path, monkeypatch):
    """google-auth asks for it with the certificate; httplib2's transport, which else renews tokens, takes none."""
    workload = {"cert_path": str(tmp_path / "head.pem"), "key_path": str(tmp_path / "head.key")}
    (tmp_path / "config.json").write_text(json.dumps({"version": 1, "cert_configs": {"workload": workload}}))
    said = {
        "type": "external_account",
        "audience": "//iam.googleapis.com/lab",
        "subject_token_type": "urn:ietf:params:oauth:token-type:mtls",
        "token_url": f"https://localhost:{sts.server_port}/v1/token",
        "credential_source": {"certificate": {"certificate_config_location": str(tmp_path / "config.json")}},
    }
    (tmp_path / "credentials.json").write_text(json.dumps(said))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "credentials.json"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
    port = Google(Api("lab-project", endpoint=world.url_of_api), "us-central1")
    with pytest.raises(Refused, match=r"compute\.instances\.list"):
        port.instances("lab")
    world.iam.bindings.append(LOOKS)
    assert port.instances("lab") == []
    head = x509.load_pem_x509_certificate((tmp_path / "head.pem").read_bytes())
    ((asked, shown),) = sts.shown  # one token for both calls
    assert shown == base64.b64encode(head.public_bytes(serialization.Encoding.DER)).decode()
    assert "token-exchange" in asked
