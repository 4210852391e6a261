"""What the controller needs of the world: Protocols, the records that pass through
them, and errors named after what to do next.

Times are seconds since 1970 (UTC). Every method either did what it says or raises; all are safe to repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ironburst.burst import Job, Node, Resources
from ironburst.service import SchedulerError, SchedulerMissing

__all__ = [
    "ALIVE",
    "CapacityError",
    "Clock",
    "Cloud",
    "CloudError",
    "Instance",
    "InsufficientCapacity",
    "Interruption",
    "Job",
    "LaunchRequest",
    "Node",
    "Observation",
    "OutcomeUnknown",
    "QuotaReached",
    "Refused",
    "Resources",
    "Scheduler",
    "SchedulerError",
    "SchedulerMissing",
    "Throttled",
    "TokenMismatch",
    "Uptime",
    "WrongShape",
]


# ---- errors


class WrongShape(SchedulerError):
    """The scheduler's answer has a shape that this version doesn't know. Never taken for an empty queue."""


class CloudError(Exception):
    """A cloud call without result. `code` is the provider's own error code, empty if there was none."""

    def __init__(self, text: str, code: str = ""):
        super().__init__(text)
        self.code = code


class CapacityError(CloudError):
    """Nothing was started here and now; another place may do."""


class InsufficientCapacity(CapacityError):
    """No such machines in this zone and market now: cool this place down and take the next one, as a new attempt."""


class QuotaReached(CapacityError):
    """The account's limit, the same in every zone: cool the whole market of the pool down and tell a person."""


class Refused(CloudError):
    """Our request, its template or our rights are wrong: close the pool, tell a person, never retry by itself."""


class TokenMismatch(Refused):
    """The token was used with other parameters: never take a new one before looking for instances of this one."""


class OutcomeUnknown(CloudError):
    """No answer, or the provider's own fault: it may have happened. Repeat with the same token and parameters."""


class Throttled(OutcomeUnknown):
    """Slowed down: repeat unchanged, later."""


# ---- the scheduler


@dataclass(frozen=True)
class Observation:
    """The queue and the nodes at one moment, and which nodes have a permit."""

    jobs: tuple[Job, ...]
    nodes: tuple[Node, ...]
    permits: frozenset[str] = frozenset()

    def node(self, name: str) -> Node | None:
        """None: the scheduler doesn't know it."""
        return next((node for node in self.nodes if node.name == name), None)

    def job(self, id: int) -> Job | None:
        """None: it isn't in the queue."""
        return next((job for job in self.jobs if job.id == id), None)

    def on(self, node: str) -> list[Job]:
        """The jobs that are on a node."""
        return [job for job in self.jobs if node in job.on]


class Scheduler(Protocol):
    """All methods raise SchedulerError. Node arguments are names."""

    def observe(self) -> Observation:
        """The queue, all nodes and the permits. Raises WrongShape where the answer isn't understood."""

    def put_permit(self, nodes: Sequence[str]) -> None:
        """Allow the scheduler's ResumeProgram to wait for these nodes."""

    def remove_permit(self, nodes: Sequence[str]) -> None:
        """The scheduler's ResumeProgram sends these nodes back from now on."""

    def power_up(self, nodes: Sequence[str]) -> None:
        """Ask for these powered-down nodes; the scheduler handles it within some seconds."""

    def resume(self, nodes: Sequence[str]) -> None:
        """Undrain."""

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """No new job starts there; `reason` is shown to people."""

    def release(self, nodes: Sequence[str]) -> None:
        """Power down as soon as the jobs on it have ended."""

    def abandon(self, nodes: Sequence[str], reason: str) -> None:
        """Power down now; cancels or requeues what runs there."""

    def heal(self, nodes: Sequence[str]) -> None:
        """Make powered-down nodes that the scheduler holds for DOWN
        launchable again: behind the drain, powered down.
        """

    def place(self, job: int, partitions: Sequence[str], excluded: Sequence[str], *, begin_now: bool = False) -> None:
        """Set a pending job's partitions and the nodes that it must not be given;
        `begin_now` lifts the delay of a requeue.
        """

    def requeue(self, job: int) -> None:
        """Stop a job and put it back into the queue."""


# ---- the cloud


@dataclass(frozen=True)
class LaunchRequest:
    """Everything about one launch. The same request with the same token never starts more than `count` machines."""

    token: str  # <= 64 ASCII characters
    launch: str  # our id, tagged as ironburst:lease
    cluster: str
    pool: str
    zone: str
    market: str  # on-demand, spot, capacity-block
    count: int
    launch_template_id: str
    image_id: str
    user_data: str
    capacity_reservation_id: str | None = None
    launch_template_version: str = "$Latest"  # a number; an intent of before 0.2 is repeated as it was asked


ALIVE = ("pending", "running", "stopping", "stopped")  # states of an instance that may cost money, or will


@dataclass(frozen=True)
class Instance:
    """A machine of the cloud."""

    id: str
    index: int  # its place among the instances of its launch: node names are given by it
    state: str  # pending, running, shutting-down, terminated, stopping, stopped
    address: str | None
    zone: str
    launch: str  # tag ironburst:lease
    token: str
    launched_s: float
    reason: str = ""  # why it ended, the provider's code
    instance_type: str = ""  # empty: not known
    image_id: str = ""  # empty: not known

    @property
    def alive(self) -> bool:
        """It may cost money, or will."""
        return self.state in ALIVE


@dataclass(frozen=True)
class Interruption:
    """The provider takes an instance back soon."""

    instance_id: str
    receipt: str  # for acknowledge
    queue: str = ""
    detail: dict[str, str] = field(default_factory=dict)


class Cloud(Protocol):
    """All methods raise CloudError."""

    def image_id(self, parameter: str) -> str | None:
        """The image that a pool's parameter names; None if there is no such parameter."""

    def launch(self, request: LaunchRequest) -> list[Instance]:
        """All `request.count` instances or an error."""

    def instances(self, cluster: str) -> list[Instance]:
        """Every instance that a controller of this cluster launched, ended ones as long as the provider shows them."""

    def by_token(self, token: str) -> list[Instance]:
        """The instances that a launch with this token started, as far as they are shown."""

    def terminate(self, ids: Sequence[str]) -> set[str]:
        """Ends them; ids that are gone already are fine.
        Returns those that end now by the provider's word, so cost no more.
        """

    def interruptions(self, queues: Iterable[str]) -> list[Interruption]:
        """Notices that wait in these queues (URLs); each is shown again until it is acknowledged."""

    def acknowledge(self, interruption: Interruption) -> None:
        """It is written down: don't show it again."""


class Uptime(NamedTuple):
    """Of this host. It only grows: nobody puts it forward or back."""

    boot: str  # which boot it is counted from; empty: not known
    seconds: float


class Clock(Protocol):
    """Time, and a way to let it pass."""

    def now(self) -> float:
        """Seconds since 1970; it may be put forward or back."""

    def uptime(self) -> Uptime:
        """How long this host has been up."""

    def wait(self, seconds: float) -> bool:
        """Let time pass. True: we are asked to stop."""
