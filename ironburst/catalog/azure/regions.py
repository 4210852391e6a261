"""Azure's regions, which it calls locations."""

import functools

from ironburst.catalog.instances import Region
from ironburst.catalog.tables import filled, table


@functools.cache
def regions() -> dict[str, Region]:
    """All public ones that the source names."""
    return {row["region"]: filled(Region, row, provider="azure") for row in table("azure_regions.csv").rows}
