"""Money: ceilings where nodes can be rented, and a price for each way to rent them."""

from __future__ import annotations

from itertools import product

from ironburst import catalog
from ironburst.catalog.prices import LIST_REGION, Market
from ironburst.config.checks.common import Findings
from ironburst.config.cloud_models import Cloud, Pool, Price
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import Budget, ClusterConfig
from ironburst.config.prices import price

FAR = 4
"""times the list price, or a part of it, that no discount and no region explains"""
MARKETS: dict[str, Market] = {"on_demand": "on-demand", "spot": "spot"}
"""key of cloud.price: the market"""


def ceilings_and_prices(config: ClusterConfig) -> Findings:
    """Where there are pools there is a budget, and each of their markets has a price."""
    if not config.cloud or not config.cloud.pools:
        return
    if config.budget is None:
        yield Finding(path_of("budget"), None, "missing", "is needed where there are burst pools; write usd_per_month")
    else:
        yield from _above_the_month(config.budget)
    yield from _prices(config.cloud)


def _above_the_month(budget: Budget) -> Findings:
    month = budget.usd_per_month
    smaller = [(("usd_per_day",), budget.usd_per_day)]
    accounts = [(("accounts", name), usd) for name, usd in budget.accounts.items()]
    for where, usd in [*smaller, *accounts]:
        if usd is not None and usd > month:
            message = f"{usd:g} is more than usd_per_month, {month:g}, so it is no ceiling: lower it or leave it out"
            yield Finding(path_of("budget", *where), usd, "over-the-month", message)


def _prices(cloud: Cloud) -> Findings:
    for p, pool in enumerate(cloud.pools):
        for name, market in product(pool.types, pool.markets):
            try:
                known = price(cloud, name, market)
            except catalog.Unknown:
                continue  # said by cloud.instance_types()
            if known is None:
                message = f"the catalogue has no {market} price of {name} in {cloud.region}; {_to_write(name, market)}"
                yield Finding(path_of("cloud", "pools", p, "markets"), market, "no-price", message)


def _to_write(name: str, market: Market) -> str:
    """What to put into the stack file for a price."""
    listed = catalog.price(name, market, LIST_REGION)
    known = f" (in {LIST_REGION} it is {listed.usd_per_hour:g}, {listed.source})" if listed else ""
    key = market.replace("-", "_")
    return f"write USD per hour of one instance under cloud: `price: {{{name}: {{{key}: USD}}}}`{known}"


def likely(config: ClusterConfig) -> Findings:
    """Declared prices are those of an hour, of what can be rented; the month's money buys an hour."""
    cloud = config.cloud
    if not cloud:
        return
    used = {name for pool in cloud.pools for name in pool.types} | {group.instance_type for group in cloud.groups}
    used |= {pool.instance_type for pool in cloud.karpenter}
    for name, declared in cloud.price.items():
        path = path_of("cloud", "price", name)
        if name not in used:
            yield Finding(path, None, "unused-price", f"no pool or group has {name}: is it another one's?", "warning")
        yield from _far_from_list(path, name, declared)
    hours = [usd for usd in (_hour(cloud, pool) for pool in cloud.pools) if usd]
    if config.budget and hours and config.budget.usd_per_month < min(hours):
        month = config.budget.usd_per_month
        message = f"{month:g} is less than an hour of any pool's instance ({min(hours):g}): nothing can be rented"
        yield Finding(path_of("budget", "usd_per_month"), month, "too-little", message, "warning")


def _far_from_list(path: str, name: str, declared: Price) -> Findings:
    for key, market in MARKETS.items():
        try:
            listed = catalog.price(name, market, LIST_REGION)
        except catalog.Unknown:
            return  # said by cloud.instance_types()
        given = getattr(declared, key)
        if given and listed and not listed.usd_per_hour / FAR < given < listed.usd_per_hour * FAR:
            message = (
                f"{given:g}, and {listed.usd_per_hour:g} is the price in {LIST_REGION}: "
                "it is USD per hour of one instance"
            )
            yield Finding(f"{path}.{key}", given, "far-from-list", message, "warning")


def _hour(cloud: Cloud, pool: Pool) -> float | None:
    """The least that an hour of the pool costs; None: it isn't known, or paid for already."""
    try:
        known = [price(cloud, name, market) for name, market in product(pool.types, pool.markets)]
    except catalog.Unknown:
        return None
    return min((each.usd_per_hour for each in known if each), default=None)
