"""A stack's state: resources, their JSON form (checkpoint version 3), and URNs."""

import dataclasses
import datetime
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lab.engine import VERSION
from lab.engine.errors import EngineError, Refused
from lab.engine.properties import RESOURCE, SECRET, SIG, Props, is_secret, secret
from lab.engine.secrets import Crypter

STACK_TYPE = "pulumi:pulumi:Stack"
PROVIDER_TYPE = "pulumi:providers:"
IGNORED_FIELDS = {"sourcePosition", "stackTrace", "created", "modified", "hideDiff", "parentStackTraceHandle"}


def make_urn(stack: str, project: str, parent: str, type_: str, name: str) -> str:
    """`parent` is the parent's URN; the root stack (or none) leaves no trace in the child's URN."""
    prefix = urn_parts(parent)[0] + "$" if parent else ""
    return f"urn:pulumi:{stack}::{project}::{'' if prefix == STACK_TYPE + '$' else prefix}{type_}::{name}"


def urn_parts(urn: str) -> tuple[str, str]:
    """(qualified type, name) of a URN; a name may hold `::`."""
    _, _, qualified, name = urn.split("::", 3)
    return qualified, name


@dataclass(frozen=True, eq=False)
class Resource:
    """One entry of the state. Field names are those of the JSON form."""

    urn: str
    custom: bool
    type: str
    id: str = ""
    inputs: Props = field(default_factory=dict)
    outputs: Props = field(default_factory=dict)
    parent: str = ""
    protect: bool = False
    delete: bool = False
    external: bool = False
    dependencies: list[str] = field(default_factory=list)
    initErrors: list[str] = field(default_factory=list)
    provider: str = ""
    propertyDependencies: dict[str, list[str]] = field(default_factory=dict)
    pendingReplacement: bool = False
    additionalSecretOutputs: list[str] = field(default_factory=list)
    customTimeouts: dict[str, float] = field(default_factory=dict)
    importID: str = ""
    retainOnDelete: bool = False
    deletedWith: str = ""
    ignoreChanges: list[str] = field(default_factory=list)
    replaceOnChanges: list[str] = field(default_factory=list)
    resourceHooks: dict[str, list[str]] = field(default_factory=dict)

    def needs(self) -> set[str]:
        """URNs that must exist while this resource does."""
        return (
            {self.parent, provider_urn(self.provider), self.deletedWith, *self.dependencies}
            | {urn for urns in self.propertyDependencies.values() for urn in urns}
        ) - {""}

    @property
    def is_provider(self) -> bool:
        return self.type.startswith(PROVIDER_TYPE)

    @property
    def is_stack(self) -> bool:
        return self.type == STACK_TYPE

    @property
    def is_default_provider(self) -> bool:
        name = urn_parts(self.urn)[1]
        return self.is_provider and (name == "default" or name.startswith("default_")) and not self.parent

    def with_urns(self, change: Callable[[str], str | None]) -> "Resource":
        """The entry with every reference to another resource rewritten; None removes a reference."""

        def moved(urns):
            return [new for urn in urns if (new := change(urn))]

        provider = self.provider
        if provider:
            urn, _, id_ = provider.rpartition("::")
            provider = f"{change(urn)}::{id_}"
        return dataclasses.replace(
            self,
            parent=change(self.parent) or "" if self.parent else "",
            provider=provider,
            deletedWith=change(self.deletedWith) or "" if self.deletedWith else "",
            dependencies=moved(self.dependencies),
            propertyDependencies={key: moved(urns) for key, urns in self.propertyDependencies.items()},
        )


FIELDS = [f.name for f in dataclasses.fields(Resource)]


def provider_urn(reference: str) -> str:
    return reference.rpartition("::")[0]


def encode_value(value: Any, write_secret: Callable[[str], dict]) -> Any:
    if is_secret(value):
        return {SIG: SECRET, **write_secret(json.dumps(value["value"], separators=(",", ":"), ensure_ascii=False))}
    if isinstance(value, dict):
        reference = {"packageVersion": ""} if value.get(SIG) == RESOURCE else {}
        return reference | {key: encode_value(item, write_secret) for key, item in value.items()}
    return [encode_value(item, write_secret) for item in value] if isinstance(value, list) else value


def decode_value(value: Any, crypter: Callable[[], Crypter]) -> Any:
    if isinstance(value, dict):
        if value.get(SIG) == SECRET:
            return secret(
                json.loads(value["plaintext"] if "plaintext" in value else crypter().decrypt(value["ciphertext"]))
            )
        return {key: decode_value(item, crypter) for key, item in value.items()}
    return [decode_value(item, crypter) for item in value] if isinstance(value, list) else value


def encode_resource(resource: Resource, write_secret: Callable[[str], dict]) -> dict:
    """JSON form; empty fields are left out, `custom` is always there."""
    out = {name: value for name in FIELDS if (value := getattr(resource, name)) or name == "custom"}
    for name in ("inputs", "outputs"):
        if name in out:
            out[name] = encode_value(out[name], write_secret)
    return out


def decode_resource(data: dict, crypter: Callable[[], Crypter]) -> Resource:
    unknown = {key for key, value in data.items() if value} - set(FIELDS) - IGNORED_FIELDS
    if unknown:
        field_ = f"{data.get('urn')}: the state's field {min(unknown)!r}"
        raise Refused(f"{field_} is not implemented by lab/engine; use the pulumi CLI")
    values = {name: data[name] for name in FIELDS if data.get(name)}
    for name in ("inputs", "outputs"):
        if name in values:
            values[name] = decode_value(values[name], crypter)
    return Resource(**{"custom": False, **values})


@dataclass
class Snapshot:
    """The resources of a stack in dependency order, and the operations that were under way."""

    resources: list[Resource] = field(default_factory=list)
    pending: list[tuple[str, Resource]] = field(default_factory=list)

    @property
    def stack_outputs(self) -> Props:
        return next((r.outputs for r in self.resources if r.type == STACK_TYPE and not r.parent), {})


def decode_deployment(data: dict | None, crypter: Callable[[str], Crypter]) -> Snapshot:
    """`crypter(encryptionsalt)` is called only when the state holds a secret. None stands for a new stack."""
    if not data:
        return Snapshot()
    kind = (data.get("secrets_providers") or {}).get("type", "passphrase")
    if kind != "passphrase":
        raise Refused(f"the state's secrets provider is {kind!r}; lab/engine knows only 'passphrase'")

    def own() -> Crypter:
        salt = ((data.get("secrets_providers") or {}).get("state") or {}).get("salt")
        if not salt:
            raise EngineError("the state holds a secret but names no salt under secrets_providers")
        return crypter(salt)

    resources = [decode_resource(r, own) for r in data.get("resources") or []]
    pending = [(o["type"], decode_resource(o["resource"], own)) for o in data.get("pending_operations") or []]
    return Snapshot(resources, pending)


def deployment_header(salt: str) -> dict:
    """All of a deployment but resources and pending operations."""
    manifest = {
        "time": datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z"),
        "magic": magic(VERSION),
        "version": VERSION,
    }
    return {"manifest": manifest, "secrets_providers": {"type": "passphrase", "state": {"salt": salt}}}


def magic(version: str) -> str:
    return hashlib.sha256(version.encode()).hexdigest()


def encode_deployment(snapshot: Snapshot, salt: str, write_secret: Callable[[str], dict]) -> dict:
    data = deployment_header(salt)
    if snapshot.resources:
        data["resources"] = [encode_resource(r, write_secret) for r in snapshot.resources]
    if snapshot.pending:
        data["pending_operations"] = [
            {"resource": encode_resource(r, write_secret), "type": t} for t, r in snapshot.pending
        ]
    return {**data, "metadata": {}}


def check_order(resources: list[Resource]) -> None:
    """Parent, dependencies and provider stand before the resource that uses them, else EngineError."""
    seen: set[str] = set()
    for resource in resources:
        missing = set() if resource.delete else resource.needs() - seen
        if missing:
            raise EngineError(f"{resource.urn} refers to {min(missing)}, which does not stand before it in the state")
        seen.add(resource.urn)
