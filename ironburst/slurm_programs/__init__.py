"""The two programs that slurmctld calls for rented nodes, and the controller's unit, for a Slurm that isn't managed.
The role slurm_head has the same (a test compares them).
"""

from __future__ import annotations

from importlib import resources

NAMES = ("ironburst-resume", "ironburst-suspend")
UNIT = "ironburst.service"
"""CLUSTER in it is the cluster's name"""


def text(name: str) -> str:
    """The whole program."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")
