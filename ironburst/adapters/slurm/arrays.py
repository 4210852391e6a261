"""Tasks of Slurm's arrays in `squeue --json`: each a row of its own, with an id that it keeps when it is split off."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from ironburst.adapters.slurm.values import number
from ironburst.nodes import naming

TASKS_SHOWN = 100
"""of an array that waits, the next ones; never how many may run at a time, which is Slurm's own `array_max_tasks`"""
_STARTED = ("RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED")
"""what Slurm counts against the throttle: one that is COMPLETING runs no more (job_completion_logger), however long"""
TOGETHER = "waits_together"
"""our key in the row of a task: how Slurm's commands call the whole row that it came from; naming fewer tasks splits
them off. Empty where squeue cut that short (...)"""


def tasks_apart(rows: list[Any]) -> list[Any]:
    """Each task of an array as a row of its own, though Slurm has those that wait in one; of many the next ones, and no
    more than may run at a time (--array=1-100%5).
    """
    running: Counter[int] = Counter()
    ahead: Counter[int] = Counter()  # split off, and put back: they wait by themselves
    for raw in rows:
        if isinstance(raw, dict) and not raw.get("array_task_string") and (array := _number(raw, "array_job_id")):
            state = str(raw.get("job_state"))
            if any(word in state for word in _STARTED):
                running[array] += 1
            elif "PENDING" in state and _number(raw, "priority"):
                ahead[array] += 1
    apart = []
    for raw in rows:
        together = raw.get("array_task_string") if isinstance(raw, dict) else None
        tasks = _task_ids(together) if isinstance(together, str) and together else []
        if not tasks:
            apart.append(raw)
            continue
        array, at_once = _number(raw, "array_job_id"), _number(raw, "array_max_tasks")
        limited = {"state_reason": "JobArrayTaskLimit"} if at_once and running[array] >= at_once else {}
        more = min(at_once - running[array] - ahead[array], TASKS_SHOWN) if at_once else TASKS_SHOWN
        row = str(together).partition("%")[0]
        limited |= {TOGETHER: "" if "..." in row else f"{array}_[{row}]"}
        apart += [
            raw | limited | {"array_task_string": "", "array_task_id": {"set": True, "infinite": False, "number": task}}
            for task in tasks[: max(1, more)]
        ]
    return apart


def _task_ids(text: str) -> list[int]:
    """`1,3-9:2%4` as numbers, no more than TASKS_SHOWN; what Slurm cut off (...) isn't there. Empty: another shape."""
    ids: list[int] = []
    for part in text.partition("%")[0].replace("...", "").rstrip(",-").split(","):
        if not (match := re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)):
            return []
        first, last, step = match[1], match[2] or match[1], match[3] or 1
        ids += range(int(first), int(last) + 1, int(step))[:TASKS_SHOWN]
    return ids[:TASKS_SHOWN]


def _number(raw: dict[str, Any], key: str) -> int:
    try:
        return int(number(raw.get(key, 0)) or 0)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return 0


def alone(raw: dict[str, Any]) -> bool:
    """No word of an array, as in most rows."""
    return not raw.get("array_job_id") and raw.get("array_task_id") is None


def job_id(raw: dict[str, Any]) -> int:
    """Slurm's own, or ours of a task."""
    if alone(raw):
        return int(number(raw["job_id"]) or 0)
    array, task = number(raw.get("array_job_id", 0)), number(raw.get("array_task_id"))
    if array and task is not None:
        return naming.task_of_array(int(array), int(task))
    return int(number(raw["job_id"]) or 0)


def numbers(answer: Any) -> dict[int, int]:
    """Slurm's own number of each task that it has split off, by our id."""
    found = {}
    for raw in answer["jobs"]:
        if isinstance(raw, dict) and not raw.get("array_task_string") and _number(raw, "array_job_id"):
            try:
                found[job_id(raw)] = _number(raw, "job_id")
            except (KeyError, TypeError, ValueError, AttributeError):
                continue  # told already, where the jobs are read
    return {id: own for id, own in found.items() if own and own != id}
