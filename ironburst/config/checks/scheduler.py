"""The schedulers: Slurm's head, a cluster's nodes, what rented nodes join with, and whose nodes are whose."""

from __future__ import annotations

import re

from ironburst.config import spot_notice
from ironburst.config.checks import common
from ironburst.config.checks.common import At, Findings, cloud_nodes, owned_nodes, schedulers
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.config.node_settings import NodeSettings
from ironburst.config.scheduler_models import Scheduler
from ironburst.config.types import duration_text
from ironburst.nodes.naming import SCHEDULERS

NODE_NAME = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"  # of a Node object: RFC 1123


def scheduler(config: ClusterConfig) -> Findings:
    """The head is declared, once, where there is one."""
    yield from _kinds(config)
    yield from _unmanaged(config)
    yield from _whose(config)
    yield from _kill_wait(config)
    yield from _managed_only(config)
    if config.kubernetes:
        yield from _nodes(config)
    for at, each in schedulers(config):
        if each.kind == "slurm":
            yield from head_declared(config, at("head"), each)


def joined_with(config: ClusterConfig) -> Findings:
    """Rented nodes can read what they join with, in their own cloud's store."""
    for at, each in schedulers(config):
        if each.joins_with and config.cloud and any(config.scheduler_of(pool) is each for pool in config.cloud.pools):
            key, reference = each.joins_with
            yield from common.readable(config.cloud, at(key), reference)


def _unmanaged(config: ClusterConfig) -> Findings:
    """Who manages what: nodes of a Slurm that isn't managed aren't either, and it is told of the others by address."""
    slurm = config.slurm
    for at, _, nodes in owned_nodes(config):
        whose = config.scheduler_of(nodes)
        if whose.kind != "slurm" or slurm is None:
            continue
        if not slurm.managed and nodes.managed:
            message = "belong to a Slurm that isn't managed, whose slurm.conf and nodes stay as they are: write "
            yield Finding(at("managed"), True, "unmanaged-slurm", message + "managed: false")
        elif slurm.managed and not nodes.managed and not nodes.addresses:
            message = "are needed: slurm.conf, which is managed, names each node's address"
            yield Finding(at("addresses"), None, "missing", message)
        elif slurm.managed and not nodes.managed and nodes.slurm is None:
            message = (
                "is needed: slurm.conf, which is managed, names each node's CPUs and memory; `slurmd -C` says them"
            )
            yield Finding(at("slurm"), None, "missing", message)
    if slurm and not slurm.managed and config.users:
        message = "makes users and accounts in Slurm, which isn't managed: leave it out"
        yield Finding(path_of("users"), None, "unmanaged-slurm", message)
    if slurm and not slurm.managed and config.shares:
        message = "become accounts and QOS of Slurm, which isn't managed: leave them out"
        yield Finding(path_of("shares"), None, "unmanaged-slurm", message)


def _kill_wait(config: ClusterConfig) -> Findings:
    """A job that saves for longer than the notice lasts ends in the middle of it."""
    for at, each in schedulers(config):
        if each.kind != "slurm" or each.kill_wait is None:
            continue
        notice_s = spot_notice.declared_s(config, each)
        given, most_s = duration_text(each.kill_wait), spot_notice.most_s(config.burst.tick, notice_s)
        if not each.managed:
            message = f"{given} is a line of a slurm.conf that isn't managed: leave it out, and see `ironburst doctor`"
            yield Finding(at("kill_wait"), given, "unmanaged-slurm", message)
        elif each.kill_wait > most_s:
            message = f"{given} is longer than a node that is given up waits for its jobs: write {most_s}s or less"
            if notice_s:
                leaves = f"the cloud's notice of {notice_s}s leaves a job beside a tick of"
                message = f"{given} is longer than what {leaves} {duration_text(config.burst.tick)}: "
                message += f"write {most_s}s or less"
            yield Finding(at("kill_wait"), given, "kill-wait", message)


def _managed_only(config: ClusterConfig) -> Findings:
    for at, each in schedulers(config):
        if each.kind == "slurm" and each.second_head and not each.managed:
            message = "is a line of a slurm.conf that isn't managed: leave it out; a controller of ours on both heads "
            yield Finding(at("second_head"), None, "unmanaged-slurm", message + "needs the ledger alone")
        if each.kind == "slurm" and each.mail and not each.managed:
            message = "is MailProg of a slurm.conf that isn't managed: leave it out"
            yield Finding(at("mail"), None, "unmanaged-slurm", message)


def _kinds(config: ClusterConfig) -> Findings:
    """One of each kind at most. Teams' shares are parts of one scheduler's nodes."""
    for n, other in enumerate(config.other_schedulers):
        if other.kind == config.scheduler.kind:
            other_kind = next(title for kind, title in SCHEDULERS.items() if kind != other.kind)
            message = f"is {other.kind} as `scheduler` is, and a stack has one of each kind: write {other_kind}'s here"
            yield Finding(path_of("other_schedulers", n, "kind"), other.kind, "scheduler-twice", message)
    if config.shares and config.other_schedulers:
        message = "are parts of the nodes of one scheduler, and this stack has two: leave them out, or make two stacks"
        yield Finding(path_of("shares"), None, "shares-of-two", message)


def _whose(config: ClusterConfig) -> Findings:
    """With two schedulers everything says whose it is; with one there is nothing else to say."""
    for at, _, nodes in owned_nodes(config):
        if nodes.node_objects and config.scheduler_of(nodes).kind != "kubernetes":
            message = "are for nodes of a Kubernetes cluster, and these are Slurm's: leave them out"
            yield Finding(at("node_objects"), nodes.node_objects, "no-cluster", message)
        yield from _one(config, at, nodes, [config.scheduler_of(nodes).kind] if nodes.role != "gpu" else None)
    for at, group in cloud_nodes(config):
        yield from _one(config, at, group)


def _one(config: ClusterConfig, at: At, nodes: NodeSettings, may: list[str] | None = None) -> Findings:
    """`may`: the only ones that they may be of."""
    kinds = [kind for kind in (each.kind for each in config.schedulers) if may is None or kind in may]
    allowed = " or ".join(kinds) or "none"
    if nodes.scheduler is None and len(config.schedulers) > 1 and not may:
        message = f"is absent, and this stack has two schedulers: say whose nodes these are, {allowed}"
        yield Finding(at("scheduler"), None, "whose-nodes", message)
    elif nodes.scheduler is not None and nodes.scheduler not in kinds:
        message = f"is {nodes.scheduler}, and what is declared here can only be of {allowed}"
        yield Finding(at("scheduler"), nodes.scheduler, "whose-nodes", message)


def head_declared(config: ClusterConfig, path: str, of: Scheduler) -> Findings:
    """The node at `path` that a scheduler names as its head has that role, and is the only one, or one of two."""
    ranges = [nodes for _, _, nodes in owned_nodes(config) if nodes.role == "head"]
    heads = [name for nodes in ranges for name in nodes.names]
    own = [name for nodes in ranges if config.scheduler_of(nodes) is of for name in nodes.names]
    if of.head_node is None:
        return
    if of.head_node not in heads:
        known = ", ".join(heads) or "none is declared"
        message = f"{of.head_node!r} is not a node with role head; nodes with it: {known}"
        yield Finding(path, of.head_node, "unknown-node", message)
    elif of.kind == "slurm" and of.second_head:
        yield from _second(path.removesuffix("head") + "second_head.head", of.head, of.second_head.head, own)
    elif len(own) > 1:
        message = f"there are {len(own)} head nodes and one is supported (more control planes are joined by hand)"
        if of.kind == "slurm":
            message = f"there are {len(own)} head nodes, and the ledger is a file of one of them (SQLite): write "
            message += "`second_head` with a ledger in PostgreSQL for two"
        yield Finding(path, own, "one-head", f"{message}; keep one")


def _second(path: str, first: str, second: str, heads: list[str]) -> Findings:
    if second == first or second not in heads:
        known = ", ".join(name for name in heads if name != first) or "none is declared"
        message = f"{second!r} is not a second node with role head; nodes with it beside {first}: {known}"
        yield Finding(path, second, "unknown-node", message)
    elif len(heads) > 2:
        yield Finding(path, heads, "two-heads", f"there are {len(heads)} head nodes and two are supported; keep two")


def _nodes(config: ClusterConfig) -> Findings:
    for at, _, nodes in owned_nodes(config):
        whose = config.scheduler_of(nodes)
        if nodes.role == "head" and whose.head_node is None:
            message = "has role head, and the cluster has its own control plane: leave these nodes out, or let one of "
            message += "them make a cluster (`control_plane.head` of the scheduler)"
            yield Finding(at("role"), nodes.role, "no-head", message)
        if nodes.role == "login" and config.slurm is None:
            message = "is login, and this site has no Slurm that is submitted to: leave these nodes out"
            yield Finding(at("role"), nodes.role, "no-slurm", message)
        if whose is config.slurm:
            continue
        key = "node_objects" if nodes.node_objects else "names"
        for name in getattr(nodes, key):
            if not re.fullmatch(NODE_NAME, name):
                message = f"{name!r} is no name of a Kubernetes node: small letters, digits, - and . inside"
                yield Finding(at(key), name, "node-name", message)
