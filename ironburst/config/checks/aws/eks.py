"""A cluster that AWS runs: what EKS refuses, and what nodes need to join there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from ironburst.catalog.aws.eks import eks_versions
from ironburst.config.aws import eks_cluster
from ironburst.config.aws.models import AwsCloud
from ironburst.config.checks.common import At, Findings, cloud_nodes, clouds, owned_nodes, schedulers
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import Kubernetes
from ironburst.nodes import naming

ZONES = 2  # EKS puts its interfaces into subnets of two zones at least
SKEW = 3  # minor versions that a kubelet may be older than the API server


def hosted(config: ClusterConfig) -> Findings:
    """Only where a scheduler is a cluster of EKS; without one, nodes stand in a hall."""
    made = [(at, each) for at, each in schedulers(config) if isinstance(each, Kubernetes) and each.eks]
    there = config.slurm is not None and not config.slurm.managed
    if not config.halls and not made and not there:
        message = "is needed here and absent; only a cluster of EKS, and a Slurm that isn't managed, need no hall"
        yield Finding(path_of("halls"), None, "missing", message)
    for at, each in made:
        yield from _nodes(config, at, each)
        if cloud := config.cloud_by_class(AwsCloud):
            yield from _network(cloud, next(where for where, its in clouds(config) if its is cloud))
        else:
            message = "is made in AWS, and this stack has no cloud there: declare it, with a group of nodes"
            yield Finding(at("eks"), None, "eks-cloud", message)
        yield from _skew(config, at, each)
        yield from _previewing_admin(config, at, each)


def _previewing_admin(config: ClusterConfig, at: At, declared: Kubernetes) -> Findings:
    """Pulumi draws seven characters behind the role's name."""
    ours = re.compile(re.escape(naming.logical(config.name, "preview")) + "(-[0-9a-f]{7})?")
    for arn in declared.eks.admins if declared.eks else ():
        if (cloud := config.cloud_by_class(AwsCloud)) and cloud.ci and ours.fullmatch(arn.rpartition("/")[2]):
            message = (
                "is the role of CI's previews: whoever may open a pull request would be cluster-admin. Leave it out, "
                "`pulumi up` lets it look"
            )
            yield Finding(at("eks", "admins"), arn, "eks-admins", message)


def _nodes(config: ClusterConfig, at: At, declared: Kubernetes) -> Findings:
    """What stands in a hall can't join, and rented nodes alone are too few."""
    for where, _, nodes in owned_nodes(config):
        if config.scheduler_of(nodes) is declared:
            message = "are to join EKS, and nodes of a hall can't (AWS has hybrid nodes for that): give them to Slurm"
            yield Finding(where("names"), nodes.names, "eks-nodes", message)
    for where, its in cloud_nodes(config):
        if config.scheduler_of(its) is declared and config.cloud_of(its) is not config.cloud_by_class(AwsCloud):
            message = "are to join EKS, and nodes of another cloud can't: give them to another scheduler"
            yield Finding(where("scheduler"), its.scheduler, "eks-nodes", message)
    cloud = config.cloud_by_class(AwsCloud)
    if cloud and not any(config.scheduler_of(group) is declared for group in cloud.groups):
        message = "has no fixed node: declare a group under cloud.groups, or the cluster's DNS has nowhere to run"
        yield Finding(at("eks"), None, "eks-nodes", message)


def _network(cloud: AwsCloud, at: At) -> Findings:
    network = cloud.network
    zones = list(network.existing.subnets) if network.existing else network.zones
    if len(zones) < ZONES:
        path = at("network", *(("existing", "subnets") if network.existing else ("zones",)))
        yield Finding(
            path, zones, "eks-zones", f"has one zone, and EKS takes subnets of {ZONES} zones at least: add one"
        )
    if network.egress == "endpoints" and not network.existing:
        message = "is endpoints, and nodes of EKS fetch their pods' images and ask several services of AWS: write nat"
        yield Finding(at("network", "egress"), "endpoints", "eks-egress", message)


def _skew(config: ClusterConfig, at: At, declared: Kubernetes) -> Findings:
    control = eks_cluster.version(config, declared)
    for name, kubelet in eks_cluster.kubelets(config, declared):
        if not (control and kubelet):
            continue  # said by software.scheduler()
        behind = _minor(control) - _minor(kubelet)
        if not 0 <= behind <= SKEW:
            message = (
                f"is {control}, and the kubelets of {name} are {kubelet}: they may be up to {SKEW} minor versions "
                "older than it, and never newer"
            )
            yield Finding(at("eks", "version"), control, "skew", message)


def support(config: ClusterConfig, now: datetime) -> Findings:
    """Whether EKS still offers the version, and at which price."""
    for at, each in schedulers(config):
        if isinstance(each, Kubernetes) and each.eks and (control := eks_cluster.version(config, each)):
            yield from _support(at, control, now)


def _support(at: At, control: str, now: datetime) -> Iterator[Finding]:
    path, known = at("eks", "version"), eks_versions()
    newest = max(known, key=_minor)
    if control not in known and _minor(control) > _minor(newest):
        message = (
            f"is {control}, newer than the catalogue knows of EKS ({newest}): `pulumi up` shows whether EKS has it"
        )
        yield Finding(path, control, "eks-version", message, "warning")
    elif control not in known or known[control].extended_until <= now.date():
        still = ", ".join(name for name, each in known.items() if each.extended_until > now.date())
        yield Finding(path, control, "eks-version", f"is {control}, which EKS offers no more; it has {still}")
    elif known[control].standard_until <= now.date():
        message = (
            f"is {control}, in extended support since {known[control].standard_until}, which costs six times as much "
            f"an hour and ends {known[control].extended_until}: upgrade"
        )
        yield Finding(path, control, "eks-version", message, "warning")


def _minor(version: str) -> int:
    return int(version.split(".")[1])
