"""From a stack file to a ClusterConfig, or to a list of everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ironburst.config import refusals, yaml_file
from ironburst.config.finding import KEY, ConfigError, Finding, below, path_of
from ironburst.config.models import ClusterConfig

__all__ = ["KEY", "ConfigError", "Finding", "path_of"]

OURS = "ironburst:"


def read_value(path: Path) -> Any:
    """The structured value under `ironburst:cluster` of a stack file. Raises ConfigError."""
    return value_in(settings(path))


def value_in(config: Mapping[str, Any]) -> Any:
    """The same of what lies under `config`. Raises ConfigError."""
    others = [key for key in map(str, config) if key.startswith(OURS) and key != KEY]
    if KEY not in config:
        elsewhere = [key for key in map(str, config) if key.lower().endswith(":cluster") and key not in others]
        near = f"; {others[0]} is none: keys are small letters" if others else ""
        near = near or (f"; {elsewhere[0]} is of another project" if elsewhere else "")
        raise ConfigError([Finding("config", None, "missing", f"has no key {KEY}; declare the cluster there{near}")])
    if others:
        message = f"there is no such key; the cluster is declared under {KEY}"
        raise ConfigError([Finding(below("config", key), None, "unknown-key", message) for key in others])
    return config[KEY]


def allowed_accounts(path: Path) -> list[str]:
    """The AWS accounts that a stack file lets the provider work in (aws:allowedAccountIds); empty: any. Raises
    ConfigError.
    """
    given = settings(path).get("aws:allowedAccountIds") or []
    return [str(account) for account in (given if isinstance(given, list) else [given])]


def settings(path: Path) -> dict[str, Any]:
    """What lies under `config` of a stack file. Raises ConfigError."""
    data = yaml_file.read(path)
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
        raise ConfigError([refusals.finding(detail) for detail in error.errors()]) from None
