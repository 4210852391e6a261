"""Secrets that are planted behind references, and a search for them in whatever a run leaves.

The value of each has a unique word of letters and digits in its middle, which JSON, YAML, URLs, HTML and shells leave
as it is; the characters around it are those that they change. The search also looks into gzip, zip, tar, xz and SQLite,
into base64 of any of these, and through line breaks.
"""

from __future__ import annotations

import base64
import io
import lzma
import re
import secrets
import sqlite3
import tarfile
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

DEPTH = 6  # of one thing packed in another
BLOB = re.compile(rb"[A-Za-z0-9+/_-]{40,}")
SPACE = re.compile(rb"\s|\\n|\\r|\\t")


class Plants:
    """Secrets by name. `values`: what lies behind a reference; `words`: the part of it that is looked for."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        self.values: dict[str, str] = {}

    def plant(self, name: str, text: str = "p\"l/a+n&t <{}> '%\\") -> str:
        """A new secret, or that of the name; `text` has {} where the word goes."""
        if name not in self.values:
            self.words[name] = word = f"zq{secrets.token_hex(12)}zq"
            self.values[name] = text.replace("{}", word)
        return self.values[name]

    # ---- the search
    def found(self, where: str, data: bytes | str) -> list[str]:
        """`WHERE: NAME` of each secret that is in there, however it is packed."""
        text = data.encode() if isinstance(data, str) else data
        return [f"{place}: {name}" for place, name in sorted(set(self._look(where, text, 0)))]

    def in_folder(self, folder: Path, *without: Path) -> list[str]:
        """In all files below a folder, and in their names."""
        there = [path for path in sorted(folder.rglob("*")) if not any(path.is_relative_to(each) for each in without)]
        files = [path for path in there if path.is_file() and not path.is_symlink()]
        names = "\n".join(str(path) for path in there)
        return self.found("names of files", names) + [
            said for path in files for said in self.found(str(path), path.read_bytes())
        ]

    def _forms(self) -> Iterator[tuple[str, bytes]]:
        for name, word in self.words.items():
            plain = word.encode()
            yield name, plain
            yield name, plain.hex().encode()
            for shift in range(3):  # base64 of a text that it is somewhere in: the bytes that the word alone decides
                whole = base64.b64encode(b"\0" * shift + plain)
                yield name, whole[(0, 4, 4)[shift] : len(whole) - 4]

    def _look(self, where: str, data: bytes, depth: int) -> Iterator[tuple[str, str]]:
        joined = SPACE.sub(b"", data)
        for name, form in self._forms():
            if form in data or form in joined:
                yield where, name
        if depth < DEPTH:
            for how, inside in self._inside(data, joined):
                yield from self._look(f"{where} ({how})", inside, depth + 1)

    def _inside(self, data: bytes, joined: bytes) -> Iterator[tuple[str, bytes]]:
        for how, unpack in UNPACK.items():
            try:
                yield from ((how, each) for each in unpack(data))
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, sqlite3.Error, tarfile.TarError):
                continue
            except zipfile.BadZipFile:
                continue
        for blob in {*BLOB.findall(data), *(BLOB.findall(joined) if joined != data else ())}:
            plain = base64.b64decode(blob[: len(blob) // 4 * 4].translate(bytes.maketrans(b"-_", b"+/")))
            if (
                plain[:2] in (b"\x1f\x8b", b"PK", b"BZ")
                or plain[:6] in (b"\xfd7zXZ\0", b"SQLite")
                or BLOB.search(plain)
            ):
                yield "base64", plain


def _gzip(data: bytes) -> Iterator[bytes]:
    """All members; of a damaged file what comes before the damage."""
    while data.startswith(b"\x1f\x8b"):
        member = zlib.decompressobj(31)
        yield member.decompress(data)
        data = member.unused_data


def _xz(data: bytes) -> Iterator[bytes]:
    if data.startswith(b"\xfd7zXZ\0"):
        yield lzma.decompress(data)


def _zip(data: bytes) -> Iterator[bytes]:
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            yield from (file.read(name) for name in file.namelist())


def _tar(data: bytes) -> Iterator[bytes]:
    if data[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(data)) as file:
            yield from (inside.read() for each in file if each.isfile() and (inside := file.extractfile(each)))


def _sqlite(data: bytes) -> Iterator[bytes]:
    """Each value of each row: on the file's pages a long one is in pieces."""
    if not data.startswith(b"SQLite format 3"):
        return
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(data)
        copy.flush()
        db = sqlite3.connect(copy.name)
        db.text_factory = bytes
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in db.execute(f'SELECT * FROM "{table.decode()}"'):
                yield from (value if isinstance(value, bytes) else str(value).encode() for value in row)
        db.close()


UNPACK = {"gzip": _gzip, "xz": _xz, "zip": _zip, "tar": _tar, "sqlite": _sqlite}


class Processes:
    """Command lines of all processes of the machine, as anybody sees them, as long as the block."""

    def __init__(self, every_s: float = 0.02):
        self.every_s, self.seen, self._over = every_s, set(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._over.is_set():
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.seen.add(path.read_bytes().replace(b"\0", b" "))
                except OSError:  # it has ended
                    continue
            self._over.wait(self.every_s)

    def __enter__(self) -> Processes:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._over.set()
        self._thread.join()
