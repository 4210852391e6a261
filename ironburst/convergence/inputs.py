"""What a host is made from, as digests: the playbooks, the inventory,
what the document says of it, the secrets that it gets.

Equal inputs and an unchanged host need no Ansible. Everything is read anew at each converge:
some hundred small files, no Ansible import.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

Inputs = dict[str, str]
IGNORED = ("__pycache__", ".git")
# Keys of the document that are no `cluster_` variable, or count for every host
NOT_VARIABLES = ("version", "serial", "ssh", "software")
FOR_EVERY_HOST = ("software", "ssh")
LOOKUP = re.compile(r"""lookup\(\s*['"](?:ansible\.builtin\.)?env['"]\s*,\s*['"](\w+)['"]""")
REFERENCE = re.compile(r"""(?:env:\w+|(?:file|aws-secretsmanager):[^\s'",}\]]+)""")
CALLED = re.compile(r"""\b(?:name|role):\s*["']?(\w+)""")


class Sources:
    """The files that Ansible works from.
    `resolve` turns a secret reference into the secret (ironburst.secrets.resolve).
    """

    def __init__(
        self,
        repository: Path,
        inventory: Path,
        salt: str,
        resolve: Callable[[str], str],
        environment: Mapping[str, str] = os.environ,
    ):
        self._playbooks, self._salt = repository / "playbooks", bytes.fromhex(salt)
        self._resolve, self._environment = resolve, environment
        self._code = {
            "playbooks": _digest([self._playbooks, repository / "ansible.cfg"], repository),
            "health library": _digest([repository / "ironburst" / "health"], repository),
            "inventory": _digest([inventory], inventory),
        }
        self._inventory_text = "\n".join(path.read_text(errors="replace") for path in _files([inventory]))
        self._secrets: dict[str, str] = {}

    def of(self, document: Mapping[str, Any], name: str) -> Inputs:
        """{what: digest} of host `name` of the decoded document. Raises ironburst.secrets.SecretError."""
        host = next(host for host in document["hosts"] if host["name"] == name)
        text = self._text(tuple(host["roles"]))
        own = {f"node_{key}": _of(value) for key, value in host.items() if key not in ("name", "roles")}
        shared = _cluster_variables(_of_its_scheduler(document, host), text)
        read = [host, *(value for key, value in document.items() if f"cluster_{key}" in shared)]
        return {
            **self._code,
            "roles": _of(sorted(host["roles"])),
            **own,
            **shared,
            **self._secrets_of(read),
            **self._variables(text),
        }

    def _secrets_of(self, read: Iterable[Any]) -> Inputs:
        """The secrets to which the inventory refers, or what the host reads of the document."""
        references = {reference for value in read for reference in _references(value)}
        references.update(REFERENCE.findall(self._inventory_text))
        return {f"secret {reference}": self._secret(reference) for reference in sorted(references)}

    def _secret(self, reference: str) -> str:
        if reference not in self._secrets:
            self._secrets[reference] = self._keyed(self._resolve(reference))
        return self._secrets[reference]

    def _variables(self, text: str) -> Inputs:
        """What the files look up in this process's environment; not where ironburst itself finds its files."""
        names = {name for name in LOOKUP.findall(text + self._inventory_text) if not name.startswith("IRONBURST_")}
        return {f"environment {name}": self._keyed(self._environment.get(name, "")) for name in sorted(names)}

    def _keyed(self, value: str) -> str:
        return hmac.new(self._salt, value.encode(), hashlib.sha256).hexdigest()[:24]

    @lru_cache  # noqa: B019 (a Sources lives as long as one command)
    def _text(self, roles: tuple[str, ...]) -> str:
        """All that is written in these roles, in the roles that they call, and in the playbooks of a converge."""
        folder = self._playbooks / "roles"
        known = {path.name for path in folder.iterdir() if path.is_dir()} if folder.is_dir() else set()
        playbooks = [self._playbooks / name for name in ("site.yml", "validate.yml")]
        texts = [path.read_text() for path in playbooks if path.is_file()]
        due, done = list(roles), set()
        while due:
            role = due.pop()
            if role in done or role not in known:
                continue
            done.add(role)
            text = "\n".join(path.read_text(errors="replace") for path in _files([folder / role]))
            due += [name for name in CALLED.findall(text) if name in known]
            texts.append(text)
        return "\n".join(texts)


def changed(before: Mapping[str, str] | None, now: Mapping[str, str]) -> list[str]:
    """Names of the inputs that differ; ["first converge"] without a `before`."""
    if not before:
        return ["first converge"]
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def lock_digest(software: Any) -> str | None:
    """Short name of the exact set of versions that a host has by the lock; None if it has none."""
    return _of(software)[:12] if software else None


def _of_its_scheduler(document: Mapping[str, Any], host: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document as the inventory shows it to a host: of two schedulers the other is none of its business."""
    every = [document["scheduler"], *document.get("other_schedulers", ())]
    its = next((each for each in every if each.get("kind") == host.get("scheduler")), every[0])
    return {key: value for key, value in document.items() if key != "other_schedulers"} | {"scheduler": its}


def _cluster_variables(document: Mapping[str, Any], text: str) -> Inputs:
    """What the document says of the cluster, as far as the roles' `text` names it."""
    variables = {"cluster_name" if key == "cluster" else f"cluster_{key}": key for key in document}
    named = {
        variable: _of(document[key])
        for variable, key in variables.items()
        if key not in NOT_VARIABLES and variable in text
    }
    if re.search(r"\bhostvars\b|\bgroups\[", text):
        named["cluster_hosts"] = _of(document["hosts"])
    return named | {f"cluster_{key}": _of(document[key]) for key in FOR_EVERY_HOST if key in document}


def _of(value: Any) -> str:
    """The digest of a decoded value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


def _references(value: Any) -> Iterable[str]:
    """Secret references among the strings of a decoded document."""
    if isinstance(value, Mapping):
        for entry in value.values():
            yield from _references(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _references(entry)
    elif isinstance(value, str) and REFERENCE.fullmatch(value):
        yield value


def _files(tops: Iterable[Path]) -> list[Path]:
    files: list[Path] = []
    for top in tops:
        if top.is_file():
            files.append(top)
        for folder, folders, names in os.walk(top, followlinks=True):
            folders[:] = sorted(name for name in folders if name not in IGNORED)
            files += [Path(folder, name) for name in sorted(names) if not name.endswith((".pyc", "~", ".swp"))]
    return files


def _digest(tops: Iterable[Path], base: Path) -> str:
    made = hashlib.sha256()
    for path in _files(tops):
        content = path.read_bytes()
        executable = path.stat().st_mode & 0o100
        made.update(f"{path.relative_to(base)}\0{executable}\0{len(content)}\0".encode() + content)
    return made.hexdigest()[:24]
