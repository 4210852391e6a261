"""One convergence: which hosts, which of them are busy, validate, site, receipt. What runs Ansible is handed in."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from ironburst.document import ClusterDocument, Host

BUSY_STATES = frozenset({"allocated", "mixed", "completing", "draining", "failing"})  # sinfo's %T of nodes with jobs


class Selection(ValueError):
    """A limit that names nothing; the text is one sentence."""


class TaskEvent(Protocol):
    """One task's end on one host, as ironburst.adapters.ansible.Event has it."""

    host: str
    role: str | None
    task: str
    status: str
    result: Mapping[str, Any]


class Player(Protocol):
    """What runs playbooks: ironburst.adapters.ansible.Ansible, or a fake in tests."""

    def play(
        self, playbook: str, *, hosts: Sequence[str] = (), check: bool = False, on_event: Callable[[Any], None] | None = None
    ) -> Any: ...


@dataclass(frozen=True)
class HostReceipt:
    """What became of one host.

    `state`: converged, drifted (check found differences), failed, unreachable, invalid (validate.yml refused it), busy (runs jobs),
    unknown (it can't be said whether it runs jobs). The last two were left alone.
    """

    state: str
    changed: int = 0
    failed: int = 0
    error: str | None = None


@dataclass(frozen=True)
class Receipt:
    """What one convergence did."""

    cluster: str
    serial: int
    check: bool
    started: float
    seconds: float
    hosts: dict[str, HostReceipt] = field(default_factory=dict)
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def with_state(self, *states: str) -> list[str]:
        return [name for name, host in self.hosts.items() if host.state in states]


def select(document: ClusterDocument, limit: str | None) -> list[str]:
    """Names of the hosts that `limit` means: names of hosts, roles, kinds, halls or partitions, comma-separated; None: all.

    Raises Selection.
    """
    if limit is None:
        return [host.name for host in document.hosts]
    chosen: list[str] = []
    for word in (part.strip() for part in limit.split(",")):
        found = [host.name for host in document.hosts if word in _words(host)]
        if not found:
            names = ", ".join(host.name for host in document.hosts)
            known = "host, role, kind, hall or partition"
            raise Selection(f"--limit names {word!r}, but the document has no such {known}; its hosts are {names}")
        chosen += [name for name in found if name not in chosen]
    return chosen


def _words(host: Host) -> set[str]:
    return {host.name, host.kind, host.role, *host.roles, *(word for word in (host.hall, host.partition) if word)}


def busy_nodes(states: str) -> set[str]:
    """Names of the nodes with jobs in the output of `sinfo --Node --format="%N %T"`. Raises ValueError if it is not understood."""
    busy = set()
    for line in states.splitlines():
        match = re.fullmatch(r"(\S+) ([a-z_]+)[^a-z_]?\s*", line)
        if not match:
            raise ValueError(f"sinfo prints a line that is not understood: {line!r}")
        if match.group(2) in BUSY_STATES:
            busy.add(match.group(1))
    return busy


class NoAnswer(Exception):
    """Ansible reached no host at all; the text says why."""


def ask_busy(document: ClusterDocument, player: Player) -> set[str] | None:
    """The nodes with jobs; empty if Slurm is not installed yet; None if it is, but does not answer. Raises NoAnswer."""
    answers: dict[str, Mapping[str, Any]] = {}

    def remember(event: TaskEvent) -> None:
        answers[event.task] = event.result

    run = player.play("busy.yml", hosts=[document.scheduler.head], on_event=remember)
    if run.error:
        raise NoAnswer(run.error)
    states, installed = answers.get("States of the nodes"), answers.get("Is Slurm installed at all?")
    if states is None or installed is None:
        return None  # the head could not be reached
    if not installed.get("stat", {}).get("exists"):
        return set()
    if states.get("rc") != 0:
        return None
    try:
        return busy_nodes(states.get("stdout", ""))
    except ValueError:
        return None


def converge(
    document: ClusterDocument,
    hosts: Sequence[str],
    player: Player,
    *,
    check: bool = False,
    say: Callable[[str], None] = lambda line: None,
    clock: Callable[[], float] = time.time,
) -> Receipt:
    """Validate and converge `hosts`, without those that run jobs. Never raises for a host's failure: that is in the receipt."""
    started = clock()
    results: dict[str, HostReceipt] = {}

    def receipt(error: str | None = None) -> Receipt:
        ordered = {host.name: results[host.name] for host in document.hosts if host.name in results}
        return Receipt(document.cluster, document.serial, check, started, round(clock() - started, 1), ordered, error)

    try:
        left_alone = _left_alone(document, hosts, player)
    except NoAnswer as error:
        return receipt(str(error))
    for name, (state, reason) in left_alone.items():
        results[name] = HostReceipt(state, error=reason)
        say(f"{name}: left alone, {reason}")
    todo = [name for name in hosts if name not in results]
    if not todo:
        return receipt()

    validated = player.play("validate.yml", hosts=todo, on_event=_progress("validate", say))
    if validated.error:
        return receipt(validated.error)
    for name in todo:
        found = validated.hosts.get(name)
        if found is None or found.failed or found.unreachable:
            state = "unreachable" if found and found.unreachable else "invalid"
            results[name] = HostReceipt(state, failed=1, error=found.error if found else "validate.yml did not get to it")
            say(f"{name}: {state}: {results[name].error}")
    todo = [name for name in todo if name not in results]
    if not todo:
        return receipt()

    run = player.play("site.yml", hosts=todo, check=check, on_event=_progress("site", say))
    if run.error:
        return receipt(run.error)
    for name in todo:
        results[name] = _outcome(run.hosts.get(name), check)
        error = results[name].error
        say(f"{name}: {results[name].state}, {results[name].changed} changed" + (f": {error}" if error else ""))
    return receipt()


def _left_alone(document: ClusterDocument, hosts: Sequence[str], player: Player) -> dict[str, tuple[str, str]]:
    """{host: (state, why it is not converged now)}"""
    nodes = {host.name for host in document.hosts if "slurm_node" in host.roles}.intersection(hosts)
    if not nodes:
        return {}
    busy = ask_busy(document, player)
    if busy is None:
        head = document.scheduler.head
        cure = f"repair the head (`ironburst converge --limit {head}`), then converge again"
        reason = f"for Slurm on {head} does not say whether it runs jobs: {cure}"
        return {name: ("unknown", reason) for name in sorted(nodes)}
    return {name: ("busy", "for it runs jobs: converge it when they have ended") for name in sorted(nodes & busy)}


def _outcome(found: Any, check: bool) -> HostReceipt:
    if found is None:
        return HostReceipt("failed", failed=1, error="site.yml did not get to it")
    if found.unreachable:
        return HostReceipt("unreachable", found.changed, max(found.failed, 1), found.error)
    if found.failed:
        return HostReceipt("failed", found.changed, found.failed, found.error)
    return HostReceipt("drifted" if check and found.changed else "converged", found.changed)


def _progress(stage: str, say: Callable[[str], None]) -> Callable[[TaskEvent], None]:
    """Says when a host gets to another role, and when a task fails."""
    at: dict[str, str] = {}

    def see(event: TaskEvent) -> None:
        role = event.role or stage
        if role == "packages":  # part of the role that asked for them
            return
        if event.status != "skipped" and at.get(event.host) != role:
            at[event.host] = role
            say(f"{event.host}: {role}")

    return see
