"""What Slurm shows beside its jobs (AdminComment), and which tasks of an array it shows in one row, from
`squeue --json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironburst.adapters.slurm import arrays as slurm_arrays


def comments(answer: Any) -> dict[int, str]:
    """The administrator's comments by id; tasks that wait together have one."""
    return {id: said for id, raw in _rows(answer) if (said := str(raw.get("admin_comment") or ""))}


def together(answer: Any) -> dict[int, str]:
    """Tasks that wait in one row, by id, and what all of that row is called; empty: that isn't known."""
    return {id: str(raw[slurm_arrays.TOGETHER]) for id, raw in _rows(answer) if slurm_arrays.TOGETHER in raw}


def _rows(answer: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for raw in slurm_arrays.tasks_apart(answer["jobs"]):
        try:
            yield slurm_arrays.job_id(raw), raw
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # told already, where the jobs are read
