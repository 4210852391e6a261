"""slurm-bridge's jobs in Slurm's JSON: each stands for pods that wait in Slurm's queue, and kubelet runs them, not
slurmd (docs/adr/0044). Pure. Written from its documents and source (1.2) and slurmctld's (25.11); never run with a real
one.

It lists in `required_nodes` every Kubernetes node that would fit: more than the job needs, so that Slurm takes them for
the only ones allowed. And it writes partitions and that list again every few seconds while the job waits. So the
controller can't move such a job between partitions: slurm-bridge submits it to all of them at once
(`schedulerConfig.partition: home,burst-p5`), and the nodes that it must not be given are excluded, which slurm-bridge
leaves alone. Here both are translated into the controller's terms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ironburst.adapters.slurm import answers as slurm_json
from ironburst.adapters.slurm.answers import Read
from ironburst.ports import Job

Json = dict[str, Any]
Pools = Mapping[str, frozenset[str]]  # the nodes of each burst partition
_UNDECLARED = "a node of Kubernetes (it is slurm-bridge's job for pods, and the stack has no scheduler.bridge)"


def read_jobs(queue: Any, pools: Pools | None, read: Callable[[Any], Job] = slurm_json.job) -> Read:
    """The jobs of `squeue --json`. `pools`: None where nothing is declared of a bridge. Raises WrongShape."""
    pods = placeholders(queue)
    if not pods:
        return slurm_json.read_jobs(queue, read)
    rows = [_row(raw, pods[raw["job_id"]]) if _is(raw, pods) else raw for raw in queue["jobs"]]
    found = slurm_json.read_jobs({**queue, "jobs": rows}, read)
    return Read([told(job, pools) if job.id in pods else job for job in found.items], found.unreadable)


def placeholders(queue: Any) -> dict[int, tuple[str, ...]]:
    """The pods (NAMESPACE/NAME) that jobs of slurm-bridge stand for, by their ids."""
    rows = queue.get("jobs") if isinstance(queue, dict) else None
    found = {}
    for raw in rows if isinstance(rows, list) else ():
        if isinstance(raw, dict) and isinstance(id := raw.get("job_id"), int) and (pods := pods_of(raw)):
            found[id] = pods
    return found


def pods_of(raw: Json) -> tuple[str, ...]:
    """By the comment that only Slurm's administrators can write: `{"pods": ["team-a/train-0"]}`. Empty: it isn't
    slurm-bridge's.
    """
    if not (comment := raw.get("admin_comment")):
        return ()
    try:
        said = json.loads(comment)
    except (ValueError, TypeError):
        return ()
    pods = said.get("pods") if isinstance(said, dict) else None
    if not isinstance(pods, list) or not all(isinstance(pod, str) and pod.count("/") == 1 for pod in pods):
        return ()
    return tuple(pods)


def excluded(pools: Pools, partitions: Iterable[str], others: Iterable[str]) -> list[str]:
    """What a job must not be given so that it runs only in these partitions: their nodes but `others`, sorted."""
    closed = {node for partition in pools.keys() - set(partitions) for node in pools[partition]}
    return sorted(closed | set(others))


def told(job: Job, pools: Pools | None) -> Job:
    """One of slurm-bridge's in the controller's words: it is in the partitions of which not every node is excluded."""
    if pools is None:
        return replace(job, demands=_and(job.demands, _UNDECLARED))
    if job.on:
        return job
    may = [name for name in job.partitions if name in pools]
    barred = set(job.excluded)
    closed = {name for name in may if pools[name] <= barred}
    if not may:
        here = ",".join(job.partitions)
        said = (
            f"partition {here} alone (slurm-bridge must submit to the burst partitions, too: schedulerConfig.partition)"
        )
        job = replace(job, demands=_and(job.demands, said))
    hidden = {node for name in pools if name in closed or name not in may for node in pools[name]}
    return replace(
        job,
        partitions=tuple(name for name in job.partitions if name not in closed),
        excluded=tuple(name for name in job.excluded if name not in hidden),
    )


def _is(raw: Any, pods: Mapping[int, Any]) -> bool:
    return isinstance(raw, dict) and raw.get("job_id") in pods


def _row(raw: Json, pods: tuple[str, ...]) -> Json:
    """It has the name of its first pod. The nodes that it requires are those that it may be given; it has no script, so
    it is no batch job to Slurm, and can't be put back into the queue, whatever is said.
    """
    return {**raw, "name": pods[0], "required_nodes": "", "batch_flag": True, "requeue": False}


def _and(demands: str, more: str) -> str:
    return f"{demands} and {more}" if demands else more
