"""What `ironburst catalog` lists in AWS's words: columns, by their names."""

from ironburst.catalog.aws.instances import InstanceType
from ironburst.catalog.hardware import Gpu


def of_gpu(gpu: Gpu) -> dict[str, list[str]]:
    """The instance types' families that have it."""
    return {"aws_families": list(gpu.cloud_families)}


def of_instance(kind: InstanceType) -> dict[str, int]:
    """Its cards of the fabric."""
    return {"efa": kind.efa_count}
