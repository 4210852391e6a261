"""Prometheus' remote write 1.0, as far as the gate before the receiver needs it: snappy's block format, and the parts
of the protobuf message that say whose a series is and when a sample was taken. Pure; Debian's head has no library of
either that Python could use without pip.

    WriteRequest {TimeSeries = 1}   TimeSeries {Label = 1, Sample = 2}   Label {name = 1, value = 2}
    Sample {double value = 1, int64 timestamp = 2}
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_LITERAL = 65536  # bytes: snappy's own blocks, and what every decoder takes
_MOST_LABELS = 64  # of a series
_LENGTH, _FIXED64, _FIXED32, _VARINT = 2, 1, 5, 0
STALE = 0x7FF0000000000002
"""the not-a-number by which Prometheus knows that a series has ended"""


class Malformed(ValueError):
    """It isn't what remote write sends; one sentence."""


class SentSeries(NamedTuple):
    """One of a request. `labels`: their bytes as they were sent; `samples`: (milliseconds since 1970, bytes)."""

    labels: bytes
    samples: list[tuple[int, bytes]]


# ---- snappy
def length(body: bytes) -> int:
    """Of what is compressed, as the body itself says. Raises Malformed."""
    return _varint(body, 0)[0]


def decompressed(body: bytes) -> bytes:
    """As long as it says to be (`length`: look at that before). Raises Malformed."""
    size, at = _varint(body, 0)
    out, end = bytearray(), len(body)
    while at < end:
        tag = body[at]
        kind, at = tag & 3, at + 1
        if kind == 0:
            count = tag >> 2
            if count >= 60:
                wide = count - 59
                count, at = int.from_bytes(body[at : at + wide], "little"), at + wide
            count += 1
            out += body[at : at + count]
            at += count
        else:
            if kind == 1:
                count, wide = 4 + (tag >> 2 & 7), 1
                back = (tag >> 5) << 8 | int.from_bytes(body[at : at + 1], "little")
            else:
                count, wide = 1 + (tag >> 2), 2 if kind == 2 else 4
                back = int.from_bytes(body[at : at + wide], "little")
            at += wide
            start = len(out) - back
            if back == 0 or start < 0:
                raise Malformed("the body's snappy refers to what is before its beginning")
            piece = out[start : start + count]
            out += piece if back >= count else (piece * (count // back + 1))[:count]
        if at > end or len(out) > size:
            break
    if at != end or len(out) != size:
        raise Malformed("the body isn't as long as its snappy says")
    return bytes(out)


def compressed(data: bytes) -> bytes:
    """Valid snappy of the same length: it goes to the loopback, where room costs nothing."""
    out = bytearray(_as_varint(len(data)))
    for at in range(0, len(data), _LITERAL):
        piece = data[at : at + _LITERAL]
        out += b"\xf4" + (len(piece) - 1).to_bytes(2, "little") + piece
    return bytes(out)


# ---- protobuf
def series(data: bytes) -> Iterator[SentSeries]:
    """Those of a request; exemplars, histograms and metadata are left out. Raises Malformed."""
    for number, start, end in _fields(data, 0, len(data)):
        if number == 1:
            yield _series(data, start, end)


def labels(data: bytes) -> dict[bytes, bytes]:
    """{name: value} of a series' labels. Raises Malformed."""
    found: dict[bytes, bytes] = {}
    for number, start, end in _fields(data, 0, len(data)):
        if number == 1:
            its = {key: data[begin:stop] for key, begin, stop in _fields(data, start, end)}
            found[its.get(1, b"")] = its.get(2, b"")
    if len(found) > _MOST_LABELS:
        raise Malformed(f"a series has {len(found)} labels, more than {_MOST_LABELS}")
    return found


def labels_as_sent(given: Mapping[bytes, bytes]) -> bytes:
    """The other way round, in the order that Prometheus wants."""
    return b"".join(
        _message(1, _message(1, name) + _message(2, value)) for name, value in sorted(given.items()) if value
    )


def series_as_sent(labels: bytes, samples: Iterable[bytes]) -> bytes:
    """A part of a request: these one behind the other are a whole one."""
    return _message(1, labels + b"".join(_message(2, sample) for sample in samples))


def stale(at_ms: int) -> bytes:
    """The sample that ends a series."""
    return b"\x09" + struct.pack("<Q", STALE) + b"\x10" + _as_varint(at_ms)


def _series(data: bytes, start: int, end: int) -> SentSeries:
    named, samples, behind = start, list[tuple[int, bytes]](), False
    for number, begin, stop in _fields(data, start, end):
        if number == 1:
            if behind:
                raise Malformed("a series has labels behind its samples")
            named = stop
        elif number == 2:
            behind = True
            samples.append((_timestamp(data, begin, stop), data[begin:stop]))
        else:
            behind = True
    return SentSeries(data[start:named], samples)


def _timestamp(data: bytes, start: int, end: int) -> int:
    at = 0
    for number, begin, _ in _fields(data, start, end):
        if number == 2:
            at = _varint(data, begin)[0]
    return at - (1 << 64) if at >> 63 else at


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(number, start, end) of each field of a message, without its tag and length."""
    while at < end:
        tag, at = _varint(data, at)
        wire, start = tag & 7, at
        if wire == _LENGTH:
            size, start = _varint(data, at)
            at = start + size
        elif wire == _VARINT:
            at = _varint(data, at)[1]
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise Malformed(f"the body has a field of wire type {wire}")
        if at > end:
            raise Malformed("the body breaks off")
        yield tag >> 3, start, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, where it ends)."""
    try:
        byte = data[at]
        if byte < 0x80:
            return byte, at + 1
        value, shift = byte & 0x7F, 7
        while True:
            at += 1
            byte = data[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at + 1
            shift += 7
            if shift > 63:
                raise Malformed("the body has a number of more than 64 bits")
    except IndexError:
        raise Malformed("the body breaks off") from None


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _message(number: int, data: bytes) -> bytes:
    return bytes((number << 3 | _LENGTH,)) + _as_varint(len(data)) + data
