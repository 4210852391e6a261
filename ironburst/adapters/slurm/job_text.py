"""`scontrol show job` as rows of `squeue --json`: a tenth of the text, and without each core of each node.

It prints all that is read of a job (fields.JOB), in the same order and for the same jobs, in all releases; squeue's own
columns lack half of what a waiting job's cost depends on, and squeue puts tasks of an array together that wait apart.
Where the text says less than the JSON, or might (`Unsure`), the JSON has to be asked about that job.

Users choose texts in it (a job's name, its comment, paths), and nothing is escaped. So a record counts only if its
lines are those of _sprint_job_info (scontrol's info_job.c, in earlier releases libslurm's job_info.c), in its order and
each once, and its times are written with a word that nobody else knows (narrow.py). Lines that are seldom there, and
could be the second line of a comment, are none of these. What is left: who breaks the name of his own folder or file so
that its second line looks like a comment or an option that his job lacks is taken at his word.
"""

from __future__ import annotations

import math
import re
import sys
from functools import cache, lru_cache
from typing import Any, NamedTuple

from ironburst.adapters.slurm import fields

Row = dict[str, Any]


def _moment(name: str) -> str:
    """Behind the submit time, whose mark it has, too."""
    return rf"(?:(?P=mark)(?P<{name}>\d+)|Unknown|None|N/A)"


# their first words, in Slurm's order (22.05 to 26.05); those that are read, with what is read of them
_LINES = {
    "JobId": r"JobId=(?P<job_id>\d+) (?:ArrayJobId=(?P<array_job_id>\d+) ArrayTaskId=(?P<tasks_of_array>\S+) "
    r"(?:ArrayTaskThrottle=(?P<array_max_tasks>\d+) )?|HetJobId=(?P<het_job_id>\d+) "
    r"HetJobOffset=(?P<het_job_offset>\d+) )?JobName=(?P<name>.*)",
    "HetJobIdSet": "",
    "UserId": r"UserId=(?P<user_name>.+?)\((?P<uid>\d+)\) GroupId=.*",
    "Priority": r"Priority=(?P<priority>\d+) Nice=-?\d+ Account=(?P<account>\S+) QOS=(?P<qos>\S+)(?: WCKey=.*)?",
    "JobState": r"JobState=(?P<job_state>\S+) Reason=(?P<state_reason>\S+) (?:FailedNode=\S+ )?"
    r"Dependency=(?P<dependency>\S+)",
    "Requeue": r"Requeue=(?P<requeue>[01]) Restarts=(?P<restart_cnt>\d+) BatchFlag=(?P<batch_flag>\d) .*",
    "RunTime": r"RunTime=\S+ TimeLimit=(?P<time_limit>\S+) TimeMin=(?P<time_minimum>\S+)",
    "SubmitTime": rf"SubmitTime=(?P<mark>\S+@)(?P<submit_time>\d+) EligibleTime={_moment('eligible_time')}",
    "AccrueTime": "",
    "ResizeTime": "",
    "StartTime": f"StartTime={_moment('start_time')} EndTime={_moment('end_time')} Deadline={_moment('deadline')}",
    "CronJob": "",
    "CrontabSpec": "",
    "PreemptEligibleTime": "",
    "SuspendTime": "",
    "Partition": r"Partition=(?P<partition>\S+) AllocNode:Sid=.*",
    "ReqNodeList": r"ReqNodeList=(?P<required_nodes>\S+) ExcNodeList=(?P<excluded_nodes>\S+)",
    "NodeList": r"NodeList=(?P<nodes>\S*)(?: SchedNodeList=\S+)?",
    "BatchFeatures": r"BatchFeatures=(?P<batch_features>\S+)(?: BatchHost=\S+)?",
    "BatchHost": "",
    "StepMgrEnabled": "",
    "FedOrigin": "",
    "NumNodes": r"NumNodes=(?P<node_count>\d+)(?:-(?P<max_nodes>\d+))? NumCPUs=\S+ NumTasks=(?P<tasks>\S+) .*",
    "ReqTRES": r"ReqTRES=(?P<tres_req_str>\S+)",
    "AllocTRES": r"AllocTRES=(?P<tres_alloc_str>\S+)",
    "Socks/Node": r"Socks/Node=(?P<sockets_per_node>\S+) .*",
    "MinCPUsNode": r"MinCPUsNode=(?P<minimum_cpus_per_node>\d+) MinMemory(?P<memory_of>\w+)=(?P<memory>\S+) "
    r"MinTmpDiskNode=(?P<minimum_tmp_disk_per_node>\S+)(?: MemUpdate=.*)?",
    "Features": r"Features=(?P<features>\S+) DelayBoot=\S+",
    "ClusterFeatures": "",
    "Prefer": "",
    "Reservation": r"Reservation=(?P<resv_name>\S+)",
    "OverSubscribe": r"OverSubscribe=(?P<shared>\w+)(?: Exclusive=(?P<exclusive>\w+))? Contiguous=\d "
    r"Licenses=(?P<licenses>\S+)(?P<from_25_05> LicensesAlloc=\S+)? Network=.*",
    "Command": "",
    "SubmitLine": "",
    "WorkDir": r"WorkDir=(?P<current_working_directory>.*)",
    "AdminComment": r"AdminComment=(?P<admin_comment>.*)",
    "Comment": r"Comment=(?P<comment>.*)",
    "StdErr": r"StdErr=(?P<standard_error>.*)",
    "StdIn": r"StdIn=(?P<standard_input>.*)",
    "StdOut": r"StdOut=(?P<standard_output>.*)",
    "Switches": "",
    "SegmentSize": "",
    "Power": "",
    "GresAllowTaskSharing": "",
    "GresEnforceBind": "",
    "GresOneTaskPerSharing": "",
    "KillOInInvalidDependent": "",
    "KillOnInvalidDependent": "",
    "SpreadJob": "",
    "ExpeditedRequeue": "",
    "CpusPerTres": r"CpusPerTres=(?P<cpus_per_tres>\S+)",
    "MemPerTres": r"MemPerTres=(?P<memory_per_tres>\S+)",
    "TresBind": "",
    "TresFreq": "",
    "TresPerJob": r"TresPerJob=(?P<tres_per_job>\S+)",
    "TresPerNode": r"TresPerNode=(?P<tres_per_node>\S+)",
    "TresPerSocket": r"TresPerSocket=(?P<tres_per_socket>\S+)",
    "TresPerTask": r"TresPerTask=(?P<tres_per_task>\S+)",
    "MailUser": "",
    "NtasksPerTRES": r"NtasksPerTRES=(?P<tasks_per_tres>\d+)",
    "OOMKillStep": "",
    "Container": "",
    "ContainerType": "",
    "SELinuxContext": "",
    "ResvPorts": "",
}
_NEEDED = frozenset(  # in each record of each release
    [
        "JobId",
        "UserId",
        "Priority",
        "JobState",
        "Requeue",
        "RunTime",
        "SubmitTime",
        "StartTime",
        "SuspendTime",
        "Partition",
        "ReqNodeList",
        "NodeList",
        "NumNodes",
        "ReqTRES",
        "AllocTRES",
        "Socks/Node",
        "MinCPUsNode",
        "Features",
        "OverSubscribe",
        "Command",
        "WorkDir",
    ]
)
_SHOWN = ("PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "STOPPED")  # whose other flags change nothing here
_ENDED = frozenset(  # squeue doesn't list them any more
    ["COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"]
)
_SHARED = {"NO": ["none"], "YES": ["oversubscribe"], "USER": ["user"], "MCS": ["mcs"], "TOPO": ["topo"], "OK": []}
# of texts and numbers those that differ from job to job; the others are the same in many
_OWN_TEXTS = [
    "admin_comment",
    "comment",
    "current_working_directory",
    "name",
    "nodes",
    "standard_error",
    "standard_input",
    "standard_output",
    "user_name",
]
_NEEDED_TEXTS = [key for key in _OWN_TEXTS if key in fields.NEEDED]  # there, if empty
_COMMENTS = ("admin_comment", "comment")
_MOMENTS = ("submit_time", "eligible_time", "start_time", "end_time", "deadline")  # 0: never
_OWN_NUMBERS = ("array_job_id", "het_job_id", "job_id", "priority", *_MOMENTS)
_OWN = (*_OWN_TEXTS, *_OWN_NUMBERS, "tasks_of_array", "time_limit", "uid", "mark")
_TEXTS_END = len(_OWN_TEXTS)
_NUMBERS_END = _TEXTS_END + len(_OWN_NUMBERS)
_TEXTS = [
    "account",
    "batch_features",
    "cpus_per_tres",
    "dependency",
    "excluded_nodes",
    "features",
    "licenses",
    "memory_per_tres",
    "partition",
    "qos",
    "required_nodes",
    "resv_name",
    "tres_alloc_str",
    "tres_per_job",
    "tres_per_node",
    "tres_per_socket",
    "tres_per_task",
    "tres_req_str",
]
_NUMBERS = [
    "array_max_tasks",
    "batch_flag",
    "het_job_offset",
    "max_nodes",
    "minimum_cpus_per_node",
    "node_count",
    "requeue",
    "restart_cnt",
    "sockets_per_node",
    "tasks",
    "tasks_per_tres",
]
_MEBIBYTES = {"": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}


def _line(first: str, pattern: str) -> str:
    """Of a record: it is there once or not at all, and nothing is tried again that matched."""
    before = "" if first == "JobId" else "\\n   "
    whole = (
        pattern or rf"(?P<_{re.sub('[^A-Za-z0-9]', '_', first)}>{re.escape(first)})(?:=[^\n]*+(?:\n(?!   )[^\n]*+)*+)?"
    )
    return rf"(?>{before}{whole}(?=\n   |\Z)){'' if first in _NEEDED else '?+'}"


class _Layout(NamedTuple):
    """A record's pattern, and the numbers of its groups. `kind`: names of those that are alike in many jobs."""

    record: re.Pattern[str]
    own_at: list[int]
    kind: list[str]
    kind_at: list[int]


@cache  # of some use only where the queue is large
def _layout() -> _Layout:
    record = re.compile("".join(_line(*each) for each in _LINES.items()) + r"(?:\n   )?")
    at = record.groupindex
    kind = [name for name in at if name not in _OWN and not name.startswith("_")]
    own_at, kind_at = ([at[name] for name in names] for names in (_OWN, [*kind, "_HetJobIdSet", "_SubmitLine"]))
    return _Layout(record, own_at, kind, kind_at)


class Unsure(Exception):
    """The text doesn't say all of this job, or may say it wrongly: the JSON does."""


def row(record: str, mark: str, counts_gpus: bool) -> Row | None:
    """A record as a row of `squeue --json`; None: the job has ended. `mark`: what stands before each time;
    `counts_gpus`: whether what jobs were given has GPUs in it (AccountingStorageTRES). Raises Unsure.
    """
    layout = _layout()
    if not (match := layout.record.fullmatch(record)):
        raise Unsure
    kind = _kind(counts_gpus, *match.group(*layout.kind_at))
    if kind is None:
        return None
    said = match.group(*layout.own_at)
    tasks, time_limit, uid, marked = said[_NUMBERS_END:]
    if marked != mark:
        raise Unsure
    found = kind.row.copy()
    for key, value in zip(_OWN_TEXTS, said[:_TEXTS_END], strict=True):
        if value and value != "(null)":
            found[key] = sys.intern(value)
    if kind.trailing:
        for key in _COMMENTS:
            if key in found and not (text := found[key].removesuffix(" ")):
                del found[key]
            elif key in found:
                found[key] = sys.intern(text)
    if found["user_name"] == uid:
        raise Unsure  # users that nobody knows
    for key, value in zip(_OWN_NUMBERS, said[_TEXTS_END:_NUMBERS_END], strict=True):
        if value is not None:
            found[key] = int(value)
    found["time_limit"] = _minutes(time_limit or "")
    if tasks:
        _array(found, tasks)
    if kind.unexpanded:
        _expanded(found)
    return found


class _Kind(NamedTuple):
    """What many jobs have in common. `trailing`: a space stands behind their comments; `unexpanded`: the JSON has
    patterns (%j) where this has what they stand for.
    """

    row: Row
    trailing: bool
    unexpanded: bool


@lru_cache(maxsize=4096)
def _kind(counts_gpus: bool, *values: str | None) -> _Kind | None:
    """None: they have ended. Raises Unsure."""
    *read, set_line, submit_line = values
    said = {key: value for key, value in zip(_layout().kind, read, strict=True) if value is not None}
    state = said["job_state"]
    if state in _ENDED:
        return None
    if state not in _SHOWN or not re.fullmatch("[A-Za-z0-9]+", said["state_reason"]):
        raise Unsure  # flags beside a state, and sentences with other spaces than the JSON's
    if said["batch_flag"] == "0" or (set_line and "het_job_offset" not in said):
        raise Unsure  # files of srun
    found: Row = {key: sys.intern(_text(said.get(key))) for key in _TEXTS}
    found |= {key: _number(said.get(key)) for key in _NUMBERS}
    found |= {"job_state": [state], "state_reason": said["state_reason"]}
    found["time_minimum"] = _minutes(said["time_minimum"])
    found["minimum_tmp_disk_per_node"] = _mebibytes(said["minimum_tmp_disk_per_node"])
    found["memory_per_cpu"] = 1 if said["memory_of"] == "CPU" and said["memory"] != "0" else 0
    if "exclusive" not in said:
        found["shared"] = _SHARED[said["shared"]]
    elif state == "PENDING":  # as asked.EXCLUSIVE_COLUMNS, which is asked of no others
        found["exclusive"] = said["exclusive"]
    _sizes(found, said, state == "PENDING", counts_gpus)
    row = dict.fromkeys(_NEEDED_TEXTS, "") | dict.fromkeys(_MOMENTS, 0) | fields.job(found)
    return _Kind(row, not submit_line, "from_25_05" in said)


def _text(value: str | None) -> str:
    return "" if value is None or value == "(null)" else value


def _number(value: str | None) -> int | None:
    if value is None or value in ("N/A", "*"):
        return None
    if not value.isdigit():
        raise Unsure
    return int(value)


@lru_cache(maxsize=4096)
def _minutes(value: str) -> float | None:
    if value in ("UNLIMITED", "Partition_Limit", "N/A"):
        return {"UNLIMITED": math.inf, "Partition_Limit": None, "N/A": 0}[value]
    if not (match := re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+):00", value)):
        raise Unsure
    return int(match[1] or 0) * 1440 + int(match[2]) * 60 + int(match[3])


def _mebibytes(value: str) -> int:
    if not (match := re.fullmatch(r"(\d+)([MGTP]?)", value)):
        raise Unsure
    return int(match[1]) * _MEBIBYTES[match[2]]


def _array(found: Row, tasks: str) -> None:
    """A number alone may be one task, or what is left of an array: as the JSON has it for a task that waits."""
    if tasks.isdigit() and found["job_state"] == ["PENDING"]:
        raise Unsure
    found |= {"array_task_id": int(tasks)} if tasks.isdigit() else {"array_task_string": tasks}


def _sizes(found: Row, said: dict[str, str], pending: bool, counts_gpus: bool) -> None:
    asked, given = found["tres_req_str"], found["tres_alloc_str"]
    if not pending:
        options = (found[f"tres_per_{of}"] for of in ("node", "job", "task", "socket"))
        if not given or ("gres/gpu" not in given and (not counts_gpus or any("gpu" in each for each in options))):
            raise Unsure  # they are in its `gres_detail` then
        return
    least = re.search(r"\bnode=(\d+)", asked)
    same = least is not None and int(least[1]) == found["node_count"]
    if not same and (found["max_nodes"] == found["node_count"] or said["memory_of"] == "TRES"):
        raise Unsure  # scontrol prints no more nodes than its most, and doesn't say what memory is of


def _expanded(found: Row) -> None:
    """Raises Unsure where a pattern may have been in a folder."""
    works = found.get("current_working_directory", "")
    files = [found.get(f"standard_{name}") for name in ("input", "output", "error")]
    if any(file and not file.startswith("/dev/") and file.rpartition("/")[0] != works for file in files):
        raise Unsure
