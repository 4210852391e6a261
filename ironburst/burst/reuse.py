"""Rented nodes for a job: those with room that cost least to be kept longer for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from ironburst.burst import explain
from ironburst.burst.commitments import Commitments
from ironburst.burst.decision import Assign
from ironburst.burst.eligibility import in_time
from ironburst.burst.offers import Offers
from ironburst.burst.refusals import Obstacle
from ironburst.burst.slots import Slot, Slots
from ironburst.burst.snapshot import Job


class Reused(NamedTuple):
    """The job got a part of rented nodes. `assign` None: this decision launches them, for another job."""

    slots: list[Slot]
    committed_until_s: float
    committed_usd: float  # beyond what is set aside for them already
    assign: Assign | None

    @property
    def coming(self) -> bool:
        """Whether one of them has to boot first."""
        return any(slot.coming for slot in self.slots)


class _Candidate(NamedTuple):
    """Slots that can take the whole job, in one pool, zone and market."""

    slots: list[Slot]
    longer_usd: float  # what it costs to keep them longer

    @property
    def order(self) -> tuple[float, bool, int, float]:
        """The cheapest first; of equal ones those that are there, then those that were launched first."""
        first, last = self.slots[0], self.slots[-1]
        return self.longer_usd, last.coming, first.launch, first.usd_per_hour


class Reuse:
    """Gives jobs a part of rented nodes while one decision is made."""

    def __init__(self, now_s: float, offers: Offers, slots: Slots, commitments: Commitments):
        self._now_s, self._offers, self._slots, self._commitments = now_s, offers, slots, commitments

    def keep(self, job: Job, most_usd: Callable[[], float]) -> Reused | Obstacle | None:
        """Keep rented nodes for all of the job, those where it costs least, if that isn't over `most_usd`; or the
        ceiling that is in the way; None: none have room, or all are dearer.
        """
        if not self._slots:  # of thousands of jobs most find none
            return None
        obstacle: Obstacle | None = None
        for candidate in sorted(self._candidates(job), key=lambda candidate: candidate.order):
            if candidate.longer_usd > most_usd():
                break
            kept = self._keep(job, candidate.slots)
            if isinstance(kept, Reused):
                return kept
            obstacle = kept
        return obstacle

    def has_room(self, job: Job) -> bool:
        """Whether rented nodes of one place, that its payer may use, could take all of it."""
        return next(self._candidates(job), None) is not None

    def _candidates(self, job: Job) -> Iterator[_Candidate]:
        payer, run_s = self._commitments.payer(job), self._offers.run_s(job)
        for group in self._with_room(job):
            # jobs of one payer share a node; who takes an unused one over pays from then on
            mine = [slot for slot in group if slot.account == payer or slot.free == slot.room.total]
            if len(mine) >= job.nodes:
                longer = [(slot.longer_usd(job, run_s), slot) for slot in mine]
                longer.sort(key=lambda priced: (priced[0], priced[1].coming, priced[1].free.gpus, priced[1].node))
                cheapest = longer[: job.nodes]
                yield _Candidate([slot for _, slot in cheapest], sum(usd for usd, _ in cheapest))

    def _with_room(self, job: Job) -> Iterator[list[Slot]]:
        """Slots that can take a part of the job, by pool, market, zone and launch."""
        if not self._slots:
            return
        limit_s, alike = job.least_limit_s, self._offers.of(job).alike
        places = alike.places
        if limit_s > alike.longest_s:
            places = frozenset(offer.place for offer in alike.offers if limit_s <= offer.pool.max_run_s)
        for group in self._slots.groups_in(places):
            if fitting := [slot for slot in group if self._fits(slot, job)]:
                yield fitting

    def _fits(self, slot: Slot, job: Job) -> bool:
        return slot.fits(job) and in_time(job, slot.pool, self._now_s, boot=slot.coming)

    def _keep(self, job: Job, slots: list[Slot]) -> Reused | Obstacle:
        """Set the money aside and take the job's part of each."""
        until_s = self._commitments.until_s(job, slots[0].pool, boot=any(slot.coming for slot in slots))
        longer = [self._commitments.charges(job, slot.usd_per_hour, until_s, slot) for slot in slots]
        asked = list(chain.from_iterable(longer))
        if obstacle := self._commitments.commit(job, asked, "keeping the rented nodes longer for it"):
            return obstacle
        payer, run_s = self._commitments.payer(job), self._offers.run_s(job)
        usd = sum(added.usd for added, *_ in longer)
        for slot in slots:
            slot.busy_until_s = max(slot.busy_until_s, slot.ends_s(job, run_s))
            slot.account, slot.committed_until_s = payer, max(slot.committed_until_s, until_s)
            self._slots.take(slot, job)
        if slots[0].launch >= 0:
            return Reused(slots, until_s, usd, None)
        reason = f"rented already, with room for it: {explain.listed(slot.node for slot in slots)}"
        leases = tuple(slot.lease for slot in slots)
        assign = Assign(job.id, leases, until_s, usd, reason, payer, running=not job.pending)
        return Reused(slots, until_s, usd, assign)
