"""AWS's regions."""

import functools
import re
from dataclasses import dataclass

from ironburst.catalog.errors import Unknown, unknown
from ironburst.catalog.tables import filled, table


@dataclass(frozen=True)
class Region:
    """One region: its name as AWS's API has it, the partition that it belongs to, AWS's words for it, and the code (ISO
    3166) of its country.
    """

    region: str
    partition: str
    name: str
    country: str


@functools.cache
def regions() -> dict[str, Region]:
    """All regions but those of isolated partitions."""
    return {row["region"]: filled(Region, row) for row in table("aws_regions.csv").rows}


def zone_labels(zone: str) -> dict[str, str]:
    """Labels beside Kubernetes' own that a node in this zone gets, by which volumes are bound to it: EBS's driver's."""
    return {"topology.ebs.csi.aws.com/zone": zone} if zone else {}


def region(name: str) -> Region:
    """The region of that name ("us-east-1"); raises Unknown, which also knows a place ("Frankfurt", "N. Virginia")."""
    if name in regions():
        return regions()[name]
    place = re.sub(r"[^a-z]", "", name.lower())
    there = [each for each, known in regions().items() if place and place in re.sub(r"[^a-z]", "", known.name.lower())]
    raise Unknown("region", name, there) if 0 < len(there) <= 2 else unknown("region", name, regions())
