"""The cluster's certificate authority and the API server's certificate, as kubeadm lays them out. Pure but for the keys
and the clock.
"""

import datetime as dt
import hashlib
import ipaddress
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

YEAR = dt.timedelta(days=365)
KNOWN_FROM = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
CURVE = ec.SECP256R1()
ISSUER = "kubernetes"
SERVICE = "10.96.0.1"  # the API server's own address among the services
DNS = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def private_text(key: Key) -> str:
    """PEM, PKCS#8, not encrypted."""
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, none).decode()


def known() -> tuple[ec.EllipticCurvePrivateKey, str]:
    """The key and certificate (PEM) of the authority that stacks/Pulumi.lab-kubernetes.yaml names. Whoever reads this
    has the key: it is for clusters that nobody reaches from outside the lab.
    """
    number = int.from_bytes(hashlib.sha256(b"ironburst: the lab's known authority").digest())
    key = ec.derive_private_key(number, CURVE)
    return key, _authority(key, KNOWN_FROM, 20 * YEAR, 1)


def files(address: str, known_authority: bool = False) -> dict[str, str]:
    """{name: PEM} of an authority, a new one unless it is to be the known one, and of the certificate of an API server
    at `address` that it has signed.
    """
    now = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=5)
    new = ec.generate_private_key(CURVE)
    key, root = known() if known_authority else (new, _authority(new, now, YEAR, x509.random_serial_number()))
    server = ec.generate_private_key(CURVE)
    addresses = dict.fromkeys((address, "127.0.0.1", SERVICE))
    names = [*map(x509.DNSName, DNS), *(x509.IPAddress(ipaddress.ip_address(each)) for each in addresses)]
    by = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    begun = _begun("kube-apiserver", server, now, YEAR, x509.random_serial_number())
    begun = begun.add_extension(x509.SubjectAlternativeName(names), critical=False)
    begun = begun.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    leaf = _signed(begun.add_extension(by, critical=False), key, False, ["digital_signature"])
    return {
        "ca.crt": root,
        "ca.key": private_text(key),
        "apiserver.crt": leaf,
        "apiserver.key": private_text(server),
    }


def _authority(key: ec.EllipticCurvePrivateKey, begins: dt.datetime, lives: dt.timedelta, serial: int) -> str:
    return _signed(_begun(ISSUER, key, begins, lives, serial), key, True, ["key_cert_sign"])


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _begun(
    common: str, key: ec.EllipticCurvePrivateKey, begins: dt.datetime, lives: dt.timedelta, serial: int
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(_name(common)).issuer_name(_name(ISSUER))
    builder = builder.public_key(key.public_key()).serial_number(serial)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.not_valid_before(begins).not_valid_after(begins + lives)


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, ca: bool, usages: Sequence[str]) -> str:
    every = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    every += ("key_cert_sign", "crl_sign", "encipher_only", "decipher_only")
    usage = x509.KeyUsage(**{name: name in usages for name in every})
    builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    made = builder.add_extension(usage, critical=True).sign(key, hashes.SHA256(), ecdsa_deterministic=True)
    return made.public_bytes(serialization.Encoding.PEM).decode()
