"""What is wrong with a BMC: one JSON file, {node: fault}, that is read at every request."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from lab.bmc.quirks import BIOS_QUIRKS, QUIRKS, UPDATE_QUIRKS

Answer = Literal[
    "reset",
    "silent",
    "half",
    "garbled",
    "unavailable",
    "echo",
    "redirect",
    "huge",
    "drip",
    "forbidden",
    "missing",
    "lie",
    "late",
]


@dataclass(frozen=True)
class Fault:
    """What is wrong with one BMC.

    `answer`: "reset" drops the connection, "silent" never answers, "half" breaks off in the middle of the body,
    "garbled" sends half of the JSON as if it were all, "unavailable" is HTTP 503, "echo" is HTTP 400 that repeats what
    was sent, "redirect" sends to another host, "huge" and "drip" never end (fast, and a byte at a time), "forbidden"
    is HTTP 403, "missing" 404, "lie" says that a change is done and does nothing, "late" does it and drops the
    connection. Only for paths that contain `path`, after the first `after` of them, and only `times` times (None:
    always). `wrong_password`: every login is refused. `hardware` replaces fields of Machine. `documents` replaces
    properties of documents, {path: {name: value}}. `quirks`: names of lab.bmc.quirks.
    """

    answer: Answer | None = None
    path: str = ""
    after: int = 0
    times: int | None = None
    wrong_password: bool = False
    hardware: dict[str, Any] = field(default_factory=dict)
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    quirks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        known = QUIRKS | BIOS_QUIRKS | UPDATE_QUIRKS
        if unknown := set(self.quirks) - set(known):
            raise ValueError(f"no such quirk of a BMC: {', '.join(sorted(unknown))}; there are {', '.join(known)}")


def read_faults(path: Path) -> dict[str, Fault]:
    """{node: fault} of the control file; no file, no faults. Raises ValueError or TypeError for one that isn't
    understood.
    """
    try:
        state = path.stat()
    except FileNotFoundError:
        return {}
    return _read(path, state.st_mtime_ns, state.st_ino, state.st_size)


@lru_cache(maxsize=64)
def _read(path: Path, *_: int) -> dict[str, Fault]:
    """A BMC asks ten times in each request."""
    text = path.read_text()
    return {node: Fault(**fault) for node, fault in json.loads(text).items()} if text.strip() else {}


def write_fault(path: Path, node: str, fault: Fault | None) -> None:
    """Set or (None) clear the fault of one node in the control file; it holds from the next request on."""
    faults = {name: asdict(known) for name, known in read_faults(path).items() if name != node}
    if fault is not None:
        faults[node] = asdict(fault)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(faults, indent=1))
    temporary.replace(path)
