"""A Kubernetes cluster that is there already says how it is reached; one that is made here follows from its head."""

from __future__ import annotations

import ipaddress

from ironburst.config.aws.eks_models import KEY as HOSTED
from ironburst.config.checks.common import At, Findings, cloud_nodes, owned_nodes, schedulers
from ironburst.config.checks.scheduler import head_declared
from ironburst.config.cloud_models import Group
from ironburst.config.finding import Finding
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import ControlPlane, Kubernetes

NODE_PREFIX = 24
"""of the pods of one node: kubeadm's (node-cidr-mask-size)"""
POD_PREFIXES = range(NODE_PREFIX - 16, NODE_PREFIX + 1)
SERVICE_PREFIXES = range(12, 29)
"""what kubeadm takes; the last ones still have the address of the DNS service"""


def control_plane(config: ClusterConfig) -> Findings:
    """Of the cluster, where there is one."""
    for at, each in schedulers(config):
        if not isinstance(each, Kubernetes) or each.hosted:
            continue
        if each.join_token is None:
            yield Finding(
                at("join_token"), None, "missing", "is needed: rented nodes join with what the controller puts there"
            )
        if each.control_plane is None:
            yield from _there(at, each)
        else:
            yield from _made(config, at, each)
            yield from _networks(config, at, each.control_plane)


def _there(at: At, declared: Kubernetes) -> Findings:
    for key in ("api_server", "ca", "cluster_dns"):
        if getattr(declared, key) is None:
            message = f"is needed for a cluster that is there already; to make one, write control_plane or {HOSTED}"
            yield Finding(at(key), None, "missing", message)


def _made(config: ClusterConfig, at: At, declared: Kubernetes) -> Findings:
    path = at("control_plane", "head")
    yield from head_declared(config, path, declared)
    head = declared.head_node
    if config.slurm and config.slurm.head == head:
        yield Finding(path, head, "one-head", f"{head} is Slurm's head, too: each of the two needs a host of its own")
    if declared.cluster_dns is not None:
        message = "follows from control_plane.service_cidr (its tenth address): leave it out"
        yield Finding(at("cluster_dns"), declared.cluster_dns, "cluster-dns", message)
    rents = any(config.scheduler_of(pool) is declared for pool in config.pools)
    if rents and declared.ca is None:
        message = f"is needed where there are burst pools: converge {head} first, then write what it has as "
        message += "/etc/kubernetes/pki/ca.crt here"
        yield Finding(at("ca"), None, "missing", message)


def _networks(config: ClusterConfig, at: At, declared: ControlPlane) -> Findings:
    pods, path = ipaddress.IPv4Network(declared.pod_cidr), at("control_plane", "pod_cidr")
    if pods.prefixlen not in POD_PREFIXES:
        message = f"must be between /{POD_PREFIXES[0]} and /{POD_PREFIXES[-1]}: each node takes a /{NODE_PREFIX} of it"
        yield Finding(path, declared.pod_cidr, "network-size", message)
    elif (wanted := _nodes(config)) > (room := 2 ** (NODE_PREFIX - pods.prefixlen)):
        message = f"has room for {room} nodes (each takes a /{NODE_PREFIX}) and {wanted} may be there: give a larger "
        message += "one, unless your CNI divides it otherwise"
        yield Finding(path, declared.pod_cidr, "network-size", message, "warning")
    if ipaddress.IPv4Network(declared.service_cidr).prefixlen not in SERVICE_PREFIXES:
        message = f"must be between /{SERVICE_PREFIXES[0]} and /{SERVICE_PREFIXES[-1]}: kubeadm takes no other"
        yield Finding(at("control_plane", "service_cidr"), declared.service_cidr, "network-size", message)


def _nodes(config: ClusterConfig) -> int:
    """How many the cluster may have."""
    owned = [len(nodes.names) for _, _, nodes in owned_nodes(config) if config.scheduler_of(nodes).kind == "kubernetes"]
    of_cloud = [nodes for _, nodes in cloud_nodes(config) if config.scheduler_of(nodes).kind == "kubernetes"]
    return sum(owned) + sum(each.count if isinstance(each, Group) else each.max_nodes for each in of_cloud)
