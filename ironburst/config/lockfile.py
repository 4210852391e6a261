"""The lock file beside a stack file: `Pulumi.lab.yaml` has `lab.lock.yaml`.
Written by `ironburst lock`, read by validate and by Pulumi.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from ironburst import catalog
from ironburst.config.models import ClusterConfig
from ironburst.config.software import groups
from ironburst.config.yaml_file import FAST
from ironburst.nodes.ranges import RangeError, compact, expand
from ironburst.software import lock as locking
from ironburst.software.lock import Change, Locked, LockError
from ironburst.software.solve import Solution, solve
from ironburst.system import files

HEAD = """\
# Exact software of every group of nodes, for {stack}. Written by `ironburst lock`: review it, commit it, don't edit it.
# What was locked stays while it fits the stack; `ironburst lock --upgrade` proposes the newest that the stack allows.
"""


@dataclass(frozen=True)
class LockPlan:
    """What `ironburst lock` found: what should be in the file, and the changes from
    what is in it (`before`; None: no file).
    """

    path: Path
    before: Mapping[str, Locked] | None
    lock: Mapping[str, Locked]
    solution: Solution
    changes: tuple[Change, ...]

    @property
    def solved(self) -> bool:
        """There is no conflict."""
        return not self.solution.conflicts

    @property
    def fits(self) -> bool:
        """The file is there and says what the stack calls for."""
        return self.solved and self.before is not None and not self.changes


def path_of_lock(stack_file: Path) -> Path:
    """`stacks/Pulumi.lab.yaml` -> `stacks/lab.lock.yaml`; Pulumi reads no file of that name."""
    return stack_file.with_name(f"{stack_file.stem.removeprefix('Pulumi.')}.lock.yaml")


def read(path: Path) -> dict[str, Locked] | None:
    """The lock in a file; None: there is no file. Raises LockError with the file's name."""
    try:
        data = yaml.load(path.read_text(), FAST)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise LockError(f"{path} can't be read ({error})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise LockError(f"{path} is not YAML{f' at line {mark.line + 1}' if mark else ''}") from None
    if not isinstance(data, dict) or "version" not in data:
        raise LockError(f"{path} is not a lock file: it has no version")
    if data["version"] != locking.VERSION:
        raise LockError(f"{path} has version {data['version']!r}; this ironburst reads version {locking.VERSION}")
    try:
        return _expanded(locking.from_data(_lists(data.get("groups"))))
    except (LockError, RangeError) as error:
        raise LockError(f"{path} {error}") from None


def _lists(data: Any) -> Any:
    """Nodes are written as one range: a list with it."""
    if not isinstance(data, dict):
        return data
    return {name: _with_list(group) for name, group in data.items()}


def _with_list(group: Any) -> Any:
    if isinstance(group, dict) and isinstance(group.get("nodes"), str):
        return {**group, "nodes": [group["nodes"]]}
    return group


def _expanded(lock: Mapping[str, Locked]) -> dict[str, Locked]:
    return {
        name: replace(group, nodes=tuple(node for expression in group.nodes for node in _expand(expression)))
        for name, group in lock.items()
    }


def _expand(text: str) -> list[str]:
    depth, parts, part = 0, [], ""
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [node for expression in (*parts, part) for node in expand(expression)]


def text(stack_file: Path, lock: Mapping[str, Locked]) -> str:
    """The file's text: the same lock gives the same text."""
    data = locking.to_data(lock)
    for name, group in lock.items():
        data[name]["nodes"] = compact(group.nodes)
    head = HEAD.format(stack=stack_file.name)
    body = {"version": locking.VERSION, "catalogue": catalog.software_date().isoformat(), "groups": data}
    return head + yaml.safe_dump(body, sort_keys=False, width=160, default_flow_style=None, allow_unicode=True)


def write(stack_file: Path, lock: Mapping[str, Locked]) -> Path:
    """Write the lock beside its stack file, atomically."""
    path = path_of_lock(stack_file)
    files.write(path, text(stack_file, lock), 0o644)
    return path


def plan(config: ClusterConfig, stack_file: Path, *, upgrade: bool = False, today: date | None = None) -> LockPlan:
    """Solve a valid declaration, keeping what is locked while it fits (`upgrade`: the newest that the declaration
    allows). Writes nothing.
    Raises LockError for a damaged lock, catalog.Unknown for hardware or a profile that isn't known.
    """
    path, facts, declared = path_of_lock(stack_file), catalog.software_facts(), groups(config)
    before = read(path)
    kept = {} if upgrade or before is None else locking.previous_sets(declared, before)
    solution = solve(declared, facts, kept, today=today)
    if solution.conflicts:
        return LockPlan(path, before, {}, solution, ())
    after = locking.locked(declared, solution.sets)
    changes = locking.changes(before or {}, after, declared, facts)
    return LockPlan(path, before, after, solution, tuple(changes))


def drivers(stack_file: Path) -> dict[str, str]:
    """{node: the driver that is locked for it}; without a lock nothing. Raises LockError."""
    groups = (read(path_of_lock(stack_file)) or {}).values()
    return {node: group.software.driver for group in groups if group.software.driver for node in group.nodes}


def restore(stack_file: Path) -> str:
    """What to do about a lock that can't be used."""
    return f"restore it from version control, or delete it and run `ironburst lock {stack_file}`"
