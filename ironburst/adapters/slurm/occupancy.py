"""Which jobs are on which nodes, from Slurm's JSON: what a converge and all that switches machines asks first."""

from __future__ import annotations

import math
from typing import Any

from ironburst.adapters.slurm import arrays as slurm_arrays
from ironburst.adapters.slurm.answers import _SHAPES, _words, jobs, nodes, rows_of
from ironburst.adapters.slurm.values import expand, number
from ironburst.ports import Job
from ironburst.ports.service import Occupancy

_OFF_NODES = frozenset(  # base states of jobs that wait or have ended; such a one that is COMPLETING has its nodes
    ("PENDING", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE")
) | {"OUT_OF_MEMORY", "REVOKED"}


def occupancy(queue: Any, shown: Any) -> dict[str, Occupancy]:
    """Nodes and the jobs on them, from `squeue --json` and `scontrol show node --json`. Raises WrongShape."""
    on: dict[str, list[Job]] = {}
    raws = slurm_arrays.tasks_apart(rows_of(queue, "jobs", "squeue"))
    for job, raw in zip(jobs(queue), raws, strict=True):
        for name in job.on or _unknown_state_on(raw):
            on.setdefault(name, []).append(job)
    seen = {}
    for node, raw in zip(nodes(shown), rows_of(shown, "nodes", "scontrol show node"), strict=True):
        there = on.get(node.name, [])
        seen[node.name] = Occupancy(
            node.name,
            node.partitions,
            frozenset(node.states),
            node.reason,
            registered=_registered(raw),
            jobs=tuple(job.called or job.id for job in there),
            end_s=max((math.inf if job.end_s is None else job.end_s for job in there), default=0.0),
            address=node.address,
        )
    return seen


def _unknown_state_on(raw: Any) -> list[str]:
    """The nodes of a job in a state that isn't known: neither waiting nor ended, so it may be on them."""
    try:
        return [] if not _OFF_NODES.isdisjoint(_words(raw["job_state"])) else expand(raw["nodes"] or "")
    except _SHAPES:  # an unreadable one has its nodes already
        return []


def _registered(raw: dict[str, Any]) -> bool:
    try:
        return bool(number(raw["slurmd_start_time"]))
    except _SHAPES:  # in doubt it has
        return True


def cluster(answer: Any) -> str:
    """The ClusterName that an answer is of; empty: it doesn't say (before Slurm 23.11)."""
    try:
        return str(answer["meta"]["slurm"]["cluster"] or "")
    except _SHAPES:
        return ""
