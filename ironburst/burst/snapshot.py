"""What a decision is made from. Times are seconds since 1970 (UTC), durations seconds, money USD, memory MiB.

Everything is absolute (no "seconds ago"), so that two snapshots of an unchanged site differ in `now_s` only.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ironburst.burst import drains
from ironburst.burst.budget import Budget
from ironburst.burst.codec import IF_SAID
from ironburst.burst.frozen import frozen
from ironburst.burst.memory import Experience, IdleHistory, SpotMarket
from ironburst.burst.orders import Halt
from ironburst.burst.resources import Resources
from ironburst.nodes import naming
from ironburst.nodes import states as node_states
from ironburst.nodes.gpus import NodeGpu


@frozen(frozen=True, slots=True)
class Job:
    """A job of the scheduler's queue, pending or on nodes."""

    id: int
    name: str
    user: str
    state: str  # Slurm's base state: PENDING, RUNNING, COMPLETING, SUSPENDED, ...
    submit_s: float
    nodes: int
    each: Resources  # per node
    time_limit_s: float | None  # None: no finite limit
    partitions: tuple[str, ...]
    priority: int = 0
    batch: bool = True  # False: salloc, srun
    requeue: bool = True  # the user allows that it is started again
    reason: str = ""  # the scheduler's own word on why it is pending, and what it says behind it
    held: bool = False
    dependency: str = ""
    gpu_type: str = ""  # a type that the job insists on, else empty
    demands: str = ""  # what else a rented node can't promise: named nodes, features, a reservation, licences
    excluded: tuple[str, ...] = ()  # nodes that it must not be given
    eligible_s: float | None = None  # not before (--begin)
    start_s: float | None = None
    end_s: float | None = None  # of a running job: start + limit
    on: tuple[str, ...] = ()  # nodes that it is on
    restarts: int = 0
    account: str = ""  # that it is charged to
    run_s: float | None = None  # how long it runs, told by whoever knows (a replayed trace); None: not known
    deadline_s: float | None = None  # it must have ended by then; None: no such moment
    data: tuple[str, ...] = ()  # data sets that its nodes must reach
    licences: tuple[str, ...] = ()  # licences that it takes while it runs
    fabric: str = ""  # the fabric, or InfiniBand partition, that its nodes must be on; empty: any
    # as Slurm's users call a task of an array (8_1) or a part of a heterogeneous job (8+1); empty: by its id
    called: str = field(default="", metadata=IF_SAID)
    # that it starts in, and those of the files that it reads and writes by itself; empty: not known
    folders: tuple[str, ...] = field(default=(), metadata=IF_SAID)
    gpu_by_place: bool = field(default=False, metadata=IF_SAID)  # `gpu_type` is what its places leave: it asks for none
    # with whom it shares a node: "node" with nobody, "user" with its user's other jobs; empty: with all
    exclusive: str = field(default="", metadata=IF_SAID)
    time_min_s: float | None = field(default=None, metadata=IF_SAID)  # its limit may be cut to that (--time-min)
    held_by: str = field(default="", metadata=IF_SAID)  # of one that is held: who, or why, as behind "it is held"
    spot_losses: int = field(default=0, metadata=IF_SAID)  # how often a spot node was taken from under it
    # of `excluded` the rentable nodes that its user excludes: the others are excluded by us while it is widened
    keeps_off: tuple[str, ...] = field(default=(), metadata=IF_SAID)
    # nodes at home that had room for it for minutes, and the scheduler didn't start it there
    passed_over: tuple[str, ...] = field(default=(), metadata=IF_SAID)
    # what the jobs that one controller makes one after the other share; empty: it is the only one
    origin: str = field(default="", metadata=IF_SAID)
    # what decides where the scheduler starts it: jobs that share it start alike, or don't; empty: not known
    alike: str = field(default="", metadata=IF_SAID)
    # its user says that it saves its work so often, and goes on from there when it is started again; None: it doesn't
    saves_s: float | None = field(default=None, metadata=IF_SAID)
    saved_s: float = field(default=0.0, metadata=IF_SAID)  # of its work so much is saved, by its runs before

    @property
    def pending(self) -> bool:
        """Whether it waits in the queue."""
        return self.state == "PENDING"

    @property
    def reason_word(self) -> str:
        """The scheduler's reason code, without the text behind it."""
        return self.reason.partition(":")[0].partition(",")[0].strip()

    @property
    def larger_than_home(self) -> bool:
        """It was admitted to wait for rented nodes, as home can never run it (the role slurm_head's job_submit.lua)."""
        return naming.WAITING_PARTITION in self.partitions

    @property
    def over_home_limit(self) -> bool:
        """It waits in one partition, and is longer or larger than that ever allows."""
        if not self.reason.startswith("Partition"):  # as of nearly all
            return False
        return len(self.partitions) == 1 and self.reason_word in ("PartitionTimeLimit", "PartitionNodeLimit")

    @property
    def since_s(self) -> float:
        """From when on it counts as waiting."""
        return max(self.submit_s, self.eligible_s or 0.0)

    @property
    def least_limit_s(self) -> float:
        """What its time limit may be cut to: all of it, unless its user says so (--time-min); 0 without one."""
        return self.time_min_s or self.time_limit_s or 0.0

    @property
    def work_s(self) -> float:
        """What of its time limit is left to be done; infinite without one. All, where more was saved than that."""
        limit_s = math.inf if self.time_limit_s is None else self.time_limit_s
        return limit_s - self.saved_s if self.saved_s < limit_s else limit_s

    @property
    def needs_s(self) -> float:
        """From a start to its end: what its limit may be cut to, and all that is left to be done of one that saves."""
        return self.least_limit_s if self.saves_s is None else max(self.work_s, 0.0)

    def takes(self, total: Resources) -> Resources:
        """What others don't get of a node with that much while it is there."""
        return total if self.exclusive == "node" else self.each


@dataclass(frozen=True)
class Node:
    """A node as the scheduler sees it."""

    name: str
    partitions: tuple[str, ...]
    total: Resources
    states: tuple[str, ...]  # base state and flags, e.g. ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN")
    reason: str = ""
    address: str = ""
    reason_by: str = ""  # the user who set it; empty: not known
    # since when the scheduler has held it for dead, as it doesn't answer; None: it answers, or that isn't known
    silent_s: float | None = field(default=None, metadata=IF_SAID)
    # of a node at home, each of its GPUs; None: not looked at, or not declared
    gpu: NodeGpu | None = field(default=None, metadata=IF_SAID)
    # how many GPUs of each type that jobs can name; empty: that isn't known
    gpu_types: dict[str, int] = field(default_factory=dict, metadata=IF_SAID)

    def has(self, *states: str) -> bool:
        """Whether it is in all of `states`."""
        return all(state in self.states for state in states)

    def could_take(self, job: Job) -> bool:
        """Whether it takes a part of the job when it is up and empty, and the job may start on it."""
        insists = self.gpu_types and job.gpu_type and not job.gpu_by_place
        lacks = insists and self.gpu_types.get(job.gpu_type, 0) < job.each.gpus
        barred = self.name in job.excluded or self.name in job.passed_over
        return (
            not lacks
            and not barred
            and job.each.within(self.total)
            and not set(self.partitions).isdisjoint(job.partitions)
        )

    @cached_property
    def open(self) -> bool:
        """It takes jobs, now or when those on it end."""
        return not node_states.closed(self.states)

    @cached_property
    def launchable(self) -> bool:
        """A rentable node that is off for good: powered down, behind its drain, with no power transition under way;
        not reserved, for a maintenance or for others, and no person holds it.
        """
        off = self.has("POWERED_DOWN", "DRAIN") and not self.has("DOWN") and not node_states.moving(self.states)
        return off and not node_states.reserved(self.states) and not self.held_by_person

    @cached_property
    def coming_up(self) -> bool:
        """A rentable node that is being powered up behind its drain, and no person holds it."""
        up = self.has("POWERING_UP", "DRAIN") and not node_states.going_down(self.states)
        return up and not node_states.reserved(self.states) and not self.held_by_person

    @cached_property
    def held_by_person(self) -> bool:
        """A person drained it, or set it down: only a person lifts that."""
        return (self.has("DRAIN") or self.has("DOWN")) and drains.by_person(self.reason, self.reason_by)

    @cached_property
    def verdict(self) -> str:
        """What a program drained it for; empty: none did."""
        return drains.verdict(self.reason, self.reason_by) if self.has("DRAIN") else ""


@dataclass(frozen=True)
class OtherType:
    """Another instance type of a pool, interchangeable with its first one, and what differs from that."""

    instance_type: str
    usd_per_hour: dict[str, float | None]  # by market, as the pool's
    interruptions_per_hour: dict[str, float] = field(default_factory=dict)  # by market, as the pool's
    carbon_usd_per_hour: float = field(default=0.0, metadata=IF_SAID)  # as the pool's


@dataclass(frozen=True)
class Pool:
    """The envelope of a burst pool."""

    name: str
    partition: str
    nodes: tuple[str, ...]  # scheduler node names; their number is the pool's max_nodes
    instance_type: str
    each: Resources
    gpu_type: str
    markets: tuple[str, ...]
    usd_per_hour: dict[str, float | None]  # by market; None: unknown, so not rented
    zones: tuple[str, ...]  # in order of preference
    boot_s: float
    idle_s: float
    max_run_s: float
    obstacle: str = ""  # why nothing can be launched in it at all ("no image ...")
    min_billing_s: float = 0.0  # a lease is paid for at least so long
    billing_increment_s: float = 0.0  # and then in such steps; 0: by the second
    # paid whether used or not (reservations, capacity blocks): idle costs nothing more
    prepaid_markets: tuple[str, ...] = ()
    # from launch to joined as seen lately; None: not seen, then boot_s, which is a limit
    usual_boot_s: float | None = None
    # money is set aside for so long beyond the longest idle: to end a node when something goes wrong
    ending_s: float = 0.0
    idle_history: IdleHistory = field(default_factory=IdleHistory)
    # its capacity (block, reservation) is taken back then: nothing runs longer; None: no such moment
    ends_s: float | None = None
    data: tuple[str, ...] = ()  # data sets that its nodes reach
    licences: tuple[str, ...] = ()  # licences that jobs there can take
    fabric: str = ""  # that its nodes are on: efa, infiniband, a partition's name
    # of one instance, by market; none: never taken back
    interruptions_per_hour: dict[str, float] = field(default_factory=dict)
    checkpoint_s: float = 0.0  # jobs there save their work so often; 0: not at all, so an interruption loses all of it
    account: str = ""  # whose jobs alone it is for; empty: everybody's
    other_types: tuple[OtherType, ...] = ()  # that its nodes may be beside `instance_type`
    in_order: bool = False  # in each market no type before those that are declared before it, whatever they cost
    home: str = field(default="", metadata=IF_SAID)  # partition that its nodes join, of two; empty: the policy's first
    gpu: NodeGpu | None = field(default=None, metadata=IF_SAID)  # each of a node's; None: not looked at
    # jobs that ask for GPUs without a type may have its, whatever home has
    untyped: bool = field(default=False, metadata=IF_SAID)
    relative_speed: float | None = field(default=None, metadata=IF_SAID)  # to home's; None: not known, counted as 1
    # what its nodes' emissions weigh where a place is chosen: no money
    carbon_usd_per_hour: float = field(default=0.0, metadata=IF_SAID)

    @property
    def speed(self) -> float:
        """What a run time at home is divided by."""
        return self.relative_speed or 1.0

    @cached_property
    def by_type(self) -> tuple[Pool, ...]:
        """As if each of its types were its only one, in their order."""
        if not self.other_types:
            return (self,)
        first = replace(self, other_types=())
        return (first, *(replace(first, **vars(other)) for other in self.other_types))

    def of_type(self, instance_type: str) -> Pool:
        """As if this type were its only one; itself for a type that isn't its own, or not known."""
        if not self.other_types:
            return self
        return next((each for each in self.by_type if each.instance_type == instance_type), self)


@dataclass(frozen=True)
class Lease:
    """One rented node, as far as a decision needs it."""

    id: str
    launch: str  # nodes that were launched together share it
    node: str
    pool: str
    zone: str
    market: str
    # coming: not registered yet; joined: registered, behind its drain; ready: takes jobs; leaving: being given back
    state: str
    jobs: tuple[int, ...]  # that it was rented for, or given to
    usd_per_hour: float
    committed_until_s: float  # money is set aside up to then
    idle_since_s: float | None = None  # None: busy, or never seen ready
    worked: bool = False  # it has been handed to a job
    paid_from_s: float | None = None  # billing began; None: not yet, or not known
    account: str = ""  # whose ceiling pays for it; empty: the common ones alone
    instance_type: str = ""  # empty: the pool's first


@dataclass(frozen=True)
class CoolDown:
    """A place that refused lately. It closes requests of `nodes` or more; until_s None: until a person reopens it."""

    pool: str
    zone: str
    market: str
    nodes: int
    until_s: float | None
    reason: str
    instance_type: str = ""  # empty: all of the pool's

    def concerns(self, pool: Pool) -> bool:
        """Whether it closes a place of this pool, taken as one of its type (`Pool.by_type`)."""
        return self.pool == pool.name and self.instance_type in ("", pool.instance_type)


@dataclass(frozen=True)
class Snapshot:
    """A site at one moment: the queue, the nodes, what may be rented, what is, and the money."""

    now_s: float
    jobs: tuple[Job, ...]
    nodes: tuple[Node, ...]
    pools: tuple[Pool, ...]
    leases: tuple[Lease, ...] = ()
    cool_downs: tuple[CoolDown, ...] = ()
    budget: Budget | None = None  # None: no budget is declared, so nothing is rented
    experience: Experience = field(default_factory=Experience)
    # ids of jobs that didn't start on the rented nodes that were open to them: none are rented for them again
    unstarted: tuple[int, ...] = ()
    # `alike` of jobs that are known to start on rented nodes: of others one is tried first
    proven: tuple[str, ...] = field(default=(), metadata=IF_SAID)
    spare: tuple[str, ...] = field(default=(), metadata=IF_SAID)  # nodes powered up for a launch that the cloud refused
    # when the cloud refused the last launch of a node that nobody rents and the scheduler powers down, by its name
    refused_s: dict[str, float] = field(default_factory=dict, metadata=IF_SAID)
    halt: Halt | None = field(default=None, metadata=IF_SAID)  # None: no person has paused or stopped the renting
    # what was seen of spot, where jobs with a deadline move by it
    spot: tuple[SpotMarket, ...] = field(default=(), metadata=IF_SAID)
    notes: dict[str, str] = field(default_factory=dict)  # for readers only: where this was observed

    def knowing(self, **properties: object) -> Snapshot:
        """Itself, with the values of properties that its maker has already."""
        vars(self).update(properties)
        return self

    @cached_property
    def kept(self) -> dict[str, Any]:
        """What decisions on snapshots of one maker keep for each other; empty, unless he gives it (`knowing`)."""
        return {}

    @cached_property
    def waiting(self) -> tuple[Job, ...]:
        """The pending jobs."""
        return tuple([job for job in self.jobs if job.state == "PENDING"])

    @cached_property
    def placed(self) -> tuple[Job, ...]:
        """The jobs that are on nodes."""
        return tuple([job for job in self.jobs if job.on])

    @cached_property
    def jobs_on(self) -> dict[str, list[Job]]:
        """The jobs on each node, by its name."""
        return jobs_on(self.placed)

    @cached_property
    def node_of(self) -> dict[str, Node]:
        """Nodes by their names."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def owned(self) -> tuple[Node, ...]:
        """The nodes that are in no pool."""
        rentable = {name for pool in self.pools for name in pool.nodes}
        return tuple([node for node in self.nodes if node.name not in rentable])

    @cached_property
    def offered(self) -> tuple[Pool, ...]:
        """The pools as offers are made of them: all but their idle histories, and which of their nodes are shown."""
        return self.pools

    @cached_property
    def launchable(self) -> frozenset[str]:
        """Names of the nodes that can be launched (`Node.launchable`)."""
        return frozenset([node.name for node in self.nodes if node.launchable])

    @cached_property
    def pool_of(self) -> dict[str, Pool]:
        """Pools by their names."""
        return {pool.name: pool for pool in self.pools}


def jobs_on(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """The jobs on each node, by its name."""
    by_node: defaultdict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        for node in job.on:
            by_node[node].append(job)
    return dict(by_node)
