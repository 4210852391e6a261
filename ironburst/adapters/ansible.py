"""Ansible by ansible-runner: run one playbook, report what it did host by host."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ironburst.adapters.leftovers import close_connections, end_here, end_on_hosts
from ironburst.adapters.remote import Connection
from ironburst.signals import handled

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class HostResult:
    """What one run did on one host: numbers of tasks, and the first error."""

    ok: int = 0
    changed: int = 0
    failed: int = 0
    unreachable: int = 0
    skipped: int = 0
    error: str | None = None


@dataclass(frozen=True)
class PlaybookRun:
    """The outcome of one ansible-playbook. `error`: why no host was reached at all (an inventory that can't be read),
    else None.
    """

    playbook: str
    returncode: int
    hosts: dict[str, HostResult] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class Event:
    """One task's end on one host. `status`: ok, failed, unreachable or skipped; `result`: the module's own answer.

    `tags`: with the inherited ones; `literal`: of a task whose output is hidden the arguments that say where, as
    written in the role.
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
        return self.status == "ok" and bool(self.result.get("changed"))

    @property
    def results(self) -> list[Mapping[str, Any]]:
        """The module's answers: one an item of a loop, or the only one."""
        items = self.result.get("results")
        loop = (
            isinstance(items, list)
            and items
            and all(isinstance(item, Mapping) and "ansible_loop_var" in item for item in items)
        )
        return list(items) if loop else [self.result]


STATUS = {
    "runner_on_ok": "ok",
    "runner_on_failed": "failed",
    "runner_on_unreachable": "unreachable",
    "runner_on_skipped": "skipped",
}


class Tasks:
    """What playbooks/plugins/callback/ironburst_tasks.py writes, by the uuid of the task."""

    def __init__(self, path: Path):
        self.path, self._read, self._known = path, 0, dict[str, dict[str, Any]]()

    def of(self, uuid: str) -> dict[str, Any]:
        """{tags, handler, literal} of a task; {} for one that is not known."""
        if uuid not in self._known and self.path.exists():
            with self.path.open() as file:
                file.seek(self._read)
                while line := file.readline():
                    if not line.endswith("\n"):
                        break
                    self._read = file.tell()
                    entry = json.loads(line)
                    self._known[entry.pop("uuid")] = entry
        return self._known.get(uuid, {})


def event_of(data: Mapping[str, Any], tasks: Tasks | None = None) -> Event | None:
    """The Event in one of ansible-runner's events, None for the kinds that end no task."""
    status = STATUS.get(data.get("event", ""))
    details = data.get("event_data") or {}
    if status is None or "host" not in details:
        return None
    if status == "failed" and details.get("ignore_errors"):
        status = "ok"
    said = tasks.of(str(details.get("task_uuid"))) if tasks else {}
    action = details.get("resolved_action") or details.get("task_action") or ""
    return Event(
        details["host"],
        details.get("role"),
        details.get("task") or "",
        status,
        details.get("res") or {},
        action,
        frozenset(said.get("tags", ())),
        said.get("literal", {}),
        said.get("handler", False),
    )


def error_of(event: Event) -> str:
    """One line about a failed task."""
    result = event.result
    text = result.get("msg") or result.get("stderr") or result.get("stdout") or "no message"
    if result.get("censored") and not result.get("msg"):
        text = "its output is hidden, for it deals with a secret"
    lines = text if isinstance(text, list) else str(text).split("\n")
    return f"{event.task}: {' '.join(' '.join(str(line) for line in lines).split())}"


class Ansible:
    """Runs playbooks of this repository with one inventory.

    `document` is the ClusterDocument that the inventory reads. Every run has its own folder of ssh connections, closed
    at its end: two labs with the same addresses never share one, and none is left behind.
    """

    def __init__(self, inventory: Path, document: Path, environment: Mapping[str, str] | None = None):
        self.inventory = Path(inventory).resolve()
        self.document = Path(document).resolve()
        self.environment = dict(environment or {})

    def play(
        self,
        playbook: str,
        *,
        hosts: Sequence[str] = (),
        check: bool = False,
        skip_tags: Sequence[str] = (),
        variables: Mapping[str, Any] | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> PlaybookRun:
        """Run playbooks/`playbook` on `hosts` (none: all of the inventory).

        SIGINT or SIGTERM ends it, also what its tasks have started on the hosts (a package manager may end its
        transaction), and raises KeyboardInterrupt. Main thread only.
        """
        import ansible_runner  # imported here: most verbs don't need it

        errors: dict[str, str] = {}
        stats: dict[str, dict[str, int]] = {}
        stopped = threading.Event()

        def handle(data: dict[str, Any]) -> bool:
            if data.get("event") == "playbook_on_stats":
                stats.update({key: value for key, value in data["event_data"].items() if isinstance(value, dict)})
            event = event_of(data, tasks)
            if event is not None:
                if event.status in ("failed", "unreachable"):
                    errors.setdefault(event.host, error_of(event))
                if on_event:
                    on_event(event)
            return False  # ansible-runner need not keep the event as a file

        with tempfile.TemporaryDirectory(prefix="ironburst-") as folder:  # short: a socket's path has 108 bytes at most
            connections = Path(folder, "ssh")
            tasks = Tasks(Path(folder, "tasks"))
            options = (["--limit", ",".join(hosts)] if hosts else []) + (["--check"] if check else [])
            options += ["--skip-tags", ",".join(skip_tags)] if skip_tags else []
            try:
                # ansible-runner's own handlers would stay, and swallow later signals
                with handled(lambda *_: stopped.set()):
                    runner = ansible_runner.run(
                        private_data_dir=folder,
                        project_dir=str(REPOSITORY),
                        playbook=str(REPOSITORY / "playbooks" / playbook),
                        inventory=str(self.inventory),
                        cmdline=" ".join(options) or None,
                        extravars=dict(variables or {}),
                        envvars=self._environment(connections, tasks.path),
                        event_handler=handle,
                        cancel_callback=stopped.is_set,
                        quiet=True,
                        suppress_env_files=True,
                    )
                if not stopped.is_set():
                    output = runner.stdout.read()
            finally:
                with handled(signal.SIG_IGN):
                    end_here(connections)
                    if stopped.is_set():
                        left = end_on_hosts(connections)
                    close_connections(connections)
            if stopped.is_set():
                raise KeyboardInterrupt(f"{len(left)} hosts may still run a task that was begun" if left else "")
        reached = {host for counts in stats.values() for host in counts}
        results = {host: _result(stats, host, errors.get(host)) for host in sorted(reached)}
        error = None if results or runner.rc == 0 else _first_error(output)
        return PlaybookRun(playbook, runner.rc, results, error)

    def connections(self, hosts: Sequence[str]) -> dict[str, Connection]:
        """How Ansible reaches these hosts, without those that it reaches otherwise than by ssh, or not as root or by
        sudo.
        """
        said: dict[str, Mapping[str, Any]] = {}

        def remember(event: Event) -> None:
            if isinstance(event.result.get("msg"), Mapping):
                said[event.host] = event.result["msg"]

        self.play("connection.yml", hosts=hosts, on_event=remember)
        return {host: connection for host, told in said.items() if (connection := connection_of(told))}

    def _environment(self, connections: Path, tasks: Path) -> dict[str, str]:
        tools = str(Path(sys.executable).parent)  # ansible-playbook of this very environment
        return self.environment | {
            "PATH": f"{tools}:{os.environ.get('PATH', os.defpath)}",
            "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(connections),
            "IRONBURST_CONTROL_PATH_DIR": str(connections),
            "IRONBURST_DOCUMENT": str(self.document),
            "IRONBURST_TASKS": str(tasks),
            "ANSIBLE_CALLBACK_PLUGINS": str(REPOSITORY / "playbooks" / "plugins" / "callback"),
            "ANSIBLE_CALLBACKS_ENABLED": "ironburst_tasks",
        }


def _result(stats: Mapping[str, Any], host: str, error: str | None) -> HostResult:
    names = {"ok": "ok", "changed": "changed", "failed": "failures", "unreachable": "dark", "skipped": "skipped"}
    counts = {name: int((stats.get(key) or {}).get(host, 0)) for name, key in names.items()}
    return HostResult(**counts, error=error if counts["failed"] or counts["unreachable"] else None)


def _first_error(output: str) -> str:
    """The sentence that ansible gave when it reached no host."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    found = re.search(r"^\[ERROR\]: (.+?)(?=\n\n|\n\[|\nOrigin:|\Z)", plain, re.DOTALL | re.MULTILINE) or re.search(
        r"^ERROR! (.+)$", plain, re.MULTILINE
    )
    return " ".join((found.group(1) if found else plain.strip()[-500:] or "ansible-playbook said nothing").split())


def connection_of(told: Mapping[str, Any]) -> Connection | None:
    """The Connection in what playbooks/connection.yml says of a host; None if plain ssh can't reach it so."""
    if told.get("connection") not in ("ssh", "smart"):
        return None
    port, python = str(told.get("port") or ""), str(told.get("python") or "")
    return Connection(
        address=str(told["address"]),
        user=str(told.get("user") or "") or None,
        port=int(port) if port.isdigit() else None,
        key=str(told.get("key") or "") or None,
        options=tuple(shlex.split(str(told.get("options") or ""))),
        become=told.get("become") in (True, "True", "true"),
        python=python if python.startswith("/") else "python3",
    )
