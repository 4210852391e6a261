"""A stack file as the policy sees it: what the controller would make of it, without a cloud."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ironburst.burst import Policy
from ironburst.cli.site_options import BadInput
from ironburst.config.checks import check
from ironburst.config.load import ConfigError, Finding, load
from ironburst.config.models import ClusterConfig
from ironburst.controller import policy_view
from ironburst.document import ClusterDocument, DocumentError, PoolZone, Scheduler
from ironburst.document.aws import UNKNOWN
from ironburst.document.build import CloudInstance, Observed, build
from ironburst.document.build_scheduler import HostedCluster
from ironburst.nodes import naming
from ironburst.replay.home import HOME, Home
from ironburst.replay.provider import Cloud


@dataclass(frozen=True)
class Declared:
    """A declared cluster, as a trace is played on it."""

    name: str
    home: Home
    policy: Policy
    cloud: Cloud
    prices_as_of: str | None
    usd_per_month: float | None  # the budget


def declared(path: Path, kind: str | None = None) -> Declared:
    """The home nodes, pools and policy of a stack file; `kind`: of which scheduler, where it has two. Raises
    BadInput.
    """
    return declared_in(document(path), str(path), kind)


def declared_in(cluster: ClusterDocument, path: str, kind: str | None = None) -> Declared:
    """The same of a document, which was read from `path`. Raises BadInput."""
    scheduler = chosen(cluster, path, kind)
    home = [host for host in cluster.hosts if host.partition == scheduler.home_partition]
    sizes = {host.gpu.count for host in home if host.gpu}
    if len(sizes) != 1:
        has = "no GPU node" if not sizes else "nodes of " + " and ".join(map(str, sorted(sizes))) + " GPUs"
        raise BadInput(f"{path}: home has {has}; a trace can be played on home nodes that have equally many GPUs")
    its = [pool for pool in cluster.pools if cluster.scheduler_of(pool) is scheduler]
    pools = tuple(policy_view.declared_pool(pool, cluster) for pool in its)
    ages = [pool.price_as_of for pool in its if pool.price_as_of]
    return Declared(
        name=cluster.cluster,
        home=Home(
            len(home),
            sizes.pop(),
            tick_s=float(cluster.burst.tick_s),
            kinds=tuple(policy_view.kind(host.gpu) for host in home if host.gpu),
        ),
        policy=replace(policy_view.policy(cluster), home_partition=HOME, other_homes=()),
        cloud=Cloud(pools, cool_down_s=float(cluster.burst.cool_down_s)),
        prices_as_of=min(ages, default=None),
        usd_per_month=cluster.budget.usd_per_month if cluster.budget else None,
    )


def chosen(cluster: ClusterDocument, path: str, kind: str | None) -> Scheduler:
    """The scheduler of this kind, or the only one. Raises BadInput."""
    kinds = [each.kind for each in cluster.schedulers]
    if kind is None and len(kinds) > 1:
        raise BadInput(f"{path} has two schedulers, and a trace is of one queue: give --scheduler {' or '.join(kinds)}")
    if kind is not None and kind not in kinds:
        raise BadInput(f"--scheduler {kind}: {path} has {kinds[0]} alone")
    return cluster.scheduler if kind is None else cluster.schedulers[kinds.index(kind)]


def document(path: Path) -> ClusterDocument:
    """The ClusterDocument of a stack file, with empty ids where only the cloud knows them.
    Raises BadInput with the first thing wrong.
    """
    config = valid(path)
    groups, pools = (config.cloud.groups, config.cloud.pools) if config.cloud else ([], [])
    fixed = [name for group in groups for name in naming.numbered(group.name, group.count)]
    instances = {name: CloudInstance(id="", address="") for name in fixed}
    zones = {
        pool.name: [
            PoolZone(zone=zone, instance_type=name, place=UNKNOWN) for name in pool.types for zone in pool.zones
        ]
        for pool in pools
    }
    try:
        hosted = HostedCluster(api_server="", ca="")
        return build(config, Observed(instances=instances, pool_zones=zones, hosted=hosted))
    except DocumentError as error:
        raise BadInput(f"{path}: {error}") from None


def valid(path: Path) -> ClusterConfig:
    """The declaration of a stack file. Raises BadInput with the first thing wrong."""
    try:
        config = load(path)
        errors = [finding for finding in check(config, datetime.now(UTC)) if finding.severity == "error"]
    except ConfigError as error:
        raise BadInput(first(path, error.findings)) from None
    if errors:
        raise BadInput(first(path, errors))
    return config


def first(path: Path, errors: list[Finding]) -> str:
    """The first of what is wrong with a stack file, and how many more there are."""
    more = f"; and {len(errors) - 1} more: `ironburst validate {path}` lists them" if len(errors) > 1 else ""
    where = "" if errors[0].path == str(path) else f"{path}: "
    return f"{where}{errors[0]}{more}"
