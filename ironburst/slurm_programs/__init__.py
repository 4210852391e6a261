"""The two programs that slurmctld calls for rented nodes, the one that knows them by their names, and their units, for
a Slurm that isn't managed. The roles slurm_head and slurm_host have the same (a test compares them).
"""

from __future__ import annotations

from importlib import resources

NAMES = ("ironburst-resume", "ironburst-suspend", "ironburst-names")
UNIT = "ironburst.service"
"""CLUSTER in it is the cluster's name"""
NAMES_UNIT = "ironburst-names.service"


def text(name: str) -> str:
    """The whole program."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")
