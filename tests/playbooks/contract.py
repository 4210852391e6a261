"""Reading roles as data: every task with its inherited tags, through blocks, imports and includes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ironburst.catalog.tables import LOADER

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
STAGES = ("preflight", "install", "configure", "runtime", "validate")
CLASSES = ("live", "drain")
READ_ONLY = frozenset(
    [
        "add_host",
        "api_version",
        "assert",
        "async_status",
        "debug",
        "fail",
        "fetch",
        "find",
        "gather_facts",
        "getent",
        "group_by",
        "include_vars",
        "meta",
        "node_state",
        "role_needs",
        "package_facts",
        "pause",
        "ping",
        "service_facts",
        "set_fact",
        "setup",
        "slurp",
        "stat",
        "tempfile",
        "uri",
        "validate_argument_spec",
        "wait_for",
        "wait_for_connection",
    ]
)
# change something unless they say `changed_when: false`
COMMANDS = frozenset(("command", "shell", "script", "raw", "expect"))
KEYWORDS = frozenset(
    [
        "name",
        "when",
        "tags",
        "register",
        "notify",
        "listen",
        "loop",
        "loop_control",
        "with_items",
        "vars",
        "ignore_unreachable",
        "become",
        "become_user",
        "check_mode",
        "changed_when",
        "failed_when",
        "ignore_errors",
        "no_log",
        "until",
        "retries",
        "delay",
        "delegate_to",
        "run_once",
        "environment",
        "block",
        "rescue",
        "always",
        "args",
        "diff",
        "any_errors_fatal",
        "throttle",
        "async",
        "poll",
        "timeout",
        "module_defaults",
        "delegate_facts",
    ]
)


@dataclass(frozen=True)
class Task:
    """One task as it is run. `tags`: all, also the inherited ones; `own`: those that it names itself."""

    where: str
    module: str
    arguments: Any
    raw: dict[str, Any]
    tags: frozenset[str]
    own: frozenset[str]

    @property
    def classes(self) -> list[str]:
        return sorted(self.tags & set(CLASSES))

    @property
    def changes(self) -> bool:
        """Whether it can change a host."""
        if self.module in READ_ONLY:
            return False
        return not (self.module in COMMANDS and self.raw.get("changed_when") is False)

    @property
    def notifies(self) -> list[str]:
        return listed(self.raw.get("notify"))


def listed(value: Any) -> list[str]:
    return [] if value is None else [str(one) for one in value] if isinstance(value, list) else [str(value)]


def load(path: Path) -> list[dict[str, Any]]:
    return (yaml.load(path.read_text(), LOADER) or []) if path.exists() else []


def module_of(task: dict[str, Any], where: str) -> tuple[str, Any]:
    """(module without its collection, arguments)"""
    names = [key for key in task if key not in KEYWORDS]
    assert len(names) == 1, f"{where}: a task has one module, this one has {names}"
    return names[0].rpartition(".")[2], task[names[0]]


def tasks_of(file: Path, inherited: frozenset[str] = frozenset(), roles: Path = PLAYBOOKS / "roles") -> Iterator[Task]:
    """All tasks of a file of tasks, and of all that it imports or includes."""
    assert file.is_file(), f"{file} does not exist"
    for number, task in enumerate(load(file), 1):
        yield from _walk(task, file, inherited, f"{file.relative_to(roles)}:{task.get('name', number)}", roles)


def _walk(task: dict[str, Any], file: Path, inherited: frozenset[str], where: str, roles: Path) -> Iterator[Task]:
    own = frozenset(listed(task.get("tags")))
    tags = inherited | own
    if "block" in task:
        for part in ("block", "rescue", "always"):
            for inner in task.get(part) or []:
                yield from _walk(inner, file, tags, f"{where}/{inner.get('name')}", roles)
        return
    module, arguments = module_of(task, where)
    if module == "import_tasks":
        name = arguments if isinstance(arguments, str) else arguments["file"]
        yield from tasks_of(file.parent / name, tags, roles)
    elif module == "include_tasks":
        name = arguments if isinstance(arguments, str) else arguments["file"]
        applied = (
            frozenset(listed((arguments.get("apply") or {}).get("tags")))
            if isinstance(arguments, dict)
            else frozenset()
        )
        yield Task(where, module, arguments, task, tags, own)
        # without `apply` an include hands nothing down; the packages role's own part gets its tags with the role's
        yield from tasks_of(file.parent / name, inherited if file.parents[1].name == "packages" else applied, roles)
    elif module in ("include_role", "import_role"):
        yield Task(where, module, arguments, task, tags, own)
        applied = tags if module == "import_role" else frozenset(listed((arguments.get("apply") or {}).get("tags")))
        start = f"{arguments.get('tasks_from', 'main')}.yml"
        if "{{" not in arguments["name"]:
            yield from tasks_of(roles / arguments["name"] / "tasks" / start, applied, roles)
    else:
        yield Task(where, module, arguments, task, tags, own)


def problems(task: Task) -> list[str]:
    """What is wrong with a task's class."""
    if task.module in ("include_role", "include_tasks"):
        inside = listed((task.arguments.get("apply") or {}).get("tags")) if isinstance(task.arguments, dict) else []
        inside = [tag for tag in inside if tag in CLASSES]
        if inside and not set(inside) <= task.tags:
            why = "it would be included where its tasks are left out"
            return [f"{task.where}: applies {inside[0]}, but is not tagged so itself: {why}"]
        return []
    if task.module == "import_role":
        return []
    if task.changes and len(task.classes) != 1:
        return [
            f"{task.where}: changes the host ({task.module}) and is tagged {task.classes or 'neither live nor drain'}"
        ]
    if not task.changes and task.own & set(CLASSES):
        return [f"{task.where}: only reads ({task.module}), yet it is tagged {sorted(task.own & set(CLASSES))}"]
    return []
