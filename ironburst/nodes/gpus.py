"""What a GPU is to a job that names no type: memory, and NVLink to the others of its node; and what is a part of one.
Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_MIG = re.compile(r"(?<![a-z0-9])(mig(?![a-z0-9])|(\d+c[._-]?)?\d+g[._-]?\d+gb([+._-][a-z.]+)*$)", re.IGNORECASE)


def is_slice(type: str) -> bool:
    """Whether a GPU type of a scheduler is a part of a GPU: it ends in a MIG profile (1g.10gb, 1c.2g.20gb, 1g.5gb+me,
    a100_3g.20gb, AutoDetect's nvidia_h100_80gb_hbm3_1g.10gb), or has the word mig in it (mig_24gb).
    """
    return bool(_MIG.search(type))


def whole(tres: str) -> int:
    """Whole GPUs of Slurm's list of resources (cpu=8,gres/gpu:a100=4,gres/gpu=4): the total, where it is shown, else
    the sum of the types; without slices. Raises ValueError.
    """
    counts: dict[str, int] = {}
    for part in tres.split(","):
        name, _, count = part.partition("=")
        if name == "gres/gpu" or name.startswith("gres/gpu:"):
            counts[name.partition(":")[2]] = int(count)
    total = counts.pop("", sum(counts.values()))
    return max(0, total - sum(count for type, count in counts.items() if is_slice(type)))


@dataclass(frozen=True)
class NodeGpu:
    """Each of the GPUs of a node. None is unknown, which is never as good as what is asked for."""

    model: str  # as the catalogue names it
    memory_gb: float | None = None  # as marketed; of the smallest part that a job may be given
    nvlink: bool | None = None  # it joins all GPUs of the node

    def as_good_as(self, other: NodeGpu, together: bool) -> bool:
        """Whether it may stand in for the other. `together`: the job has more than one of them on a node."""
        if self == other or (self.model == other.model and None in (self.memory_gb, other.memory_gb)):
            return True
        if self.memory_gb is None or other.memory_gb is None or self.memory_gb < other.memory_gb:
            return False
        return not together or self.nvlink is True or other.nvlink is False

    def lacks(self, other: NodeGpu, together: bool) -> str:
        """Behind its name: what else it hasn't got of the other."""
        return " without NVLink" if together and other.nvlink is not False and not self.nvlink else ""

    def __str__(self) -> str:
        if self.memory_gb is None:
            return f"{self.model} (memory unknown)"
        size = f"{self.memory_gb:g}"
        return self.model if f"{size}GB" in self.model else f"{self.model} {size} GB"


def least(gpus: tuple[NodeGpu, ...]) -> NodeGpu:
    """Of some GPUs the one with the least memory; those of unknown memory come last."""
    return min(gpus, key=lambda gpu: (gpu.memory_gb is None, gpu.memory_gb or 0.0, bool(gpu.nvlink)))
