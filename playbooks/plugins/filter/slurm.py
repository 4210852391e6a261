"""Filters over versions of Slurm, and over what its nodes have."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # ansible's own process does not know the repository
from ironburst.nodes import naming
from ironburst.software import slurm_upgrade


def slurm_release(said: str | None) -> str:
    """The release in what `slurmctld -V` printed; empty: none is installed."""
    return slurm_upgrade.release_of(said or "")


def slurm_upgrade_refused(installed: str, declared: str) -> str:
    """Why the installed release can't become the declared one; empty: it can."""
    return slurm_upgrade.refused(installed, declared) if installed else ""


def slurm_kinds(nodes: list[dict]) -> list[dict]:
    """Nodes of the document (a pool is as many as it has names) by what they have: how many (nodes), and of each its
    CPUs, memory in MiB, and devices by Slurm's gres type (gpus).
    """
    kinds: Counter[tuple] = Counter()
    for node in nodes:
        has = node["slurm"]["cpus"], node["slurm"]["memory_mb"], tuple(sorted(_devices(node).items()))
        kinds[has] += len(node.get("nodes", [node["name"]]))
    return [
        {"nodes": count, "cpus": cpus, "memory_mb": memory_mb, "gpus": dict(devices)}
        for (cpus, memory_mb, devices), count in kinds.items()
    ]


def _devices(node: dict) -> Counter[str]:
    """Whole GPUs by their model, MIG slices by their profile."""
    devices: Counter[str] = Counter()
    if node["gpu"]:
        layouts = node["mig"] or []
        devices[naming.gpu_type(node["gpu"]["model"])] = node["gpu"]["count"] - sum(
            len(each["gpus"]) for each in layouts
        )
        for layout in layouts:
            for profile, count in layout["profiles"].items():
                devices[profile] += count * len(layout["gpus"])
    return +devices


def pmix_packages(software: dict[str, Any], os: str) -> list[str]:
    """What Slurm's plugin mpi/pmix needs and its package doesn't ask for: it opens libpmix.so, which lies in -dev.
    Debian 13's own opens libpmix.so.2 and depends on it; SchedMD's rpm requires pmix.
    """
    whole = os.startswith("rhel") or (os == "debian13" and software.get("slurm_packages") != "schedmd")
    return [] if whole else ["libpmix-dev"]


class FilterModule:
    """Filters of ironburst's roles."""

    def filters(self):
        """Name -> function, as Ansible asks for them."""
        return {
            "slurm_kinds": slurm_kinds,
            "pmix_packages": pmix_packages,
            "slurm_release": slurm_release,
            "slurm_upgrade_refused": slurm_upgrade_refused,
        }
