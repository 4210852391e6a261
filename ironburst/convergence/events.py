"""What a run of Ansible told about each host: what changed, what is to be watched, what would need a drained node, the
gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ironburst.convergence import watch

SHARED = "packages"  # a part of the role that asked for it
GATE = "node_health"


class TaskEvent(Protocol):
    """One task's end on one host, as ironburst.adapters.ansible.Event has it."""

    host: str
    role: str | None
    task: str
    status: str
    result: Mapping[str, Any]
    action: str
    tags: frozenset[str]
    literal: Mapping[str, Any]
    handler: bool

    @property
    def changed(self) -> bool: ...

    @property
    def results(self) -> list[Mapping[str, Any]]: ...


@dataclass
class Told:
    """Of one host in one run. `drain`: tasks that change (in check mode: would change) and need a node without jobs."""

    changed: list[str] = field(default_factory=list)
    drain: list[str] = field(default_factory=list)
    watch: watch.Watch = field(default_factory=dict)
    unwatched: list[str] = field(default_factory=list)
    gate_failed: bool = False


class Listener:
    """Gathers the events of one run, and says a line when a host gets to another role."""

    def __init__(self, stage: str, say: Callable[[str], None], covered: Callable[[str], bool] = lambda role: False):
        """`covered`: whether a role names in its meta/watch.yml what its commands manage."""
        self.hosts: dict[str, Told] = {}
        self._stage, self._say, self._covered = stage, say, covered
        self._at: dict[str, str] = {}

    def __call__(self, event: TaskEvent) -> None:
        told = self.hosts.setdefault(event.host, Told())
        role = event.role or self._stage
        if event.status != "skipped" and role != SHARED and self._at.get(event.host) != role:
            self._at[event.host] = role
            self._say(f"{event.host}: {role}")
        name = f"{role}: {event.task}"
        if event.changed:
            told.changed.append(name)
        if "drain" in event.tags and (event.changed or event.status == "failed" or _hidden_by_check(event)):
            told.drain.append(name)
        if event.status in ("failed", "unreachable"):
            told.gate_failed |= event.status == "failed" and event.role == GATE
        if event.status in ("ok", "failed"):
            self._watch(event, told, role, name)

    def _watch(self, event: TaskEvent, told: Told, role: str, name: str) -> None:
        try:
            told.watch = watch.merge(told.watch, watch.of_task(event.action, event.results, event.literal, where=name))
        except ValueError as problem:
            if not self._covered(role):
                told.unwatched.append(str(problem))
            return
        command = watch.module_name(event.action) in ("command", "shell", "script", "raw")
        if command and event.changed and not event.handler and role != SHARED and not self._covered(role):
            told.unwatched.append(
                f"{name}: a command has changed something that nothing watches: name it in meta/watch.yml of its role"
            )


def _hidden_by_check(event: TaskEvent) -> bool:
    """Whether check mode can't say if the task would change something: then it counts as if it would."""
    texts = [str(result.get("msg", "")) for result in (event.result, *event.results)]
    return event.status == "skipped" and any("check mode" in text for text in texts)
