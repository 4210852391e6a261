"""The scheduler: Slurm's head, a cluster's nodes, and what rented nodes join with."""

from __future__ import annotations

import re

from ironburst import secrets
from ironburst.config.checks.common import Findings, owned_nodes
from ironburst.config.load import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import Kubernetes

NODE_NAME = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"  # of a Node object: RFC 1123


def scheduler(config: ClusterConfig) -> Findings:
    """The head is declared, once, where there is one; rented nodes can read what they join with."""
    if isinstance(config.scheduler, Kubernetes):
        yield from _nodes(config)
    else:
        yield from _head(config, config.scheduler.head)
    key, reference = config.scheduler.joins_with
    if config.cloud and config.cloud.pools and not secrets.in_secretsmanager(reference):
        message = (
            "must be an aws-secretsmanager: reference where there are burst pools: "
            "a rented node reads it at boot, by its role"
        )
        yield Finding(path_of("scheduler", key), reference, key.replace("_", "-"), message)


def _head(config: ClusterConfig, head: str) -> Findings:
    heads = [name for _, _, nodes in owned_nodes(config) if nodes.role == "head" for name in nodes.names]
    path = path_of("scheduler", "head")
    if head not in heads:
        known = ", ".join(heads) or "none is declared"
        yield Finding(path, head, "unknown-node", f"{head!r} is not a node with role head; nodes with it: {known}")
    elif len(heads) > 1:
        message = f"there are {len(heads)} head nodes and one is supported (no fenced store for a backup yet); keep one"
        yield Finding(path, heads, "one-head", message)


def _nodes(config: ClusterConfig) -> Findings:
    for at, _, nodes in owned_nodes(config):
        if nodes.role == "head":
            message = "has role head, which runs Slurm; the cluster has its own control plane: leave these nodes out"
            yield Finding(at("role"), nodes.role, "no-head", message)
        for name in nodes.names:
            if not re.fullmatch(NODE_NAME, name):
                message = f"{name!r} is no name of a Kubernetes node: small letters, digits, - and . inside"
                yield Finding(at("names"), name, "node-name", message)
