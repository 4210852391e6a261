"""The lock as plain data: which set each group of nodes has.
Pure; ironburst/config/lockfile.py reads and writes the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

from ironburst.software import security
from ironburst.software.model import Facts, Group, SoftwareSet
from ironburst.software.packages import ROLES
from ironburst.software.versions import branch_of

VERSION = 1
FOLLOW_THE_DRIVER = ("driver_branch", "fabric_manager", "nscq", "imex", "persistenced")
BY_RULE = ("kernel_module", "peer_memory", "rdma", "nvlsm", "slurm_packages")
MAY_BE_NONE = (
    "driver",
    "driver_branch",
    "kernel_module",
    "fabric_manager",
    "nscq",
    "imex",
    "persistenced",
    "cuda",
    "container_toolkit",
    "dcgm",
    "nccl",
    "rdma_version",
    "kernel",
    "slurm",
    "kubernetes",
)
KNOWN_BY_CATALOGUE = ("container_toolkit", "dcgm", "nccl")


class LockError(ValueError):
    """A lock that can't be used; the text is one sentence without the file's name."""


@dataclass(frozen=True)
class Locked:
    """One group in a lock. `about` is for the reader and for the review: what the group was when it was solved."""

    nodes: tuple[str, ...]
    about: Mapping[str, Any]
    software: SoftwareSet


@dataclass(frozen=True)
class Change:
    """One difference of a group: `key` of its set (or `group`), old and new value, and why."""

    group: str
    key: str
    old: Any
    new: Any
    reason: str

    def __str__(self) -> str:
        if self.key == "group":
            return f"{self.group}: {self.reason}"
        return f"{self.group}: {self.key} {_shown(self.old)} -> {_shown(self.new)} ({self.reason})"


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def summary(chosen: SoftwareSet) -> str:
    """A set in a few words."""
    slurm = "" if chosen.kubernetes and not chosen.slurm else f"Slurm {_shown(chosen.slurm)}"
    scheduler = ", ".join(filter(None, (slurm, f"Kubernetes {chosen.kubernetes}" if chosen.kubernetes else "")))
    if chosen.driver is None:
        return scheduler
    driver, cuda = f"driver {chosen.driver} ({chosen.kernel_module})", f"CUDA {chosen.cuda}"
    return f"{driver}, {cuda}, NCCL {chosen.nccl}, {chosen.rdma}, {scheduler}"


def about(group: Group) -> dict[str, Any]:
    """What the group is, as the lock states it."""
    gpus = {"gpu": group.gpu.model, "gpus": group.gpu_count} if group.gpu else {}
    return {"os": group.os, **gpus, "fabric": group.fabric, **({"partition": group.span} if group.gpu else {})}


def locked(groups: Sequence[Group], sets: Mapping[str, SoftwareSet]) -> dict[str, Locked]:
    """The lock of solved groups."""
    return {group.name: Locked(group.nodes, about(group), sets[group.name]) for group in groups}


def to_data(lock: Mapping[str, Locked]) -> dict[str, Any]:
    """Plain data of a lock, in a fixed order."""
    return {
        name: {"nodes": list(group.nodes), **group.about, "software": _set_data(group.software)}
        for name, group in lock.items()
    }


def _set_data(chosen: SoftwareSet) -> dict[str, Any]:
    given = [(field, getattr(chosen, field.name)) for field in fields(SoftwareSet)]
    # a key that came later is written where it says something: locks of before stay as they are
    data = {field.name: value for field, value in given if field.default is MISSING or value != field.default}
    data["container_runtimes"] = list(chosen.container_runtimes)
    data["packages"] = {role: list(specs) for role, specs in chosen.packages.items() if specs}
    return data


def from_data(data: Any) -> dict[str, Locked]:
    """The lock of plain data. Raises LockError."""
    if not isinstance(data, dict) or not data:
        raise LockError("names no groups")
    return {str(name): _locked(str(name), group) for name, group in data.items()}


def _locked(name: str, data: Any) -> Locked:
    if (
        not isinstance(data, dict)
        or not isinstance(data.get("software"), dict)
        or not isinstance(data.get("nodes"), list)
    ):
        raise LockError(f"has no nodes or no software at {name}")
    given = dict(data["software"])
    expected = {field.name: field for field in fields(SoftwareSet)}
    for key in given.keys() - expected.keys():
        raise LockError(f"has an unknown key {key!r} at {name}")
    for key, field in expected.items():
        if key not in given and field.default is MISSING:
            raise LockError(f"lacks {key} at {name}")
        if key in given and not _has_type(key, given[key]):
            raise LockError(f"has {given[key]!r} as {key} at {name}")
    packages = {role: tuple(given["packages"].get(role, ())) for role in dict.fromkeys((*ROLES, *given["packages"]))}
    software = SoftwareSet(**{**given, "container_runtimes": tuple(given["container_runtimes"]), "packages": packages})
    rest = {key: value for key, value in data.items() if key not in ("nodes", "software")}
    return Locked(tuple(map(str, data["nodes"])), rest, software)


def _has_type(key: str, value: Any) -> bool:
    if value is None:
        return key in MAY_BE_NONE
    if key == "packages":
        return isinstance(value, dict) and all(_texts(specs) for specs in value.values())
    if key == "container_runtimes":
        return _texts(value)
    return isinstance(value, {"driver_branch": int, "nvlsm": bool, "gds": bool}.get(key, str))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


# ---- a lock against its stack


def previous_sets(groups: Sequence[Group], lock: Mapping[str, Locked]) -> dict[str, SoftwareSet]:
    """What was locked for each group: by its name, else (nodes were added, a range renamed) by a node that it had."""
    by_node = {node: locked.software for locked in lock.values() for node in locked.nodes}
    previous: dict[str, SoftwareSet] = {}
    for group in groups:
        if group.name in lock:
            previous[group.name] = lock[group.name].software
        elif shared := [by_node[node] for node in group.nodes if node in by_node]:
            previous[group.name] = shared[0]
    return previous


def changes(
    before: Mapping[str, Locked], after: Mapping[str, Locked], groups: Sequence[Group], facts: Facts
) -> list[Change]:
    """What differs between two locks, group by group; empty: nothing."""
    return list(_changes(before, after, {group.name: group for group in groups}, facts))


def _changes(
    before: Mapping[str, Locked], after: Mapping[str, Locked], groups: Mapping[str, Group], facts: Facts
) -> Iterator[Change]:
    for name in before:
        if name not in after:
            yield Change(name, "group", list(before[name].nodes), None, "is not declared any more")
    for name, new in after.items():
        old = before.get(name)
        if old is None:
            yield Change(name, "group", None, list(new.nodes), f"is new: {summary(new.software)}")
            continue
        if old.nodes != new.nodes:
            yield Change(name, "nodes", list(old.nodes), list(new.nodes), "as declared")
        for key in dict.fromkeys((*old.about, *new.about)):
            if old.about.get(key) != new.about.get(key):
                yield Change(name, key, old.about.get(key), new.about.get(key), "as declared")
        yield from _set_changes(name, old.software, new.software, groups[name], facts)


def _set_changes(name: str, old: SoftwareSet, new: SoftwareSet, group: Group, facts: Facts) -> Iterator[Change]:
    plain = [field.name for field in fields(SoftwareSet) if field.name != "packages"]
    for key in plain:
        if getattr(old, key) != getattr(new, key):
            yield Change(name, key, getattr(old, key), getattr(new, key), _reason(key, old, new, group, facts))
    if any(getattr(old, key) != getattr(new, key) for key in plain):
        return  # its packages follow
    for role in dict.fromkeys((*old.packages, *new.packages)):
        if old.packages.get(role) != new.packages.get(role):
            reason = "the names in the catalogue have changed, or the lock was edited"
            yield Change(name, f"packages.{role}", old.packages.get(role), new.packages.get(role), reason)


def _reason(key: str, old: SoftwareSet, new: SoftwareSet, group: Group, facts: Facts) -> str:
    reason = _why(key, old, group, facts)
    if key != "driver" or old.driver is None or new.driver is None:
        return reason
    fixes = security.closed(old.driver, new.driver, facts.bulletins)
    return f"{reason}; security: {security.named(fixes)}" if fixes else reason


def _why(key: str, old: SoftwareSet, group: Group, facts: Facts) -> str:
    if key in FOLLOW_THE_DRIVER:
        return "follows the driver"
    wish = group.wish
    if key == "driver":
        if wish.driver and "." in wish.driver:
            return "as declared"
        if old.driver is None or branch_of(old.driver) != branch_of(wish.driver or old.driver):
            return f"branch {wish.driver} is asked for"
        branch = facts.branches.get(branch_of(old.driver))
        if branch is None or old.driver not in branch.example_versions:
            return f"the catalogue doesn't know {old.driver}"
        return f"newest of branch {wish.driver} that the partition can take"
    if key in KNOWN_BY_CATALOGUE and getattr(wish, key) is None:
        locked = getattr(old, key)
        known = locked in facts.extra["known_versions"][key]["versions"]
        return "current in the catalogue" if known else f"the catalogue doesn't know {locked}"
    if key in BY_RULE and getattr(wish, key, None) in ("auto", None):
        return "by rule"
    return "current in the catalogue" if key == "rdma_version" else "as declared"
