"""What renting for a job sets aside of the budget: price x (boot + limit + longest idle + what ending it may take)."""

from __future__ import annotations

from collections.abc import Sequence

from ironburst.burst.budget import Ceiling
from ironburst.burst.headroom import COMMON, Charge, Headroom, charges
from ironburst.burst.refusals import Obstacle, over_budget
from ironburst.burst.slots import Slot
from ironburst.burst.snapshot import Job, Pool, Snapshot
from ironburst.burst.user_limits import UserLimits


class Commitments:
    """The money that one decision promises, job by job."""

    def __init__(self, snapshot: Snapshot):
        self._now_s, self._budget = snapshot.now_s, snapshot.budget
        self._headroom, self._users = Headroom(snapshot.budget), UserLimits(snapshot)

    def payer(self, job: Job) -> str:
        """Whose ceiling pays for it beside the common ones; empty: only they."""
        return self._budget.payer(job.account) if self._budget else ""

    def until_s(self, job: Job, pool: Pool, boot: bool) -> float:
        """The moment up to which money is set aside for it there; `boot`: on a node that has to boot."""
        boot_s = pool.boot_s if boot else 0.0
        limit_s = min(job.time_limit_s or 0.0, pool.max_run_s)  # --time-min: Slurm cuts a longer one
        return self._now_s + boot_s + limit_s + pool.idle_s + pool.ending_s

    def charges(self, job: Job, usd_per_hour: float, until_s: float, slot: Slot | None = None) -> list[Charge]:
        """For nodes until then: new ones, or a slot that money is set aside for already."""
        set_aside = (slot.account, slot.committed_until_s) if slot else None
        return charges(self._budget, job.account, usd_per_hour, self._now_s, until_s, set_aside)

    def commit(self, job: Job, asked: Sequence[Charge], what: str) -> Obstacle | None:
        """Take the money for `what`, which is for this job; or what is in the way of it."""
        usd = sum(charge.usd for charge in asked if COMMON in charge.accounts)
        if obstacle := self._users.over(job, usd) or over_budget(self._headroom, asked, what):
            return obstacle
        self._headroom.take(asked)
        self._users.take(job, usd)
        return None

    def never(self, job: Job, pool: Pool, usd_per_hour: float) -> tuple[Ceiling, float] | None:
        """A ceiling that couldn't pay for new nodes at this price (of each) even if nothing else
        were spent, and what it would have to pay.
        """
        seconds = self.until_s(job, pool, boot=True) - self._now_s
        return self._headroom.never(job.account, job.nodes * usd_per_hour, seconds)
