"""Teams and their shares of the owned GPUs: what is given to two, or isn't there to be given."""

from __future__ import annotations

import re

from ironburst import catalog
from ironburst.config.checks.common import Findings, cloud_nodes, owned_nodes
from ironburst.config.cloud_models import Group
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.nodes import naming

MULTIPLE_QOS = (24, 11)
"""Slurm from here on tries a job in several QOS"""
NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def shares(config: ClusterConfig) -> Findings:
    """The parts fit into what is owned, and each is one team's."""
    if not config.shares:
        return
    yield from _teams(config)
    yield from _own_nodes(config)
    yield from _sum(config)
    yield from _scheduler(config)


def gpus_of(config: ClusterConfig) -> dict[str, tuple[str, int]]:
    """{owned GPU node: (model, number of its GPUs)}; without those whose platform isn't known."""
    found: dict[str, tuple[str, int]] = {}
    for _, _, nodes in owned_nodes(config):
        try:
            platform = catalog.platform(nodes.platform) if nodes.role == "gpu" and nodes.platform else None
        except catalog.Unknown:
            continue  # said by metal.platforms
        if platform:
            found |= dict.fromkeys(nodes.names, (platform.gpu.model, platform.gpu_count))
    return found


def _teams(config: ClusterConfig) -> Findings:
    teams: dict[str, str] = {}
    accounts: dict[str, str] = {}
    for n, share in enumerate(config.shares):
        path = path_of("shares", n, "team")
        if (first := teams.setdefault(share.team, path)) != path:
            message = f"team {share.team!r} has a share already at {first}; write what it gets in one place"
            yield Finding(path, share.team, "duplicate", message)
        elif (first := accounts.setdefault(share.name, path)) != path:
            message = f"account {share.name!r} is that of the share at {first}, too; each team needs its own"
            yield Finding(
                path_of("shares", n, "account" if share.account else "team"), share.name, "duplicate", message
            )


def _own_nodes(config: ClusterConfig) -> Findings:
    known, first = gpus_of(config), dict[str, str]()
    partitions = [(config.scheduler.home_partition, path_of("scheduler", "home_partition"))]
    partitions += [(nodes.name, at()) for at, nodes in cloud_nodes(config) if isinstance(nodes, Group)]
    for n, share in enumerate(config.shares):
        for i, node in enumerate(share.nodes or []):
            path = path_of("shares", n, "nodes", i)
            if node not in known:
                message = f"{node!r} is not an owned GPU node; owned are {_some(list(known))}"
                yield Finding(path, node, "unknown-node", message)
            elif (before := first.setdefault(node, share.team)) != share.team:
                message = f"node {node!r} is team {before!r}'s alone already; leave it out at one of the two"
                yield Finding(path, node, "duplicate", message)
        for name, where in partitions:
            if share.nodes and naming.own_partition(share.name) == name:
                message = f"its own nodes are partition {name!r}, which is used already at {where}; rename one"
                yield Finding(path_of("shares", n, "team"), share.team, "duplicate", message)


def _sum(config: ClusterConfig) -> Findings:
    """The guarantees fit into the shared nodes, which are of one model: a guarantee counts GPUs, whichever they are."""
    own = {node for share in config.shares for node in share.nodes or []}
    shared = {node: gpus for node, gpus in gpus_of(config).items() if node not in own}
    there = sum(count for _, count in shared.values())
    models = sorted({model for model, _ in shared.values()})
    if len(models) > 1:
        message = (
            f"the shared nodes have {' and '.join(models)}, and a share counts GPUs of one model: give all nodes of "
            "the others to teams, by `nodes`"
        )
        yield Finding(path_of("shares"), None, "share-models", message)
    asked = sum(share.guaranteed_gpus for share in config.shares)
    if asked > there:
        message = (
            f"the guarantees are {asked} GPUs together, and the shared nodes have {there}: "
            f"lower them by {asked - there}"
            + (f", or share some of the {len(own)} nodes that are a team's alone" if own else "")
        )
        yield Finding(path_of("shares"), asked, "share-sum", message)
    for n, share in enumerate(config.shares):
        if share.max_gpus is not None and share.max_gpus > there:
            message = f"max_gpus is {share.max_gpus}, and the shared nodes have {there} GPUs; it bounds nothing"
            yield Finding(path_of("shares", n, "max_gpus"), share.max_gpus, "share-max", message, "warning")


def _scheduler(config: ClusterConfig) -> Findings:
    """What the scheduler needs for shares."""
    yield from _namespaces(config)
    if config.scheduler.kind == "kubernetes":
        for n, share in enumerate(config.shares):
            if not NAMESPACE.fullmatch(share.name):
                message = f"{share.name!r} can't be a namespace: letters, digits and - inside; name another `account`"
                yield Finding(path_of("shares", n, "account"), share.name, "share-namespace", message)
        return
    version = config.software.slurm
    known = re.match(r"(\d+)\.(\d+)", version or "")
    if known and (int(known[1]), int(known[2])) < MULTIPLE_QOS:
        least = ".".join(map(str, MULTIPLE_QOS))
        message = (
            f"shares need Slurm {least}, which tries a job in its team's guarantee and over quota; this is {version}"
        )
        yield Finding(path_of("software", "slurm"), version, "share-slurm", message)


def _namespaces(config: ClusterConfig) -> Findings:
    """Pulumi makes them where it is let in; and who must name what he asks for is given something to name."""
    cluster = config.kubernetes
    for n, share in enumerate(config.shares):
        if not (its := share.namespace):
            continue
        path = path_of("shares", n, "namespace")
        if not (cluster and (cluster.admin_kubeconfig or cluster.hosted)):
            message = (
                "is made in a Kubernetes cluster that Pulumi is let into: give its admin_kubeconfig, or leave it out"
            )
            yield Finding(path, None, "namespace-nowhere", message)
        given = its.limit_range.default_request | its.limit_range.default if its.limit_range else {}
        bound = {key.removeprefix("requests.") for key in its.quota if key in ("requests.cpu", "requests.memory")}
        if lacks := sorted({*bound, *({"cpu", "memory"} & its.quota.keys())} - given.keys()):
            message = (
                f"has a quota of {' and '.join(lacks)}, so Kubernetes refuses every pod that says no request of it: "
                "give limit_range.default_request"
            )
            yield Finding(path, None, "quota-without-default", message, "warning")


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "") if names else "none"
