"""`scontrol show job` as each release prints it, of rows of `squeue --json` of that release.

Written after _sprint_job_info in scontrol's info_job.c (25.05, 25.11, 26.05), and slurm_sprint_job_info in libslurm's
job_info.c (23.02, 23.11), at the tags that tests/adapters/slurm_fixtures/derive.py names; that of 24.11.5 is recorded,
too (24.11/show_job.txt). Left out are lines that no recorded row has (crontabs, federations, burst buffers).
"""

from __future__ import annotations

import math
from typing import Any

from ironburst.adapters.slurm.answers import _words
from ironburst.adapters.slurm.values import joined, number

# job_state_string: the flags in its order, then the base state
FLAGS = [
    "COMPLETING",
    "STAGE_OUT",
    "CONFIGURING",
    "EXPEDITING",
    "RESIZING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "SPECIAL_EXIT",
    "STOPPED",
    "REVOKED",
    "RESV_DEL_HOLD",
    "SIGNALING",
]
SHARED = {"none": "NO", "oversubscribe": "YES", "user": "USER", "mcs": "MCS", "topo": "TOPO"}


def show_jobs(rows: list[dict[str, Any]], release: str, mark: str = "", now_s: float = 1795262400.0) -> str:
    """`release`: as in "24.11"; `mark`: what SLURM_TIME_FORMAT has before %s."""
    return "".join(show_job(row, release, mark, now_s) + "\n\n" for row in rows) or "No jobs in the system\n"


def show_job(row: dict[str, Any], release: str, mark: str = "", now_s: float = 1795262400.0) -> str:
    """One record."""

    def text(key: str) -> str:
        return joined(row.get(key)) or "(null)"

    def count(key: str, none: str) -> str:
        found = number(row.get(key))
        return none if found is None else f"{found:.0f}"

    def moment(key: str, none: str = "Unknown") -> str:
        found = number(row.get(key))
        return f"{mark}{found:.0f}" if found and math.isfinite(found) else none

    def minutes(key: str, none: str) -> str:
        found = number(row.get(key))
        if found is None or (not found and key == "time_minimum"):
            return none
        if math.isinf(found):
            return "UNLIMITED"
        days, rest = divmod(int(found), 1440)
        return f"{f'{days}-' if days else ''}{rest // 60:02}:{rest % 60:02}:00"

    def size(megabytes: float) -> str:
        for unit, of in (("T", 1024**2), ("G", 1024)):
            if megabytes and megabytes % of == 0:
                return f"{megabytes / of:.0f}{unit}"
        return f"{megabytes:.0f}M" if megabytes else "0"

    states = _words(row["job_state"])
    state = next((flag for flag in FLAGS if flag in states), states[0])
    pending, array, het = "PENDING" in states, number(row["array_job_id"]), number(row["het_job_id"])
    first = f"JobId={row['job_id']} "
    if array:
        first += f"ArrayJobId={array} ArrayTaskId={row['array_task_string'] or count('array_task_id', '')} "
        first += f"ArrayTaskThrottle={count('array_max_tasks', '')} " if number(row["array_max_tasks"]) else ""
    elif het:
        first += f"HetJobId={het} HetJobOffset={count('het_job_offset', '0')} "
    reason = "_".join((row["state_description"] or row["state_reason"]).split(" "))
    least, most = number(row["node_count"]) or 0, number(row["max_nodes"]) or 0 if pending else 0
    nodes = f"{min(least, most)}-{most}" if most else f"{least}"
    memory = number(row["memory_per_cpu"])
    memory_of = "CPU" if memory is not None else "Node"
    if release >= "24.11" and row["memory_per_tres"]:
        memory_of = "TRES"
    memory_mb = memory if memory is not None else number(row["memory_per_node"]) or 0
    licences = f"Licenses={text('licenses')}" + (" LicensesAlloc=(null)" if release >= "25.05" else "")
    share = f"OverSubscribe={next((SHARED[word] for word in row.get('shared') or ()), 'OK')} "
    if release >= "26.05":
        share = f"OverSubscribe=OK Exclusive={row.get('exclusive') or 'NO'} "
    comment_ends = "" if release >= "25.11" else " "
    lines = [
        f"{first}JobName={row['name']}",
        f"HetJobIdSet={row['het_job_id_set']}" if row["het_job_id_set"] else "",
        f"UserId={row['user_name']}({row['user_id']}) GroupId={row['group_name']}({row['group_id']}) MCS_label=N/A",
        f"Priority={count('priority', '')} Nice=0 Account={text('account')} QOS={text('qos')}",
        f"JobState={state} Reason={reason} Dependency={text('dependency')}",
        (
            f"Requeue={int(row['requeue'])} Restarts={row['restart_cnt']} BatchFlag={int(row['batch_flag'])} Reboot=0 "
            "ExitCode=0:0"
        ),
        (
            f"RunTime={'00:00:00' if pending else f'00:{int(now_s) % 60:02}:00'} "
            f"TimeLimit={minutes('time_limit', 'Partition_Limit')} TimeMin={minutes('time_minimum', 'N/A')}"
        ),
        f"SubmitTime={moment('submit_time')} EligibleTime={moment('eligible_time')}",
        f"AccrueTime={moment('accrue_time')}",
        f"StartTime={moment('start_time')} EndTime={moment('end_time')} Deadline={moment('deadline', 'N/A')}",
        f"SuspendTime=None SecsPreSuspend=0 LastSchedEval={mark}{now_s:.0f} Scheduler=Main",
        f"Partition={row['partition']} AllocNode:Sid={text('allocating_node')}:1",
        f"ReqNodeList={text('required_nodes')} ExcNodeList={text('excluded_nodes')}",
        f"NodeList={row['nodes']}" + (f" SchedNodeList={row['scheduled_nodes']}" if row["scheduled_nodes"] else ""),
        " ".join(
            f"{word}={row[key]}"
            for word, key in (("BatchFeatures", "batch_features"), ("BatchHost", "batch_host"))
            if row[key]
        ),
        (
            f"NumNodes={row.get('job_size_str') or nodes} NumCPUs={count('cpus', '')} NumTasks={count('tasks', 'N/A')} "
            "CPUs/Task=1 ReqB:S:C:T=0:0:*:*"
        ),
        f"ReqTRES={row['tres_req_str'] or '(null)'}",
        f"AllocTRES={row['tres_alloc_str'] or '(null)'}",
        f"Socks/Node={count('sockets_per_node', '*')} NtasksPerN:B:S:C=0:0:*:* CoreSpec=*",
        (
            f"MinCPUsNode={count('minimum_cpus_per_node', '1')} MinMemory{memory_of}={size(memory_mb)} "
            f"MinTmpDiskNode={size(number(row['minimum_tmp_disk_per_node']) or 0)}"
        ),
        f"Features={text('features')} DelayBoot=00:00:00",
        f"Prefer={row['prefer']}" if row["prefer"] else "",
        f"Reservation={row['resv_name']}" if row["resv_name"] else "",
        f"{share}Contiguous=0 {licences} Network=(null)",
        f"Command={text('command')}",
        "SubmitLine=sbatch --wrap=x" if release >= "25.11" else "",
        f"WorkDir={row['current_working_directory']}",
        f"AdminComment={row['admin_comment']}{comment_ends}" if row["admin_comment"] else "",
        f"SystemComment={row['system_comment']}{comment_ends}" if row["system_comment"] else "",
        f"Comment={row['comment']}{comment_ends}" if row["comment"] else "",
        *(
            f"{word}={row[f'standard_{key}']}"
            for word, key in (("StdErr", "error"), ("StdIn", "input"), ("StdOut", "output"))
            if row["batch_flag"]
        ),
        "Power=" if release < "24.05" else "",
        *(
            f"{word}={row[key]}"
            for word, key in (
                ("CpusPerTres", "cpus_per_tres"),
                ("MemPerTres", "memory_per_tres"),
                ("TresBind", "tres_bind"),
                ("TresPerJob", "tres_per_job"),
                ("TresPerNode", "tres_per_node"),
                ("TresPerSocket", "tres_per_socket"),
                ("TresPerTask", "tres_per_task"),
            )
            if row[key]
        ),
        f"NtasksPerTRES={count('tasks_per_tres', '')}" if number(row["tasks_per_tres"]) else "",
    ]
    return "\n   ".join(filter(None, lines)) + ("" if release >= "25.11" else "\n   ")
