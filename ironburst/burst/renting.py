"""Where a job that is worth renting for can go: what is expected to cost least to bring it to its end, on nodes that
are rented already (ironburst.burst.reuse) or on new ones (ironburst.burst.launches).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from ironburst.burst import explain
from ironburst.burst.by_slack import BySlack
from ironburst.burst.commitments import Commitments
from ironburst.burst.cost import boot_s
from ironburst.burst.decision import Launch
from ironburst.burst.eligibility import Reason, not_in_pool, not_in_time, not_on_market, not_rentable
from ironburst.burst.headroom import named
from ironburst.burst.launches import Launches
from ironburst.burst.offers import Offers
from ironburst.burst.policy import Policy
from ironburst.burst.refusals import Obstacle, Refusal, halted
from ironburst.burst.reuse import Reuse, Reused
from ironburst.burst.slots import Slots
from ironburst.burst.snapshot import Job, Pool, Snapshot


class Impossible(NamedTuple):
    """Renting can't help the job as things are declared, whenever it is looked at."""

    reasons: list[Reason]


class RentingRefused(NamedTuple):
    """Worth renting for, but not now: what was in the way of keeping rented nodes
    longer (None: none had room), and of new ones.
    """

    keeping: Obstacle | None
    launching: Refusal

    @property
    def all(self) -> Refusal:
        """Both as one."""
        return Refusal((self.keeping, *self.launching.obstacles)) if self.keeping else self.launching


class Renting:
    """The rentable side of a snapshot while one decision is made."""

    def __init__(self, snapshot: Snapshot, policy: Policy, expected_s: Mapping[int, float]):
        """`expected_s`: run times by job id, where more is known than the limit."""
        self.snapshot, self.policy = snapshot, policy
        self.offers = Offers(snapshot, policy, expected_s)
        self.slots = Slots(snapshot, policy)
        self._commitments = Commitments(snapshot)
        self._launches = Launches(snapshot, self.offers, self.slots, self._commitments)
        self.by_slack = BySlack(snapshot, policy, self.offers, self._launches)
        self._reuse = Reuse(snapshot.now_s, self.offers, self.slots, self._commitments)
        self.with_prepaid = {pool.name for pool in snapshot.pools if pool.prepaid_markets}

    @property
    def launches(self) -> list[Launch]:
        """What is rented so far."""
        return self._launches.made

    def rent(self, job: Job, why: str) -> Launch | Reused | RentingRefused | Impossible:
        """Find it nodes: rented ones unless new ones are expected to cost less, else new ones, else any that are
        rented. `why` becomes the reason of a launch.
        """
        if reasons := self._impossible(job):
            return Impossible(reasons)
        if (halt := self.snapshot.halt) and halt.stops:
            return RentingRefused(None, halted(halt))
        kept = self._reuse.keep(job, lambda: self._launches.least_usd_now(job))
        if isinstance(kept, Reused):
            return self._shared(kept, job)
        launched = self._launches.launch(job, why)
        if isinstance(launched, Launch):
            return launched
        dearer = self._reuse.keep(job, lambda: math.inf)
        return self._shared(dearer, job) if isinstance(dearer, Reused) else RentingRefused(kept, launched)

    def least_usd(self, job: Job) -> float:
        """What renting for it is expected to cost to its end, at the best offer; infinite without any."""
        for offer in self.offers.options(job):
            if not offer.prepaid or self._launches.enough_names(job, offer):
                return offer.usd(job, self.offers.run_s(job))
        return math.inf

    def prepaid_before(self, job: Job, start_s: float) -> bool:
        """Whether a prepaid node could take it now, or will have booted before `start_s`."""
        if not self.with_prepaid or (self.snapshot.halt and self.snapshot.halt.stops):
            return False
        for offer in self.offers.options(job):
            if offer.pool.name in self.with_prepaid and offer.prepaid:
                boots_by_then = self.snapshot.now_s + boot_s(offer.pool) < start_s
                if boots_by_then and self._launches.open_now(job, offer):
                    return True
                for group in self.slots.groups(*offer.place):
                    if sum(slot.fits(job) and slot.ready_s < start_s for slot in group) >= job.nodes:
                        return True
        return False

    def _shared(self, reused: Reused, job: Job) -> Reused:
        """Note it in the launch, where the slots are those of one."""
        if reused.assign is None:
            self._launches.share(reused, job)
        return reused

    def _impossible(self, job: Job) -> list[Reason]:
        """Why nothing can ever be rented for it: one reason of its own, or one a pool. Empty: something can."""
        if reason := not_rentable(job, self.policy):
            return [reason]
        if self.snapshot.budget is None:
            return [("no_budget", "no budget is declared, so nothing is rented")]
        options = self.offers.options(job)
        if options and not self._commitments.never(job, options[0].pool, options[0].usd_per_hour):
            return []
        if job.deadline_s is not None and self._reuse.has_room(job):
            return []
        reasons = []
        for pool in self.snapshot.pools:
            if (reason := self._never_in(job, pool)) is None:
                return []
            reasons.append(reason)
        return reasons or [("no_pool", "no burst pool is declared")]

    def _never_in(self, job: Job, pool: Pool) -> Reason | None:
        """Why the pool can never take it; None: it can."""
        if reason := not_in_pool(job, pool, self.offers.meant(job)) or not_in_time(job, pool, self.snapshot.now_s):
            return reason
        markets = [not_on_market(job, each, market, self.policy) for each in pool.by_type for market in each.markets]
        if all(markets):
            return next(reason for reason in markets if reason)
        cheapest = min(offer.usd_per_hour for offer in self.offers.options(job) if offer.pool.name == pool.name)
        if (over := self._commitments.never(job, pool, cheapest)) is None:
            return None
        ceiling, usd = over
        least = f"renting for it in pool {pool.name} costs at least {explain.usd(usd)}"
        return "over_budget", f"{least}, more than the whole of {named(ceiling)}"
