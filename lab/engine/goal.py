"""What the program wants of one resource: RegisterResourceRequest, checked and in plain values."""

import re
from dataclasses import dataclass, field

from pulumi.runtime.proto import resource_pb2

from lab.engine.errors import Refused
from lab.engine.properties import Props, from_struct
from lab.engine.state import PROVIDER_TYPE, STACK_TYPE

HOOKS = {
    "before_create": "BeforeCreate",
    "after_create": "AfterCreate",
    "before_update": "BeforeUpdate",
    "after_update": "AfterUpdate",
    "before_delete": "BeforeDelete",
    "after_delete": "AfterDelete",
}
REFUSED_FIELDS = (
    "remote",
    "importId",
    "replace_with",
    "envVarMappings",
    "state_migrations",
    "packageRef",
    "pluginDownloadURL",
    "snippetId",
)


@dataclass
class Goal:
    type: str
    name: str
    custom: bool
    parent: str = ""
    inputs: Props = field(default_factory=dict)
    dependencies: list[str] = field(default_factory=list)
    property_dependencies: dict[str, list[str]] = field(default_factory=dict)
    provider: str = ""
    providers: dict[str, str] = field(default_factory=dict)
    version: str = ""
    protect: bool | None = None
    retain_on_delete: bool | None = None
    deleted_with: str = ""
    delete_before_replace: bool | None = None
    ignore_changes: list[str] = field(default_factory=list)
    replace_on_changes: list[str] = field(default_factory=list)
    additional_secret_outputs: list[str] = field(default_factory=list)
    timeouts: dict[str, float] = field(default_factory=dict)
    aliases: list = field(default_factory=list)
    hooks: dict[str, list[str]] = field(default_factory=dict)

    @property
    def package(self) -> str:
        return package_of(self.type)


def package_of(token: str) -> str:
    return token[len(PROVIDER_TYPE) :] if token.startswith(PROVIDER_TYPE) else token.split(":", 1)[0]


def check_type(token: str, where: str) -> None:
    if token.startswith("pulumi:") and token != STACK_TYPE and not token.startswith(PROVIDER_TYPE):
        raise Refused(f"{where}: the built-in type {token!r} is not implemented by lab/engine")
    if token.startswith("pulumi-python:"):
        raise Refused(f"{where}: dynamic providers are not implemented by lab/engine")


def goal_of(req: resource_pb2.RegisterResourceRequest) -> Goal:
    """Refused, with the resource and the field, for what this engine does not do."""
    where = f"resource {req.name!r} of type {req.type}"
    check_type(req.type, where)
    refused = [name for name in REFUSED_FIELDS if getattr(req, name)]
    refused += ["replacement_trigger"] if req.HasField("replacement_trigger") else []
    refused += ["hooks.on_error"] if req.hooks.on_error else []
    if refused:
        raise Refused(f"{where}: the field {refused[0]!r} is not implemented by lab/engine")
    try:
        inputs = from_struct(req.object)
    except Refused as error:
        raise Refused(f"{where}: {error}") from None
    timeouts = {kind: seconds(getattr(req.customTimeouts, kind)) for kind in ("create", "update", "delete", "read")}
    return Goal(
        type=req.type,
        name=req.name,
        custom=req.custom,
        parent=req.parent,
        inputs=inputs,
        dependencies=sorted(set(req.dependencies)),
        property_dependencies={key: sorted(set(value.urns)) for key, value in req.propertyDependencies.items()},
        provider=req.provider,
        providers=dict(req.providers),
        version=req.version,
        protect=req.protect if req.HasField("protect") else None,
        retain_on_delete=req.retainOnDelete if req.HasField("retainOnDelete") else None,
        deleted_with=req.deletedWith,
        delete_before_replace=req.deleteBeforeReplace
        if req.deleteBeforeReplaceDefined or req.deleteBeforeReplace
        else None,
        ignore_changes=list(req.ignoreChanges),
        replace_on_changes=list(req.replaceOnChanges),
        additional_secret_outputs=list(req.additionalSecretOutputs),
        timeouts={k: v for k, v in timeouts.items() if v},
        aliases=[*req.aliases, *req.aliasURNs],
        hooks={kind: list(getattr(req.hooks, name)) for name, kind in HOOKS.items() if getattr(req.hooks, name)},
    )


_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


def seconds(text: str) -> float:
    """`7m`, `1h30m`, `1.5s` -> seconds; empty -> 0."""
    if text in ("", "0"):
        return 0
    if not re.fullmatch(rf"(?:{_DURATION.pattern})+", text):
        raise Refused(f"customTimeouts: {text!r} is not a duration; write it as 30s, 7m or 1h30m")
    total = sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))
    return int(total) if total == int(total) else total
