"""What a converge needs of Ansible and ssh: Protocols, and the records that pass through them.

What it needs of the scheduler is in ironburst.ports.service.
This module loads nothing else, to keep the check of an unchanged host fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

# ---- ssh


@dataclass(frozen=True)
class Connection:
    """How Ansible reaches a host (its own connection variables), so that plain ssh can, too."""

    address: str
    user: str | None = None
    port: int | None = None
    key: str | None = None  # path of the private key
    options: tuple[str, ...] = ()  # words for ssh
    become: bool = False  # root by sudo
    sudo_password: str = ""  # reference; empty: sudo asks for none
    python: str = "python3"


@dataclass(frozen=True)
class RemoteProgram:
    """The text of a Python program, and the host that runs it as root."""

    connection: Connection
    text: str


@dataclass(frozen=True)
class Answer:
    """A host's answer. `error`: one sentence if it could not be asked, or its program failed; else None."""

    output: str = ""
    error: str | None = None


# ---- Ansible


@dataclass(frozen=True)
class HostResult:
    """What one run of a playbook did on one host: numbers of tasks, and the first error."""

    ok: int = 0
    changed: int = 0
    failed: int = 0
    unreachable: int = 0
    skipped: int = 0
    error: str | None = None


@dataclass(frozen=True)
class PlaybookRun:
    """The outcome of one ansible-playbook.
    `error`: why no host was reached at all (an inventory that can't be read), else None.
    """

    playbook: str
    returncode: int
    hosts: dict[str, HostResult] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class TaskEvent:
    """One task's end on one host. `status`: ok, failed, unreachable or skipped; `result`: the module's own answer.

    `tags`: with the inherited ones;
    `literal`: of a task whose output is hidden the arguments that say where, as written in the role.
    """

    host: str
    role: str | None
    task: str
    status: str
    result: Mapping[str, Any]
    action: str = ""
    tags: frozenset[str] = frozenset()
    literal: Mapping[str, Any] = field(default_factory=dict)
    handler: bool = False

    @property
    def changed(self) -> bool:
        """Whether it changed something (in check mode: would have)."""
        return self.status == "ok" and bool(self.result.get("changed"))

    @property
    def results(self) -> list[Mapping[str, Any]]:
        """The module's answers: one an item of a loop, or the only one."""
        items = self.result.get("results")
        if isinstance(items, list) and items and all(_is_loop_item(item) for item in items):
            return list(items)
        return [self.result]


def _is_loop_item(item: object) -> bool:
    return isinstance(item, Mapping) and "ansible_loop_var" in item


class Playbooks(Protocol):
    """What runs the repository's playbooks with one inventory."""

    def play(
        self,
        playbook: str,
        *,
        hosts: Sequence[str] = (),
        check: bool = False,
        skip_tags: Sequence[str] = (),
        on_event: Callable[[TaskEvent], None] | None = None,
    ) -> PlaybookRun:
        """Run one on `hosts` (none: all of the inventory). Raises KeyboardInterrupt if a signal ended it."""

    def connections(self, hosts: Sequence[str]) -> Mapping[str, Connection]:
        """How to reach these hosts, without those that plain ssh can't reach as root."""
