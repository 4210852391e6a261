"""What an instance-hour costs under a declaration."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from ironburst import catalog
from ironburst.catalog.aws.prices import Market
from ironburst.config.cloud_models import Cloud, Group


def price(cloud: Cloud, instance_type: str, market: Market) -> catalog.Price | None:
    """The declared price, else the catalogue's; None: not known. Raises catalog.Unknown for the type."""
    declared = cloud.price.get(instance_type)
    override = getattr(declared, market.replace("-", "_"), None) if declared else None
    return catalog.price(instance_type, market, cloud.region, override)


def fixed_usd_per_gpu_hour(cloud: Cloud, group: Group) -> float | None:
    """Of a fixed node: the on-demand price over its GPUs; 0 where it was paid for before. None: not
    known.
    """
    if group.paid_before:
        return 0.0
    known, gpus = price(cloud, group.instance_type, "on-demand"), catalog.instance_type(group.instance_type).gpu_count
    return known.usd_per_hour / gpus if known and gpus else None


def oldest(prices: Iterable[catalog.Price | None]) -> date | None:
    """The date that is printed with a sum of prices; None: all are declared, or unknown."""
    return min((each.as_of for each in prices if each and each.as_of), default=None)
