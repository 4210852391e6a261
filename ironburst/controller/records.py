"""Rows of the ledger, and the states of a lease."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar, cast

from ironburst.burst import Lease
from ironburst.controller.lease_states import State
from ironburst.controller.schema import Row

T = TypeVar("T")

INTENDED, POWERING, REQUESTED, LAUNCHED = State.INTENDED, State.POWERING, State.REQUESTED, State.LAUNCHED
JOINED, READY, RELEASING, INTERRUPTED = State.JOINED, State.READY, State.RELEASING, State.INTERRUPTED
LEAVING, TERMINATED, ENDED = State.LEAVING, State.TERMINATED, State.ENDED

EARLY = (INTENDED, POWERING, REQUESTED)
COMING = (*EARLY, LAUNCHED)
GOING = (RELEASING, INTERRUPTED, LEAVING, TERMINATED)

# EC2 bills Linux by the second with this minimum, on demand and spot; Compute Engine so, too (its page of prices)
MIN_BILLING_S = 60.0
STOP_S = 120.0  # a job that hasn't left a node by then, for it may not be requeued or doesn't stop, ends with it
OUTAGE_S = 300.0  # so long the controller or the cloud's API may be away
# Set aside beyond boot, limit and longest idle: time in which a node can be ended,
# with its jobs, although one of them is away.
ENDING_S = STOP_S + OUTAGE_S
# what is so near to midnight counts on both days: clocks differ; EC2 refuses calls of one that is further off
CLOCK_S = 300.0


@dataclass(frozen=True)
class LaunchRow:
    """Nodes that were rented together: one pool, one market, all or nothing."""

    id: str
    pool: str
    instance_type: str
    market: str
    zones: tuple[str, ...]
    nodes: tuple[str, ...]
    usd_per_hour: float
    image_id: str
    boot_s: float
    reason: str
    made_s: float
    serial: int


@dataclass(frozen=True)
class LeaseRow:
    """One rented node, from intent to termination."""

    id: str
    launch: str
    node: str
    pool: str
    instance_type: str
    market: str
    zone: str
    usd_per_hour: float
    state: State
    instance_id: str | None
    committed_until_s: float
    idle_since_s: float | None
    worked: bool
    made_s: float
    from_s: float | None  # paid from
    joined_s: float | None
    to_s: float | None  # paid to
    changed_s: float
    end_reason: str
    seen_s: float | None = None  # when the cloud showed its instance last; None: nobody has looked yet
    address: str = ""  # of its instance inside the cloud's network; empty: not known yet

    def lease(self) -> Lease:
        """As the policy has it, from only the row."""
        return Lease(
            id=self.id,
            launch=self.launch,
            node=self.node,
            pool=self.pool,
            zone=self.zone,
            market=self.market,
            state=self.state,
            jobs=(),
            usd_per_hour=self.usd_per_hour,
            committed_until_s=self.committed_until_s,
            idle_since_s=self.idle_since_s,
            worked=self.worked,
            paid_from_s=self.from_s,
            instance_type=self.instance_type,
        )

    def paid(self, now_s: float) -> tuple[float, float] | None:
        """From when to when it has been paid so far; None: it hasn't. Of a call without an answer the worst is
        believed: it happened when it was made first.
        """
        from_s = self.changed_s if self.state == REQUESTED else self.from_s
        if from_s is None:
            return None
        return from_s, max(now_s if self.to_s is None else self.to_s, from_s + MIN_BILLING_S)

    def usd(self, now_s: float) -> float:
        """What it cost so far, by the price that was declared when it was rented: an estimate."""
        from_s, until_s = self.paid(now_s) or (0.0, 0.0)
        return max(until_s - from_s, 0.0) / 3600 * self.usd_per_hour

    def aside(self, now_s: float) -> tuple[float, float] | None:
        """From when to when money is set aside for it beyond what has been paid. None: it is over.

        The time of one that isn't launched yet counts from its launch on,
        whenever that is. One that lives takes some time to end; one that is known to have ended costs no more.
        """
        if self.state == ENDED or self.to_s is not None or (self.state == TERMINATED and self.from_s is None):
            return None
        if self.state == TERMINATED:
            return now_s, now_s + ENDING_S
        if self.from_s is None:
            return now_s, now_s + max(self.committed_until_s - self.made_s, ENDING_S)
        return now_s, max(self.committed_until_s, now_s + ENDING_S)

    def ending(self, now_s: float, *, idle: bool) -> tuple[float, float] | None:
        """From when to when money must be left to end it. None: it is over. An idle one that stayed past its time, for
        nobody was there to end it, has used a part of that already, and nothing that works makes up for it.
        """
        if self.aside(now_s) is None:
            return None
        end_s = now_s + ENDING_S
        if idle and self.state != TERMINATED and self.from_s is not None:
            end_s = min(end_s, max(self.committed_until_s, now_s))
        return now_s, end_s


@dataclass(frozen=True)
class Rate:
    """What a lease costs, and who pays for it, from a moment on."""

    from_s: float
    account: str
    usd_per_hour: float


@dataclass(frozen=True)
class IntentRow:
    """One attempt at a launch: what the cloud is asked, and what it answered."""

    token: str
    launch: str
    attempt: int
    zone: str
    request: str  # JSON of the LaunchRequest, exactly
    state: str  # open, unknown, answered, refused
    tries: int
    retry_s: float
    code: str
    error: str
    made_s: float
    changed_s: float


class Place(NamedTuple):
    """Where a request was refused: closed for requests of `nodes` or more."""

    pool: str
    zone: str
    market: str
    nodes: int
    instance_type: str = ""  # empty: all of the pool's


@dataclass(frozen=True)
class CoolDownRow:
    """A place that refused."""

    pool: str
    zone: str
    market: str
    nodes: int
    until_s: float | None  # None: until a person or a new document reopens it
    reason: str
    strikes: int  # refusals in a row
    at_s: float  # of the last one
    serial: int  # of the document that was refused
    instance_type: str = ""  # empty: all of the pool's

    @property
    def place(self) -> Place:
        """What is closed."""
        return Place(self.pool, self.zone, self.market, self.nodes, self.instance_type)


@dataclass(frozen=True)
class DecisionRow:
    """What was decided for a job, for as long as it stayed the same."""

    at_s: float
    last_s: float
    job: int
    kind: str
    code: str
    text: str
    look_again_s: float | None
    figures: str = ""  # JSON of a Wait's start_s, usd, run_s and alternatives; empty: none were written


@dataclass(frozen=True)
class JobRow:
    """A job as it was seen last."""

    job: int
    name: str
    user: str
    submit_s: float
    nodes: int
    gpus: int
    time_limit_s: float | None
    state: str
    start_s: float | None
    ran_on: str
    last_s: float
    called: str = ""
    """as Slurm's users call it where that isn't its number; empty too where an older ironburst wrote it"""
    spot_losses: int = 0
    """how often a spot node was taken back under it"""


QUARTER_S = 900.0
"""of time that GPUs are added up over"""


@dataclass(frozen=True)
class GpuUse:
    """GPUs of jobs: at home, on rented nodes, and wanted by those that wait; now, or GPU-seconds."""

    home: float
    rented: float
    waiting: float


@dataclass(frozen=True)
class GpuUseRow(GpuUse):
    """GPU-seconds in a quarter of an hour (since 1970), of which ticks saw `seen_s` seconds, the last at `last_s`."""

    quarter: int
    last_s: float
    seen_s: float


@dataclass(frozen=True)
class RunRow:
    """One run of a job on GPUs. `number`: Slurm's own; `slice`: it had parts of GPUs, whose figures belong to nobody;
    `figures`: as job_figures packs them.
    """

    job: int
    start_s: float
    number: int
    called: str
    user: str
    account: str
    nodes: str  # comma-separated
    gpus: int  # of all its nodes together
    slice: int
    time_limit_s: float | None
    end_s: float | None = None  # None: it goes on
    usd: float | None = None  # an estimate; None: it goes on, or a price isn't known
    ask_s: float | None = None  # when Prometheus is asked next; None: no more
    asked: int = 0
    figures: bytes | None = None  # None: nothing was measured, or not yet


@dataclass(frozen=True)
class EventRow:
    """Something that happened, for people."""

    at_s: float
    kind: str
    launch: str
    lease: str
    job: int | None
    text: str


def storable(value: Any) -> Any:
    """A value as SQLite takes it: text of others may hold halves of surrogate pairs."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def lease(row: Row) -> LeaseRow:
    """A row of the table `leases`."""
    return of(LeaseRow, row, state=State(row["state"]), worked=bool(row["worked"]))


def of(kind: type[T], row: Row, **read: Any) -> T:
    """A row as the dataclass that its table has. An older ledger may lack columns; those that a newer ironburst added
    are left out. `read`: columns that aren't taken as they are.
    """
    return kind(**{name: row[name] for name in _common(cast(Any, kind), tuple(row.keys()))} | read)


@functools.cache
def _common(kind: type, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Fields that are columns, too."""
    return tuple(field.name for field in fields(kind) if field.name in columns)
