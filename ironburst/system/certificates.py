"""When certificates end. The standard library reads only those of authorities; a DER library is another dependency."""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _UTC_TIME = 0xA0, 0x17


def end_s(text: str) -> float:
    """Seconds since 1970 at which the first of a PEM file's certificates ends. Raises ValueError where it has none that
    can be read.
    """
    found = _PEM.findall(text)
    if not found:
        raise ValueError("no certificate is in it")
    try:
        return min(_end_s(ssl.PEM_cert_to_DER_cert(each)) for each in found)
    except IndexError:
        raise ValueError("a certificate is cut short") from None


def _end_s(der: bytes) -> float:
    """X.509: Certificate { TBSCertificate { [version], serial, algorithm, issuer, validity { from, to }, ... } ... }"""
    ((_, certificate),) = _elements(der)
    parts = _elements(_elements(certificate)[0][1])
    validity = parts[4 if parts[0][0] == _VERSION else 3][1]
    kind, moment = _elements(validity)[1]
    text = moment.decode("ascii")
    century = ("19" if text >= "50" else "20") if kind == _UTC_TIME else ""
    return datetime.strptime(century + text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _elements(data: bytes) -> list[tuple[int, bytes]]:
    """(tag, content) of what is in a sequence, one behind the other."""
    found, at = [], 0
    while at < len(data):
        length, begin = data[at + 1], at + 2
        if length >= 0x80:  # the long form: a number of bytes of length follows
            begin += length - 0x80
            length = int.from_bytes(data[at + 2 : begin])
        if begin + length > len(data):
            raise IndexError
        found.append((data[at], data[begin : begin + length]))
        at = begin + length
    return found
