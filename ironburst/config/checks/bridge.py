"""slurm-bridge: what it needs beside Slurm, and what isn't there with it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from ironburst import catalog
from ironburst.config.checks import common
from ironburst.config.checks.common import At, Findings, schedulers
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import Slurm
from ironburst.config.software import wish

# Of slurm-bridge 1.1 and 1.2: kubeVersion of the chart, and its annotation slinky.slurm.net/minimum-slurm-version
LEAST = {"slurm": (25, 11), "kubernetes": (1, 34)}
NAMES = {"slurm": "Slurm", "kubernetes": "Kubernetes"}


def bridge(config: ClusterConfig) -> Findings:
    """Slurm and Kubernetes are new enough, and nothing beside it is of two
    minds about whose the queue is.
    """
    for at, _ in _bridged(config):
        if config.other_schedulers:
            message = "makes Slurm the queue of a cluster, and other_schedulers declares a second queue: leave one out"
            yield Finding(at(), None, "bridge-alone", message)
        if config.shares:
            message = "and shares exclude each other: slurm-bridge's jobs are SlurmUser's, and no team's; leave one out"
            yield Finding(at(), None, "bridge-shares", message)
        yield from _versions(config)


def joined_with(config: ClusterConfig) -> Findings:
    """Rented nodes can read what they join the cluster with, in their own cloud's store."""
    for at, slurm in _bridged(config):
        if config.cloud and config.cloud.pools and slurm.bridge:
            yield from common.readable(config.cloud, at("join_token"), slurm.bridge.join_token)


def _bridged(config: ClusterConfig) -> Iterator[tuple[At, Slurm]]:
    for at, each in schedulers(config):
        if isinstance(each, Slurm) and each.bridge:
            yield functools.partial(at, "bridge"), each


def _versions(config: ClusterConfig) -> Findings:
    """Both are declared, here or by the profile, and new enough; kubelet's containers are containerd's."""
    try:
        wanted = wish(config, None, None, "slurm", "kubernetes")
    except catalog.Unknown:
        return  # told of the profile
    for name, least in LEAST.items():
        given, needs = getattr(wanted, name), ".".join(map(str, least))
        known = re.match(r"(\d+)\.(\d+)", given or "")
        if not given:
            message = f"is absent, and slurm-bridge needs both schedulers' versions: write {name}: {needs!r} or newer"
        elif known and (int(known[1]), int(known[2])) < least:
            message = (
                f"is {given}, and slurm-bridge needs {NAMES[name]} {needs} or newer: write that, or leave bridge out"
            )
        else:
            continue
        yield Finding(path_of("software", name), given, f"bridge-{name}", message)
    if "containerd" not in wanted.container_runtimes:
        message = "has no containerd, which kubelet starts its containers with: add it"
        path = path_of("software", "container_runtime")
        yield Finding(path, list(wanted.container_runtimes), "containerd", message)
