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
BESIDE = "prod.cluster.yaml"


def read_value(path: Path) -> Any:
    """The structured value under `ironburst:cluster` of a stack file, or of the file that it names. Raises
    ConfigError.
    """
    return value_in(settings(path), path)


def value_in(config: Mapping[str, Any], stack_file: Path) -> Any:
    """The same of what is under `config` of a stack file. Raises ConfigError."""
    others = [key for key in map(str, config) if key.startswith(OURS) and key != KEY]
    if KEY not in config:
        elsewhere = [key for key in map(str, config) if key.lower().endswith(":cluster") and key not in others]
        near = f"; {others[0]} is none: keys are small letters" if others else ""
        near = near or (f"; {elsewhere[0]} is of another project" if elsewhere else "")
        raise ConfigError([Finding("config", None, "missing", f"has no key {KEY}; declare the cluster there{near}")])
    if others:
        message = f"there is no such key; the cluster is declared under {KEY}"
        raise ConfigError([Finding(below("config", key), None, "unknown-key", message) for key in others])
    return included(config[KEY], stack_file)


def included(value: Any, stack_file: Path) -> Any:
    """The value under the key; where it is `{file: prod.cluster.yaml}`, what that file beside the stack file holds.
    Pulumi hands the configuration to the program in one environment string, of which Linux takes 131,072 bytes.
    Raises ConfigError.
    """
    beside = file_of(value, stack_file)
    return yaml_file.read(beside) if beside else value


def file_of(value: Any, stack_file: Path) -> Path | None:
    """The file that the value names, or None: it is the declaration. Raises ConfigError where it isn't beside the
    stack file.
    """
    if not isinstance(value, dict) or set(value) != {"file"}:
        return None
    name = value["file"]
    if not isinstance(name, str) or Path(name).name != name or not name.endswith((".yaml", ".yml")):
        message = f"{name!r} is given; name a YAML file in the stack file's folder, as in {BESIDE}"
        raise ConfigError([Finding(path_of("file"), name, "file", message)])
    if name.startswith("Pulumi."):
        message = f"{name!r} is given, which Pulumi takes for a stack file; name it {BESIDE}, as an example"
        raise ConfigError([Finding(path_of("file"), name, "file", message)])
    return stack_file.with_name(name)


def places(stack_file: Path) -> dict[str, tuple[Path, int]]:
    """Of each key and item of the declaration, by its path (`config.ironburst:cluster.name`), its file and line.
    Raises ConfigError.
    """
    found = {path: (stack_file, line) for path, line in yaml_file.lines(stack_file).items()}
    try:
        beside = file_of(settings(stack_file).get(KEY), stack_file)
    except ConfigError:  # what says something twice has its lines all the same
        return found
    if beside:
        of_file = yaml_file.lines(beside).items()
        found |= {(path_of() + ("" if at.startswith("[") else ".") + at): (beside, line) for at, line in of_file}
    return found


def settings(path: Path) -> dict[str, Any]:
    """What is under `config` of a stack file. Raises ConfigError."""
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
