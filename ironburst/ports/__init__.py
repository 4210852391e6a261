"""What the controller needs of the world: Protocols, the records that pass through
them, and errors named after what to do next.

Times are seconds since 1970 (UTC). Every method either did what it says or raises; all are safe to repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from ironburst.burst import Job, Node, Resources
from ironburst.burst.snapshot import jobs_on
from ironburst.nodes import naming
from ironburst.ports.cloud_errors import (
    CapacityError,
    CloudError,
    InsufficientCapacity,
    LaunchFailed,
    Malformed,
    NeverUp,
    OutcomeUnknown,
    QuotaReached,
    Refused,
    SomeSilent,
    Throttled,
    TokenMismatch,
    TooExpensive,
    UnderWay,
)
from ironburst.ports.service import SchedulerError, SchedulerMissing
from ironburst.shares import Quota, TeamShare

__all__ = [
    "ALIVE",
    "LAUNCHING",
    "CapacityError",
    "Claim",
    "Clock",
    "Cloud",
    "CloudError",
    "Instance",
    "InstanceTrouble",
    "InsufficientCapacity",
    "Interruption",
    "Job",
    "LaunchFailed",
    "LaunchRequest",
    "Malformed",
    "NeverUp",
    "Node",
    "Observation",
    "OutcomeUnknown",
    "Quota",
    "QuotaReached",
    "Refused",
    "Resources",
    "Scheduler",
    "SchedulerError",
    "SchedulerMissing",
    "SomeSilent",
    "TeamShare",
    "Throttled",
    "TokenMismatch",
    "TooExpensive",
    "UnderWay",
    "Uptime",
    "WrongShape",
]


class WrongShape(SchedulerError):
    """The scheduler's answer has a shape that this version doesn't know. Never treated as an empty queue."""


# ---- the scheduler


@dataclass(frozen=True)
class Observation:
    """The queue and the nodes at one moment, and which nodes have a permit."""

    jobs: tuple[Job, ...]
    nodes: tuple[Node, ...]
    permits: frozenset[str] = frozenset()
    unreadable: tuple[str, ...] = ()  # sentences: jobs and nodes of which less is known than should be
    shares: Mapping[int, str] = field(default_factory=dict)  # what jobs count in: ironburst.shares.model
    # of two schedulers the one, by its kind, that gave no answer: its jobs and nodes aren't here, and are what they are
    silent: tuple[str, ...] = ()
    answered: frozenset[str] = frozenset()  # then: the nodes of the other, there or only declared
    # what the scheduler shows its users beside a job, by id, where it shows something: theirs isn't ours to change
    comments: Mapping[int, str] = field(default_factory=dict)
    # tasks that it shows and comments together, by id, and what it calls all of those; empty: that isn't known
    together: Mapping[int, str] = field(default_factory=dict)
    # of tasks of an array that have started, by id, the number that Slurm's programs on their nodes know them by
    numbers: Mapping[int, int] = field(default_factory=dict)

    def node(self, name: str) -> Node | None:
        """None: the scheduler doesn't know it."""
        return self._nodes.get(name)

    def job(self, id: int) -> Job | None:
        """None: it isn't in the queue."""
        return self._jobs.get(id)

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in reversed(self.nodes)}  # of two with one name the first one

    @cached_property
    def _jobs(self) -> dict[int, Job]:
        return {job.id: job for job in reversed(self.jobs)}

    @cached_property
    def _on(self) -> dict[str, list[Job]]:
        return jobs_on(self.jobs)

    def unseen(self, node: str) -> bool:
        """Whether nothing may be concluded about a node: it may be one of a scheduler that gave no answer."""
        return bool(self.silent) and node not in self.answered

    def unseen_job(self, id: int) -> bool:
        """The same of a job."""
        return naming.scheduler_of(id) in self.silent

    def on(self, node: str) -> list[Job]:
        """The jobs that are on a node."""
        return list(self._on.get(node, ()))


class Claim(NamedTuple):
    """A controller's claim on a site, as it was found on the scheduler's host."""

    owner: str  # empty: nobody's
    age_s: float  # since it was made last, by that host's clock
    said: str  # by its owner; one line


class Scheduler(Protocol):
    """All methods raise SchedulerError. Node arguments are names."""

    def observe(self) -> Observation:
        """The queue, all nodes and the permits. Raises WrongShape where the answer isn't understood."""

    def claim(self, owner: str, said: str, stale_s: float) -> Claim:
        """Claim the site for a controller, in one step, unless another's claim is there that isn't older than
        `stale_s`. Returns the claim that was there before. An empty `said` keeps what that one said; an empty `owner`
        only looks.
        """

    def put_permit(self, nodes: Sequence[str]) -> None:
        """These nodes are on their way: they may join, and the scheduler's ResumeProgram may wait for them."""

    def remove_permit(self, nodes: Sequence[str]) -> None:
        """The scheduler's ResumeProgram sends these nodes back from now on."""

    def admit(self) -> Sequence[str]:
        """Let nodes that have a permit join, where the scheduler asks for each. Returns sentences: who asked to join
        and isn't let in.
        """

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
        """Make nodes without an instance that the scheduler holds for DOWN, or whose last job it still ends though
        nothing answers there, launchable again: behind the drain, powered down.
        """

    def place(self, job: int, partitions: Sequence[str], excluded: Sequence[str], *, begin_now: bool = False) -> None:
        """Set a pending job's partitions and the nodes that it must not be given;
        `begin_now` lifts the delay of a requeue.
        """

    def requeue(self, *jobs: int) -> dict[int, str]:
        """Stop jobs and put them back into the queue, all that can be. The others, and why not."""

    def limit(self, shares: Sequence[TeamShare], now: Mapping[str, Quota], gpus: int) -> None:
        """Hold each team to what it may have now ({account: quota}), where the scheduler doesn't already. `gpus`: of
        the shared nodes, that are there. What the role or a person has to make first, and isn't there, is an error,
        after the rest was written.
        """

    def beat(self, nodes: Mapping[str, int], at_s: float) -> None:
        """Send these nodes a sign that the controller lives, and for how many seconds each is paid; `at_s` makes this
        heartbeat another one than the last.
        """

    def comment(self, said: Mapping[str, str]) -> None:
        """Show these sentences to the users beside their jobs, where the scheduler has a place for them. Keys are what
        it calls a job; those of `Observation.together` all of its tasks.
        """

    def notify(self, job: int, text: str) -> None:
        """Show a sentence in a running job's own output, where the scheduler has a way to it."""

    def end_job(self, job: int) -> None:
        """End a job for good: it isn't put back into the queue."""


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
    # the cloud's own, which nobody else reads: what the document has for the zone, in JSON's types
    place: Mapping[str, Any] = field(hash=False)
    image_id: str
    user_data: str
    # for who finds its instances without knowing the launch; each is a tag. Empty: not known, and not tagged
    owner: str = ""  # the controller's id
    account: str = ""
    usd_per_hour: float | None = None  # an instance
    max_usd_per_hour: float | None = None  # spot: what is paid at most for each; None: the provider's own limit
    hard_limit_s: int = 0  # seconds without a controller after which none of it has to be there; 0: not known

    @classmethod
    def recorded(cls, said: Mapping[str, Any]) -> LaunchRequest:
        """As it was written down. An older ironburst wrote what is the place's beside the rest."""
        known = {each.name for each in fields(cls)}
        of_place = {key: value for key, value in said.items() if key not in known}
        return cls(**{"place": of_place} | {key: value for key, value in said.items() if key in known})


LAUNCHING = "launching"
"""of an instance that is there, while its launch is under way and may yet be taken back as a whole"""
ALIVE = (LAUNCHING, "pending", "running", "stopping", "stopped")
"""states of an instance that may cost money, or will"""


@dataclass(frozen=True)
class Instance:
    """A machine of the cloud."""

    id: str
    index: int  # its place among the instances of its launch: node names are given by it
    state: str  # launching, pending, running, shutting-down, terminated, stopping, stopped
    address: str | None
    zone: str
    launch: str  # tag ironburst:lease
    token: str
    launched_s: float
    reason: str = ""  # why it ended, the provider's code
    taken: bool = False  # it ended by the provider's doing, and not by its own or a person's
    # by its tags; empty: it has none
    pool: str = ""
    market: str = ""
    owner: str = ""
    account: str = ""
    usd_per_hour: float | None = None
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


@dataclass(frozen=True)
class InstanceTrouble:
    """An instance fails the provider's status checks, or will be stopped, rebooted or taken away."""

    instance_id: str
    text: str  # what the provider says
    from_s: float | None = None  # when a scheduled event may begin; None: now


class Cloud(Protocol):
    """All methods raise CloudError."""

    def image_id(self, reference: str) -> str | None:
        """The image that a pool's reference names; None: there is none."""

    def launch_all(self, requests: Sequence[LaunchRequest]) -> list[list[Instance] | CloudError]:
        """Each on its own, all at the same time. The answers, in the order of the requests: all `request.count`
        instances, or an error, which is returned.
        """

    def instances(self, cluster: str) -> list[Instance]:
        """Every instance that a controller of this cluster launched, ended ones as long as the provider shows them. One
        may be missing: only `described` shows whether it is known.
        """

    def described(self, ids: Sequence[str]) -> list[Instance]:
        """Those of these instances that the provider knows, asked for by their ids."""

    def by_token(self, token: str) -> list[Instance] | CloudError:
        """The instances that a launch with this token started, as far as they are shown; or what ended it, where it is
        known that it failed and nothing of it is left. Raises UnderWay while the cloud works at that launch.
        """

    def console(self, instance_id: str) -> str:
        """What an instance's console shows, as it is; empty where there is nothing yet."""

    def terminate(self, ids: Sequence[str]) -> set[str]:
        """Ends them; ids that are gone already are fine.
        Returns those that end now by the provider's word, so cost no more.
        """

    def prolong(self, until: Mapping[str, float]) -> None:
        """These instances, by their ids, are to be there until then at least (seconds since 1970). It matters where
        something else than a node itself ends what no controller looks after.
        """

    def spot_prices(self, types: Sequence[str]) -> dict[tuple[str, str], float]:
        """(instance type, zone): USD that an hour of spot costs now, where these types are sold so. Answers within
        seconds.
        """

    def interruptions(self, queues: Iterable[str]) -> list[Interruption]:
        """Notices that wait in these queues, as the pools name them; each is shown again until it is acknowledged."""

    def acknowledge(self, *interruptions: Interruption) -> None:
        """They are written down: don't show them again."""

    def troubles(self, ids: Sequence[str]) -> list[InstanceTrouble]:
        """What is wrong with these running instances, or will be."""


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
