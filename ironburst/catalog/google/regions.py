"""Google Cloud's regions."""

import functools

from ironburst.catalog.instances import Region
from ironburst.catalog.tables import filled, table


@functools.cache
def regions() -> dict[str, Region]:
    """All that the sources name."""
    return {row["region"]: filled(Region, row, provider="google") for row in table("google_regions.csv").rows}
