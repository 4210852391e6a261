"""What `decide` answers. Each item has a reason that a person can read; `code` is the stable word for programs."""

from __future__ import annotations

from dataclasses import dataclass, field

from ironburst.burst.codec import IF_SAID
from ironburst.burst.frozen import frozen


@dataclass(frozen=True)
class Launch:
    """Rent these nodes together: all or nothing, in one zone and market."""

    pool: str
    zones: tuple[str, ...]  # try them in this order
    market: str
    nodes: tuple[str, ...]  # scheduler names
    jobs: tuple[int, ...]  # the first one is why it is rented; others share the node
    usd_per_hour: float  # a node
    committed_until_s: float
    committed_usd: float  # all nodes: price * (boot + limit + longest idle + what ending it may take)
    reason: str
    account: str = ""  # whose ceiling pays for it beside the common ones
    instance_type: str = field(default="", metadata=IF_SAID)  # of a pool with several; empty: the pool's only one
    running: bool = field(default=False, metadata=IF_SAID)  # its job runs elsewhere, and goes there when they are there


@dataclass(frozen=True)
class Assign:
    """Give rented nodes that exist (or are coming) to a job."""

    job: int
    leases: tuple[str, ...]
    committed_until_s: float
    committed_usd: float  # beyond what is set aside already
    reason: str
    account: str = ""  # who pays for them from now on
    running: bool = field(default=False, metadata=IF_SAID)  # as a Launch's


@dataclass(frozen=True)
class Widen:
    """The job's rented nodes are there: let it start on them, or still at home. Undrains `nodes` first."""

    job: int
    partitions: tuple[str, ...]
    excluded: tuple[str, ...]
    nodes: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Narrow:
    """No rented node is left for this pending job: back to home only.

    `begin_now` lifts the delay of a requeue (Slurm's is 121 s):
    it protects the node that the job was on, and that one is gone.
    """

    job: int
    partitions: tuple[str, ...]
    excluded: tuple[str, ...]
    reason: str
    begin_now: bool = False


@dataclass(frozen=True)
class Move:
    """Put this running job back into the queue: it saves its work, and goes on on these rented nodes, that are there
    for it.
    """

    job: int
    start_s: float  # of the run that ends
    nodes: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Release:
    """Give this rented node back."""

    lease: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class Alternative:
    """What was not done for a job: what it would cost, when the job would start, why it wasn't done.

    All of it is the same for all jobs that are alike but for their run times, and stays the same while nothing changes.
    """

    what: str  # rent: launch nodes; share: use nodes that are rented already; home: wait for the owned ones
    usd_per_hour: float  # of all its nodes
    in_s: float  # it would start so long after the decision
    why: str  # why not: a word of `sentence.WHY_NOT`
    pool: str = ""
    market: str = ""
    instance_type: str = ""
    nodes: int = 0
    least_s: float = 0.0  # its nodes are paid for at least so long
    paid_s: float = 0.0  # of the time up to the job's end so much is paid for anyway

    def usd(self, run_s: float) -> float:
        """What it costs up to the end of a job that runs so long."""
        return self.usd_per_hour * max(max(self.in_s + run_s, self.least_s) - self.paid_s, 0.0) / 3600


@frozen(frozen=True, slots=True)
class Wait:
    """Not started now, and why; worth a new look at `look_again_s` (None: when something changes).

    `rent_s`: when it is to be rented for if all goes as expected (None: not expected); idle leases are kept for it a
    boot time ahead.
    `start_s`: when it is expected to start by what was decided (None: not known); `usd`: what that costs, if it runs
    for `run_s` (None: nobody knows; its limit, unless declared); `alternatives`: the best three of what was not done.
    """

    job: int
    code: str
    text: str
    look_again_s: float | None = None
    rent_s: float | None = None
    start_s: float | None = None
    usd: float = 0.0
    run_s: float | None = None
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class Infeasible:
    """Late, and renting can't help as things are declared."""

    job: int
    code: str
    text: str


@dataclass(frozen=True)
class Decision:
    """All that one tick decides: what is to be done, and of each pending job what it waits for."""

    launches: tuple[Launch, ...] = ()
    assigns: tuple[Assign, ...] = ()
    widen: tuple[Widen, ...] = ()
    narrow: tuple[Narrow, ...] = ()
    releases: tuple[Release, ...] = ()
    waits: tuple[Wait, ...] = ()
    infeasible: tuple[Infeasible, ...] = ()
    moves: tuple[Move, ...] = field(default=(), metadata=IF_SAID)
