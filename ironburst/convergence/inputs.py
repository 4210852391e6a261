"""What a host is made from, as digests: the playbooks, the inventory,
what the document says of it, the secrets that it gets.

Equal inputs and an unchanged host need no Ansible. Everything is read again at each converge:
some hundred small files, no Ansible import. What hosts have in common is looked at once, not once a host.
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

from ironburst.document import variables
from ironburst.system import secrets

Inputs = dict[str, str]
IGNORED = ("__pycache__", ".git")
# Keys whose secret the heads themselves resolve: it needn't be on the machine that converges
RESOLVED_THERE = ("ledger_password",)
# Keys of the document that are no `cluster_` variable, or count for every host
NOT_VARIABLES = ("version", "serial", "ssh", "software")
FOR_EVERY_HOST = ("software", "ssh")
LOOKUP = re.compile(r"""lookup\(\s*['"](?:ansible\.builtin\.)?env['"]\s*,\s*['"](\w+)['"]""")
REFERENCE = re.compile(rf"""(?:env:\w+|(?:{"|".join(["file", *secrets.STORES])}):[^\s'",}}\]]+)""")
# One thing that the keeper has is an input of its own; hostvars of others are all hosts
KEPT = re.compile(r"hostvars\[cluster_keeper\][.](?=cluster_)")
CALLED = re.compile(r"""\b(?:name|role):\s*["']?(\w+)""")


class Sources:
    """What Ansible works from: the repository's files, an inventory, and the decoded document.
    `resolve` turns a secret reference into the secret (ironburst.system.secrets.resolve).
    """

    def __init__(
        self,
        repository: Path,
        inventory: Path,
        document: Mapping[str, Any],
        salt: str,
        resolve: Callable[[str], str],
        environment: Mapping[str, str] = os.environ,
    ):
        self._document = document
        self._hosts = {host["name"]: host for host in document["hosts"]}
        self._of_others = variables.of_others(document)
        self._playbooks, self._salt = repository / "playbooks", bytes.fromhex(salt)
        self._resolve, self._environment = resolve, environment
        self._monitoring = _digest([repository / "ironburst" / "monitoring"], repository)
        self._code = {
            "playbooks": _digest([self._playbooks, repository / "ansible.cfg"], repository),
            "health library": _digest([repository / "ironburst" / "health"], repository),
            "inventory": _digest([inventory], inventory),
        }
        self._inventory_text = "\n".join(path.read_text(errors="replace") for path in _files([inventory]))
        self._secrets: dict[str, str] = {}

    def of(self, name: str) -> Inputs:
        """{what: digest} of host `name`. Raises ironburst.system.secrets.SecretError."""
        host = self._hosts[name]
        own = {f"node_{key}": value for key, value in host.items() if key not in ("name", "roles")}
        return {
            **self._of_roles(tuple(host["roles"]), host.get("scheduler") or ""),
            **{key: _of(value) for key, value in (own | self._of_others[name]).items()},
            **self._secrets_of(_references([host, self._of_others[name]])),
        }

    @lru_cache  # noqa: B019 (a Sources lives as long as one command)
    def _of_roles(self, roles: tuple[str, ...], kind: str) -> Inputs:
        """What is one for all hosts with these roles, of a scheduler of that kind."""
        text = self._text(roles)
        read = self._read(text)
        references = {reference for key in read for reference in _references(self._value(key, kind))}
        names = {"host names": _of(variables.host_names(self._document))} if "cluster_host_names" in text else {}
        return {
            **self._code,
            **({"monitoring library": self._monitoring} if "prometheus" in roles else {}),
            **names,
            "roles": _of(sorted(roles)),
            **{_variable(key): self._of_key(key, kind) for key in read},
            **self._secrets_of(references.union(REFERENCE.findall(self._inventory_text))),
            **self._variables(text),
        }

    def _read(self, text: str) -> list[str]:
        """The keys of the document that the roles' `text` names, and those that count for every host."""
        named = {key for key in self._document if key not in NOT_VARIABLES and _variable(key) in text}
        if re.search(r"\bhostvars\b|\bgroups\[", KEPT.sub("", text)):
            named.add("hosts")
        return sorted(named.union(key for key in FOR_EVERY_HOST if key in self._document))

    @lru_cache  # noqa: B019 (likewise)
    def _of_key(self, key: str, kind: str) -> str:
        return _of(self._value(key, kind))

    def _value(self, key: str, kind: str) -> Any:
        return variables.scheduler_of(self._document, kind) if key == "scheduler" else self._document[key]

    def _secrets_of(self, references: Iterable[str]) -> Inputs:
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


def _variable(key: str) -> str:
    """The variable that a key of the document becomes."""
    return "cluster_name" if key == "cluster" else f"cluster_{key}"


def _of(value: Any) -> str:
    """The digest of a decoded value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


def _references(value: Any) -> Iterable[str]:
    """Secret references among the strings of a decoded document."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if key not in RESOLVED_THERE:
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
