"""One thing that is wrong with a stack file, and the error that holds them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

KEY = "ironburst:cluster"
"""the structured key of a stack file that is ours"""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: where in the file, what was given, which rule, and what to do."""

    path: str
    value: Any
    rule: str
    message: str
    severity: str = "error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", " ".join(self.message.splitlines()))  # what was given may have several

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


def path_of(*parts: str | int) -> str:
    """`config.ironburst:cluster.halls[0].nodes[1].names` from its parts."""
    return below(f"config.{KEY}", *parts)


def below(path: str, *parts: str | int) -> str:
    """The path of a key or an item under `path`; "" is the whole file."""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.removeprefix(".")
