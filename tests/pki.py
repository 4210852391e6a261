"""A certificate authority for tests, and a request signed with a certificate as IAM Roles Anywhere's helper does it."""

import base64
import datetime as dt
import hashlib
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID
from moto.iam.models import iam_backends

from lab.aws.capacity import stash
from lab.aws.cloud import ACCOUNT

NOW = dt.datetime.now(dt.UTC)


@dataclass(frozen=True)
class Identity:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(encoding, form, serialization.NoEncryption()).decode()


def issue(
    name: str,
    by: Identity | None = None,
    *,
    ca: bool = False,
    days: float = 30,
    key_cert_sign: bool | None = None,
    digital_signature: bool = True,
) -> Identity:
    """A certificate whose common name is `name`; `by` None: its own authority. It began an hour ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only"), False
    )
    signs = ca if key_cert_sign is None else key_cert_sign
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - dt.timedelta(days=max(0, -days), hours=1))
        .not_valid_after(NOW + dt.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=digital_signature,
                key_cert_sign=signs,
                crl_sign=signs,
                decipher_only=False,
                **usage,
            ),
            critical=True,
        )
    )
    return Identity(built.sign(by.key if by else key, hashes.SHA256()), key)


def revocation_list(by: Identity, *revoked: Identity) -> bytes:
    """PEM."""
    built = x509.CertificateRevocationListBuilder().issuer_name(by.certificate.subject)
    built = built.last_update(NOW).next_update(NOW + dt.timedelta(days=7))
    for each in revoked:
        entry = x509.RevokedCertificateBuilder().serial_number(each.certificate.serial_number).revocation_date(NOW)
        built = built.add_revoked_certificate(entry.build())
    return built.sign(by.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def session(url: str, who: Identity, chain: tuple[Identity, ...] = (), key: Any = None, **asked: Any) -> dict[str, Any]:
    """CreateSession's answer; `key`: another one than the certificate's. Raises PermissionError with the refusal."""
    body, at = json.dumps(asked), dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{at[:8]}/us-east-1/rolesanywhere/aws4_request"
    headers = {"content-type": "application/json", "host": urlsplit(url).netloc, "x-amz-date": at}
    headers["x-amz-x509"] = _spelled(who)
    if chain:
        headers["x-amz-x509-chain"] = ",".join(map(_spelled, chain))
    names = ";".join(sorted(headers))
    lines = [f"{name}:{headers[name]}" for name in sorted(headers)]
    hashed = hashlib.sha256(body.encode()).hexdigest()
    canonical = "\n".join(("POST", "/sessions", "", *lines, "", names, hashed))
    algorithm = "AWS4-X509-ECDSA-SHA256"
    text = "\n".join((algorithm, at, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signature = (key or who.key).sign(text.encode(), ec.ECDSA(hashes.SHA256())).hex()
    credential = f"{who.certificate.serial_number}/{scope}"
    headers["authorization"] = f"{algorithm} Credential={credential}, SignedHeaders={names}, Signature={signature}"
    answer = requests.post(f"{url}/sessions", data=body, headers=headers, timeout=10)
    if answer.status_code != 201:
        raise PermissionError(answer.json()["message"])
    return answer.json()["credentialSet"][0]["credentials"]


def issues(issuer: str, key: rsa.RSAPrivateKey) -> None:
    """The lab's AWS knows this key as that of the issuer's tokens; `issuer` without https://."""
    stash(iam_backends[ACCOUNT]["aws"], "issuers")[issuer] = key.public_key()


def token(key: rsa.RSAPrivateKey, **claims: Any) -> str:
    """A JSON Web Token as CI's issuers sign it; it is good for five minutes."""
    said = {"exp": int(dt.datetime.now(dt.UTC).timestamp()) + 300, **claims}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in ({"alg": "RS256"}, said)]
    text = b".".join(part.rstrip(b"=") for part in parts)
    signature = base64.urlsafe_b64encode(key.sign(text, padding.PKCS1v15(), hashes.SHA256()))
    return (text + b"." + signature.rstrip(b"=")).decode()


def _spelled(who: Identity) -> str:
    return base64.b64encode(who.certificate.public_bytes(serialization.Encoding.DER)).decode()
