"""Debian's archive as its installer needs it, out of the one behind this machine's own package sources.

That may be a cache, with faults that Debian's mirrors don't have: lists that are newer than the packages, and a Release
that is older than the lists. So the installer is the newest whose modules are there, and what its index names is there.
"""

import gzip
import hashlib
import lzma
import re
import threading
import urllib.error
import urllib.request
from functools import cached_property
from pathlib import Path

import pytest

from lab.system import run
from tests.lab.cpio import member

SUITE, RELEASE = "trixie", 13
INDEX = f"dists/{SUITE}/main/debian-installer/binary-amd64/Packages.xz"
UNASKED = {"required", "important", "standard"}
"""priorities of parts that the installer fetches by itself (anna)"""
LATER = ("e2fsprogs-udeb", "fdisk-udeb")
"""parts that others fetch while they run (disk-detect, partman-ext3)"""

Stanza = dict[str, str]


class Archive:
    """Debian's archive, as it lies behind `mirror`; what was asked for once is kept in `folder`."""

    def __init__(self, mirror: str, folder: Path) -> None:
        self._mirror, self._folder = mirror, folder
        folder.mkdir()

    def get(self, path: str) -> bytes:
        """A file. Raises urllib's errors."""
        kept = self._folder / hashlib.sha1(path.encode()).hexdigest()
        if not kept.exists():
            with urllib.request.urlopen(f"{self._mirror}/{path}", timeout=120) as answer:
                part = kept.with_suffix(f".{threading.get_ident()}")
                part.write_bytes(answer.read())
                part.replace(kept)
        return kept.read_bytes()

    def served(self, path: str) -> bytes:
        """A file as the installer gets it. Raises urllib's errors."""
        if path == INDEX:
            return self.index
        return self._release(path) if re.fullmatch(rf"dists/({SUITE}|stable)/Release", path) else self.get(path)

    @cached_property
    def installer(self) -> Path:
        """Folder of the installer's kernel and initrd: the newest whose modules are there. Skips without one."""
        package = f"debian-installer-{RELEASE}-netboot-amd64"
        path = next(
            each["Filename"]
            for each in stanzas(self._list(f"dists/{SUITE}/main/binary-amd64/Packages.xz"))
            if each["Package"] == package
        )
        modules = {each.get("Kernel-Version"): each for each in self._listed if each["Package"].startswith("ext4-mod")}
        lacking = []
        while self._has(path):
            deb, target = self._folder / "installer.deb", self._folder / path.rpartition("/")[2].removesuffix(".deb")
            deb.write_bytes(self.get(path))
            run(["dpkg", "-x", str(deb), str(target)])
            own = next(target.rglob("text/debian-installer/amd64"))
            kernel = _kernel(_inside(own))
            if kernel in modules and self._has(modules[kernel]["Filename"]):
                return own
            lacking.append(kernel)
            path = before(path.removesuffix("_all.deb")) + "_all.deb"
        pytest.skip(f"the archive lacks the kernel modules of the installers that it has: {', '.join(lacking)}")

    @cached_property
    def index(self) -> bytes:
        """The list of the installer's parts. Of those that it fetches each is there, if need be the release before's;
        those that it has are none that it would fetch.
        """
        inside = {each["Package"]: each for each in _inside(self.installer)}
        kernel = _kernel(list(inside.values()))
        listed = [each for each in self._listed if each.get("Kernel-Version", kernel) == kernel]
        version_of = {_source(each): inside[each["Package"]]["Version"] for each in listed if each["Package"] in inside}
        fetched = wanted(listed) - inside.keys()
        kept = []
        for each in listed:
            if each["Package"] in inside:
                kept.append(each | {"Version": inside[each["Package"]]["Version"]})
            elif each["Package"] not in fetched or self._has(each["Filename"]):
                kept.append(each)
            else:
                kept += self._before(each, version_of.get(_source(each)) or before(each["Version"]))
        return lzma.compress("\n".join("".join(f"{k}: {v}\n" for k, v in each.items()) for each in kept).encode())

    def _before(self, stanza: Stanza, version: str) -> list[Stanza]:
        """A part in another version; none, where the archive lacks that, too."""
        path = stanza["Filename"].replace(_unepoched(stanza["Version"]), _unepoched(version))
        if not self._has(path):
            return []
        udeb = self.get(path)
        (self._folder / "part.udeb").write_bytes(udeb)
        own = stanzas(run(["dpkg-deb", "--field", str(self._folder / "part.udeb")]))[0]
        sums = {"MD5sum": hashlib.md5(udeb).hexdigest(), "SHA256": hashlib.sha256(udeb).hexdigest()}
        return [stanza | own | sums | {"Filename": path, "Size": str(len(udeb))}]

    def _release(self, path: str) -> bytes:
        """A suite's Release, with the checksums of the index as it is served."""
        text = self.get(path).decode()
        own = INDEX.partition(f"{SUITE}/")[2]
        for algorithm in (hashlib.md5(self.index), hashlib.sha256(self.index)):
            digest = algorithm.hexdigest()
            line = f" {digest} {len(self.index)} {own}"
            text = re.sub(rf"^ [0-9a-f]{{{len(digest)}}} +\d+ {own}$", line, text, flags=re.MULTILINE)
        return text.encode()

    @cached_property
    def _listed(self) -> list[Stanza]:
        return stanzas(self._list(INDEX))

    def _list(self, path: str) -> str:
        return lzma.decompress(self.get(path)).decode()

    def _has(self, path: str) -> bool:
        try:
            self.get(path)
        except urllib.error.HTTPError:
            return False
        return True


def stanzas(text: str) -> list[Stanza]:
    """Packages of a list, or of dpkg's status."""
    found = (re.findall(r"^(\S+): ?(.*(?:\n[ \t].*)*)", each, re.MULTILINE) for each in text.split("\n\n"))
    return [dict(fields) for fields in found if fields]


def before(version: str) -> str:
    """The version that the same upstream version had a build or a stable update earlier.

    >>> before("1.47.2-3+b12"), before("6.13.0-2+deb13u1"), before("2.4.7-21+deb13u1+b4")
    ('1.47.2-3+b11', '6.13.0-2', '2.4.7-21+deb13u1+b3')
    """
    found = re.fullmatch(r"(.*?)([+~](?:deb\d+u|b))(\d+)", version)
    if not found:
        return ""
    start, suffix, number = found[1], found[2], int(found[3])
    return f"{start}{suffix}{number - 1}" if number > 1 else start


def wanted(listed: list[Stanza]) -> set[str]:
    """Names of the parts that the installer fetches, with what they depend on."""
    by_name = {each["Package"]: each for each in listed}
    for each in listed:
        for name in re.findall(r"[^\s,]+", each.get("Provides", "")):
            by_name.setdefault(name, each)
    found: set[str] = set()
    left = [each["Package"] for each in listed if each["Priority"] in UNASKED] + list(LATER)
    while left:
        part = by_name.get(left.pop())
        if part and part["Package"] not in found:
            found.add(part["Package"])
            left += re.findall(r"(?:^|,)\s*([^\s,(]+)", part.get("Depends", ""))
    return found


def _source(stanza: Stanza) -> str:
    return stanza.get("Source", stanza["Package"]).split()[0]


def _unepoched(version: str) -> str:
    return version.partition(":")[2] or version


def _inside(installer: Path) -> list[Stanza]:
    """The parts that the installer has in its initrd."""
    initrd = gzip.decompress((installer / "initrd.gz").read_bytes())
    return stanzas(member(initrd, "var/lib/dpkg/status").decode())


def _kernel(parts: list[Stanza]) -> str:
    found = (re.fullmatch(r"[a-z0-9-]+-modules-(\S+)-di", each["Package"]) for each in parts)
    return next(match[1] for match in found if match)
