"""The cluster's certificate authority and the API server's certificate, as kubeadm lays them out. Pure but for the keys
and the clock.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

YEAR = dt.timedelta(days=365)
SERVICE = "10.96.0.1"  # the API server's own address among the services
DNS = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def private_text(key: Key) -> str:
    """PEM, PKCS#8, not encrypted."""
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, none).decode()


def files(address: str) -> dict[str, str]:
    """{name: PEM} of a new authority, and of the certificate of an API server at `address` that it has signed."""
    key, server = rsa_key(), rsa_key()
    name = _name("kubernetes")
    root = _signed(_begun(name, name, key), key, x509.BasicConstraints(ca=True, path_length=None), ["key_cert_sign"])
    addresses = dict.fromkeys((address, "127.0.0.1", SERVICE))
    names = [*map(x509.DNSName, DNS), *(x509.IPAddress(ipaddress.ip_address(each)) for each in addresses)]
    begun = _begun(_name("kube-apiserver"), name, server)
    by = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    begun = begun.add_extension(by, critical=False)
    begun = begun.add_extension(x509.SubjectAlternativeName(names), critical=False)
    begun = begun.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    leaf = _signed(
        begun, key, x509.BasicConstraints(ca=False, path_length=None), ["digital_signature", "key_encipherment"]
    )
    return {
        "ca.crt": root,
        "ca.key": private_text(key),
        "apiserver.crt": leaf,
        "apiserver.key": private_text(server),
    }


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _begun(subject: x509.Name, issuer: x509.Name, key: rsa.RSAPrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.not_valid_before(now - dt.timedelta(minutes=5)).not_valid_after(now + YEAR)


def _signed(
    builder: x509.CertificateBuilder, key: rsa.RSAPrivateKey, limits: x509.BasicConstraints, usages: Sequence[str]
) -> str:
    every = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    every += ("key_cert_sign", "crl_sign", "encipher_only", "decipher_only")
    usage = x509.KeyUsage(**{name: name in usages for name in every})
    builder = builder.add_extension(limits, critical=True).add_extension(usage, critical=True)
    made = builder.sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM).decode()
