"""What places Slurm's jobs on a head, beside the tree of the declared halls. Pure; nothing is changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from ironburst.doctor.checks import CheckResult

FOLDER = "/etc/slurm"
NAMES = ("topology.conf", "topology.yaml")
DECLARED = "`ironburst hall plan STACK_FILE --topology conf`"


def paths(folder: str = FOLDER) -> list[str]:
    """The files that Slurm reads a tree from."""
    return [f"{folder}/{name}" for name in NAMES]


def compared(declared: str, sums: Mapping[str, str], todo: str, folder: str = FOLDER) -> Iterator[CheckResult]:
    """`declared`: the document's topology.conf; `sums`: SHA-256 of the files that are there; `todo`: what makes the
    head's the declared one.
    """
    if not declared:
        return
    conf, yaml = paths(folder)
    if conf in sums:
        if sums[conf] == hashlib.sha256(declared.encode()).hexdigest():
            yield CheckResult("topology", conf, "ok", "is the tree of the declared halls")
        else:
            seen = "is not ironburst's, or of another declaration: the declared halls make another tree"
            yield CheckResult("topology", conf, "warn", seen, f"compare it with {DECLARED}; {todo}")
    if yaml in sums:
        seen = "is read in the place of topology.conf (from Slurm 25.05 on), and ironburst writes none"
        yield CheckResult(
            "topology", yaml, "warn", seen, f"compare it with {DECLARED}; remove it, or keep your own files"
        )
