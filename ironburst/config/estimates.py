"""What the declaration can cost at worst. Every figure is an estimate from prices that have a date."""

from __future__ import annotations

from dataclasses import replace

from ironburst import catalog
from ironburst.config.aws.estimates import running as first
from ironburst.config.azure.estimates import running as third
from ironburst.config.cloud_models import Cloud, Group, Pool
from ironburst.config.estimate import Estimate
from ironburst.config.google.estimates import running as second
from ironburst.config.models import ClusterConfig
from ironburst.config.prices import at_worst, oldest, price

RUNNING = (first, second, third)
"""what costs money all the time beside nodes, a function a cloud"""


def fixed(config: ClusterConfig) -> list[Estimate]:
    """What costs money all the time, whether or not anything is rented."""
    found = [group(config.cloud_of(each), each) for each in config.groups]
    for cloud in config.clouds:
        whose = f"{cloud.provider} " if config.other_clouds else ""
        beside = [each for running in RUNNING for each in running(config.in_cloud(cloud))]
        found += [replace(each, what=f"{whose}{each.what}") for each in beside]
    return found


def pool(cloud: Cloud, declared: Pool) -> Estimate:
    """Every node of the pool rented all the time, of its dearest type in its dearest market."""
    what = f"burst pool {declared.name}, {declared.max_nodes} x {' or '.join(declared.types)}"
    if declared.markets == ["capacity-block"]:
        what += f" in capacity block {', '.join(id for id, _ in declared.reserved)}, paid for when it was bought"
    offers = [(name, market) for name in declared.types for market in declared.markets]
    dated = oldest(price(cloud, *each) for each in offers)
    worst = _estimate(what, [at_worst(cloud, *each) for each in offers], declared.max_nodes)
    return replace(worst, as_of=dated, beside=declared.paid_beside)


def group(cloud: Cloud, declared: Group) -> Estimate:
    """The fixed nodes at the on-demand price (a reservation or a capacity block is paid for apart, and differently)."""
    what = f"fixed group {declared.name}, {declared.count} x {declared.instance_type}"
    return _estimate(what, [price(cloud, declared.instance_type, "on-demand")], declared.count)


def _estimate(what: str, prices: list[catalog.Price | None], nodes: int) -> Estimate:
    known = [given for given in prices if given is not None]
    if len(known) < len(prices):
        return Estimate(what, None, None)
    return Estimate(what, max(each.usd_per_hour for each in known) * nodes, oldest(known))
