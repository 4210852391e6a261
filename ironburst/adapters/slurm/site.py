"""What a Slurm that runs already has, from its saved answers: scontrol show node, scontrol show partition, sinfo and
sacctmgr show account or association, each with --json. Of Slurm 21.08 to 26.05: only names, sizes and lists are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ironburst.adapters.slurm.values import expand, number
from ironburst.nodes import states as node_states
from ironburst.nodes.gpus import is_slice

GPUS = re.compile(r"gpu(?::([^:,()]+))?:(\d+)(?=[,(]|$)")
T = TypeVar("T")


class UnreadableSite(ValueError):
    """The folder doesn't hold what is needed; the text is one sentence."""


@dataclass(frozen=True)
class SlurmHost:
    """One node. `gpu_type`: of its gres, small letters; empty: it has none, or the gres names no type."""

    name: str
    partitions: tuple[str, ...]
    cpus: int
    memory_mb: int
    gpus: int
    gpu_type: str
    address: str
    cloud: bool


@dataclass(frozen=True)
class SlurmSite:
    """What is there. `release`: as in "24.11"; empty: the answers don't say it."""

    hosts: tuple[SlurmHost, ...]
    accounts: tuple[str, ...]
    release: str


def read(folder: Path) -> SlurmSite:
    """Everything in the folder's JSON files, whatever they are called. Raises UnreadableSite."""
    if not folder.is_dir():
        raise UnreadableSite(f"{folder} is no folder: save the answers there, as docs/how-to/beside.md says")
    hosts: dict[str, SlurmHost] = {}
    accounts: set[str] = set()
    release = ""
    answers = [_answer(path) for path in sorted(folder.glob("*.json"))]
    for answer in answers:
        release = release or _release(answer)
        accounts |= set(_tried(_accounts, answer, "an account"))
    readers: tuple[tuple[str, Callable[[Any], Iterable[SlurmHost]]], ...] = (("nodes", _of_node), ("sinfo", _of_sinfo))
    for key, read_one in readers:  # what scontrol says of a node comes first
        for answer in answers:
            for raw in _listed(answer, key):
                for host in _tried(read_one, raw):
                    hosts.setdefault(host.name, host)
    if not hosts:
        files = ", ".join(path.name for path in sorted(folder.glob("*.json"))) or "no .json"
        raise UnreadableSite(f"{folder} has no nodes ({files}): save `scontrol show node --json` there")
    return SlurmSite(tuple(hosts.values()), tuple(sorted(accounts)), release)


def _answer(path: Path) -> dict[str, Any]:
    try:
        answer = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UnreadableSite(f"{path} can't be read as JSON ({error}): save it again, with --json") from None
    return answer if isinstance(answer, dict) else {}


def _tried(read_one: Callable[[Any], Iterable[T]], raw: Any, what: str = "a node") -> list[T]:
    try:
        return list(read_one(raw))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UnreadableSite(f"{what} has a shape that isn't known ({error!r}): {str(raw)[:80]}") from None


def _gpus(gres: str) -> tuple[int, str]:
    """Whole GPUs and their type; MIG slices are none."""
    found = [(type or "", int(count)) for type, count in GPUS.findall(gres or "") if not is_slice(type or "")]
    return sum(count for _, count in found), next((type.lower() for type, _ in found), "")


def _words(state: Any) -> set[str]:
    words = state if isinstance(state, list) else re.split(r"[+,]", str(state or ""))
    return {str(word).upper().rstrip("*~#!%$@^-") for word in words}


def _of_node(raw: Mapping[str, Any]) -> Iterable[SlurmHost]:
    gpus, type = _gpus(raw.get("gres") or "")
    partitions = raw.get("partitions") or []
    yield SlurmHost(
        name=str(raw["name"]),
        partitions=tuple(partitions.split(",") if isinstance(partitions, str) else partitions),
        cpus=int(number(raw["cpus"]) or 0),
        memory_mb=int(number(raw["real_memory"]) or 0),
        gpus=gpus,
        gpu_type=type,
        address=str(raw.get("address") or ""),
        cloud="CLOUD" in _words(raw.get("state")) | _words(raw.get("state_flags")),
    )


def _of_sinfo(raw: Mapping[str, Any]) -> Iterable[SlurmHost]:
    """One row for equal nodes of one partition."""
    gpus, type = _gpus((raw.get("gres") or {}).get("total") or "")
    state = (raw.get("node") or {}).get("state")
    for name in (name for part in raw["nodes"]["nodes"] for name in expand(part)):
        yield SlurmHost(
            name=name,
            partitions=(str((raw.get("partition") or {}).get("name") or ""),),
            cpus=int(number(raw["cpus"]["maximum"]) or 0),
            memory_mb=int(number(raw["memory"]["maximum"]) or 0),
            gpus=gpus,
            gpu_type=type,
            address="",
            cloud="CLOUD" in _words(state),
        )


def _listed(answer: Mapping[str, Any], key: str) -> list[Any]:
    listed = answer.get(key) or []
    if not isinstance(listed, list):
        raise UnreadableSite(f"{key} in an answer is no list but {str(listed)[:60]!r}: save it again, with --json")
    return listed


def _accounts(answer: Mapping[str, Any]) -> Iterable[str]:
    for raw in answer.get("accounts") or []:
        yield str(raw["name"] if isinstance(raw, dict) else raw)
    for raw in answer.get("associations") or []:
        yield str(raw.get("account") or "root")


def _release(answer: Mapping[str, Any]) -> str:
    """`{"meta": {"Slurm" or "slurm": {"release": "24.11.5", ...}}}`; in some it is the nodes' own."""
    meta = answer.get("meta")
    said = (meta.get("slurm") or meta.get("Slurm")) if isinstance(meta, dict) else None
    first = next(iter(_listed(answer, "nodes")), None)
    release = str(said.get("release") or "") if isinstance(said, dict) else ""
    if not release and isinstance(first, dict):
        release = str(first.get("version") or first.get("slurmd_version") or "")
    known = re.match(r"(\d\d\.\d\d)", release)
    return known[1] if known else ""


def taking_jobs(path: Path) -> dict[str, str]:
    """Node -> why jobs on it would be hurt; "": it is drained, and has none. From one saved answer of `scontrol show
    node --json`. Raises UnreadableSite.
    """
    nodes = _answer(path).get("nodes")
    if not isinstance(nodes, list) or not nodes:
        raise UnreadableSite(f"{path} has no nodes: save `scontrol show node --json` there")
    return dict(said for raw in nodes for said in _tried(_of_jobs, raw))


def _of_jobs(raw: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    states = (_words(raw["state"]) | _words(raw.get("state_flags"))) - {""}
    allocated = int(number(raw["alloc_cpus"]) or 0)
    if allocated or node_states.busy(states):
        why = f"it runs jobs on {allocated} CPUs" if allocated else "it runs jobs"
    elif "DRAIN" not in states:  # of DOWN and the like it comes back by itself, and is given jobs
        why = f"it isn't drained ({', '.join(sorted(states))}), so a job may start on it"
    else:
        why = ""
    yield str(raw["name"]), why
