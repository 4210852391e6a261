"""A stack file as the policy sees it: what the controller would make of it, without a cloud."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ironburst.burst import Policy
from ironburst.cli.site_options import BadInput
from ironburst.config.checks import check
from ironburst.config.load import ConfigError, Finding, load
from ironburst.config.models import group_nodes
from ironburst.controller import policy_view
from ironburst.document import ClusterDocument, DocumentError, PoolZone
from ironburst.document.build import CloudInstance, Observed, build
from ironburst.replay.provider import Cloud
from ironburst.replay.simulate import HOME, Home


@dataclass(frozen=True)
class Declared:
    """A declared cluster, as a trace is played on it."""

    name: str
    home: Home
    policy: Policy
    cloud: Cloud
    prices_as_of: str | None


def declared(path: Path) -> Declared:
    """The home nodes, pools and policy of a stack file. Raises BadInput."""
    found = document(path)
    sizes = {host.gpu.count for host in found.hosts if host.gpu and host.partition == found.scheduler.home_partition}
    if len(sizes) != 1:
        has = "no GPU node" if not sizes else "nodes of " + " and ".join(map(str, sorted(sizes))) + " GPUs"
        raise BadInput(f"{path}: home has {has}; a trace can be played on home nodes that have equally many GPUs")
    nodes = sum(host.partition == found.scheduler.home_partition for host in found.hosts)
    pools = tuple(policy_view.declared_pool(each) for each in found.pools)
    cloud = Cloud(pools, cool_down_s=float(found.burst.cool_down_s))
    ages = [pool.price_as_of for pool in found.pools if pool.price_as_of]
    home = Home(nodes, sizes.pop(), round_s=float(found.burst.tick_s))
    return Declared(
        found.cluster, home, replace(policy_view.policy(found), home_partition=HOME), cloud, min(ages, default=None)
    )


def document(path: Path) -> ClusterDocument:
    """The ClusterDocument of a stack file, with empty ids where only the cloud knows them. Raises BadInput with the
    first thing wrong.
    """
    try:
        config = load(path)
        errors = [
            finding for finding in check(config, datetime.now(UTC), versions=False) if finding.severity == "error"
        ]
    except ConfigError as error:
        errors = error.findings
    if errors:
        raise BadInput(_first(path, errors))
    groups, pools = (config.cloud.groups, config.cloud.pools) if config.cloud else ([], [])
    instances = {name: CloudInstance(id="", address="") for group in groups for name in group_nodes(group)}
    zones = {
        pool.name: [PoolZone(zone=zone, subnet_id="", launch_template_id="") for zone in pool.zones] for pool in pools
    }
    try:
        return build(config, Observed(instances=instances, pool_zones=zones))
    except DocumentError as error:
        raise BadInput(f"{path}: {error}") from None


def _first(path: Path, errors: list[Finding]) -> str:
    more = f"; and {len(errors) - 1} more: `ironburst validate {path}` lists them" if len(errors) > 1 else ""
    where = "" if errors[0].path == str(path) else f"{path}: "
    return f"{where}{errors[0]}{more}"
