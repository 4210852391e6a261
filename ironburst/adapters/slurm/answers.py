"""Slurm's JSON (`squeue --json`, `scontrol show node --json`) as jobs and nodes.

Read: data_parser v0.0.39 to v0.0.45 (Slurm 23.02 to 26.05). Between them single values became lists or `{set, infinite,
number}` and back. An answer that isn't understood raises WrongShape: it must never look like an empty queue. One job or
node among others that isn't understood stops nobody: it is reported, nothing is rented for the job, and it keeps its
nodes.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from ironburst.adapters.slurm import arrays as slurm_arrays
from ironburst.adapters.slurm import asked as slurm_asked
from ironburst.adapters.slurm.asked import tres
from ironburst.adapters.slurm.values import expand, joined, number
from ironburst.nodes.gpus import is_slice
from ironburst.ports import Job, Node, Resources, WrongShape
from ironburst.shares.slurm import kind_of

T = TypeVar("T")
# the flags that say more than the base state beside them, the first one of a job counts; then the base states
_FLAGS = ("COMPLETING", "CONFIGURING", "STOPPED")
_ON_NODES = (*_FLAGS, "RUNNING", "SUSPENDED")
_READS = "this ironburst reads Slurm 23.02 to 26.05 (data_parser v0.0.39 to v0.0.45)"
_SILENT = "Not responding"  # slurmctld's word for a node that it sets DOWN, behind what was said of it before
_SHAPES = (KeyError, TypeError, ValueError, AttributeError, OverflowError)  # what reading an unknown shape raises


class Read(NamedTuple):
    """What an answer lists. `unreadable`: a sentence for each item of which less is known than should be."""

    items: list[Any]
    unreadable: tuple[str, ...] = ()


_FILES = ("standard_input", "standard_output", "standard_error")
_MOST_REASON = 200  # characters: it may name every node that is down


def jobs(answer: Any) -> list[Job]:
    """The jobs of `squeue --json`. Raises WrongShape."""
    return read_jobs(answer).items


def nodes(answer: Any) -> list[Node]:
    """The nodes of `scontrol show node --json`. Raises WrongShape."""
    return read_nodes(answer).items


def read_jobs(answer: Any, read: Callable[[Any], Job] | None = None) -> Read:
    """The jobs of `squeue --json`. Raises WrongShape."""
    return _each("job", read or job, _unreadable_job, slurm_arrays.tasks_apart(rows_of(answer, "jobs", "squeue")))


def read_nodes(answer: Any, read: Callable[[Any], Node] | None = None) -> Read:
    """The nodes of `scontrol show node --json`. Raises WrongShape."""
    return _each("node", read or node, _unreadable_node, rows_of(answer, "nodes", "scontrol show node"))


def shares(answer: Any) -> dict[int, str]:
    """What the running jobs count in of their teams' shares, by id, from `squeue --json`: their QOS says it. One that
    waits is tried in several.
    """
    found = {}
    for raw in rows_of(answer, "jobs", "squeue"):
        try:
            if state_of(raw) in _ON_NODES:
                found[slurm_arrays.job_id(raw)] = kind_of(raw["account"] or "", raw["qos"] or "")
        except _SHAPES:
            continue  # told already, where the jobs are read
    return {job: kind for job, kind in found.items() if kind}


def rows_of(answer: Any, key: str, command: str) -> list[Any]:
    """An answer's list. Raises WrongShape where there is none, or errors are told."""
    rows = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        shown = sorted(answer) if isinstance(answer, dict) else type(answer).__name__
        raise WrongShape(f"`{command} --json` has no list {key!r} but {shown}: {_READS}")
    if answer.get("errors"):
        raise WrongShape(f"`{command} --json` reports errors: {answer['errors']}")
    return rows


def _of(what: str, read: Callable[[Any], T], raw: Any) -> T:
    try:
        return read(raw)
    except _SHAPES as error:
        name = raw.get("job_id", raw.get("name", "?")) if isinstance(raw, dict) else raw
        detail = f"no field {error}" if isinstance(error, KeyError) else str(error)
        raise WrongShape(f"{what} {name} in Slurm's JSON has a shape that isn't known: {detail}; {_READS}") from None


def _each(what: str, read: Callable[[Any], T], rest: Callable[[Any], T], rows: list[Any]) -> Read:
    """Each row, or what `rest` still makes of it. Raises WrongShape for a row of which that isn't enough to be safe,
    and for an answer of which most can't be read: that is another Slurm, not one odd job.
    """
    items: list[T] = []
    unreadable: list[WrongShape] = []
    for raw in rows:
        try:
            items.append(_of(what, read, raw))
        except WrongShape as error:
            unreadable.append(error)
            try:
                items.append(rest(raw))
            except _SHAPES:
                raise error from None
    if len(unreadable) > max(1, len(rows) // 2):
        raise unreadable[0]
    return Read(items, tuple(map(str, unreadable)))


def _unreadable_job(raw: dict[str, Any]) -> Job:
    """Its id, and the nodes that it may be on: they must not look idle. Nothing is rented for it: it counts as held."""
    on = expand(_text(raw["nodes"] or ""))
    try:
        state = state_of(raw)
    except _SHAPES:
        state = "RUNNING" if on else "PENDING"
    on = [] if state == "PENDING" else on
    if not on and state in _ON_NODES:
        raise ValueError("it runs, and its nodes aren't known")
    if not (id := slurm_arrays.job_id(raw)):
        raise ValueError("it has no id")
    return Job(
        id=id,
        name="",
        user="",
        state=state,
        submit_s=0.0,
        nodes=max(1, len(on)),
        each=Resources(0),
        time_limit_s=None,
        partitions=(),
        requeue=False,
        held=True,
        held_by=" by ironburst, which can't read what Slurm says of it",
        on=tuple(on),
    )


def _unreadable_node(raw: dict[str, Any]) -> Node:
    """Its name: it takes no job, and is not launched."""
    return Node(_text(raw["name"]), (), Resources(0), ("UNKNOWN",))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a text is needed, not {value!r}")
    return value


def job(raw: dict[str, Any]) -> Job:
    """Of a row of `squeue --json`. Raises what an unknown shape raises (_SHAPES)."""
    state = state_of(raw)
    on = tuple(expand(raw["nodes"] or "")) if state in _ON_NODES else ()
    count, each = slurm_asked.has(raw, len(on)) if on else slurm_asked.asks(raw)
    reason, demands = _reason(raw), slurm_asked.demands(raw)
    start, limit = number(raw["start_time"]), number(raw["time_limit"])
    eligible, end = number(raw.get("eligible_time", 0)), number(raw["end_time"])
    finite = limit is not None and math.isfinite(limit) and limit > 0
    least, excluded = number(raw.get("time_minimum", 0)), joined(raw.get("excluded_nodes"))
    comment = str(raw.get("comment") or "")
    held = number(raw["priority"]) == 0 or str(raw["state_reason"]).startswith("JobHeld")
    return Job(
        id=slurm_arrays.job_id(raw),
        name=str(raw["name"]),
        user=str(raw["user_name"]),
        state=state,
        submit_s=float(number(raw["submit_time"]) or 0),
        nodes=count,
        each=each,
        time_limit_s=limit * 60.0 if finite and limit is not None else None,
        partitions=_split(raw["partition"]) if raw["partition"] else (),
        priority=int(number(raw["priority"]) or 0),
        batch=_truth(raw["batch_flag"]),
        requeue=_truth(raw["requeue"]),
        reason=reason,
        held=held,
        dependency=raw.get("dependency") or "",
        held_by=slurm_asked.held_by(raw, reason) if held else "",
        gpu_type=demands.gpu_type,
        demands=demands.more,
        excluded=tuple(expand(excluded)) if excluded else (),
        eligible_s=float(eligible) if eligible else None,
        start_s=float(start) if on and start else None,
        end_s=float(end) if on and end and math.isfinite(end) and finite else None,
        on=on,
        restarts=int(number(raw.get("restart_cnt", 0)) or 0),
        account=str(raw.get("account") or ""),
        deadline_s=_deadline(raw),
        data=_told(comment, "data") if comment else (),
        licences=_licences(raw),
        fabric=",".join(_told(comment, "fabric")) if comment else "",
        called=_called(raw),
        folders=_folders(raw),
        exclusive=demands.exclusive,
        time_min_s=least * 60.0 if least and math.isfinite(least) else None,
        saves_s=_saves_s(comment) if comment else None,
    )


def node(raw: dict[str, Any]) -> Node:
    """Of a row of `scontrol show node --json`. Raises as `job`."""
    partitions = raw["partitions"]
    total = tres(raw["tres"])
    gpu_types: dict[str, int] = {}
    if raw.get("gres"):  # `tres` knows the types that accounting was told of
        typed = re.findall(r"gpu(?::([^:,()]+))?:(\d+)(?=[,(]|$)", raw["gres"])
        whole = sum(int(count) for type, count in typed if not is_slice(type))
        if not total.gpus or any(is_slice(type) for type, _ in typed):
            total = Resources(whole, total.cpus, total.memory_mb)
        if all(type for type, _ in typed):
            for type, count in typed:
                gpu_types[type.lower()] = gpu_types.get(type.lower(), 0) + int(count)
    reason, states = raw.get("reason") or "", _words(raw["state"])
    return Node(
        name=str(raw["name"]),
        partitions=tuple(partitions.split(",") if isinstance(partitions, str) else partitions),
        total=total,
        states=tuple(sorted(states)),
        reason=reason,
        address=raw.get("address") or "",
        reason_by=str(raw.get("reason_set_by_user") or ""),
        silent_s=_silent_s(raw) if "DOWN" in states and reason.endswith(_SILENT) else None,
        gpu_types=gpu_types,
    )


def _silent_s(raw: dict[str, Any]) -> float | None:
    """When slurmctld set a node down that hadn't answered for SlurmdTimeout: its reason's time, as set_node_down in
    slurmctld's node_mgr.c writes both together.
    """
    try:
        at_s = number(raw["reason_changed_at"])
    except _SHAPES:
        return None
    return float(at_s) if at_s and math.isfinite(at_s) else None


# ---- values


def _words(value: Any) -> list[str]:
    """A state: "IDLE", ["IDLE", "CLOUD"], or "IDLE+CLOUD"."""
    words = re.split(r"[+,]", value) if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise ValueError(f"a state is one or more words, not {value!r}")
    return [word.upper().rstrip("*~#!%$@^-") for word in words]


def _word(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value or "")


def _reason(raw: dict[str, Any]) -> str:
    """As squeue shows it: the word, and what Slurm says of it in `state_description`, where it says something."""
    word, said = _word(raw["state_reason"]), str(raw.get("state_description") or "")
    behind = said.removeprefix(word).strip(" ,:")
    return f"{word}, {behind}"[:_MOST_REASON] if behind and behind != "None" else word


def state_of(raw: dict[str, Any]) -> str:
    """The base state of a job's row. Raises ValueError or KeyError."""
    said = raw["job_state"]
    return _base(tuple(said) if isinstance(said, list) else said)


@lru_cache(maxsize=256)
def _base(said: Any) -> str:
    return base_state(_words(list(said) if isinstance(said, tuple) else said))


def base_state(words: list[str]) -> str:
    """What matters of a job's state and its flags: one that still holds nodes is on them, whatever else it is.
    Only STAGE_OUT holds none any more; SIGNALING and RESIZING come beside RUNNING, which it is.
    """
    known = (*_FLAGS, "PENDING", "RUNNING", "SUSPENDED")
    return next((word for word in known if word in words), words[0])


@lru_cache(maxsize=256)
def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _truth(value: Any) -> bool:
    if not isinstance(value, int):  # true and false are, too
        raise ValueError(f"true or false is needed, not {value!r}")
    return bool(value)


def _called(raw: dict[str, Any]) -> str:
    """As squeue shows it, where that isn't its id."""
    if slurm_arrays.alone(raw) and not raw.get("het_job_id"):
        return ""
    array, task = number(raw.get("array_job_id", 0)), number(raw.get("array_task_id"))
    together = raw.get("array_task_string") or ""
    if array and (together or task is not None):
        return f"{int(array)}_[{together}]" if together else f"{int(array)}_{int(task or 0)}"
    whole, part = number(raw.get("het_job_id", 0)), number(raw.get("het_job_offset", 0))
    return f"{int(whole)}+{int(part or 0)}" if whole else ""


def _folders(raw: dict[str, Any]) -> tuple[str, ...]:
    """Its working folder, and those of its input and output; not of devices, and as far as no pattern (%j) is in it."""
    within = []
    for key in _FILES:
        if file := raw.get(key):
            head, slash, _ = str(file).partition("%")[0].rpartition("/")  # each job's file has another name
            within.append(head + slash)
    return _folders_of(str(raw.get("current_working_directory") or ""), *within)


@lru_cache(maxsize=4096)
def _folders_of(works: str, *within: str) -> tuple[str, ...]:
    paths = (posixpath.join(works, folder).partition("%")[0] for folder in within)
    found = [works, *(posixpath.dirname(path) for path in paths if not path.startswith("/dev/"))]
    return tuple(dict.fromkeys(posixpath.normpath(path) for path in found if path.startswith("/")))


def _deadline(raw: dict[str, Any]) -> float | None:
    """--deadline: Slurm removes a pending job that can't end before it."""
    moment = number(raw.get("deadline", 0))
    return float(moment) if moment and math.isfinite(moment) else None


def _licences(raw: dict[str, Any]) -> tuple[str, ...]:
    """Names of `matlab:2,fluent@server`, all of which it takes. Alternatives (`a|b`) are among its demands."""
    text = joined(raw.get("licenses"))
    if not text or "|" in text:
        return ()
    return tuple(re.split(r"[:=]", part)[0].strip() for part in re.split(r"[,;]", text) if part.strip())


def _saves_s(comment: str) -> float | None:
    """What a user says in `--comment checkpoint=10m`: it saves its work so often, and goes on from there."""
    every = re.fullmatch(r"([1-9]\d{0,5})([smhd])", next(iter(_told(comment, "checkpoint")), ""))
    return float(every[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[every[2]] if every else None


def _told(comment: str, key: str) -> tuple[str, ...]:
    """What a user says in `--comment "data=imagenet,c4 fabric=infiniband"`: Slurm has no field for it."""
    match = re.search(rf"(?:^|[\s;]){key}=([^\s;]+)", comment)
    return tuple(part for part in match.group(1).split(",") if part) if match else ()
