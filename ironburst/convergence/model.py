"""What a converge works with and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from ironburst.convergence.inputs import Inputs
from ironburst.convergence.receipts import Store
from ironburst.convergence.rolling import Share
from ironburst.convergence.watch import Watch
from ironburst.document import ClusterDocument, Host
from ironburst.service import NodeService


class Player(Protocol):
    """What runs playbooks: ironburst.adapters.ansible.Ansible, or a fake in tests."""

    def play(
        self,
        playbook: str,
        *,
        hosts: Sequence[str] = (),
        check: bool = False,
        skip_tags: Sequence[str] = (),
        on_event: Callable[[Any], None] | None = None,
    ) -> Any: ...

    def connections(self, hosts: Sequence[str]) -> Mapping[str, Any]: ...


class Said(Protocol):
    """The answer of one host to a program: ironburst.adapters.remote.Answer."""

    @property
    def output(self) -> str: ...

    @property
    def error(self) -> str | None: ...


@dataclass(frozen=True)
class Tools:
    """Everything outside: Ansible, the probe's way to the hosts, the scheduler, the receipts.

    `ask`: {host: (connection as in the receipt, program)} -> {host: Said}; `service`: the scheduler behind the head's
    connection;
    `inputs`: of a host by name (raises ValueError); `role_watch`: a role's meta/watch.yml, None without one.
    """

    player: Player
    ask: Callable[[Mapping[str, tuple[dict[str, Any], str]]], Mapping[str, Said]]
    service: Callable[[dict[str, Any]], NodeService]
    inputs: Callable[[str], Inputs]
    role_watch: Callable[[str], Watch | None]
    store: Store
    say: Callable[[str], None]
    clock: Callable[[], float]
    pause: Callable[[float], None]


@dataclass(frozen=True)
class Options:
    """How to converge. `always`: run Ansible also where nothing is to do; `drain_timeout`: seconds that a node's jobs
    may take.
    """

    check: bool = False
    always: bool = False
    share: Share = Share()
    drain_timeout: float = 86400.0
    poll: float = 2.0
    settle: float = 60.0  # seconds that the scheduler may take to answer again after its restart


@dataclass(frozen=True)
class HostReceipt:
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


class Selection(ValueError):
    """A limit that names nothing; the text is one sentence."""


def select(document: ClusterDocument, limit: str | None) -> list[str]:
    """Names of the hosts that `limit` means: names of hosts, roles, kinds, halls or partitions, comma-separated; None:
    all.

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
