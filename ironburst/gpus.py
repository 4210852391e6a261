"""What a GPU is to a job that names no type: memory, and NVLink to the others of its node. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """Each of the GPUs of a node. None is unknown, which is never as good as what is asked for."""

    model: str  # as the catalogue names it
    memory_gb: float | None = None  # as marketed; of the smallest part that a job may be given
    nvlink: bool | None = None  # it joins all GPUs of the node

    def as_good_as(self, other: Gpu, together: bool) -> bool:
        """Whether it may stand in for the other. `together`: the job has more than one of them on a node."""
        if self == other or (self.model == other.model and None in (self.memory_gb, other.memory_gb)):
            return True
        if self.memory_gb is None or other.memory_gb is None or self.memory_gb < other.memory_gb:
            return False
        return not together or self.nvlink is True or other.nvlink is False

    def lacks(self, other: Gpu, together: bool) -> str:
        """Behind its name: what else it hasn't got of the other."""
        return " without NVLink" if together and other.nvlink is not False and not self.nvlink else ""

    def __str__(self) -> str:
        if self.memory_gb is None:
            return f"{self.model} (memory unknown)"
        size = f"{self.memory_gb:g}"
        return self.model if f"{size}GB" in self.model else f"{self.model} {size} GB"


def least(gpus: tuple[Gpu, ...]) -> Gpu:
    """Of some GPUs the one with the least memory; those of unknown memory come last."""
    return min(gpus, key=lambda gpu: (gpu.memory_gb is None, gpu.memory_gb or 0.0, bool(gpu.nvlink)))
