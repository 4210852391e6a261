"""Money: ceilings where nodes can be rented, and a price for each way to rent them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from ironburst import catalog
from ironburst.catalog import Market
from ironburst.config import estimates
from ironburst.config.checks.common import At, Findings, clouds
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
    if config.pools and config.budget is None:
        yield Finding(path_of("budget"), None, "missing", "is needed where there are burst pools; write usd_per_month")
    elif config.pools and config.budget:
        yield from _above_the_month(config.budget)
    for at, cloud in clouds(config):
        yield from _prices(cloud, at)


def _above_the_month(budget: Budget) -> Findings:
    month = budget.usd_per_month
    for where, usd in _ceilings(budget):
        if usd > month:
            message = f"{usd:g} is more than usd_per_month, {month:g}, so it is no ceiling: lower it or leave it out"
            yield Finding(path_of("budget", *where), usd, "over-the-month", message)


def _prices(cloud: Cloud, at: At) -> Findings:
    """One finding with all that is to be written: of each type the markets that the stack uses."""
    wanted = [(name, market) for pool in cloud.pools for name, market in product(pool.types, pool.markets)]
    wanted += [(pool.instance_type, pool.market) for pool in cloud.karpenter]
    lacking: dict[str, list[Market]] = {}
    for name, market in dict.fromkeys(wanted):
        if name in catalog.instance_types() and not price(cloud, name, market):  # others: cloud.instance_types()
            lacking.setdefault(name, []).append(market)
    if not lacking:
        return
    lines = ", ".join(_line(name, markets) for name, markets in lacking.items())
    place = at().removeprefix(f"{path_of()}.")
    where = f"under {place}.price: `{lines}`" if cloud.price else f"under {place}: `price: {{{lines}}}`"
    known = "; ".join(hint for name, markets in lacking.items() for hint in _hints(name, markets, cloud.region))
    unknown = f"the catalogue has no price of {' and '.join(lacking)} in {cloud.region}"
    message = f"{unknown}; write USD per hour of one instance {where}"
    yield Finding(at("price"), None, "no-price", f"{message} ({known})" if known else message)


def _line(name: str, markets: Sequence[Market]) -> str:
    """Of cloud.price, to be filled in."""
    usd = ", ".join(f"{market.replace('-', '_')}: USD" for market in markets)
    return f"{name}: {{{usd}}}"


def _hints(name: str, markets: Sequence[Market], region: str) -> Iterator[str]:
    """What is known in the place of a price: what spot saves in this region, and prices of another one."""
    saved = catalog.spot_savings(name, region) if "spot" in markets else None
    if saved:
        yield f"spot of {name} there: {saved.percent:g}% below on demand on {saved.as_of}, by the spot advisor"
    elsewhere = catalog.instance_type(name).list_region
    listed = [(market, catalog.price(name, market, elsewhere)) for market in markets if region != elsewhere]
    if any(there for _, there in listed):
        prices = ", ".join(f"{market} {there.usd_per_hour:g}" for market, there in listed if there)
        yield f"{name} in {elsewhere}: {prices}"


def likely(config: ClusterConfig) -> Findings:
    """Declared prices are those of an hour, of what can be rented; the month's money buys an hour."""
    for at, cloud in clouds(config):
        yield from _declared_prices(cloud, at)
    yield from _beside_the_month(config)
    hours = [usd for usd in (_hour(config.cloud_of(pool), pool) for pool in config.pools) if usd]
    for where, usd in _ceilings(config.budget) if config.budget and hours else []:
        if usd < min(hours):
            message = f"{usd:g} is less than an hour of any pool's instance ({min(hours):g}): nothing can be rented"
            yield Finding(path_of("budget", *where), usd, "too-little", message, "warning")


def _declared_prices(cloud: Cloud, at: At) -> Findings:
    used = {name for pool in cloud.pools for name in pool.types} | {group.instance_type for group in cloud.groups}
    used |= {pool.instance_type for pool in cloud.karpenter}
    for name, declared in cloud.price.items():
        path = at("price", name)
        if name not in used:
            yield Finding(path, None, "unused-price", f"no pool or group has {name}: is it another one's?", "warning")
        yield from _far_from_list(path, name, declared)


def _beside_the_month(config: ClusterConfig) -> Findings:
    """The month's money is for rented nodes: whoever has fixed nodes as well is told what they cost beside it."""
    if not config.budget:
        return
    rented, total = config.budget.usd_per_month, config.budget.total_usd_per_month
    try:
        every = [(each.what, each.usd_per_month) for each in estimates.fixed(config)]
    except catalog.Unknown:  # said by cloud.instance_types()
        return
    usd = sum(each or 0.0 for _, each in every)
    what = "; ".join(f"{what}, unknown" if each is None else f"{what}, {each:,.0f}" for what, each in every)
    if total is not None and usd > total:
        message = f"{total:g} is less than what runs all the time costs at worst, {usd:,.0f} a month ({what}): raise it"
        yield Finding(path_of("budget", "total_usd_per_month"), total, "too-little", message)
    elif total is None and usd > rented:
        message = (
            f"{rented:g} is for rented nodes alone, and what runs all the time costs {usd:,.0f} a month beside it at "
            f"worst ({what}): declare total_usd_per_month, the most for both, or take the fixed nodes out"
        )
        yield Finding(path_of("budget", "usd_per_month"), rented, "beside-the-month", message, "warning")


def _ceilings(budget: Budget) -> Iterator[tuple[tuple[str, ...], float]]:
    """(place in the budget, USD) of every ceiling."""
    yield ("usd_per_month",), budget.usd_per_month
    if budget.usd_per_day is not None:
        yield ("usd_per_day",), budget.usd_per_day
    yield from ((("accounts", name), usd) for name, usd in budget.accounts.items())


def _far_from_list(path: str, name: str, declared: Price) -> Findings:
    for key, market in MARKETS.items():
        try:
            where = catalog.instance_type(name).list_region
            listed = catalog.price(name, market, where)
        except catalog.Unknown:
            return  # said by cloud.instance_types()
        given = getattr(declared, key)
        if given and listed and not listed.usd_per_hour / FAR < given < listed.usd_per_hour * FAR:
            message = (
                f"{given:g}, and {listed.usd_per_hour:g} is the price in {where}: it is USD per hour of one instance"
            )
            yield Finding(f"{path}.{key}", given, "far-from-list", message, "warning")


def _hour(cloud: Cloud, pool: Pool) -> float | None:
    """The least that an hour of the pool costs; None: it isn't known, or paid for already."""
    try:
        known = [price(cloud, name, market) for name, market in product(pool.types, pool.markets)]
    except catalog.Unknown:
        return None
    return min((each.usd_per_hour for each in known if each), default=None)
