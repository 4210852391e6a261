"""Pools that Karpenter launches: who lets it, who pays, and that nobody else launches for the same pods."""

from __future__ import annotations

import functools

from ironburst import catalog
from ironburst.config.checks.common import At, Findings, cloud_nodes, clouds, pools, unknown
from ironburst.config.cloud_models import Cloud
from ironburst.config.finding import Finding, path_of
from ironburst.config.karpenter_models import KarpenterPool
from ironburst.config.models import ClusterConfig
from ironburst.config.types import duration_text

IDLE_S = 300


def karpenter(config: ClusterConfig) -> Findings:
    """There is a cluster that Pulumi is let into, a budget, and one owner of launching."""
    for at, cloud in clouds(config):
        if cloud.karpenter:
            yield from _karpenter(config, at, cloud)


def _karpenter(config: ClusterConfig, at: At, cloud: Cloud) -> Findings:
    here = at("karpenter")
    if config.kubernetes is None:
        message = "launches for a Kubernetes cluster, and this stack has none: add a scheduler of kind kubernetes"
        yield Finding(here, None, "karpenter-cluster", message)
    elif config.kubernetes.admin_kubeconfig is None:
        message = "needs the scheduler's admin_kubeconfig: Pulumi declares the NodePools in the cluster"
        yield Finding(here, None, "karpenter-cluster", message)
    if config.budget is None:
        message = "is needed where Karpenter launches, its limits follow it; write usd_per_month"
        yield Finding(path_of("budget"), None, "missing", message)
    yield from _one_owner(config)
    for n, pool in enumerate(cloud.karpenter):
        yield from _pool(config, pool, functools.partial(at, "karpenter", n))


def _one_owner(config: ClusterConfig) -> Findings:
    for at, pool in pools(config):
        if config.kubernetes and config.scheduler_of(pool) is config.kubernetes:
            message = (
                f"{pool.name} is rented by ironburst and cloud.karpenter by Karpenter, both for the pods of one "
                "cluster, so each pod would be rented for twice: keep one of the two"
            )
            yield Finding(at("name"), pool.name, "two-owners", message)


def _pool(config: ClusterConfig, pool: KarpenterPool, at: At) -> Findings:
    named = [each.name for each in config.karpenter] + [each.name for _, each in cloud_nodes(config)]
    if named.count(pool.name) > 1:
        message = f"{pool.name!r} is the name of another pool or group, too; each needs its own"
        yield Finding(at("name"), pool.name, "duplicate", message)
    accounts = config.budget.accounts if config.budget else {}
    if pool.account is not None and pool.account not in accounts:
        message = f"{pool.account!r} has no ceiling in budget.accounts: write one there, or leave account out"
        yield Finding(at("account"), pool.account, "unknown", message)
    if pool.idle < IDLE_S:
        message = f"is less than {duration_text(IDLE_S)}, faster than limits follow what comes and goes: raise it"
        yield Finding(at("idle"), duration_text(pool.idle), "idle", message)
    not_known = list(unknown(at("instance_type"), pool.instance_type, catalog.instance_type))
    yield from not_known
    if not_known:
        return
    if not catalog.instance_type(pool.instance_type).gpu:
        message = f"{pool.instance_type} has no NVIDIA GPU that the catalogue knows; choose a GPU instance type"
        yield Finding(at("instance_type"), pool.instance_type, "no-gpu", message)
