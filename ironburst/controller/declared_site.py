"""A stack file as the policy sees it: what the controller would make of it, without a cloud."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ironburst.controller import policy_view
from ironburst.document import ClusterDocument, Scheduler
from ironburst.document.of_stack import document
from ironburst.replay.declared import Declared, DeclaredCarbon
from ironburst.replay.home import HOME, Home
from ironburst.replay.provider import SimulatedCloud
from ironburst.system.bad_input import BadInput


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
    ages = [pool.price_as_of for pool in its if pool.price_as_of]
    pools = tuple(policy_view.declared_pool(pool, cluster) for pool in its)
    return Declared(
        name=cluster.cluster,
        home=Home(
            len(home),
            sizes.pop(),
            tick_s=float(cluster.burst.tick_s),
            kinds=tuple(policy_view.kind(host.gpu) for host in home if host.gpu),
        ),
        policy=replace(policy_view.policy(cluster), home_partition=HOME, other_homes=()),
        cloud=SimulatedCloud(pools, cool_down_s=float(cluster.burst.cool_down_s)),
        prices_as_of=min(ages, default=None),
        usd_per_month=cluster.budget.usd_per_month if cluster.budget else None,
        carbon=_carbon(cluster),
    )


def _carbon(cluster: ClusterDocument) -> DeclaredCarbon | None:
    usd_per_tonne = cluster.burst.carbon_usd_per_tonne
    clouds = {pool.name: cluster.in_cloud(pool).monitoring.cloud for pool in cluster.pools}
    grams = {name: its.gco2_per_kwh for name, its in clouds.items() if its and its.gco2_per_kwh is not None}
    return DeclaredCarbon(usd_per_tonne, grams, cluster.monitoring.watts) if usd_per_tonne and grams else None


def chosen(cluster: ClusterDocument, path: str, kind: str | None) -> Scheduler:
    """The scheduler of this kind, or the only one. Raises BadInput."""
    kinds = [each.kind for each in cluster.schedulers]
    if kind is None and len(kinds) > 1:
        raise BadInput(f"{path} has two schedulers, and a trace is of one queue: give --scheduler {' or '.join(kinds)}")
    if kind is not None and kind not in kinds:
        raise BadInput(f"--scheduler {kind}: {path} has {kinds[0]} alone")
    return cluster.scheduler if kind is None else cluster.schedulers[kinds.index(kind)]
