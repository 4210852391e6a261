"""What a job gets that asks for GPUs and names no memory: its partition's share for each GPU (DefMemPerGPU).

While such a job waits, slurmctld 24.11 shows all of a node's memory as what it asks for; once it runs, its share. By
the first a job of one GPU would take a whole node, at home and rented.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ironburst.adapters.slurm_values import number

EVERYWHERE = ""
"""key of the whole cluster's JobDefaults, for partitions without their own"""


def shares(partitions: str, config: str) -> dict[str, int]:
    """MiB for each GPU, by partition: of `scontrol show partition --oneliner` and `scontrol show config`."""
    found = {}
    for line in partitions.splitlines():
        name, share = re.search(r"\bPartitionName=(\S+)", line), re.search(r"\bDefMemPerGPU=(\d+)", line)
        if name and share:
            found[name[1]] = int(share[1])
    if share := re.search(r"^JobDefaults\s*=.*\bDefMemPerGPU=(\d+)", config, re.MULTILINE):
        found[EVERYWHERE] = int(share[1])
    return found


def applied(answer: Any, per_gpu: Mapping[str, int]) -> Any:
    """`squeue --json` with the memory that such jobs will get. Rows of unknown shapes stay as they are."""
    if not per_gpu or not isinstance(answer, dict) or not isinstance(answer.get("jobs"), list):
        return answer
    return answer | {"jobs": [_applied(raw, per_gpu) for raw in answer["jobs"]]}


def _applied(raw: Any, per_gpu: Mapping[str, int]) -> Any:
    try:
        share = per_gpu.get(raw["partition"].partition(",")[0], per_gpu.get(EVERYWHERE))
        asked = number(raw["memory_per_node"]) or number(raw["memory_per_cpu"]) or raw["memory_per_tres"]
        gpus = re.search(r"\bgres/gpu=(\d+)", raw["tres_req_str"])
        if share is None or asked or raw["tres_alloc_str"] or not gpus:
            return raw
        return raw | {"tres_req_str": re.sub(r"\bmem=[^,]+", f"mem={int(gpus[1]) * share}M", raw["tres_req_str"])}
    except (KeyError, TypeError, ValueError, AttributeError):
        return raw
