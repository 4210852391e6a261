"""What a waiting job will get, where squeue doesn't show it: that follows from the nodes of its partition.

- It asks for GPUs and names no memory: its partition's share for each (DefMemPerGPU). slurmctld 24.11 shows such a job
  with all of a node's memory in `tres_req_str`, and the share in `memory_per_tres` as `gpu:125` (what a user asked for
  himself is `gres/gpu:125`, and then the other is right). By the first a job of one GPU would take a whole node, at
  home and rented. `--mem=0` looks the same, and counts as its share, too.
- It asks for GPUs in all (`--gpus=16`), and leaves the nodes to Slurm, or a range of them (`-N 1-4`): as few nodes as
  have that many.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from ironburst.adapters.slurm import asked as slurm_asked
from ironburst.ports import Node, Resources


def applied(answer: Any, nodes: Sequence[Node], row: Callable[..., Any] | None = None) -> Any:
    """`squeue --json` with what such jobs will get. Rows of unknown shapes stay as they are."""
    if not isinstance(answer, dict) or not isinstance(answer.get("jobs"), list):
        return answer
    kinds: dict[str, list[Resources]] = {}
    for node in nodes:
        for partition in node.partitions:
            kinds.setdefault(partition, []).append(node.total)
    # by partition: the most GPUs, and the least memory, of a node
    of = {name: (max(t.gpus for t in all), min(t.memory_mb for t in all)) for name, all in kinds.items()}
    row = row or of_row
    return answer | {"jobs": [row(raw, *of.get(_partition(raw), (-1, 0))) for raw in answer["jobs"]]}


def _partition(raw: Any) -> str:
    try:
        return str(raw["partition"]).partition(",")[0]
    except (KeyError, TypeError):
        return ""


def of_row(raw: Any, gpus: int, memory_mb: int) -> Any:
    """Of one row; `gpus`, `memory_mb`: the most GPUs and the least memory of its partition's nodes, -1: it has none."""
    try:
        if raw["tres_alloc_str"] or gpus < 0:
            return raw
        will = _will_get(raw, gpus, memory_mb)
        return raw | will if will else raw
    except (KeyError, TypeError, ValueError, AttributeError):
        return raw


@slurm_asked.by_kind(f"{slurm_asked.ASKS} memory_per_tres")
def _will_get(raw: dict[str, Any], gpus: int, memory_mb: int) -> dict[str, Any]:
    """The fields of it that say something else."""
    will = _nodes(raw, gpus)
    raw = raw | will
    share = re.match(r"gpu:(\d+)", raw["memory_per_tres"] or "")
    _, each = slurm_asked.asks(raw)
    if share is None or not each.gpus or each.memory_mb < memory_mb:
        return will
    least = slurm_asked.sizes_of(raw).least  # whose memory it is
    told = re.sub(r"\bmem=[^,]+", f"mem={each.gpus * least * int(share[1])}M", raw["tres_req_str"])
    return will | {"tres_req_str": told}


def _nodes(raw: dict[str, Any], gpus: int) -> dict[str, Any]:
    """`gpus`: of a node."""
    sizes = slurm_asked.sizes_of(raw)
    count, each = slurm_asked.asks(raw)
    if sizes.total is None or not gpus or not (sizes.least < sizes.most or each.gpus > gpus):
        return {}
    most = sizes.most if slurm_asked.limited(raw) else math.inf
    fewest = min(max(sizes.least, math.ceil(sizes.total / gpus)), most)
    return {} if fewest == count else {"node_count": fewest}
