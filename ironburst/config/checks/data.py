"""Data sets of cloud nodes: who has them, and where."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.config.checks.common import Findings
from ironburst.config.cloud_models import Cloud, Group, Pool
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig

SYSTEM = ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var")


def data(config: ClusterConfig) -> Findings:
    """Nodes name declared data sets, each of which has a folder of its own."""
    cloud = config.cloud
    if not cloud:
        return
    yield from _folders(cloud, {each.shared_filesystem for each in config.schedulers if each.shared_filesystem})
    for where, nodes in of_nodes(cloud):
        for n, name in enumerate(nodes.data):
            if name not in cloud.data:
                known = f"declared there: {', '.join(cloud.data)}" if cloud.data else "nothing is declared there"
                message = f"{name!r} is not in cloud.data ({known}); somebody else has to bring it to these nodes"
                yield Finding(path_of("cloud", *where, "data", n), name, "data-undeclared", message, "warning")


def of_nodes(cloud: Cloud) -> Iterator[tuple[tuple[str, int], Group | Pool]]:
    """Its groups and pools, with their places below it."""
    yield from ((("groups", g), group) for g, group in enumerate(cloud.groups))
    yield from ((("pools", p), pool) for p, pool in enumerate(cloud.pools))


def _folders(cloud: Cloud, shared: set[str]) -> Findings:
    taken = dict.fromkeys(sorted(shared), "scheduler.shared_filesystem")
    taken |= {nodes.scratch.path: f"scratch of {nodes.name}" for _, nodes in of_nodes(cloud) if nodes.scratch}
    for name, declared in cloud.data.items():
        folder, path = declared.where(name), path_of("cloud", "data", name, "path")
        if folder.split("/")[1] in SYSTEM:
            yield Finding(path, folder, "data-path", f"{folder} is in a folder of the system; choose one such as /data")
        for other, whose in taken.items():
            if f"{folder}/".startswith(f"{other}/") or f"{other}/".startswith(f"{folder}/"):
                message = f"{folder} and {other} ({whose}) are one inside the other; choose another path"
                yield Finding(path, folder, "data-path", message)
        taken[folder] = f"data set {name}"
