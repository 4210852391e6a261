"""Receipts: what is known of each host after its last converge, and its history.
One JSON file a host; no secret is in them.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ironburst.convergence.ports import Connection
from ironburst.system import files

VERSION = 1
KEPT = 50  # entries of a history
FILE_NAMES = {"drained_by_us": "held"}  # fields that the file calls otherwise


class ReceiptError(ValueError):
    """The state folder can't be used; the text is one sentence."""


@dataclass(frozen=True)
class Entry:
    """One converge of one host. `outcome`: converged, failed, unreachable, invalid,
    stopped; `packages`: {name: [before, after]}.
    """

    at: float
    seconds: float
    outcome: str
    why: list[str]
    serial: int
    lock: str | None
    drained: bool = False
    changed: list[str] = field(default_factory=list)
    packages: dict[str, list[str | None]] = field(default_factory=dict)
    drift: list[str] = field(default_factory=list)  # what the probe saw before
    remaining: list[str] = field(default_factory=list)  # of it, what Ansible did not undo
    gate: str | None = None  # passed, failed; None: no gate on this host
    error: str | None = None


@dataclass(frozen=True)
class Receipt:
    """What is known of one host.
    `inputs` and `state` are None while its last converge is not whole: then Ansible runs again.
    """

    host: str
    cluster: str
    connection: Connection | None = None
    inputs: dict[str, str] | None = None
    watch: dict[str, Any] = field(default_factory=dict)
    state: dict[str, str] | None = None  # {fact: text}
    unwatched: list[str] = field(default_factory=list)  # why this host can't be called unchanged
    software: dict[str, Any] | None = None
    drained_by_us: bool = False  # a converge has drained it, and has not given it back
    history: list[Entry] = field(default_factory=list)

    def with_entry(self, entry: Entry) -> Receipt:
        """This receipt with one more line of history; the oldest are dropped."""
        return replace(self, history=[*self.history, entry][-KEPT:])


class Store:
    """The receipts of one cluster below `folder`, readable by their owner only."""

    def __init__(self, folder: Path):
        self.folder = folder

    def salt(self) -> str:
        """The key of all digests in this folder, as hex; made at first use."""
        path = self.folder / "salt"
        try:
            return bytes.fromhex(path.read_text().strip()).hex()
        except FileNotFoundError:
            self._write(path, secrets.token_hex(32) + "\n")
            return self.salt()
        except (OSError, ValueError) as error:
            raise ReceiptError(
                f"{path} can't be read ({error}): remove it, and every host is looked at by Ansible once"
            ) from None

    def read(self, host: str, cluster: str) -> Receipt:
        """What is known of `host`: nothing, for a host without a receipt,
        or with one that is damaged or of another version.
        """
        try:
            data = json.loads(self._path(host).read_text())
            if data.pop("version") != VERSION or data["cluster"] != cluster:
                return Receipt(host, cluster)
            return _decoded(data)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return Receipt(host, cluster)

    def write(self, receipt: Receipt) -> None:
        """Replace the file of its host. Raises ReceiptError."""
        fields = {FILE_NAMES.get(name, name): value for name, value in asdict(receipt).items()}
        self._write(self._path(receipt.host), json.dumps({"version": VERSION, **fields}, indent=1) + "\n")

    def _path(self, host: str) -> Path:
        return self.folder / f"{host}.json"

    def _write(self, path: Path, text: str) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            files.write(path, text)
        except OSError as error:
            raise ReceiptError(
                f"the folder {self.folder} can't be written ({error.strerror}): give another with --state"
            ) from None


def _decoded(data: dict[str, Any]) -> Receipt:
    """The receipt in a file's data. Raises KeyError or TypeError for data of another shape."""
    fields = {name: data.pop(file_name) for name, file_name in FILE_NAMES.items() if file_name in data}
    if connection := data.pop("connection", None):
        fields["connection"] = Connection(**connection | {"options": tuple(connection["options"])})
    fields["history"] = [Entry(**entry) for entry in data.pop("history")]
    return Receipt(**data, **fields)


def default_folder(cluster: str, environment: Mapping[str, str] = os.environ) -> Path:
    """$IRONBURST_STATE/receipts, or the XDG state folder's ironburst/<cluster>/receipts."""
    if environment.get("IRONBURST_STATE"):
        return Path(environment["IRONBURST_STATE"]) / "receipts"
    home = environment.get("XDG_STATE_HOME") or Path(environment.get("HOME", "/root")) / ".local" / "state"
    return Path(home) / "ironburst" / cluster / "receipts"


# ---- comparing


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What is otherwise now, one line a fact, without digests; a fact that could not be found out differs."""
    lines = []
    for fact in sorted({*before, *now}):
        old, new = before.get(fact, "not looked at"), now.get(fact, "not looked at")
        if new.startswith("?"):
            lines.append(f"{fact}: {new.lstrip('? ')}")
        elif old != new:
            lines.append(f"{fact}: {_change(fact.split(' ')[0], old, new)}")
    return lines


def _change(kind: str, old: str, new: str) -> str:
    if kind == "file":
        return _file_change(old, new)
    if "absent" in (old, new) or kind in ("package", "sysctl", "module", "mount", "kernel"):
        return f"was {_plain(old)}, is {_plain(new)}"
    if kind == "service":
        return _service_change(old, new)
    return "is another"


def _file_change(old: str, new: str) -> str:
    if "absent" in (old, new):
        return "is gone" if new == "absent" else "is there, was not"
    changes = []
    for name, was, now in zip(("type", "mode", "owner", "content"), old.split(), new.split(), strict=False):
        if was != now:
            changes.append(f"{name} is another" if name == "content" else f"{name} was {was}, is {now}")
    return ", ".join(changes) or "is another"


def _service_change(old: str, new: str) -> str:
    """The words of a unit's fact are its states, then its files with their digests, PATH=DIGEST."""
    old_states, new_states = (" ".join(word for word in text.split() if "=" not in word) for text in (old, new))
    old_files, new_files = ({word for word in text.split() if "=" in word} for text in (old, new))
    changes = [f"was {old_states}, is {new_states}"] if old_states != new_states else []
    paths = sorted({word.split("=")[0] for word in old_files ^ new_files})
    return ", ".join([*changes, *(f"{path} is another" for path in paths)])


def _plain(text: str) -> str:
    return text.lstrip("? ")


def package_changes(before: Mapping[str, str] | None, now: Mapping[str, str]) -> dict[str, list[str | None]]:
    """{package: [version before, version now]} of those that changed; before is None where it is not known."""

    def version(facts: Mapping[str, str] | None, fact: str) -> str | None:
        text = (facts or {}).get(fact)
        return None if text in (None, "absent") else text

    facts = sorted(fact for fact in {*(before or {}), *now} if fact.startswith("package "))
    pairs = {fact.split(" ", 1)[1]: [version(before, fact), version(now, fact)] for fact in facts}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
