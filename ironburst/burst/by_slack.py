"""Which jobs of a snapshot move between spot and on demand, and where they go next (ironburst.burst.spot)."""

from __future__ import annotations

from dataclasses import replace

from ironburst.burst import spot
from ironburst.burst.cost import boot_s
from ironburst.burst.eligibility import moves
from ironburst.burst.launches import Launches
from ironburst.burst.offers import Offers
from ironburst.burst.policy import Policy
from ironburst.burst.slots import usable
from ironburst.burst.snapshot import Job, Lease, Snapshot
from ironburst.burst.spot import Choice, Do


class BySlack:
    """The jobs that move, while one decision is made."""

    def __init__(self, snapshot: Snapshot, policy: Policy, offers: Offers, launches: Launches):
        self._snapshot, self._policy, self._offers, self._launches = snapshot, policy, offers, launches
        self._leases = {lease.node: lease for lease in snapshot.leases} if policy.deadline_moves else {}
        self._nodes = snapshot.node_of if self._leases else {}

    def of_waiting(self, job: Job, *, no_spot: bool = False) -> Choice | None:
        """What to do for a pending job that home doesn't end in time; None: it isn't one that moves. `no_spot`: none is
        to be had, as was just tried.
        """
        return self._choice(job, "wait", no_spot) if moves(job, self._policy) else None

    def on_demand(self) -> list[Job]:
        """The running jobs that could go to spot, with what they would have saved by now: those that move, on rented
        nodes that are paid for by the hour and aren't spot.
        """
        if not self._leases:
            return []
        running = (job for job in self._snapshot.placed if job.state == "RUNNING")
        return [self._so_far(job) for job in running if moves(job, self._policy) and self._by_the_hour(job)]

    def of_running(self, job: Job) -> Choice | None:
        """What to do for one of these."""
        return self._choice(job, "on-demand", no_spot=False)

    def put_back(self) -> list[Lease]:
        """What jobs are to go to that are leaving their nodes: not pending yet, and not running any more."""
        if not self._leases:
            return []
        leaving = (job for job in self._snapshot.jobs if job.state == "COMPLETING" and moves(job, self._policy))
        return [lease for job in leaving for lease in self.on_its_way(job)]

    def on_its_way(self, job: Job) -> list[Lease]:
        """The leases of spot that a running job is to go to: enough of them, alive, in one pool."""
        by_pool: dict[str, list[Lease]] = {}
        for lease in self._leases.values():
            its = job.id in lease.jobs and lease.node not in job.on and lease.market == "spot"
            if its and usable(lease, self._nodes.get(lease.node)):
                by_pool.setdefault(lease.pool, []).append(lease)
        return next((mine for mine in by_pool.values() if len(mine) >= job.nodes), [])

    def _so_far(self, job: Job) -> Job:
        ran_s = 0.0 if job.start_s is None else max(0.0, self._snapshot.now_s - job.start_s)
        saved_s = job.saved_s + ran_s
        return replace(job, saved_s=saved_s) if saved_s < (job.time_limit_s or 0.0) else job

    def _by_the_hour(self, job: Job) -> bool:
        leases = [self._leases.get(node) for node in job.on]
        prepaid = {pool.name: pool.prepaid_markets for pool in self._snapshot.pools}
        return all(
            lease is not None and lease.market != "spot" and lease.market not in prepaid.get(lease.pool, ())
            for lease in leases
        )

    def _choice(self, job: Job, on: Do, no_spot: bool) -> Choice | None:
        """None: it can't be had of both kinds."""
        declared = self._policy.deadline_moves
        options = self._offers.options(job)
        of_spot = [offer for offer in options if offer.market == "spot"]
        demand = next((offer for offer in options if offer.market != "spot"), None)
        if not of_spot or demand is None or demand.prepaid or declared is None or job.deadline_s is None:
            return None
        is_open = next((each for each in of_spot if not no_spot and self._launches.open_now(job, each)), None)
        chosen, now_s = is_open or of_spot[0], self._snapshot.now_s
        speed = min(chosen.pool.speed, demand.pool.speed)
        way = spot.Way(
            # the scheduler ends what can't have its least limit any more, saved or not
            work_s=max(job.work_s, job.time_min_s or 0.0) / speed,
            left_s=job.deadline_s - now_s,
            launch_s=max(chosen.pool.boot_s, demand.pool.boot_s),
            lost_s=(job.saves_s or 0.0) / speed,
            spot_usd=chosen.usd_per_hour,
            on_demand_usd=demand.usd_per_hour,
            usual_s=max(boot_s(chosen.pool), boot_s(demand.pool)),
            look_s=declared.look_s,
            spare_s=declared.spare_s,
        )
        market = spot.of_place(self._snapshot.spot, chosen.pool.name, chosen.instance_type)
        return spot.choose(way, on, market, is_open is not None, now_s)
