"""Labels of a Kubernetes node that kubelet and NVIDIA's GPU feature discovery will give it, by the GPUs that it has."""

import functools
from dataclasses import dataclass

from ironburst.catalog.hardware import gpus
from ironburst.catalog.tables import filled, table

_FAMILIES = {"Ada Lovelace": "ada-lovelace"}  # others are the architecture's name in small letters


@dataclass(frozen=True)
class GpuLabels:
    """What is known of one model; None is unknown."""

    model: str
    product: str | None
    memory_mib: int | None
    arch: str
    """of the CPUs beside it, as Go calls it"""
    source: str


@functools.cache
def _known() -> dict[str, GpuLabels]:
    return {row["model"]: filled(GpuLabels, row) for row in table("gpu_labels.csv").rows}


def node_labels(model: str, count: int) -> dict[str, str]:
    """Labels of a node with this number of GPUs of a model of the catalogue, whole and not shared; those that are
    known. Empty for another model.
    """
    found, gpu = _known().get(model), gpus().get(model)
    if gpu is None:
        return {}
    arch = found.arch if found else ""
    major, _, minor = (gpu.compute_capability or "").partition(".")
    labels = {
        "kubernetes.io/arch": arch,
        "beta.kubernetes.io/arch": arch,
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/gpu.family": _FAMILIES.get(gpu.architecture, gpu.architecture.lower()),
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.product": (found.product if found else None) or "",
        "nvidia.com/gpu.memory": str(found.memory_mib) if found and found.memory_mib else "",
    }
    return {key: value for key, value in labels.items() if value}
