"""What an instance-hour costs under a declaration."""

from __future__ import annotations

from ironburst import catalog
from ironburst.catalog.prices import Market
from ironburst.config.cloud_models import Cloud


def price(cloud: Cloud, instance_type: str, market: Market) -> catalog.Price | None:
    """The declared price, else the catalogue's; None: not known. Raises catalog.Unknown for the type."""
    declared = cloud.price.get(instance_type)
    override = getattr(declared, market.replace("-", "_"), None) if declared else None
    return catalog.price(instance_type, market, cloud.region, override)
