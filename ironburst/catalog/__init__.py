"""What the world offers: GPUs, platforms, instance types, prices, software and rules. Pure lookups over carried data files
(data/README.md has their sources and dates). None is unknown, never zero; a lookup of an unknown name raises `Unknown`."""

from ironburst.catalog.errors import Unknown
from ironburst.catalog.hardware import Gpu, Platform, gpu, gpus, platform, platforms, slug
from ironburst.catalog.instances import (
    InstanceType,
    NetworkInterface,
    addresses,
    instance_type,
    instance_types,
    network_interfaces,
)
from ironburst.catalog.prices import Price, price
from ironburst.catalog.software import (
    Cuda,
    DriverBranch,
    Rule,
    SoftwareFacts,
    cuda,
    cuda_releases,
    driver_branch,
    driver_branches,
    rule,
    rules,
    software_facts,
)

__all__ = [
    "Cuda", "DriverBranch", "Gpu", "InstanceType", "NetworkInterface", "Platform", "Price", "Rule", "SoftwareFacts", "Unknown",
    "addresses", "cuda", "cuda_releases", "driver_branch", "driver_branches", "gpu", "gpus", "instance_type",
    "instance_types", "network_interfaces", "platform", "platforms", "price", "rule", "rules", "slug",
    "software_facts",
]  # fmt: skip
