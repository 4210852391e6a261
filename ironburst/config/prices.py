"""What an instance-hour costs under a declaration."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from ironburst import catalog
from ironburst.catalog import Market
from ironburst.config.cloud_models import Cloud, Group
from ironburst.system.local_time import PRICES_OLD_DAYS, age_days


def price(cloud: Cloud, instance_type: str, market: Market) -> catalog.Price | None:
    """The declared price, else the catalogue's; None: not known. Raises catalog.Unknown for the type."""
    declared = cloud.price.get(instance_type)
    override = getattr(declared, market.replace("-", "_"), None) if declared else None
    known, most = catalog.price(instance_type, market, cloud.region, override), spot_max(cloud, instance_type)
    if market == "spot" and most is not None and (known is None or known.usd_per_hour > most):
        return catalog.Price(most, "declared", None)  # more is never paid
    return known


def spot_max(cloud: Cloud, instance_type: str) -> float | None:
    """The declared ceiling of spot's hour; None: the cloud's own, which is the on-demand price."""
    declared = cloud.price.get(instance_type)
    return declared.spot_max if declared else None


def at_worst(cloud: Cloud, instance_type: str, market: Market) -> catalog.Price | None:
    """The most that an hour may cost: spot rises up to its ceiling. None: not known."""
    known = price(cloud, instance_type, market)
    if market != "spot" or known is None:
        return known
    most = spot_max(cloud, instance_type)
    if most is not None:
        return catalog.Price(most, "declared", None)
    dearer = price(cloud, instance_type, "on-demand")
    return dearer if dearer and dearer.usd_per_hour > known.usd_per_hour else known


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


def aged(cloud: Cloud, today: date) -> str:
    """One sentence where ceilings and estimates count on list prices that are too old; empty: they don't. Spot's is
    none of these: the controller asks for it, and an old one counts only until it is answered.
    """
    types = {each.instance_type for each in cloud.groups if not each.paid_before}
    for pool in cloud.pools:
        bounded = {name for name in pool.types if spot_max(cloud, name) is not None}
        types |= set(pool.types) if "on-demand" in pool.markets else set()
        types |= set(pool.types) - bounded if "spot" in pool.markets else set()  # on demand is what bounds it then
    known = {name: price(cloud, name, "on-demand") for name in sorted(types)}
    old = {name: each.as_of for name, each in known.items() if each and each.as_of}
    if not old or (days := age_days(min(old.values()), today)) <= PRICES_OLD_DAYS:
        return ""
    names = ", ".join(list(old)[:3]) + (f" and {len(old) - 3} more" if len(old) > 3 else "")
    return (
        f"ceilings and estimates count with the catalogue's on-demand prices of {min(old.values())}, {days} days old "
        f"({names}): declare on_demand of these as your bill has it (`ironburst report --bill`); spot is asked for by "
        "the controller"
    )
