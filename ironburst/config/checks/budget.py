"""Money: ceilings where nodes can be rented, and a price for each way to rent them."""

from __future__ import annotations

from itertools import product

from ironburst import catalog
from ironburst.config.checks.common import Findings
from ironburst.config.cloud_models import Cloud
from ironburst.config.load import Finding, path_of
from ironburst.config.models import Budget, ClusterConfig
from ironburst.config.prices import price


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
                message = (
                    f"the catalogue has no {market} price of {name} in {cloud.region}; write one under cloud.price"
                )
                yield Finding(path_of("cloud", "pools", p, "markets"), market, "no-price", message)
