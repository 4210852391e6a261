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
from pathlib import Path
from typing import Any

from ironburst.adapters.leftovers import close_connections, end_here, end_on_hosts
from ironburst.convergence.ports import Connection, HostResult, PlaybookRun, TaskEvent
from ironburst.system.signals import handled

REPOSITORY = Path(__file__).resolve().parents[2]

# kinds of ansible-runner's events that end a task
STATUS = {
    "runner_on_ok": "ok",
    "runner_on_failed": "failed",
    "runner_on_unreachable": "unreachable",
    "runner_on_skipped": "skipped",
}


# how ansible-core begins an error, from 2.19 on and before
FIRST_ERROR = re.compile(r"^\[ERROR\]: (.+?)(?=\n\n|\n\[|\nOrigin:|\Z)", re.DOTALL | re.MULTILINE)
FIRST_ERROR_OLD = re.compile(r"^ERROR! (.+)$", re.MULTILINE)

# numbers of a HostResult, as Ansible's statistics call them
COUNTS = {"ok": "ok", "changed": "changed", "failed": "failures", "unreachable": "dark", "skipped": "skipped"}


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


def event_of(data: Mapping[str, Any], tasks: Tasks) -> TaskEvent | None:
    """The TaskEvent in one of ansible-runner's events, None for the kinds that end no task."""
    status = STATUS.get(data.get("event", ""))
    details = data.get("event_data") or {}
    if status is None or "host" not in details:
        return None
    if status == "failed" and details.get("ignore_errors"):
        status = "ok"
    written = tasks.of(str(details.get("task_uuid")))
    return TaskEvent(
        host=details["host"],
        role=details.get("role"),
        task=details.get("task") or "",
        status=status,
        result=details.get("res") or {},
        action=details.get("resolved_action") or details.get("task_action") or "",
        tags=frozenset(written.get("tags", ())),
        literal=written.get("literal", {}),
        handler=written.get("handler", False),
    )


def error_of(event: TaskEvent) -> str:
    """One line about a failed task."""
    result = event.result
    text = result.get("msg") or result.get("stderr") or result.get("stdout") or "no message"
    if result.get("censored") and not result.get("msg"):
        text = "its output is hidden, for it deals with a secret"
    lines = text if isinstance(text, list) else str(text).split("\n")
    return f"{event.task}: {' '.join(' '.join(str(line) for line in lines).split())}"


class Progress:
    """Follows the events of one run: passes task ends on, and keeps each host's numbers and first error."""

    def __init__(self, tasks: Tasks, on_event: Callable[[TaskEvent], None] | None):
        self._tasks, self._on_event = tasks, on_event
        self._errors: dict[str, str] = {}
        self._statistics: dict[str, dict[str, int]] = {}  # {what: {host: number of tasks}}

    def __call__(self, data: dict[str, Any]) -> bool:
        """ansible-runner's event handler; its answer is whether the event is to be kept as a file."""
        if data.get("event") == "playbook_on_stats":
            statistics = data["event_data"].items()
            self._statistics.update({what: numbers for what, numbers in statistics if isinstance(numbers, dict)})
        event = event_of(data, self._tasks)
        if event is not None:
            if event.status in ("failed", "unreachable"):
                self._errors.setdefault(event.host, error_of(event))
            if self._on_event:
                self._on_event(event)
        return False

    def results(self) -> dict[str, HostResult]:
        """{host: result} of every host that was reached, or tried."""
        hosts = {host for numbers in self._statistics.values() for host in numbers}
        return {host: self._result(host) for host in sorted(hosts)}

    def _result(self, host: str) -> HostResult:
        counts = {name: int(self._statistics.get(what, {}).get(host, 0)) for name, what in COUNTS.items()}
        failed = counts["failed"] or counts["unreachable"]
        return HostResult(**counts, error=self._errors.get(host) if failed else None)


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
        on_event: Callable[[TaskEvent], None] | None = None,
    ) -> PlaybookRun:
        """Run playbooks/`playbook` on `hosts` (none: all of the inventory).

        SIGINT or SIGTERM ends it, also what its tasks have started on the hosts (a package manager may end its
        transaction), and raises KeyboardInterrupt. Main thread only.
        """
        limit = ["--limit", ",".join(hosts)] if hosts else []
        skip = ["--skip-tags", ",".join(skip_tags)] if skip_tags else []
        words = [*limit, *(["--check"] if check else []), *skip]
        with tempfile.TemporaryDirectory(prefix="ironburst-") as name:  # short: a socket's path has 108 bytes at most
            folder = Path(name)
            progress = Progress(Tasks(folder / "tasks"), on_event)
            returncode, output = self._run(folder, playbook, words, dict(variables or {}), progress)
        results = progress.results()
        error = None if results or returncode == 0 else _first_error(output)
        return PlaybookRun(playbook, returncode, results, error)

    def _run(
        self, folder: Path, playbook: str, words: list[str], variables: dict[str, Any], progress: Progress
    ) -> tuple[int, str]:
        """Exit status and output of one ansible-playbook, whose files are in `folder`. Raises KeyboardInterrupt."""
        import ansible_runner  # imported here: most verbs don't need it

        stopped = threading.Event()
        connections = folder / "ssh"
        try:
            # ansible-runner's own handlers would stay, and swallow later signals
            with handled(lambda *_: stopped.set()):
                runner = ansible_runner.run(
                    private_data_dir=str(folder),
                    project_dir=str(REPOSITORY),
                    playbook=str(REPOSITORY / "playbooks" / playbook),
                    inventory=str(self.inventory),
                    cmdline=" ".join(words) or None,
                    extravars=variables,
                    envvars=self._environment(connections, folder / "tasks"),
                    event_handler=progress,
                    status_handler=_keep_environment,
                    cancel_callback=stopped.is_set,
                    quiet=True,
                    suppress_env_files=True,
                )
        finally:
            with handled(signal.SIG_IGN):
                end_here(connections)
                left = end_on_hosts(connections) if stopped.is_set() else []
                close_connections(connections)
        if stopped.is_set():
            raise KeyboardInterrupt(f"{len(left)} hosts may still run a task that was begun" if left else "")
        return runner.rc, runner.stdout.read()

    def connections(self, hosts: Sequence[str]) -> dict[str, Connection]:
        """How Ansible reaches these hosts, without those that it reaches otherwise than by ssh,
        or not as root or by sudo.
        """
        variables: dict[str, Mapping[str, Any]] = {}

        def remember(event: TaskEvent) -> None:
            if isinstance(event.result.get("msg"), Mapping):
                variables[event.host] = event.result["msg"]

        self.play("connection.yml", hosts=hosts, on_event=remember)
        return {host: connection for host, told in variables.items() if (connection := connection_of(told))}

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
            "ANSIBLE_CALLBACKS_ENABLED": "preload,ironburst_tasks",
        }


def _keep_environment(status: Mapping[str, Any], runner_config: Any) -> None:
    """ansible-runner's status handler. Before it starts, it writes a file `command` with its whole environment, from
    which env: references are resolved: here that goes down a pipe that keeps nothing.
    """
    if status["status"] != "starting":
        return
    folder = Path(runner_config.artifact_dir)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.mkfifo(folder / "command", 0o600)
    threading.Thread(target=(folder / "command").read_bytes, daemon=True).start()


def _first_error(output: str) -> str:
    """The sentence that ansible gave when it reached no host."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    error = FIRST_ERROR.search(plain) or FIRST_ERROR_OLD.search(plain)
    text = error.group(1) if error else plain.strip()[-500:] or "ansible-playbook said nothing"
    return " ".join(text.split())


TRUE = (True, "True", "true")


def connection_of(told: Mapping[str, Any]) -> Connection | None:
    """The Connection in what playbooks/connection.yml says of a host; None if plain ssh can't reach it so."""
    if told.get("connection") not in ("ssh", "smart", "ssh_kept") or told.get("become_other") in TRUE:
        return None
    port, python = str(told.get("port") or ""), str(told.get("python") or "")
    return Connection(
        address=str(told["address"]),
        user=str(told.get("user") or "") or None,
        port=int(port) if port.isdigit() else None,
        key=str(told.get("key") or "") or None,
        options=tuple(shlex.split(str(told.get("options") or ""))),
        become=told.get("become") in TRUE,
        sudo_password=str(told.get("sudo_password") or ""),
        python=python if python.startswith("/") else "python3",
    )
