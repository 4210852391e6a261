"""Data sets of cloud nodes: who has them, and where."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.config.aws import declared as in_aws
from ironburst.config.aws.models import AwsCloud, AwsGroup, AwsPool
from ironburst.config.checks.common import Findings
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.nodes import naming

SYSTEM = ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var")
ROLE_NAME = 64 - 8  # characters of an IAM role's name, without those that make it unique


def data(config: ClusterConfig) -> Findings:
    """Nodes name declared data sets, each of which has a folder of its own, and have the time to copy them."""
    cloud = in_aws.of(config)
    if not cloud:
        return
    yield from _folders(cloud, {each.shared_filesystem for each in config.schedulers if each.shared_filesystem})
    for where, nodes in _nodes(cloud):
        for n, name in enumerate(nodes.data):
            if name not in cloud.data:
                known = f"declared there: {', '.join(cloud.data)}" if cloud.data else "nothing is declared there"
                message = f"{name!r} is not in cloud.data ({known}); somebody else has to bring it to these nodes"
                yield Finding(path_of("cloud", *where, "data", n), name, "data-undeclared", message, "warning")
        if any(name in cloud.data and cloud.data[name].s3 for name in nodes.data):
            yield from _copied(config, where, nodes)


def _nodes(cloud: AwsCloud) -> Iterator[tuple[tuple[str, int], AwsGroup | AwsPool]]:
    yield from ((("groups", g), group) for g, group in enumerate(cloud.groups))
    yield from ((("pools", p), pool) for p, pool in enumerate(cloud.pools))


def _folders(cloud: AwsCloud, shared: set[str]) -> Findings:
    taken = dict.fromkeys(sorted(shared), "scheduler.shared_filesystem")
    taken |= {nodes.scratch.path: f"scratch of {nodes.name}" for _, nodes in _nodes(cloud) if nodes.scratch}
    for name, declared in cloud.data.items():
        folder, path = declared.where(name), path_of("cloud", "data", name, "path")
        if folder.split("/")[1] in SYSTEM:
            yield Finding(path, folder, "data-path", f"{folder} is in a folder of the system; choose one such as /data")
        for other, whose in taken.items():
            if f"{folder}/".startswith(f"{other}/") or f"{other}/".startswith(f"{folder}/"):
                message = f"{folder} and {other} ({whose}) are one inside the other; choose another path"
                yield Finding(path, folder, "data-path", message)
        taken[folder] = f"data set {name}"


def _copied(config: ClusterConfig, where: tuple[str, int], nodes: AwsGroup | AwsPool) -> Findings:
    """What a copy from S3 asks of the nodes' declaration."""
    kind = "node" if isinstance(nodes, AwsPool) else "fixed"
    if len(role := naming.logical(config.name, kind, nodes.name)) > ROLE_NAME:
        message = f"its nodes read data by a role of their own, {role}: IAM's names are shorter, so shorten this one"
        yield Finding(path_of("cloud", *where, "name"), nodes.name, "role-name", message)
