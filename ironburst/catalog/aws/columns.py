"""What `ironburst catalog` lists in AWS's words: columns, by their names."""

from ironburst.catalog.hardware import Gpu


def of_gpu(gpu: Gpu) -> dict[str, list[str]]:
    """The instance types' families that have it."""
    return {"aws_families": list(gpu.cloud_families)}
