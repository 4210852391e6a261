"""What a converge works with and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ironburst.convergence.inputs import Inputs
from ironburst.convergence.ports import Answer, Connection, Playbooks, RemoteProgram
from ironburst.convergence.receipts import Store
from ironburst.convergence.rolling import ONE_NODE, MaxUnavailable
from ironburst.convergence.watch import Watch
from ironburst.document import ClusterDocument, Host
from ironburst.ports.service import NodeService


@dataclass(frozen=True)
class Tools:
    """Everything outside: Ansible, the probe's way to the hosts, the scheduler, the receipts.

    `ask`: the answers of hosts to one program each, by name; `service`: the scheduler behind the head's connection,
    None: there is no head; `inputs`: of a host by name (raises ValueError); `role_watch`: a role's meta/watch.yml, None
    without one.
    """

    playbooks: Playbooks
    ask: Callable[[Mapping[str, RemoteProgram]], Mapping[str, Answer]]
    service: Callable[[Connection | None], NodeService]
    inputs: Callable[[str], Inputs]
    role_watch: Callable[[str], Watch | None]
    store: Store
    say: Callable[[str], None]
    clock: Callable[[], float]
    pause: Callable[[float], None]


@dataclass(frozen=True)
class Options:
    """How to converge; times in seconds."""

    check: bool = False
    always: bool = False  # run Ansible also where nothing is to do
    share: MaxUnavailable = ONE_NODE
    drain_timeout: float = 86400.0  # that a node's jobs may take
    poll: float = 2.0
    scheduler_timeout: float = 60.0  # that the scheduler may take to answer again after its restart


@dataclass(frozen=True)
class HostReport:
    """What became of one host.

    `state`: unchanged (the probe proves it; Ansible was not run), converged, drifted (--check), failed, unreachable,
    invalid (validate.yml refused it), busy (its jobs did not end in time), waiting (the last node of its partition that
    takes jobs), not started (another node was bad), unknown (the scheduler does not say whether it runs jobs). In the
    last four nothing was done.
    """

    state: str
    changed: int = 0
    failed: int = 0
    error: str | None = None
    why: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)  # that changed something, or would
    drained: bool = False  # was (with --check: would have to be) drained for it
    remaining: list[str] = field(default_factory=list)  # what differs from before and Ansible did not undo


@dataclass(frozen=True)
class Report:
    """What one converge did; `--receipt` and `--json` write it."""

    cluster: str
    serial: int
    check: bool
    started: float
    seconds: float
    hosts: dict[str, HostReport] = field(default_factory=dict)
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain data, as it is written."""
        return asdict(self)

    def with_state(self, *states: str) -> list[str]:
        """Names of the hosts in one of these states."""
        return [name for name, host in self.hosts.items() if host.state in states]


class SelectionError(ValueError):
    """A limit that names nothing; the text is one sentence."""


def select(document: ClusterDocument, limit: str | None) -> list[str]:
    """Names of the hosts that `limit` means: names of hosts, roles, kinds, halls or partitions, comma-separated.

    Without a limit: all. Raises SelectionError.
    """
    if limit is None:
        return [host.name for host in document.managed_hosts]
    chosen: dict[str, None] = {}  # in their order
    for word in (part.strip() for part in limit.split(",")):
        names = [host.name for host in document.managed_hosts if word in _words(host)]
        if not names:
            hosts = ", ".join(host.name for host in document.managed_hosts)
            known = "host, role, kind, hall or partition"
            raise SelectionError(f"--limit names {word!r}, but the document has no such {known}; its hosts are {hosts}")
        chosen.update(dict.fromkeys(names))
    return list(chosen)


def _words(host: Host) -> set[str]:
    places = (word for word in (host.hall, host.partition) if word)
    return {host.name, host.kind, host.role, *host.roles, *places}
