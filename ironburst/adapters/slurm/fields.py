"""What is read of Slurm's rows, and rows with that alone: of the 136 fields of a job about sixty, of a node ten.
tests/adapters/test_slurm_fields.py compares these names with what the readers ask a row for.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from ironburst.adapters.slurm.values import NO_VALUE

# a row without one of these isn't a job: they are kept whatever they say; so are the two of which it counts whether
# they are there (asked.lacks_exclusive)
NEEDED = frozenset(
    [
        "account",
        "batch_flag",
        "end_time",
        "exclusive",
        "job_id",
        "job_state",
        "memory_per_tres",
        "name",
        "node_count",
        "nodes",
        "partition",
        "priority",
        "qos",
        "requeue",
        "shared",
        "start_time",
        "state_reason",
        "submit_time",
        "time_limit",
        "tres_alloc_str",
        "tres_req_str",
        "user_name",
    ]
)
_ASKED_FOR = """admin_comment array_job_id array_max_tasks array_task_id array_task_string batch_features burst_buffer
    comment cpus_per_tres current_working_directory deadline dependency eligible_time excluded_nodes features
    gres_detail het_job_id het_job_offset licenses max_nodes memory_per_cpu minimum_cpus_per_node
    minimum_tmp_disk_per_node required_nodes restart_cnt resv_name sockets_per_node standard_error standard_input
    standard_output state_description tasks tasks_per_tres time_minimum tres_per_job tres_per_node tres_per_socket
    tres_per_task"""
JOB = NEEDED | frozenset(_ASKED_FOR.split())
NODE = frozenset(
    [
        "address",
        "gres",
        "name",
        "partitions",
        "reason",
        "reason_changed_at",
        "reason_set_by_user",
        "slurmd_start_time",
        "state",
        "tres",
    ]
)
_OPTIONAL = frozenset(_ASKED_FOR.split())


def job(raw: Any) -> Any:
    """A row of `squeue --json` with what is read of it; what says nothing is left out where that reads the same."""
    return _only(JOB, _OPTIONAL, raw)


def node(raw: Any) -> Any:
    """A row of `scontrol show node --json` with what is read of it."""
    return _only(NODE, frozenset(), raw)


def _only(names: frozenset[str], optional: frozenset[str], raw: Any) -> Any:
    if not isinstance(raw, dict):
        return raw
    found = ((key, _plain(value)) for key, value in raw.items() if key in names)
    return {key: value for key, value in found if key not in optional or (value is not None and value != "")}


def _plain(value: Any) -> Any:
    """`{set, infinite, number}` as the number that it is (values.number reads both), and equal texts as one."""
    if type(value) is str:
        return sys.intern(value)
    if type(value) is not dict or value.keys() != {"set", "infinite", "number"}:
        return value
    has, endless, found = value["set"], value["infinite"], value["number"]
    if type(has) is not bool or type(endless) is not bool or type(found) not in (int, float) or found >= NO_VALUE:
        return value
    return math.inf if endless else found if has else None
