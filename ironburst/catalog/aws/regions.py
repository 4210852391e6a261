"""AWS's regions."""

import functools
from dataclasses import dataclass

from ironburst.catalog import instances
from ironburst.catalog.tables import filled, table


@dataclass(frozen=True)
class Region(instances.Region):
    """One region, and the partition that it belongs to."""

    partition: str


@functools.cache
def regions() -> dict[str, Region]:
    """All regions but those of isolated partitions."""
    return {row["region"]: filled(Region, row, provider="aws") for row in table("aws_regions.csv").rows}


def zone_labels(zone: str) -> dict[str, str]:
    """Labels beside Kubernetes' own that a node in this zone gets, by which volumes are bound to it: EBS's driver's."""
    return {"topology.ebs.csi.aws.com/zone": zone} if zone else {}
