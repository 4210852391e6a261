"""What else could be done for a job, what that costs and when the job would start: the best three, for the decision's reasons.

All of it is relative to what was decided (`Alternative`). Jobs that are alike have the same ones: they are looked up, not made anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ironburst.burst.decision import Alternative, Launch
from ironburst.burst.eligibility import not_rentable
from ironburst.burst.renting import Obstacle, Offer, Renting, Slot
from ironburst.burst.snapshot import Job, Pool

BEST = 3


def cost_usd(job: Job, pool: Pool, market: str, usd_per_hour: float) -> float:
    """What renting for a job is expected to cost: boot and run (its limit, unless told), at least the minimum billing. 0: paid anyway."""
    if market in pool.prepaid_markets:
        return 0.0
    runs_s = (job.time_limit_s or 0.0) if job.run_s is None else job.run_s
    return job.nodes * usd_per_hour * max(pool.boot_s + runs_s, pool.min_billing_s) / 3600


@dataclass
class Alternatives:
    """Looks them up while one decision is made."""

    renting: Renting
    _alike: dict[tuple[object, ...], tuple[Alternative, ...]] = field(default_factory=dict)  # of jobs that are alike
    _same: dict[tuple[str, str, int], dict[str, object]] = field(default_factory=dict)  # by pool, market, nodes: what doesn't change

    def of_waiting(self, job: Job, why: str) -> tuple[Alternative, ...]:
        """Of a job that waits at home and needs nothing better: `why` it isn't rented for."""
        shared = self._sharing(job, why) if self.renting.there else None
        key = (job.each, job.nodes, job.time_limit_s, job.run_s, job.gpu_type, job.batch, job.requeue, why)
        found = self._alike.get(key)
        if found is None:
            offers = () if not_rentable(job) else self.renting.options(job)[:BEST]
            found = self._alike[key] = tuple([self._rent(job, offer, why) for offer in offers])
        return (shared, *found[: BEST - 1]) if shared else found

    def of_refused(self, job: Job, obstacles: list[Obstacle]) -> tuple[Alternative, ...]:
        """Of a job that would be rented for, with what is in the way of the cheapest offers, in their order."""
        pairs = zip(self.renting.options(job)[:BEST], obstacles, strict=False)
        return tuple([self._rent(job, offer, obstacle.code) for offer, obstacle in pairs])

    def of_rented(self, job: Job, launch: Launch, home_s: float | None) -> tuple[float, float, tuple[Alternative, ...]]:
        """Of a job that is rented for: (when it is to start, what that is expected to cost, the others). `home_s`: its start at home."""
        now, offers = self.renting.snapshot.now_s, self.renting.options(job)
        chosen = next(n for n, (_, pool, market) in enumerate(offers) if (pool.name, market) == (launch.pool, launch.market))
        usd = cost_usd(job, offers[chosen][1], launch.market, launch.usd_per_hour)
        home = () if home_s is None else (Alternative("home", -usd, home_s - now, "late"),)
        cheaper = [self._rent(job, offer, "closed", usd) for offer in offers[:chosen]]
        dearer = [self._rent(job, offer, "dearer", usd) for offer in offers[chosen + 1 : chosen + BEST]]
        return now + offers[chosen][1].boot_s, usd, (*home, *cheaper, *dearer)[:BEST]

    def _sharing(self, job: Job, why: str) -> Alternative | None:
        """The first of the rented nodes that are there and have room for all of it."""
        if not_rentable(job):
            return None
        allowed = {(pool.name, market) for _, pool, market in self.renting.options(job)}
        now, longest = self.renting.snapshot.now_s, job.time_limit_s or 0.0
        groups: dict[tuple[str, str, str], list[Slot]] = {}
        for slot in self.renting.there:
            if (slot.pool.name, slot.market) in allowed and job.each.within(slot.free):
                group = groups.setdefault((slot.pool.name, slot.market, slot.zone), [])
                group.append(slot)
                if len(group) == job.nodes:
                    usd = sum(one.usd_per_hour * max(0.0, now + longest + one.pool.idle_s - one.committed_until_s) / 3600 for one in group)
                    return Alternative("share", usd, 0.0, why, slot.pool.name, slot.market, slot.pool.instance_type, job.nodes)
        return None

    def _rent(self, job: Job, offer: Offer, why: str, than_usd: float = 0.0) -> Alternative:
        usd_per_hour, pool, market = offer
        same = self._same.get((pool.name, market, job.nodes))
        if same is None:
            each = Alternative("rent", 0.0, pool.boot_s, "", pool.name, market, pool.instance_type, job.nodes)
            same = self._same[pool.name, market, job.nodes] = vars(each)
        made = object.__new__(Alternative)  # a frozen dataclass's own __init__ takes ten times as long, and there are three a job
        made.__dict__.update(same, usd=cost_usd(job, pool, market, usd_per_hour) - than_usd, why=why)
        return made
