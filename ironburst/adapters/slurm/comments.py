"""What Slurm shows beside its jobs (AdminComment), and which tasks of an array it shows in one row, from
`squeue --json`.
"""

from __future__ import annotations

from typing import Any

from ironburst.adapters.slurm import arrays as slurm_arrays


def comments(answer: Any) -> tuple[dict[int, str], dict[int, str]]:
    """The administrator's comments by id; tasks that wait together have one. And tasks that wait in one row, by id, and
    what all of that row is called; empty: that isn't known.
    """
    said, together = {}, {}
    for raw in slurm_arrays.tasks_apart(answer["jobs"]):
        try:
            id = slurm_arrays.job_id(raw)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # told already, where the jobs are read
        if raw.get("admin_comment"):
            said[id] = str(raw["admin_comment"])
        if slurm_arrays.TOGETHER in raw:
            together[id] = str(raw[slurm_arrays.TOGETHER])
    return said, together
