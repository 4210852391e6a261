"""From a stack file to a ClusterConfig, or to a list of everything that is wrong with it."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import Kubernetes, Slurm

KEY = "ironburst:cluster"
NOT_SHOWN = (
    "password",
    "munge_key",
    "ca",
    "kubeconfig",
    "join_token",
    "bind_password",
    "keys",
)  # somebody may have written the secret itself here


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: where in the file, what was given, which rule, and what to do."""

    path: str
    value: Any
    rule: str
    message: str
    severity: str = "error"

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        """As `ironburst validate --json` prints it."""
        return asdict(self)


class ConfigError(ValueError):
    """The declaration can't be used. `findings` holds every reason, not only the first."""

    def __init__(self, findings: Sequence[Finding]):
        self.findings = list(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))


def read_value(path: Path) -> Any:
    """The structured value under `ironburst:cluster` of a stack file. Raises ConfigError."""
    config = _config(path)
    if KEY not in config:
        raise ConfigError([Finding("config", None, "missing", f"has no key {KEY}; declare the cluster there")])
    return config[KEY]


def allowed_accounts(path: Path) -> list[str]:
    """The AWS accounts that a stack file lets the provider work in (aws:allowedAccountIds); empty: any. Raises
    ConfigError.
    """
    given = _config(path).get("aws:allowedAccountIds") or []
    return [str(account) for account in (given if isinstance(given, list) else [given])]


def _config(path: Path) -> dict[str, Any]:
    """What lies under `config` of a stack file. Raises ConfigError."""
    try:
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(
            [Finding(str(path), str(path), "file", f"can't be read: {error.strerror}; give the path of a stack file")]
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(
            [Finding(str(path), None, "yaml", f"is not YAML{where}: {getattr(error, 'problem', None) or error}")]
        ) from None
    config = data.get("config") if isinstance(data, dict) else None
    return config if isinstance(config, dict) else {}


def load(path: Path | str) -> ClusterConfig:
    """The declaration of a stack file, shape checked (checks.check does the rest). Raises ConfigError."""
    return from_value(read_value(Path(path)))


def from_value(value: Any) -> ClusterConfig:
    """The declaration from a decoded value, as `pulumi.Config().require_object("cluster")`
    gives it. Raises ConfigError.
    """
    try:
        return ClusterConfig.model_validate(value)
    except ValidationError as error:
        raise ConfigError([_finding(detail) for detail in error.errors()]) from None


def path_of(*parts: str | int) -> str:
    """`config.ironburst:cluster.halls[0].nodes[1].names` from its parts."""
    text = f"config.{KEY}"
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text


def _finding(detail: Any) -> Finding:
    location = detail["loc"]
    given = detail.get("input")
    path, kind = path_of(*_as_written(location)), detail["type"]
    secret = any(part in NOT_SHOWN for part in location)
    if kind == "extra_forbidden":
        known = list(_fields_at(location[:-1]))
        near = difflib.get_close_matches(str(location[-1]), known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"allowed here: {', '.join(known)}"
        return Finding(path, None if secret else given, "unknown-key", f"there is no such key; {hint}")
    if kind == "missing":
        return Finding(path, None, "missing", "is needed here and absent")
    shown = "" if secret or isinstance(given, dict | list) else f"{given!r} "
    message = str(detail["msg"]).removeprefix("Value error, ")
    if kind != "value_error":
        message = f"is not allowed: {message[0].lower()}{message[1:]}"
    elif shown and repr(given) in message:
        shown = ""
    return Finding(path, None if secret else given, kind.replace("_", "-"), f"{shown}{message}")


def _as_written(location: Sequence[str | int]) -> Sequence[str | int]:
    """Without the kind of scheduler, which pydantic puts behind the section."""
    at = _behind_section(location)
    return [*location[:at], *location[at + 1 :]] if at else location


def _behind_section(location: Sequence[str | int]) -> int:
    """Where the kind of scheduler stands; 0: this is no scheduler's."""
    at = {"scheduler": 1, "other_schedulers": 2}.get(str(location[0]) if location else "", 0)
    return at if len(location) > at else 0


def _fields_at(location: Sequence[str | int]) -> Sequence[str]:
    """Names of the keys that the model at `location` has."""
    kind: Any = ClusterConfig
    if at := _behind_section(location):
        kind, location = {"slurm": Slurm, "kubernetes": Kubernetes}[str(location[at])], location[at + 1 :]
    for part in location:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            kind = kind.model_fields[str(part)].annotation
        else:
            kind = typing.get_args(kind)[-1]
        kind = _without_none(kind)
    return list(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else []


def _without_none(kind: Any) -> Any:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return next(option for option in typing.get_args(kind) if option is not type(None))
    return kind
