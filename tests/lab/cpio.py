"""Archives as the kernel unpacks them (newc; its Documentation/driver-api/early-userspace/buffer-format.rst)."""

import io
from collections.abc import Iterator
from pathlib import Path


def cpio(files: dict[str, bytes]) -> bytes:
    """An archive of files, with their folders."""
    folders = {str(parent) for name in files for parent in Path(name).parents if str(parent) != "."}
    entries = [(name, 0o040755, b"") for name in sorted(folders)] + [
        (name, 0o100644, text) for name, text in files.items()
    ]
    out = io.BytesIO()
    for number, (name, mode, text) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        fields = (number, mode, 0, 0, 1, 0, len(text), 0, 0, 0, 0, len(name) + 1, 0)
        out.write(b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0")
        out.write(b"\0" * (-out.tell() % 4) + text)
        out.write(b"\0" * (-out.tell() % 4))
    return out.getvalue()


def member(archive: bytes, name: str) -> bytes:
    """A file of an archive. Raises KeyError."""
    for own, text in _members(archive):
        if own.removeprefix("./") == name:
            return text
    raise KeyError(name)


def _members(archive: bytes) -> Iterator[tuple[str, bytes]]:
    place = 0
    while archive[place : place + 6] == b"070701":
        fields = [int(archive[place + 6 + 8 * n : place + 14 + 8 * n], 16) for n in range(13)]
        start = place + 110 + fields[11]
        name, start = archive[place + 110 : start - 1].decode(), start + -start % 4
        yield name, archive[start : start + fields[6]]
        place = start + fields[6]
        place += -place % 4
