"""GPUs, CPUs and memory of a job's part on a node, or of a node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Resources:
    """What a job asks of each of its nodes, or what a node has."""

    gpus: int
    cpus: int = 0
    memory_mb: int = 0

    def within(self, other: Resources) -> bool:
        """Whether `other` has at least as much of each."""
        return self.gpus <= other.gpus and self.cpus <= other.cpus and self.memory_mb <= other.memory_mb

    def at_most(self, other: Resources) -> Resources:
        """Of each no more than `other` has."""
        if self.within(other):
            return self
        return Resources(min(self.gpus, other.gpus), min(self.cpus, other.cpus), min(self.memory_mb, other.memory_mb))

    def __sub__(self, other: Resources) -> Resources:
        return Resources(self.gpus - other.gpus, self.cpus - other.cpus, self.memory_mb - other.memory_mb)
