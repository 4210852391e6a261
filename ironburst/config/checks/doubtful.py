"""What is legal and rarely meant: reported as a warning, once, with what it will do."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from ironburst.config.checks.common import Findings, clouds, owned_nodes
from ironburst.config.cloud_models import Pool
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.config.types import duration_text
from ironburst.system import secrets

DAY_S = 86400
LEAST_GB = 30
"""that a system with driver, CUDA and an image or two takes"""


def doubtful(config: ClusterConfig) -> Findings:
    """All of it."""
    yield from _owned(config)
    yield from _waits(config)
    for at, cloud in clouds(config):
        for key, value in cloud.price.items():
            if value.spot and value.spot_max and value.spot > value.spot_max:
                message = f"{value.spot_max:g} is less than spot, {value.spot:g}: such nodes are never had; raise it"
                yield Finding(at("price", key), value.spot_max, "spot-price", message, "warning")
            if value.spot and value.on_demand and value.spot > value.on_demand:
                message = f"spot {value.spot:g} is more than on_demand, {value.on_demand:g}: are the two exchanged?"
                yield Finding(at("price", key), value.spot, "spot-price", message, "warning")
        for p, pool in enumerate(cloud.pools):
            for key, given, message in _pool(pool):
                yield Finding(at("pools", p, key), given, "doubtful", message, "warning")


def _owned(config: ClusterConfig) -> Findings:
    for h, hall in enumerate(config.halls):
        if hall.bmc_cidr and ipaddress.IPv4Network(hall.bmc_cidr).is_loopback:
            message = f"{hall.bmc_cidr!r} is this host's own: only emulated BMCs answer there"
            yield Finding(path_of("halls", h, "bmc_cidr"), hall.bmc_cidr, "loopback", message, "warning")
    for at, _, nodes in owned_nodes(config):
        capitals = [name for name in nodes.names if name != name.lower()] if nodes.managed else []
        if capitals:
            message = f"{capitals[0]} has capitals: Slurm tells them apart, DNS and Kubernetes don't; write them small"
            yield Finding(at("names"), capitals[0], "capitals", message, "warning")
        if nodes.bmc and nodes.bmc.username.partition(":")[0] in secrets.SCHEMES:
            message = f"{nodes.bmc.username!r} is sent to the BMC as it stands; write the name itself"
            yield Finding(at("bmc", "username"), nodes.bmc.username, "bmc-user", message)


def _waits(config: ClusterConfig) -> Findings:
    target, settle = config.burst.wait_target, config.burst.settle
    mean = target.mean if target else config.burst.wait_limit
    if target and target.p99 and target.mean > target.p99:
        message = f"is {duration_text(target.mean)}, longer than p99, {duration_text(target.p99)}: lower it"
        yield Finding(path_of("burst", "wait_target", "mean"), duration_text(target.mean), "order", message, "warning")
    if settle > mean:
        message = (
            f"{duration_text(settle)} passes before any job is rented for, and {duration_text(mean)} may be waited"
        )
        path = path_of("burst", "settle")
        yield Finding(path, duration_text(settle), "order", f"{message}: lower settle", "warning")


def _pool(pool: Pool) -> Iterator[tuple[str, object, str]]:
    """(key, its value, what is doubtful)."""
    boot, idle, run = (duration_text(each) for each in (pool.boot, pool.idle, pool.max_run))
    if pool.max_run < pool.boot:
        yield "max_run", run, f"{run} is less than a node may take to boot, {boot}: only jobs shorter than that rent"
    if pool.idle > DAY_S and not pool.bought:
        yield "idle", idle, f"{idle}: a node without jobs may be paid for so long; 10m is what it is without this key"
    if pool.checkpoint and pool.checkpoint >= pool.max_run:
        saved = duration_text(pool.checkpoint)
        yield "checkpoint", saved, f"{saved} is no less than max_run, {run}, so no job saves anything before it ends"
    if "spot" in pool.markets and not pool.checkpoint and pool.max_run > DAY_S:
        message = (
            f"a spot node may be taken back, and up to {run} of a job's work with it: say how often jobs save theirs"
        )
        yield "checkpoint", None, message + " (checkpoint), or lower max_run"
    if pool.root_disk_gb < LEAST_GB:
        message = f"{pool.root_disk_gb} GiB hold no system with driver and CUDA: write {LEAST_GB} or more"
        yield "root_disk_gb", pool.root_disk_gb, message
