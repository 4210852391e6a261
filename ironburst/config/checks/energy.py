"""Electricity: halls and countries that are known."""

from __future__ import annotations

from collections.abc import Iterable

from ironburst import catalog
from ironburst.config.checks.common import Findings, unknown
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig


def energy(config: ClusterConfig) -> Findings:
    """Of `monitoring`: halls by their names, countries by the catalogue's."""
    declared = config.monitoring
    carbon, pue = declared.carbon, declared.pue
    if isinstance(pue, dict):
        yield from _halls(config, pue, "monitoring", "pue")
    if config.burst.carbon_usd_per_tonne:
        yield from _price(config)
    if not carbon:
        return
    yield from _halls(config, carbon.halls, "monitoring", "carbon", "halls")
    for name, given in carbon.halls.items():
        if isinstance(given, str):
            yield from unknown(path_of("monitoring", "carbon", "halls", name), given, catalog.electricity)
    if isinstance(carbon.cloud, str):
        yield from unknown(path_of("monitoring", "carbon", "cloud"), carbon.cloud, catalog.electricity)
    regions = [catalog.regions(cloud.provider).get(cloud.region) for cloud in config.clouds]
    for known in filter(None, regions if carbon.cloud is None else []):
        try:
            catalog.electricity(known.country)
        except catalog.Unknown:
            message = f"isn't given, and of {known.country}, the country of {known.region}, the catalogue has no figure"
            yield Finding(path_of("monitoring", "carbon", "cloud"), None, "unknown", f"{message}; write grams a kWh")


def _price(config: ClusterConfig) -> Findings:
    """A price weighs what is known to be emitted: without that it would weigh one place and not the other."""
    path, usd = path_of("burst", "carbon_usd_per_tonne"), config.burst.carbon_usd_per_tonne
    if not config.monitoring.carbon:
        message = "weighs emissions, of which nothing is declared; write monitoring.carbon, too ({} will do)"
        yield Finding(path, usd, "missing", message)
    types = {name for pool in config.pools for name in pool.types}
    for name in sorted(types & catalog.instance_types().keys()):
        gpu = catalog.instance_type(name).gpu
        if gpu is None or gpu.tdp_w is None:
            yield Finding(
                path, usd, "unknown", f"can't weigh {name}, whose power isn't in the catalogue; leave one out"
            )


def _halls(config: ClusterConfig, given: Iterable[str], *path: str) -> Findings:
    known = [hall.name for hall in config.halls]
    for name in given:
        if name not in known:
            message = f"is no hall; known: {', '.join(known) or 'none'}"
            yield Finding(path_of(*path, name), name, "unknown-hall", message)
