"""What a waiting job will get that asks for GPUs and names no memory: its partition's share for each (DefMemPerGPU).

slurmctld 24.11 shows such a job with all of a node's memory in `tres_req_str`, and the share in `memory_per_tres` as
`gpu:125` (what a user asked for himself is `gres/gpu:125`, and then the other is right). By the first a job of one GPU
would take a whole node, at home and rented. `--mem=0` looks the same, and counts as its share, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ironburst.adapters import slurm_json
from ironburst.adapters.slurm_values import number
from ironburst.ports import Node


def applied(answer: Any, nodes: Sequence[Node]) -> Any:
    """`squeue --json` with the memory that such jobs will get. Rows of unknown shapes stay as they are."""
    if not isinstance(answer, dict) or not isinstance(answer.get("jobs"), list):
        return answer
    least: dict[str, int] = {}  # MiB of the smallest node, by partition
    for node in nodes:
        for partition in node.partitions:
            least[partition] = min(node.total.memory_mb, least.get(partition, node.total.memory_mb))
    return answer | {"jobs": [_applied(raw, least) for raw in answer["jobs"]]}


def _applied(raw: Any, least: Mapping[str, int]) -> Any:
    try:
        share = re.match(r"gpu:(\d+)", raw["memory_per_tres"] or "")
        if share is None or raw["tres_alloc_str"]:
            return raw
        asked = slurm_json.tres(raw["tres_req_str"])
        whole = least[raw["partition"].partition(",")[0]] * int(number(raw["node_count"]) or 1)
        if not asked.gpus or asked.memory_mb < whole:
            return raw
        told = re.sub(r"\bmem=[^,]+", f"mem={asked.gpus * int(share[1])}M", raw["tres_req_str"])
        return raw | {"tres_req_str": told}
    except (KeyError, TypeError, ValueError, AttributeError):
        return raw
