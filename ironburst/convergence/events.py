"""What a run of Ansible reported of each host: what changed, what is to be watched,
what would need a drained node, the gate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ironburst.convergence import watch
from ironburst.convergence.ports import TaskEvent

SHARED = "packages"  # a part of the role that asked for it
GATE = "node_health"


@dataclass
class HostEvents:
    """What the events of one run say of one host. Tasks are named "role: task"."""

    changed: list[str] = field(default_factory=list)  # tasks that changed something (in check mode: would)
    drain: list[str] = field(default_factory=list)  # tasks that need a node without jobs
    watch: watch.Watch = field(default_factory=dict)
    unwatched: list[str] = field(default_factory=list)  # sentences: why the host can't be called unchanged
    gate_failed: bool = False
    unreached: bool = False  # Ansible gave up waiting for a connection, which it counts as a failed task


class Listener:
    """Gathers the events of one run, and says a line when a host gets to another role."""

    def __init__(self, stage: str, say: Callable[[str], None], covered: Callable[[str], bool] = lambda _role: False):
        """`covered`: whether a role names in its meta/watch.yml what its commands manage."""
        self.hosts: dict[str, HostEvents] = {}
        self._stage, self._say, self._covered = stage, say, covered
        self._at: dict[str, str] = {}

    def __call__(self, event: TaskEvent) -> None:
        """Take one event in."""
        host = self.hosts.setdefault(event.host, HostEvents())
        role = event.role or self._stage
        if event.status != "skipped" and role != SHARED and self._at.get(event.host) != role:
            self._at[event.host] = role
            self._say(f"{event.host}: {role}")
        name = f"{role}: {event.task}"
        if event.changed:
            host.changed.append(name)
        if "drain" in event.tags and (event.changed or event.status == "failed" or _hidden_by_check(event)):
            host.drain.append(name)
        host.unreached |= event.status == "failed" and watch.module_name(event.action) == "wait_for_connection"
        host.gate_failed |= event.status == "failed" and event.role == GATE
        if event.status in ("ok", "failed"):
            self._watch(event, host, role, name)

    def _watch(self, event: TaskEvent, host: HostEvents, role: str, name: str) -> None:
        try:
            host.watch = watch.merge(host.watch, watch.of_task(event.action, event.results, event.literal, where=name))
        except ValueError as problem:
            if not self._covered(role):
                host.unwatched.append(str(problem))
            return
        command = watch.module_name(event.action) in ("command", "shell", "script", "raw")
        if command and event.changed and not event.handler and role != SHARED and not self._covered(role):
            host.unwatched.append(
                f"{name}: a command has changed something that nothing watches: name it in meta/watch.yml of its role"
            )


def _hidden_by_check(event: TaskEvent) -> bool:
    """Whether check mode can't say if the task would change something: then it counts as if it would."""
    texts = [str(result.get("msg", "")) for result in (event.result, *event.results)]
    return event.status == "skipped" and any("check mode" in text for text in texts)
