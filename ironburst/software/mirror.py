"""What an air-gapped site has to copy: which files of its repositories the packages of a lock are. Pure."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ironburst.software.packages import family


@dataclass(frozen=True)
class File:
    """One package file in a repository's lists. `path` below the repository's address; `size` in bytes, 0: unknown."""

    name: str
    version: str  # dpkg's own; rpm's as epoch:version-release, without epoch 0
    architecture: str
    path: str
    sha256: str
    size: int
    repository: str


def order(version: str) -> Any:
    """A key by which versions sort as dpkg compares them (Debian policy 5.6.12); rpm's sort so, too, where they differ
    in numbers.
    """
    epoch, _, rest = version.rpartition(":")
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "")
    return int(epoch or 0), _parts(upstream), _parts(revision)


def _parts(text: str) -> list[Any]:
    """Words and numbers in turn, beginning and ending with a word. ~ is before the end, letters before the rest."""
    weights = {"~": -1}
    parts: list[Any] = []
    for word, number in re.findall(r"(\D*)(\d*)", text):
        letters = (weights.get(each, ord(each) + (0 if each.isalpha() else 256)) for each in word)
        parts += [(*letters, 0), *([int(number)] if number else [])]
    return parts or [(0,)]


def found(spec: str, os: str, files: Iterable[File]) -> File | None:
    """The newest file that a spec of the lock means (name=version, or name-version for dnf); None: there is none."""
    fitting = [file for file in files if _fits(spec, os, file)]
    return max(fitting, key=lambda file: order(file.version), default=None)


def _fits(spec: str, os: str, file: File) -> bool:
    if family(os) == "debian":
        name, _, pattern = spec.partition("=")
        return file.name == name and fnmatch.fnmatchcase(file.version, pattern or "*")
    epoch, _, rest = file.version.rpartition(":")
    version = rest.partition("-")[0]
    forms = [file.name, *(f"{file.name}-{each}" for each in (rest, version))]
    forms += [f"{file.name}-{epoch}:{each}" for each in (rest, version)] if epoch else []
    return any(fnmatch.fnmatchcase(form, spec) for form in forms)


def split(specs: Sequence[str], os: str, files: Sequence[File]) -> tuple[list[File], list[str]]:
    """(the files, each once, and the specs that no file is for)"""
    answers = {spec: found(spec, os, files) for spec in specs}
    there = [file for file in answers.values() if file]
    return list(dict.fromkeys(there)), [spec for spec, file in answers.items() if file is None]
