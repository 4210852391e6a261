"""The lists of apt and dnf repositories, as their own metadata has them: Release and Packages, repomd.xml and primary.

A list's checksum is compared with the file that names it; who signed that file is the hosts' to check, not ours.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any
from xml.etree import ElementTree

from ironburst.software.mirror import File

TIMEOUT_S = 60
RPM = {"common": "{http://linux.duke.edu/metadata/common}", "repo": "{http://linux.duke.edu/metadata/repo}"}
RPM_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}


class Unreadable(RuntimeError):
    """Why a repository's lists can't be read; the text is one sentence."""


def apt(repository: Mapping[str, Any], architecture: str) -> list[File]:
    """All files of an entry of base_apt_repositories, for `architecture` (amd64, arm64) and for all. Raises
    Unreadable.
    """
    url, suite = repository["url"].rstrip("/"), repository["suite"]
    flat = not repository["components"]
    top = f"{url}/{suite.strip('/')}".rstrip("/") if flat else f"{url}/dists/{suite}"
    folders = [""] if flat else [f"{part}/binary-{architecture}/" for part in repository["components"]]
    sums = _release(_get(f"{top}/Release").decode(errors="replace"))
    files = []
    for folder in folders:
        known = [name for end in (".xz", ".gz", "") if (name := f"{folder}Packages{end}") in sums]
        if not known:
            raise Unreadable(f"{top}/Release names no list {folder}Packages: is the suite or component another?")
        # a Release file may name a compression that isn't served
        text = _first(top, known, sums)
        files += list(_stanzas(text.decode(errors="replace"), repository["name"], architecture))
    return files


def _first(top: str, names: list[str], sums: Mapping[str, str]) -> bytes:
    for name in names[:-1]:
        try:
            return _unpacked(name, _checked(f"{top}/{name}", sums[name]))
        except Unreadable:
            continue
    return _unpacked(names[-1], _checked(f"{top}/{names[-1]}", sums[names[-1]]))


def _release(text: str) -> dict[str, str]:
    """{path: SHA-256} of a Release file."""
    sums, inside = {}, False
    for line in text.splitlines():
        if not line.startswith(" "):
            inside = line.startswith("SHA256:")
        elif inside and len(words := line.split()) == 3:
            sums[words[2].removeprefix("./")] = words[0]
    return sums


def _stanzas(text: str, repository: str, architecture: str) -> Iterator[File]:
    for stanza in text.split("\n\n"):
        pairs = (line.partition(":") for line in stanza.splitlines() if line[:1].strip())
        its = {key: value.strip() for key, _, value in pairs}
        if its.get("Architecture") in (architecture, "all"):
            size = int(its.get("Size") or 0)
            path, sha256 = its.get("Filename", "").removeprefix("./"), its.get("SHA256", "")
            yield File(its["Package"], its["Version"], its["Architecture"], path, sha256, size, repository)


def dnf(repository: Mapping[str, Any], architecture: str) -> list[File]:
    """All files of an entry of base_dnf_repositories, for `architecture` (amd64, arm64) and for all. Raises
    Unreadable.
    """
    url = repository["url"].rstrip("/")
    index = _parsed(f"{url}/repodata/repomd.xml", _get(f"{url}/repodata/repomd.xml"))
    primary = next((data for data in index.iter(f"{RPM['repo']}data") if data.get("type") == "primary"), None)
    location = primary.find(f"{RPM['repo']}location") if primary is not None else None
    checksum = primary.find(f"{RPM['repo']}checksum") if primary is not None else None
    if location is None or checksum is None or checksum.get("type") != "sha256":
        raise Unreadable(f"{url}/repodata/repomd.xml names no list of packages with its SHA-256")
    name = f"{url}/{location.get('href')}"
    packages = _parsed(name, _unpacked(name, _checked(name, checksum.text or "")))
    wanted = (RPM_NAMES.get(architecture, architecture), "noarch")
    return [file for file in _rpms(packages, repository["name"]) if file.architecture in wanted]


def _parsed(name: str, data: bytes) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise Unreadable(f"{name} is no list of packages ({error})") from None


def _rpms(packages: ElementTree.Element, repository: str) -> Iterator[File]:
    common = RPM["common"]
    for package in packages.iter(f"{common}package"):
        words = {key: package.findtext(f"{common}{key}") or "" for key in ("name", "arch", "checksum")}
        parts = {
            key: dict(each.attrib) if (each := package.find(f"{common}{key}")) is not None else {} for key in PARTS
        }
        kind = package.find(f"{common}checksum")
        version, epoch = parts["version"], parts["version"].get("epoch", "0")
        text = f"{version.get('ver')}-{version.get('rel')}"
        yield File(
            name=words["name"],
            version=text if epoch == "0" else f"{epoch}:{text}",
            architecture=words["arch"],
            path=parts["location"].get("href", ""),
            sha256=words["checksum"] if kind is not None and kind.get("type") == "sha256" else "",
            size=int(parts["size"].get("package", 0)),
            repository=repository,
        )


PARTS = ("version", "location", "size")


def _get(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            return bytes(answer.read())
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise Unreadable(f"{url} can't be read ({reason})") from None


def _checked(url: str, sha256: str) -> bytes:
    data = _get(url)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise Unreadable(f"{url} is not the list that the repository names (another SHA-256): try again")
    return data


def _unpacked(name: str, data: bytes) -> bytes:
    try:
        if name.endswith(".gz"):
            return gzip.decompress(data)
        if name.endswith(".xz"):
            return lzma.decompress(data)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise Unreadable(f"{name} can't be unpacked ({error})") from None
    if not name.endswith(".zst"):
        return data
    if not shutil.which("zstd"):
        raise Unreadable(f"{name} is packed by zstd, and there is no program zstd here: install it")
    done = subprocess.run(["zstd", "-dc"], input=data, capture_output=True)
    if done.returncode:
        raise Unreadable(f"{name} can't be unpacked ({done.stderr.decode(errors='replace').strip()})")
    return done.stdout
