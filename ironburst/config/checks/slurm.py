"""The scheduler: its head node and its munge key."""

from __future__ import annotations

from ironburst import secrets
from ironburst.config.checks.common import Findings, owned_nodes
from ironburst.config.load import Finding, path_of
from ironburst.config.models import ClusterConfig


def scheduler(config: ClusterConfig) -> Findings:
    """The head is declared, once; rented nodes can read the munge key."""
    heads = [name for _, _, nodes in owned_nodes(config) if nodes.role == "head" for name in nodes.names]
    path, head = path_of("scheduler", "head"), config.scheduler.head
    if head not in heads:
        known = ", ".join(heads) or "none is declared"
        yield Finding(path, head, "unknown-node", f"{head!r} is not a node with role head; nodes with it: {known}")
    elif len(heads) > 1:
        message = f"there are {len(heads)} head nodes and one is supported (no fenced store for a backup yet); keep one"
        yield Finding(path, heads, "one-head", message)
    key = config.scheduler.munge_key
    if config.cloud and config.cloud.pools and not secrets.in_secretsmanager(key):
        message = (
            "must be an aws-secretsmanager: reference where there are burst pools: "
            "a rented node reads the key at boot, by its role"
        )
        yield Finding(path_of("scheduler", "munge_key"), key, "munge-key", message)
