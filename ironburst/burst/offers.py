"""Offers: the pools and markets that may take a job, the one that is expected to cost least to its end first.

Jobs that are alike in all that an offer looks at share one list; the order depends on how long a job runs, in powers of
two. So thousands of waiting jobs cost a look-up each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ironburst.burst.cost import boot_s, to_completion_usd, weight_usd
from ironburst.burst.eligibility import in_time, meant, not_in_pool, not_on_market, spot_failed
from ironburst.burst.policy import Policy
from ironburst.burst.snapshot import Job, Pool, Snapshot
from ironburst.nodes.gpus import NodeGpu

ENDLESS = 64  # the magnitude of a run time that has no end


class Offer(NamedTuple):
    """A place where nodes can be rented."""

    usd_per_hour: float  # a node
    pool: Pool  # as of one type
    market: str
    instance_type: str = ""  # empty: the pool's only one

    @property
    def place(self) -> tuple[str, str]:
        """(pool, market), to look it up by."""
        return self.pool.name, self.market

    @property
    def name(self) -> str:
        """For people."""
        return f"pool {self.pool.name} ({', '.join(filter(None, (self.market, self.instance_type)))})"

    @property
    def prepaid(self) -> bool:
        """Whether it is paid for, used or not."""
        return self.market in self.pool.prepaid_markets

    @property
    def rank(self) -> int:
        """Of offers that cost the same: prepaid, then spot, then the others."""
        return 0 if self.prepaid else 1 if self.market == "spot" else 2

    def usd(self, job: Job, run_s: float) -> float:
        """What a job that runs so long is expected to cost there to its end."""
        return to_completion_usd(self.pool, self.market, job.nodes, run_s)


@dataclass
class AlikeOffers:
    """Offers for jobs that are alike in all that an offer looks at, but the time."""

    offers: list[Offer]  # the cheapest hour first
    nodes: int
    longest_s: float = field(init=False)  # time limit up to which all of them take a job
    boots: list[tuple[float, float]] = field(init=False)  # (boot, longest run), soonest first
    one_order: bool = field(init=False)  # the cheapest hour is the cheapest to the end, however long the job
    ranked: dict[int, list[Offer]] = field(default_factory=dict)  # by the magnitude of the run time

    def __post_init__(self) -> None:
        pools = [offer.pool for offer in self.offers]
        self.longest_s = min((pool.max_run_s for pool in pools), default=0.0)
        self.boots = sorted((pool.boot_s, pool.max_run_s) for pool in pools)
        weighed = [offer for offer in self.offers if not offer.prepaid or offer.pool.carbon_usd_per_hour]
        self.one_order = len({_cost_terms(offer) for offer in weighed}) <= 1

    @cached_property
    def places(self) -> frozenset[tuple[str, str]]:
        """(pool, market) of them."""
        return frozenset(offer.place for offer in self.offers)

    @classmethod
    def of(cls, job: Job, snapshot: Snapshot, policy: Policy, at_home: tuple[NodeGpu, ...]) -> AlikeOffers:
        """Those that may take a job like this one, were it short enough. `at_home`: the GPUs that it means."""
        offers = [
            Offer(each.usd_per_hour[market] or 0.0, each, market, each.instance_type if pool.other_types else "")
            for pool in snapshot.offered
            if not not_in_pool(job, pool, at_home, however_long=True)
            for each in pool.by_type
            for market in each.markets
            if not not_on_market(job, each, market, policy)
        ]
        hourly = [(0.0 if each.prepaid else each.usd_per_hour) + each.pool.carbon_usd_per_hour for each in offers]
        return cls(_sorted(offers, hourly), job.nodes)

    def by_cost(self, run_s: float) -> list[Offer]:
        """What is expected to cost least first, for run times of this magnitude (a power of two): costs are compared at
        its middle.
        """
        magnitude = 0 if self.one_order else math.frexp(run_s)[1] if math.isfinite(run_s) else ENDLESS
        if magnitude not in self.ranked:
            self.ranked[magnitude] = self.offers if self.one_order else self._in_order(0.75 * 2.0**magnitude)
        return self.ranked[magnitude]

    def _in_order(self, run_s: float) -> list[Offer]:
        usd = [weight_usd(offer.pool, offer.market, self.nodes, run_s) for offer in self.offers]
        return _sorted(self.offers, usd)


class JobOffers(NamedTuple):
    """What is offered to one job: `fitting` are those of `ranked` that may take it, in the same order."""

    alike: AlikeOffers
    ranked: list[Offer]
    fitting: list[Offer]

    @property
    def for_all(self) -> bool:
        """Whether all jobs that are alike and run about as long have these very offers."""
        return self.fitting is self.ranked


class Offers:
    """The offers of one snapshot, for any job."""

    def __init__(self, snapshot: Snapshot, policy: Policy, expected_s: Mapping[int, float]):
        """`expected_s`: run times by job id, where more is known than the limit."""
        self._snapshot, self._policy, self._expected_s = snapshot, policy, expected_s
        self._owners = frozenset(pool.account for pool in snapshot.pools if pool.account)
        of_known_gpus = [pool for pool in snapshot.pools if pool.gpu]
        self._known = [node for node in snapshot.nodes if node.gpu] if of_known_gpus else []
        self._meant: dict[tuple[object, ...], tuple[NodeGpu, ...]] = {}
        self._alike = _alike_of(snapshot, policy)
        self._of_job: dict[int, tuple[Job, JobOffers]] = {}  # by its id: they are asked for again and again
        self._spot: dict[int, bool] = {}  # by job id: spot alone, or none of it

    def of(self, job: Job) -> JobOffers:
        """Those of jobs like it, in the order for its run time, and of these the ones that may take it."""
        known = self._of_job.get(job.id)
        if known is None or known[0] is not job:
            known = self._of_job[job.id] = job, self._of(job)
        return known[1]

    def only(self, job: Job, spot: bool | None) -> None:
        """From now on it has offers of spot alone, or none of it; None: all."""
        self._of_job.pop(job.id, None)
        if spot is None:
            self._spot.pop(job.id, None)
        else:
            self._spot[job.id] = spot

    def options(self, job: Job) -> list[Offer]:
        """What may take it: what is expected to cost least to its end first. Of equal ones prepaid before spot before
        on demand, then in the declared order.
        """
        return self.of(job).fitting

    def meant(self, job: Job) -> tuple[NodeGpu, ...]:
        """The GPUs that it could be given at home, where it names no type: a pool has to be as good."""
        if not self._known:
            return ()
        each, untyped = job.each, job.gpu_by_place or not job.gpu_type
        asked = untyped, each.gpus, each.cpus, each.memory_mb, job.partitions, job.excluded
        if asked not in self._meant:
            self._meant[asked] = meant(job, self._known)
        return self._meant[asked]

    def places(self, job: Job) -> frozenset[tuple[str, str]]:
        """(pool, market) of `options`; one and the same set for jobs that are alike."""
        alike = self._alike_of(job)
        if job.least_limit_s <= alike.longest_s and job.deadline_s is None and job.id not in self._spot:
            return alike.places  # all of them may take it
        mine = self.of(job)
        return mine.alike.places if mine.for_all else frozenset(offer.place for offer in mine.fitting)

    def soonest_s(self, job: Job) -> float:
        """Declared (so longest) boot time of the offer that is there first; 0 without any."""
        limit_s = job.least_limit_s
        return next((boot for boot, most_s in self._alike_of(job).boots if limit_s <= most_s), 0.0)

    def run_s(self, job: Job) -> float:
        """How long it is expected to run: its limit, where nothing better is known."""
        limit_s = math.inf if job.time_limit_s is None else job.time_limit_s
        run_s = self._expected_s.get(job.id, limit_s)
        return run_s - job.saved_s if job.saved_s < run_s else job.work_s

    def _alike_of(self, job: Job) -> AlikeOffers:
        each = job.each  # its numbers by themselves: a dataclass's own hash and comparison cost a call each
        size = (each.gpus, each.cpus, each.memory_mb, job.nodes)
        markets = (job.batch, job.requeue, spot_failed(job, self._policy))
        account = job.account if job.account in self._owners else ""
        at_home = self.meant(job)
        where = (job.data, job.licences, job.fabric, account, job.keeps_off)
        shape = (size, job.gpu_type, markets, where, at_home)
        alike = self._alike.get(shape)
        if alike is None:
            alike = self._alike[shape] = AlikeOffers.of(job, self._snapshot, self._policy, at_home)
        return alike

    def _of(self, job: Job) -> JobOffers:
        alike = self._alike_of(job)
        ranked, limit_s = alike.by_cost(self.run_s(job)), job.least_limit_s
        fitting = ranked
        if limit_s > alike.longest_s:
            fitting = [offer for offer in fitting if limit_s <= offer.pool.max_run_s]
        if job.deadline_s is not None:
            fitting = [offer for offer in fitting if in_time(job, offer.pool, self._snapshot.now_s)]
        if (spot := self._spot.get(job.id)) is not None:
            fitting = [offer for offer in fitting if (offer.market == "spot") == spot]
        return JobOffers(alike, ranked, fitting)


def _alike_of(snapshot: Snapshot, policy: Policy) -> dict[tuple[object, ...], AlikeOffers]:
    """By shape: those of the last decision on the very same pools (`Snapshot.kept`), else none."""
    pools, before = snapshot.offered, snapshot.kept.get("offers")
    if before is None or before[0] is not policy or before[1] is not pools:
        before = snapshot.kept["offers"] = policy, pools, {}
    alike: dict[tuple[object, ...], AlikeOffers] = before[2]
    return alike


def _sorted(offers: Sequence[Offer], usd: Sequence[float]) -> list[Offer]:
    """By what each costs, then by rank; but in a pool whose types have an order none before those that it prefers."""
    at_least: dict[tuple[str, str], float] = {}
    keys: list[tuple[float, int]] = []
    for offer, cost in zip(offers, usd, strict=True):
        if offer.pool.in_order:
            cost = at_least[offer.place] = max(cost, at_least.get(offer.place, 0.0))
        keys.append((cost, offer.rank))
    return [offers[n] for n in sorted(range(len(offers)), key=keys.__getitem__)]


def _cost_terms(offer: Offer) -> tuple[float, ...]:
    """What decides, beside the price, what a job costs to its end there."""
    pool = offer.pool
    interruptions = pool.interruptions_per_hour.get(offer.market, 0.0)
    return boot_s(pool), pool.min_billing_s, pool.billing_increment_s, pool.checkpoint_s, interruptions, pool.speed
