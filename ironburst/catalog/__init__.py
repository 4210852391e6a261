"""What the world offers: GPUs, platforms, instance types, prices, software and rules. Pure lookups over carried data files
(data/README.md has their sources and dates). None is unknown, never zero; a lookup of an unknown name raises `Unknown`."""

from ironburst.catalog.errors import Unknown
from ironburst.catalog.hardware import Board, Gpu, Platform, board, gpu, gpus, nvswitch_pci_ids, platform, platforms, slug
from ironburst.catalog.instances import (
    InstanceType,
    NetworkInterface,
    addresses,
    instance_type,
    instance_types,
    network_interfaces,
)
from ironburst.catalog.prices import Interruptions, Price, interruptions, price
from ironburst.catalog.software import (
    Cuda,
    DriverBranch,
    MigProfile,
    Rule,
    SoftwareFacts,
    cuda,
    cuda_releases,
    driver_branch,
    driver_branches,
    lock_rules,
    mig_profiles,
    package_names,
    profile,
    profiles,
    rule,
    rules,
    software_date,
    software_extra,
    software_facts,
)

__all__ = [
    "Board", "Cuda", "DriverBranch", "Gpu", "InstanceType", "Interruptions", "MigProfile", "NetworkInterface", "Platform", "Price",
    "Rule", "SoftwareFacts", "Unknown", "addresses", "board", "cuda", "cuda_releases", "driver_branch", "driver_branches", "gpu",
    "gpus", "instance_type", "instance_types", "interruptions", "lock_rules", "mig_profiles", "network_interfaces", "nvswitch_pci_ids",
    "package_names", "platform", "platforms", "price", "profile", "profiles", "rule", "rules", "slug", "software_date",
    "software_extra", "software_facts",
]  # fmt: skip
