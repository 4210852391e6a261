"""Filters over versions of Slurm."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # ansible's own process does not know the repository
from ironburst.software import slurm_upgrade


def slurm_release(said: str | None) -> str:
    """The release in what `slurmctld -V` printed; empty: none is installed."""
    return slurm_upgrade.release_of(said or "")


def slurm_upgrade_refused(installed: str, declared: str) -> str:
    """Why the installed release can't become the declared one; empty: it can."""
    return slurm_upgrade.refused(installed, declared) if installed else ""


class FilterModule:
    """Filters of ironburst's roles."""

    def filters(self):
        """Name -> function, as Ansible asks for them."""
        return {"slurm_release": slurm_release, "slurm_upgrade_refused": slurm_upgrade_refused}
