"""What a role of playbooks/roles asks of its inventory, by its argument specs and its own text. Reads files only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[1] / "playbooks" / "roles"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # several times as fast
KEEPER = "cluster_keeper"
"""Names a host: what roles read of it are that host's variables"""
READ = r"(?<![\w.'\"/])%s%s(?![\w.(])(?!\s*(?:\|\s*default\b|is (?:not )?defined))"
"""Regular expression of (a name, what follows it): reads without an answer for its absence"""

OF_KEEPER = r"hostvars\[cluster_keeper\]\.(\w+)(?!\w|\s*\|\s*default)"


@dataclass(frozen=True)
class RequiredVariable:
    """One variable that the role can't do without. `keys`: what it reads of it, if it is a dictionary."""

    name: str
    type: str
    description: str
    keys: tuple[str, ...]

    def __str__(self) -> str:
        of_it = f", with {', '.join(self.keys)}" if self.keys else ""
        return f"{self.name} ({self.type}{of_it}: {self.description.rstrip('.')})"

    def lacking(self, given: Mapping[str, Any]) -> list[str]:
        """Messages for the missing variables; `given`: those that are set."""
        if self.name not in given:
            return [str(self)]
        return [f"{self.name}.{key}" for key in self.keys if not _has(given[self.name], key.split("."))]


def spec(role: str) -> dict[str, Any]:
    """The argument spec of its entry point main."""
    file = FOLDER / role / "meta" / "argument_specs.yml"
    return dict(yaml.load(file.read_text(), LOADER)["argument_specs"]["main"])


def text(role: str) -> str:
    """Its tasks, handlers, variables and templates, and those of the helpers that it includes,
    without comments: what is read when it runs.
    """
    folders = ("defaults", "handlers", "tasks", "templates", "vars")
    files = sorted(file for folder in folders for file in (FOLDER / role / folder).rglob("*") if file.is_file())
    own = re.sub(r"^\s*#.*$", "", "\n".join(file.read_text() for file in files), flags=re.MULTILINE)
    included = sorted(set(re.findall(r"include_role:\n\s+name: (\w+)$", own, re.MULTILINE)))
    helpers = [name for name in included if not (FOLDER / name / "meta" / "main.yml").exists()]
    return "\n".join([own, *map(text, helpers)])


def needs(role: str) -> list[RequiredVariable]:
    """The required options of its spec."""
    options = {name: option for name, option in spec(role).get("options", {}).items() if option.get("required")}
    read = _read(list(options), text(role)) if options else {}
    return [
        RequiredVariable(
            name, option["type"], " ".join(option["description"].split()), tuple(sorted(read.get(name, ())))
        )
        for name, option in options.items()
    ]


def _read(names: list[str], text: str) -> dict[str, set[str]]:
    """{variable: keys that are read of it}"""
    found: dict[str, set[str]] = {KEEPER: set(re.findall(OF_KEEPER, text))}
    for name, keys in re.findall(READ % (f"({'|'.join(names)})", r"\.(\w+(?:\.\w+)*)"), text):
        found.setdefault(name, set()).add(keys)
    return found


def _has(value: Any, path: list[str]) -> bool:
    for number, key in enumerate(path, 1):
        if not isinstance(value, Mapping) or key not in value:
            return False
        if number < len(path):  # the last may be large, and is not looked at
            value = value[key]
    return True
