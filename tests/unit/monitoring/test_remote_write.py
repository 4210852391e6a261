"""Snappy and protobuf of remote write. What a real agent sends is taken apart in test_receiving.py."""

import random
import struct

import pytest

from ironburst.monitoring import remote_write as wire


def literal(data):
    """As snappy writes it: https://github.com/google/snappy/blob/main/format_description.txt"""
    size = len(data) - 1
    return bytes([size << 2]) + data if size < 60 else bytes([60 << 2, size]) + data


COPIES = {
    "one byte of offset": (bytes([7]) + literal(b"abc") + bytes([0 << 5 | 0 << 2 | 1, 3]), b"abcabca"),
    "two bytes of offset": (bytes([6]) + literal(b"abc") + bytes([2 << 2 | 2, 3, 0]), b"abcabc"),
    "four bytes of offset": (bytes([6]) + literal(b"abc") + bytes([2 << 2 | 3, 3, 0, 0, 0]), b"abcabc"),
    "a run": (bytes([10]) + literal(b"x") + bytes([8 << 2 | 2, 1, 0]), b"x" * 10),
    "a long literal": (bytes([100]) + literal(b"y" * 100), b"y" * 100),
    "nothing": (b"\0", b""),
}


@pytest.mark.parametrize("name", COPIES)
def test_each_element_of_snappy(name):
    body, data = COPIES[name]
    assert wire.length(body) == len(data) and wire.decompressed(body) == data


@pytest.mark.parametrize("size", [0, 1, 59, 60, 61, 65_535, 65_536, 65_537, 200_000])
def test_what_is_compressed_is_read_again(size):
    data = random.Random(size).randbytes(size)
    assert wire.decompressed(wire.compressed(data)) == data


BROKEN = {
    "copy before the beginning": bytes([4]) + literal(b"a") + bytes([2 << 2 | 2, 9, 0]),
    "copy of nothing": bytes([4]) + literal(b"a") + bytes([2 << 2 | 2, 0, 0]),
    "longer than it says": bytes([2]) + literal(b"abc"),
    "shorter than it says": bytes([9]) + literal(b"abc"),
    "literal that breaks off": bytes([9]) + bytes([8 << 2]) + b"abc",
    "length that breaks off": b"\xff\xff",
    "length beyond 64 bits": b"\xff" * 11,
    "empty": b"",
    "a bomb": bytes([3]) + literal(b"a") + bytes([63 << 2 | 2, 1, 0]) * 1000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_snappy_is_one_sentence(name):
    with pytest.raises(wire.Malformed, match=r"^the body"):
        wire.decompressed(BROKEN[name])


def sample(value, at_ms):
    return b"\x09" + struct.pack("<d", value) + b"\x10" + wire._as_varint(at_ms % (1 << 64))


def test_series_are_read_as_they_are_written():
    labels = wire.labels_as_sent({b"node": b"p5-1", b"__name__": b"DCGM_FI_DEV_GPU_TEMP", b"none": b""})
    data = wire.series_as_sent(labels, [sample(41.0, 1_795_000_000_123), sample(42.0, -5)])
    (found,) = wire.series(data + b"\x1a\x02\x08\x01")  # metadata, as agents send once a minute
    assert wire.labels(found.labels) == {b"node": b"p5-1", b"__name__": b"DCGM_FI_DEV_GPU_TEMP"}
    assert [at_ms for at_ms, _ in found.samples] == [1_795_000_000_123, -5]
    assert wire.series_as_sent(found.labels, [its for _, its in found.samples]) == data


def test_whatever_bytes_come_they_are_series_or_one_sentence():
    """A job's root on a rented node may send anything."""
    chosen = random.Random(7)
    good = wire.series_as_sent(wire.labels_as_sent({b"__name__": b"node_load1"}), [sample(1.0, 1_795_000_000_000)]) * 3
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(chosen.randint(1, 4)):
            data[chosen.randrange(len(data))] = chosen.randrange(256)
        data = bytes(data[: chosen.randint(0, len(data))])
        try:
            for series in wire.series(data):
                wire.labels_as_sent(wire.labels(series.labels))
            wire.decompressed(data)
        except wire.Malformed as error:
            assert str(error)[:3] in ("the", "a s")
