"""What else could be done for a job: the best three, for the decision's reasons."""

from __future__ import annotations

from ironburst.burst.cost import boot_s
from ironburst.burst.decision import Alternative, Launch
from ironburst.burst.eligibility import not_rentable
from ironburst.burst.offers import Offer
from ironburst.burst.refusals import Refusal
from ironburst.burst.renting import Renting
from ironburst.burst.slots import Slot
from ironburst.burst.snapshot import Job

BEST = 3


def run_s(job: Job) -> float | None:
    """How long a job runs in the figures of its cost: its limit, unless it is known better."""
    return job.time_limit_s if job.run_s is None else job.run_s


class Alternatives:
    """Finds them while one decision is made. Jobs that are alike share them."""

    def __init__(self, renting: Renting):
        self.renting = renting
        # by a list of offers (its id; it is kept beside, so that its id stays its own), nodes, why not
        self._cheapest_of: dict[tuple[int, int, tuple[str, ...]], tuple[list[Offer], tuple[Alternative, ...]]] = {}
        self._rents: dict[tuple[str, str, str, int, str], Alternative] = {}  # by pool, market, type, nodes, why not
        self._shares: dict[tuple[object, ...], Alternative | None] = {}
        self._shares_at = 0  # how often slots had been given to jobs then

    def of_waiting(self, job: Job, why: str) -> tuple[Alternative, ...]:
        """Of a job that waits at home and needs nothing better: `why` it isn't rented for."""
        if not_rentable(job, self.renting.policy):
            return ()
        shared = self._sharing(job, why) if self.renting.slots.there else None
        cheapest = self._cheapest(job, (why,) * BEST)
        return (shared, *cheapest[: BEST - 1]) if shared else cheapest

    def of_refused(self, job: Job, refusal: Refusal) -> tuple[Alternative, ...]:
        """Of a job that would be rented for."""
        return self._cheapest(job, refusal.codes[:BEST])

    def _cheapest(self, job: Job, why: tuple[str, ...]) -> tuple[Alternative, ...]:
        """The cheapest offers, as many as there are reasons `why` not."""
        offers = self.renting.offers.options(job)
        if (key := (id(offers), job.nodes, why)) not in self._cheapest_of:  # most alike jobs have one and the same list
            rents = [self._rent(job, offer, why_not) for offer, why_not in zip(offers, why, strict=False)]
            self._cheapest_of[key] = offers, tuple(rents)
        return self._cheapest_of[key][1]

    def of_rented(self, job: Job, launch: Launch, home_s: float | None) -> tuple[float, float, tuple[Alternative, ...]]:
        """Of a job that is rented for: (when it is to start, what that is expected to cost,
        the others). `home_s`: its start at home.
        """
        now, offers = self.renting.snapshot.now_s, self.renting.offers.options(job)
        taken_offer = launch.pool, launch.market, launch.instance_type
        chosen = [(*offer.place, offer.instance_type) for offer in offers].index(taken_offer)
        home = () if home_s is None else (Alternative("home", 0.0, max(home_s - now, 0.0), "late"),)
        cheaper = [self._rent(job, offer, "closed") for offer in offers[:chosen]]
        dearer = [self._rent(job, offer, "dearer") for offer in offers[chosen + 1 : chosen + BEST]]
        taken = self._rent(job, offers[chosen], "")
        return now + taken.in_s, taken.usd(run_s(job) or 0.0), (*home, *cheaper, *dearer)[:BEST]

    def _rent(self, job: Job, offer: Offer, why: str) -> Alternative:
        usd_per_hour, pool, market, instance_type = offer
        key = (*offer.place, instance_type, job.nodes, why)
        rent = self._rents.get(key)
        if rent is None:
            rent = self._rents[key] = Alternative(
                what="rent",
                usd_per_hour=0.0 if offer.prepaid else usd_per_hour * job.nodes,
                in_s=boot_s(pool),
                why=why,
                pool=pool.name,
                market=market,
                instance_type=pool.instance_type,
                nodes=job.nodes,
                least_s=pool.min_billing_s,
            )
        return rent

    def _sharing(self, job: Job, why: str) -> Alternative | None:
        """The first of the rented nodes that are there and have room for all of it."""
        if self._shares_at != self.renting.slots.taken:
            self._shares_at = self.renting.slots.taken
            self._shares.clear()
        alone = (job.exclusive, job.user, job.keeps_off) if job.exclusive or job.keeps_off else ()
        places = self.renting.offers.places(job)
        if (key := (places, job.each, job.nodes, alone, why)) not in self._shares:
            self._shares[key] = self._find_shared(job, places, why)
        return self._shares[key]

    def _find_shared(self, job: Job, allowed: frozenset[tuple[str, str]], why: str) -> Alternative | None:
        groups: dict[tuple[str, str, str, str], list[Slot]] = {}
        for slot in self.renting.slots.there:
            if (slot.pool.name, slot.market) in allowed and slot.fits(job):
                place = slot.pool.name, slot.market, slot.zone, slot.pool.instance_type
                group = groups.setdefault(place, [])
                group.append(slot)
                if len(group) == job.nodes:
                    return self._share(group, why)
        return None

    def _share(self, slots: list[Slot], why: str) -> Alternative:
        pool, market = slots[0].pool, slots[0].market
        hourly = 0.0 if market in pool.prepaid_markets else sum(slot.usd_per_hour for slot in slots)
        paid_s = min(slot.committed_until_s for slot in slots) - pool.idle_s - self.renting.snapshot.now_s
        return Alternative(
            what="share",
            usd_per_hour=hourly,
            in_s=0.0,
            why=why,
            pool=pool.name,
            market=market,
            instance_type=pool.instance_type,
            nodes=len(slots),
            paid_s=max(paid_s, 0.0),
        )
