"""What the GPUs of declared nodes are to jobs that name no type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ironburst import catalog
from ironburst.config.software_models import Mig
from ironburst.nodes.gpus import NodeGpu


def of(model: catalog.Gpu) -> NodeGpu:
    """A whole one. At home a slice of MIG is never what a job means, so it counts for nothing less there."""
    return NodeGpu(model.model, model.memory_gb, model.nvlink)


def rented(kind: catalog.InstanceType, mig: Sequence[Mig] | None = None) -> NodeGpu:
    """Of an instance type with GPUs that the catalogue knows: the least that Slurm may give for one GPU, which is a
    slice where MIG parts them, and a part where EC2 does.
    """
    assert kind.gpu is not None
    whole, part = of(kind.gpu), kind.gpu_fraction or 1
    slices = [re.search(r"\.(\d+)gb", name) for layout in mig or () for name in layout.profiles]
    sizes = [int(size[1]) for size in slices if size]
    if not slices and part == 1:
        return whole
    memory_gb = None if whole.memory_gb is None else whole.memory_gb * part
    return replace(whole, memory_gb=min(sizes, default=None) if slices else memory_gb, nvlink=False)
