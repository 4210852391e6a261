"""What IAM Roles Anywhere asks of certificates, and its signature: that of AWS's requests (SigV4), made with the key of
an X.509 certificate.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, quote

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

AUTHORIZATION = re.compile(
    r"AWS4-X509-(?:RSA|ECDSA)-SHA256 Credential=(?P<serial>\d+)/(?P<scope>[^,]+), ?"
    r"SignedHeaders=(?P<headers>[^,]+), ?Signature=(?P<signature>[0-9a-f]+)"
)
NAMES = {NameOID.COMMON_NAME: "CN", NameOID.ORGANIZATION_NAME: "O", NameOID.ORGANIZATIONAL_UNIT_NAME: "OU"}
LATE = dt.timedelta(minutes=5)


class Unfit(Exception):
    """A certificate or signature that isn't taken; one sentence."""


def bundle(pem: str) -> list[x509.Certificate]:
    """The certificates of a PEM text."""
    try:
        return x509.load_pem_x509_certificates(pem.encode())
    except ValueError as error:
        raise Unfit(f"not a bundle of PEM certificates: {error}") from None


def check_authority(certificate: x509.Certificate) -> None:
    """May sign certificates: X.509 v3, CA:true, key usage with keyCertSign."""
    basic, usage = _extension(certificate, x509.BasicConstraints), _extension(certificate, x509.KeyUsage)
    if basic is None or not basic.ca:
        raise Unfit("Incorrect basic constraints for CA certificate")
    if usage is None or not usage.key_cert_sign:
        raise Unfit("Incorrect key usage for CA certificate")


def check_chain(certificate: x509.Certificate, chain: list[x509.Certificate], roots: list[x509.Certificate]) -> None:
    """An end entity's certificate for signing, signed by a trusted one, or by one of its chain that is."""
    basic, usage = _extension(certificate, x509.BasicConstraints), _extension(certificate, x509.KeyUsage)
    if basic is None or basic.ca or usage is None or not usage.digital_signature:
        raise Unfit("Untrusted certificate: it needs CA:false and the key usage Digital Signature")
    if not _trusted(certificate, chain, roots):
        raise Unfit("Untrusted certificate: no trust anchor has signed it, or it is out of date")


def _trusted(certificate: x509.Certificate, chain: list[x509.Certificate], roots: list[x509.Certificate]) -> bool:
    now = dt.datetime.now(dt.UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        return False
    for issuer in (*roots, *chain):
        if issuer == certificate or not _issued(certificate, issuer):
            continue
        if issuer in roots:
            return issuer.not_valid_before_utc <= now <= issuer.not_valid_after_utc
        if _trusted(issuer, [each for each in chain if each != issuer], roots):
            return True
    return False


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def check_not_revoked(certificate: x509.Certificate, lists: Iterable[str]) -> None:
    """`lists`: PEM texts in base64, as the service takes them."""
    for text in lists:
        revoked = x509.load_pem_x509_crl(base64.b64decode(text))
        if revoked.get_revoked_certificate_by_serial_number(certificate.serial_number):
            raise Unfit("Certificate revoked")


def attributes(certificate: x509.Certificate) -> dict[str, str]:
    """As the session's tags have them: x509Subject/CN. A name that stands there twice is left out."""
    found: dict[str, list[str]] = {}
    for whose, name in (("x509Subject", certificate.subject), ("x509Issuer", certificate.issuer)):
        for part in name:
            if part.oid in NAMES:
                found.setdefault(f"{whose}/{NAMES[part.oid]}", []).append(str(part.value))
    return {key: values[0] for key, values in found.items() if len(values) == 1}


def signer(environ: dict[str, Any], body: bytes) -> tuple[x509.Certificate, list[x509.Certificate]]:
    """Who signed the request, and the chain that came along. Raises Unfit where the signature isn't theirs."""
    said = AUTHORIZATION.fullmatch(environ.get("HTTP_AUTHORIZATION", ""))
    if not said:
        raise Unfit("the request has no signature by a certificate")
    certificate = _der(environ.get("HTTP_X_AMZ_X509", ""))
    chain = [_der(each) for each in environ.get("HTTP_X_AMZ_X509_CHAIN", "").split(",") if each]
    at = environ.get("HTTP_X_AMZ_DATE", "")
    made = dt.datetime.strptime(at, "%Y%m%dT%H%M%SZ").replace(tzinfo=dt.UTC)
    if abs(dt.datetime.now(dt.UTC) - made) > LATE or int(said["serial"]) != certificate.serial_number:
        raise Unfit("Untrusted signature: another time or certificate")
    if not {"host", "x-amz-date", "x-amz-x509"} <= set(said["headers"].split(";")):
        raise Unfit("Untrusted signature: host, x-amz-date and x-amz-x509 have to be signed")
    asked = hashlib.sha256(_canonical(environ, said["headers"], body).encode()).hexdigest()
    algorithm = environ["HTTP_AUTHORIZATION"].partition(" ")[0]
    _verify(certificate, bytes.fromhex(said["signature"]), "\n".join((algorithm, at, said["scope"], asked)).encode())
    return certificate, chain


def _canonical(environ: dict[str, Any], headers: str, body: bytes) -> str:
    pairs = sorted(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    query = "&".join(f"{quote(key, safe='-_.~')}={quote(value, safe='-_.~')}" for key, value in pairs)
    plain = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}
    lines = []
    for name in headers.split(";"):
        value = environ.get(plain.get(name) or "HTTP_" + name.upper().replace("-", "_"), "")
        lines.append(f"{name}:{' '.join(value.split())}")
    asked = environ["REQUEST_METHOD"], environ["PATH_INFO"], query
    return "\n".join((*asked, *lines, "", headers, hashlib.sha256(body).hexdigest()))


def _verify(certificate: x509.Certificate, signature: bytes, text: bytes) -> None:
    key = certificate.public_key()
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, text, padding.PKCS1v15(), SHA256())
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, text, ec.ECDSA(SHA256()))
        else:
            raise Unfit("Untrusted certificate: its key is neither RSA nor an elliptic curve's")
    except InvalidSignature:
        raise Unfit("Untrusted signature") from None


def _der(text: str) -> x509.Certificate:
    try:
        return x509.load_der_x509_certificate(base64.b64decode(text))
    except ValueError:
        raise Unfit("x-amz-x509 is no certificate in base64") from None


def _extension(certificate: x509.Certificate, kind: Any) -> Any:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
