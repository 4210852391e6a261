"""The state while a run changes it: what is done, what is left of the old state, what is under way."""

import dataclasses
import json
import threading
from collections.abc import Callable

from lab.engine.secrets import Crypter
from lab.engine.state import Resource, Snapshot, deployment_header, encode_resource


class Journal:
    """Old entries are known by a handle (an int) that survives their changes. Thread-safe.

    `write(text)` stores a deployment's JSON atomically; None keeps everything in memory (previews).
    """

    def __init__(self, snapshot: Snapshot, crypter: Callable[[], Crypter] | None, write: Callable[[str], None] | None):
        self.lock = threading.RLock()
        self.old: dict[int, Resource] = dict(enumerate(snapshot.resources))
        self.before = {r.urn: r for r in snapshot.resources if not r.delete}
        self.providers = {f"{r.urn}::{r.id}": r for r in snapshot.resources if r.is_provider}
        self.new: dict[str, Resource] = {}
        # Nobody but `refresh --clear-pending-creates` may forget that a resource may exist unseen.
        self.pending: list[tuple[str, Resource]] = [p for p in snapshot.pending if p[0] == "creating"]
        self._crypter, self._write = crypter, write
        self._texts: dict[Resource, str] = {}
        self._write_lock = threading.Lock()
        self._wanted = self._written = 0

    def find(self, urn: str) -> int | None:
        """The handle of the old entry that is not marked for deletion."""
        with self.lock:
            return next((h for h, r in self.old.items() if r.urn == urn and not r.delete), None)

    def resources(self) -> list[Resource]:
        with self.lock:
            return [*self.new.values(), *self.old.values()]

    def record(self, resource: Resource, over: int | None = None) -> None:
        """`resource` is in its new state; the old entry `over` is superseded."""
        with self.lock:
            self.new[resource.urn] = resource
            self.old.pop(over, None)

    def change(self, handle: int, **fields) -> Resource:
        with self.lock:
            self.old[handle] = dataclasses.replace(self.old[handle], **fields)
            return self.old[handle]

    def change_new(self, urn: str, **fields) -> None:
        with self.lock:
            self.new[urn] = dataclasses.replace(self.new[urn], **fields)

    def drop(self, handle: int) -> None:
        with self.lock:
            self.old.pop(handle, None)

    def rename(self, old_urn: str, new_urn: str) -> None:
        """An alias hit: the old entry and all references to it take the new URN."""
        with self.lock:
            for handle, resource in self.old.items():
                resource = resource.with_urns(lambda urn: new_urn if urn == old_urn else urn)
                self.old[handle] = dataclasses.replace(resource, urn=new_urn) if resource.urn == old_urn else resource
                if resource.is_provider:
                    self.providers[f"{self.old[handle].urn}::{resource.id}"] = self.old[handle]
            self.before[new_urn] = self.old[self.find(new_urn)]

    def begin(self, kind: str, resource: Resource) -> tuple[str, Resource]:
        """Write down that an operation is under way, before the provider is called."""
        entry = (kind, resource)
        with self.lock:
            self.pending.append(entry)
        self.save()
        return entry

    def end(self, entry: tuple[str, Resource]) -> None:
        """The operation is over; the caller records the outcome and saves."""
        with self.lock:
            self.pending.remove(entry)

    def save(self) -> None:
        """Returns when a state at least as new as the current one is stored. Writes of several threads are joined."""
        if self._write is None:
            return
        with self.lock:
            self._wanted += 1
            mine = self._wanted
        with self._write_lock:
            if self._written >= mine:
                return
            with self.lock:
                version, text = self._wanted, self._text()
            self._write(text)
            self._written = version

    def _text(self) -> str:
        crypter = self._crypter()
        header = json.dumps(deployment_header(crypter.encryption_salt))[:-1]
        resources = self.resources()
        texts = {r: self._texts.get(r) or self._encode(r, crypter) for r in [*resources, *(r for _, r in self.pending)]}
        self._texts = texts
        if resources:
            header += ',"resources":[\n' + ",\n".join(texts[r] for r in resources) + "]"
        if self.pending:
            header += (
                ',"pending_operations":['
                + ",\n".join(f'{{"resource":{texts[r]},"type":{json.dumps(kind)}}}' for kind, r in self.pending)
                + "]"
            )
        return header + ',"metadata":{}}'

    @staticmethod
    def _encode(resource: Resource, crypter: Crypter) -> str:
        return json.dumps(
            encode_resource(resource, lambda text: {"ciphertext": crypter.encrypt(text)}), separators=(",", ":")
        )
