"""`Pulumi.yaml` and the stack's configuration file."""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lab.engine.errors import EngineError, Refused
from lab.engine.secrets import Crypter

PROJECT_KEYS = {
    "name",
    "runtime",
    "description",
    "main",
    "config",
    "stackConfigDir",
    "plugins",
    "author",
    "website",
    "license",
    "template",
    "backend",
    "options",
}


class _Loader(yaml.SafeLoader):
    """YAML 1.2 scalars, as the CLI reads them: `yes`, dates and `12:30:45` are text."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in [
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+|0o[0-7]+", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
]:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))


def read_yaml(path: Path) -> dict:
    try:
        data = yaml.load(path.read_text(), _Loader)
    except yaml.YAMLError as error:
        raise EngineError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if data is not None and not isinstance(data, dict):
        raise EngineError(f"{path} must hold a mapping, not {type(data).__name__}")
    return data or {}


@dataclass
class Config:
    """A stack's decrypted configuration: `ns:key` -> text, with the keys that hold secrets."""

    values: dict[str, str] = field(default_factory=dict)
    secret_keys: set[str] = field(default_factory=set)
    secret_texts: set[str] = field(default_factory=set)

    def mask(self, text: str) -> str:
        for word in sorted(self.secret_texts, key=len, reverse=True):
            text = text.replace(word, "[secret]")
        return text

    def masked(self) -> dict[str, str]:
        return {key: "[secret]" if key in self.secret_keys else value for key, value in self.values.items()}

    def namespace(self, name: str) -> dict[str, tuple[str, bool]]:
        """`key` -> (text, whether it is secret) of one namespace."""
        return {
            key.removeprefix(f"{name}:"): (value, key in self.secret_keys)
            for key, value in self.values.items()
            if key.startswith(f"{name}:")
        }


class Project:
    """The project in `folder` (searched upwards)."""

    def __init__(self, folder: Path):
        here = folder.resolve()
        self.root = next((f for f in (here, *here.parents) if (f / "Pulumi.yaml").exists()), None)
        if self.root is None:
            raise EngineError(f"no Pulumi.yaml found in {here} or above")
        path = self.root / "Pulumi.yaml"
        data = read_yaml(path)
        if unknown := data.keys() - PROJECT_KEYS:
            raise Refused(f"{path}: the key {min(unknown)!r} is not implemented by lab/engine")
        self.name = data.get("name")
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]+", self.name):
            raise EngineError(f"{path}: name must be made of letters, digits, '_', '.' and '-', not {self.name!r}")
        runtime = data.get("runtime")
        runtime = {"name": runtime} if isinstance(runtime, str) else runtime or {}
        if runtime.get("name") != "python":
            raise Refused(f"{path}: runtime is {runtime.get('name')!r}; lab/engine runs only python programs")
        self.virtualenv = (runtime.get("options") or {}).get("virtualenv")
        self.main = data.get("main", ".")
        self.config_dir = self.root / data.get("stackConfigDir", ".")
        self._declared = data.get("config") or {}
        self.plugin_folders = self._plugins(path, data.get("plugins") or {})

    def _plugins(self, path: Path, plugins: dict) -> dict[str, Path]:
        if unknown := plugins.keys() - {"providers"}:
            raise Refused(f"{path}: plugins.{min(unknown)} is not implemented by lab/engine; only plugins.providers")
        folders = {}
        for entry in plugins.get("providers") or []:
            if unknown := entry.keys() - {"name", "path", "version"}:
                raise Refused(f"{path}: plugins.providers: the field {min(unknown)!r} is not implemented by lab/engine")
            folders[entry["name"]] = (self.root / entry["path"]).resolve()
        return folders

    # -- the stack's file ----------------------------------------------------------------------------------------------

    def stack_file(self, stack: str) -> Path:
        return self.config_dir / f"Pulumi.{stack}.yaml"

    def encryption_salt(self, stack: str) -> str:
        path = self.stack_file(stack)
        return (read_yaml(path).get("encryptionsalt") or "") if path.exists() else ""

    def write_encryption_salt(self, stack: str, salt: str) -> None:
        """Put the line in front of the file; all else, comments too, stays as it is."""
        path = self.stack_file(stack)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else ""
        path.write_text(f"encryptionsalt: {salt}\n" + ("" if not text.strip() or text.strip() == "{}" else text))

    def config(self, stack: str, crypter) -> Config:
        """The stack's configuration with the project's defaults. `crypter()` is called only when something is
        encrypted.
        """
        path = self.stack_file(stack)
        data = read_yaml(path) if path.exists() else {}
        if unknown := data.keys() - {"config", "encryptionsalt", "secretsprovider", "encryptedkey", "environment"}:
            raise EngineError(f"{path}: unknown key {min(unknown)!r}; allowed are config and encryptionsalt")
        if (
            data.get("environment")
            or data.get("secretsprovider") not in (None, "", "passphrase")
            or data.get("encryptedkey")
        ):
            raise Refused(f"{path}: lab/engine knows only the passphrase secrets provider and no environments")
        config = Config()
        for key, value in (data.get("config") or {}).items():
            self._add(config, key if ":" in key else f"{self.name}:{key}", value, crypter)
        for key, declared in self._declared.items():
            self._add_declared(config, path, key, declared, crypter)
        return config

    def _add_declared(self, config: Config, path: Path, key: str, declared: Any, crypter) -> None:
        full = key if ":" in key else f"{self.name}:{key}"
        if full in config.values:
            return
        if not isinstance(declared, dict):
            self._add(config, full, declared, crypter)
        elif "value" in declared or "default" in declared:
            value = declared.get("value", declared.get("default"))
            self._add(config, full, value, crypter)
            if declared.get("secret"):
                config.secret_keys.add(full)
        elif full.startswith(self.name + ":"):
            raise EngineError(f"{path}: config: {full!r} is missing; Pulumi.yaml declares it without a default")

    def _add(self, config: Config, key: str, value: Any, crypter) -> None:
        secrets: list[str] = []
        value = _decrypt(value, crypter, secrets)
        config.values[key] = to_text(value)
        if secrets:
            config.secret_keys.add(key)
            config.secret_texts.update(text for text in secrets if text)


def _decrypt(value: Any, crypter, secrets: list[str]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"secure"} and isinstance(value["secure"], str):
            crypt: Crypter = crypter()
            secrets.append(crypt.decrypt(value["secure"]))
            return secrets[-1]
        return {str(key): _decrypt(item, crypter, secrets) for key, item in value.items()}
    return [_decrypt(item, crypter, secrets) for item in value] if isinstance(value, list) else value


def to_text(value: Any) -> str:
    """A configuration value as the program gets it: scalars as text, structures as compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def backend_url(env=os.environ) -> str:
    if url := env.get("PULUMI_BACKEND_URL"):
        return url
    raise EngineError(
        "PULUMI_BACKEND_URL is not set; set it to file://<folder> (an existing folder for the stacks' state)"
    )
