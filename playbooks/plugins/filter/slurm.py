"""Filters over versions of Slurm."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # ansible's own process does not know the repository
from ironburst.software import slurm_upgrade


def slurm_release(said: str | None) -> str:
    """The release in what `slurmctld -V` printed; empty: none is installed."""
    return slurm_upgrade.release_of(said or "")


def slurm_upgrade_refused(installed: str, declared: str) -> str:
    """Why the installed release can't become the declared one; empty: it can."""
    return slurm_upgrade.refused(installed, declared) if installed else ""


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
            "pmix_packages": pmix_packages,
            "slurm_release": slurm_release,
            "slurm_upgrade_refused": slurm_upgrade_refused,
        }
