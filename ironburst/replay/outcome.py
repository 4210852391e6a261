"""What becomes of the jobs of a played trace, and what is paid. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ironburst.replay.traces import Flags, Floats, Integers


@dataclass
class Fates:
    """What becomes of each job, while it is played: an array with one value a job. Times in seconds."""

    start_s: Floats  # the first time; NaN: not yet
    end_s: Floats
    left_s: Floats  # run time that is left, without what was saved
    rented: Flags  # it ran on rented nodes, at last
    usd: Floats
    pool: list[str]  # where it ran at last; empty: at home
    interruptions: Integers

    @classmethod
    def of(cls, duration_s: Floats) -> Fates:
        """Of jobs that haven't started, with these run times."""
        count = len(duration_s)
        return cls(
            start_s=np.full(count, math.nan),
            end_s=np.full(count, math.nan),
            left_s=duration_s.copy(),
            rented=np.zeros(count, bool),
            usd=np.zeros(count),
            pool=[""] * count,
            interruptions=np.zeros(count, np.int64),
        )

    def begins(self, number: int, now_s: float, pool: str) -> None:
        """The job starts, for the first time or again, in this pool (empty: at home)."""
        if math.isnan(self.start_s[number]):
            self.start_s[number] = now_s
        self.rented[number], self.pool[number] = bool(pool), pool


@dataclass(frozen=True)
class Bill:
    """One lease from its launch to its end. `usd` = `boot_usd` + `idle_usd` + what its jobs are charged.

    Of a prepaid lease these are shares of what its pool costs anyway.
    """

    lease: str
    pool: str
    zone: str
    market: str
    from_s: float
    to_s: float
    usd: float
    boot_usd: float
    idle_usd: float
    jobs: int
    interrupted: bool
    prepaid: bool
    instance_type: str = ""  # empty: the pool's first


@dataclass(frozen=True)
class Played:
    """What became of each job of the trace (arrays, one value a job, on its clock) and of the leases.

    `start_s`: the first time that it started; `end_s`: when it was done; `rented`: it ran on rented nodes (at last), in
    the pool `pool` (empty: at home); `usd`: its share of what the leases cost while jobs were on them; `interruptions`:
    how often it lost its nodes.
    `not_rented`: {job: why nothing was rented for it when it was late (a code of burst.Wait or burst.Infeasible), as it
    was last given}, of those that ran at home.
    `bills`: the leases, in the order of their end; `prepaid_usd`: for prepaid pools, used or not. `decisions`: how
    often the policy was asked; `refusals`: how often the provider had no capacity.
    """

    start_s: Floats
    rented: Flags
    decisions: int
    end_s: Floats
    pool: tuple[str, ...]
    usd: Floats
    interruptions: Integers
    bills: tuple[Bill, ...] = ()
    prepaid_usd: float = 0.0
    refusals: int = 0
    not_rented: Mapping[int, str] = field(default_factory=dict)

    @property
    def total_usd(self) -> float:
        """All that is paid."""
        return self.prepaid_usd + sum(bill.usd for bill in self.bills if not bill.prepaid)

    @property
    def idle_usd(self) -> float:
        """Of that: leases without a job on them after their boot, and prepaid nodes that nothing uses."""
        unused = self.prepaid_usd - sum(bill.usd - bill.boot_usd - bill.idle_usd for bill in self.bills if bill.prepaid)
        return unused + sum(bill.idle_usd for bill in self.bills if not bill.prepaid)

    @property
    def boot_usd(self) -> float:
        """Of that: leases that boot."""
        return sum(bill.boot_usd for bill in self.bills if not bill.prepaid)
