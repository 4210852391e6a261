"""What a job asks for, or has, by a row of `squeue --json`: nodes, of each GPUs, CPUs and memory, and on which terms.

Counts of a waiting job have several sources, which say different things (tried with 24.11.5): `node_count` is where
Slurm would place it now, of `-N 2-4` the most; `node=` in `tres_req_str` is the least, and its memory is of that many
nodes; its CPUs are of the whole job. GPUs are in `tres_req_str` where accounting counts them (AccountingStorageTRES
with gres/gpu, which isn't Slurm's default), else in the option that asked for them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, NamedTuple, TypeVar

from ironburst.adapters.slurm.values import joined, number
from ironburst.nodes.gpus import is_slice, whole
from ironburst.ports import Resources, WrongShape

T = TypeVar("T")
Row = dict[str, Any]
_KINDS = 4096  # of jobs, of which what was made is kept
_GPUS = re.compile(r"\bgpu(?::([^:,=()]*[^:,=()\d][^:,=()]*))?(?:[:=](\d+))?(?=[,(]|$)")  # type, count
_PART = re.compile(r"(gres[:/])?gpu(:[\w.+-]+)?([:=]\d+)?(\(.*\))?")
_OPTIONS = ("tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket")
# --exclusive and its kinds, as `shared` says them; 26.05's JSON has no such field, its squeue a column `Exclusive`
# (EXCLUSIVE_COLUMNS). A label of mcs isn't known: as if nobody had the same one.
_EXCLUSIVE = {"none": "node", "true": "node", "node": "node", "mcs": "node", "user": "user"}
EXCLUSIVE_COLUMNS = ("squeue", "--noheader", "--states=PENDING", "--Format=JobId:20,Exclusive:20")


def by_kind(fields: str, listed: int = 0) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Makes a pure function of a row one that sees these fields of it only, and isn't asked again about a row that has
    the same in them: of 10,000 jobs that wait a few hundred differ in what they ask for. `listed`: of the fields the
    last ones, which may be lists. What else it is given is hashable, and what it returns is not to be written to.
    """
    names = fields.split()
    absent = [...] * len(names)

    def made(function: Callable[..., T]) -> Callable[..., T]:
        @lru_cache(maxsize=_KINDS, typed=True)
        def known(more: Any, *values: Any) -> T:
            each = (list(value) if type(value) is tuple else value for value in values)
            raw = {name: value for name, value in zip(names, each, strict=True) if value is not ...}
            return function(raw, *more)

        @wraps(function)
        def asked(raw: Row, *more: Any) -> T:
            values = [*map(raw.get, names, absent)]
            if listed:
                values[-listed:] = [tuple(value) if type(value) is list else value for value in values[-listed:]]
            try:
                return known(more, *values)
            except TypeError:  # `{set, infinite, number}`: nothing is kept by it
                return function(raw, *more)

        return asked

    return made


SIZES = """node_count max_nodes tres_req_str tres_per_node tres_per_job tres_per_task tres_per_socket tasks
    tasks_per_tres sockets_per_node """
ASKS = f"{SIZES} memory_per_cpu cpus_per_tres minimum_cpus_per_node "


class Sizes(NamedTuple):
    """Of a waiting job. `least` and `most`: nodes; `total`: GPUs of all, None: they are asked for by the node."""

    least: int
    most: int
    total: int | None


@by_kind(ASKS)
def asks(raw: Row) -> tuple[int, Resources]:
    """(nodes, of each) that a waiting job needs at least."""
    sizes, count = sizes_of(raw), max(1, _whole(raw["node_count"]))
    if sizes.total is None and limited(raw) and sizes.least < sizes.most:
        count = sizes.least
    asked = tres(raw["tres_req_str"])
    gpus = asked.gpus or _uncounted(raw, sizes.least if sizes.total is None else count)
    each_gpus = math.ceil(gpus / (sizes.least if sizes.total is None and asked.gpus else count))
    of = count if _whole(raw.get("memory_per_cpu", 0)) else sizes.least
    per_gpu = _GPUS.search(str(raw.get("cpus_per_tres") or ""))
    cpus = max(
        math.ceil(asked.cpus / count),
        _whole(raw.get("minimum_cpus_per_node", 0)),
        int(per_gpu[2] or 0) * each_gpus if per_gpu else 0,
    )
    return count, _resources(each_gpus, cpus, math.ceil(asked.memory_mb / of))


def has(raw: Row, nodes: int) -> tuple[int, Resources]:
    """(nodes, of each on average) of a job that is on that many."""
    given = tres(raw.get("tres_alloc_str") or raw["tres_req_str"])
    gpus = given.gpus or sum(_gpus(str(text)) for text in raw.get("gres_detail") or ()) or _uncounted(raw, nodes)
    return nodes, _resources(*(math.ceil(amount / nodes) for amount in (gpus, given.cpus, given.memory_mb)))


@lru_cache(maxsize=4096)
def _resources(gpus: int, cpus: int, memory_mb: int) -> Resources:
    """One and the same for jobs that ask for as much."""
    return Resources(gpus, cpus, memory_mb)


@by_kind(SIZES)
def sizes_of(raw: Row) -> Sizes:
    """See Sizes."""
    node = re.search(r"\bnode=(\d+)", raw["tres_req_str"])
    count = max(1, _whole(raw["node_count"]))
    least = min(int(node[1]), count) if node and int(node[1]) else count
    by_node = any(_gpus(str(raw.get(key) or "")) for key in ("tres_per_node", "tres_per_socket"))
    total = None if by_node else _uncounted(raw, count) or None
    return Sizes(least, _whole(raw.get("max_nodes", 0)) or count, total)


def limited(raw: Row) -> bool:
    """Whether its user says how many nodes it may have at most."""
    return bool(_whole(raw.get("max_nodes", 0)))


@lru_cache(maxsize=_KINDS)
def tres(text: str) -> Resources:
    """`cpu=2,mem=1000M,node=1,gres/gpu=8` as GPUs, CPUs and MiB. Typed GPUs (gres/gpu:h100) count once, MIG slices
    (gres/gpu:1g.10gb) are none.
    """
    values = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    return Resources(whole(text), int(values.get("cpu", 0)), _mebibytes(values.get("mem", "0")))


def lacks_exclusive(queue: Any) -> bool:
    """Whether these rows of `squeue --json` don't say it of a job that waits."""
    rows = queue.get("jobs") if isinstance(queue, dict) else None
    waits = (row for row in rows or () if isinstance(row, dict) and "PENDING" in joined(row.get("job_state")))
    return any("shared" not in row and "exclusive" not in row for row in waits)


def with_exclusive(queue: Any, columns: str) -> Any:
    """`squeue --json` with what EXCLUSIVE_COLUMNS say beside it. Raises WrongShape."""
    lines = [line.split() for line in columns.splitlines() if line.strip()]
    if wrong := next((line for line in lines if len(line) != 2 or not line[0].isdigit()), None):
        raise WrongShape(f"squeue's column Exclusive has another shape than `JOBID WORD`: {' '.join(wrong)[:80]!r}")
    said = {int(id): word for id, word in lines}
    rows = [row | {"exclusive": word} if (word := said.get(_id(row))) else row for row in queue["jobs"]]
    return queue | {"jobs": rows}


def _id(row: Any) -> int:
    """0: it has none."""
    id = row.get("job_id") if isinstance(row, dict) else None
    return id if isinstance(id, int) else 0


class Demands(NamedTuple):
    """What a job insists on. `gpu_type`: the GPU's type; `exclusive`: as Job.exclusive; `more`: what a rented node
    can't promise. Empty: nothing.
    """

    gpu_type: str
    exclusive: str
    more: str


@by_kind(
    """required_nodes features batch_features resv_name burst_buffer het_job_id minimum_tmp_disk_per_node tres_per_node
    tres_per_job tres_per_task tres_per_socket licenses shared exclusive""",
    listed=3,
)
def demands(raw: Row) -> Demands:
    """See Demands."""
    named = (
        ("required_nodes", "the nodes"),
        ("features", "the features"),
        ("batch_features", "the batch host's features"),
        ("resv_name", "the reservation"),
        ("burst_buffer", "the burst buffer"),
    )
    said = [f"{what} {joined(raw[key])}" for key, what in named if raw.get(key)]
    if "|" in joined(raw.get("licenses")):
        said.append(f"one of the licences {joined(raw['licenses'])}")
    if number(raw.get("het_job_id", 0)):
        said.append("being one part of a heterogeneous job")
    if disk := _whole(raw.get("minimum_tmp_disk_per_node", 0)):  # of a node whose TmpDisk nobody declared it is 0
        said.append(f"{disk} MiB of temporary disk")
    types = _types(raw)
    if len(types) > 1:
        said.append(f"GPUs of the types {', '.join(types)} together")
    words = f"{joined(raw.get('shared'))},{joined(raw.get('exclusive'))}".lower().split(",")
    if "topo" in words:
        said.append("a part of the network to itself")
    exclusive = next((kind for word, kind in _EXCLUSIVE.items() if word in words), "")
    return Demands(next(iter(types), ""), exclusive, " and ".join(said))


def held_by(raw: Row, reason: str) -> str:
    """Who holds it, or why, as behind "it is held"; empty: it isn't. `reason`: the word and what stands behind it.
    Slurm holds jobs itself, too, and calls that its user's hold.
    """
    word, _, behind = (part.strip() for part in reason.partition(","))
    if word == "JobHeldUser":
        return f" by Slurm ({behind})" if behind else " by its user (scontrol release)"
    if word == "JobHeldAdmin":
        return " by an administrator, or by Slurm itself (an administrator releases it)"
    return f" ({reason})" if number(raw["priority"]) == 0 else ""


def _types(raw: Row) -> list[str]:
    """Types of GPUs that it names, the first one first."""
    asked = (_GPUS.findall(str(raw.get(key) or "")) for key in _OPTIONS)
    return list(dict.fromkeys(type.lower() for found in asked for type, _ in found if type))


def _gpus(text: str) -> int:
    """Raises ValueError for GPUs whose count or type is none."""
    for part in re.split(r",(?![^()]*\))", text):
        if re.search(r"\bgpu\b", part) and not _PART.fullmatch(part.strip()):
            raise ValueError(f"{part!r} is no number of GPUs")
    return sum(int(count or 1) for type, count in _GPUS.findall(text) if not is_slice(type))


def _uncounted(raw: Row, nodes: int) -> int:
    """GPUs of all its nodes by the option that asks for them."""
    node, job, task, socket = (_gpus(str(raw.get(key) or "")) for key in _OPTIONS)
    tasks, to_a_gpu = _whole(raw.get("tasks", 0)) or nodes, _whole(raw.get("tasks_per_tres", 0))
    by_node = node or socket * max(1, _whole(raw.get("sockets_per_node", 0)))
    return by_node * nodes or job or task * tasks or (tasks // to_a_gpu if to_a_gpu else 0)


def _whole(value: Any) -> int:
    """0: not set, or endless."""
    found = number(value)
    return int(found) if found and math.isfinite(found) else 0


def _mebibytes(text: str) -> int:
    unit = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
    return math.ceil(float(text[:-1]) * unit[text[-1]]) if text[-1] in unit else math.ceil(float(text))
