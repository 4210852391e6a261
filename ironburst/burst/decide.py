"""`decide(snapshot, policy) -> Decision`.

The queue is gone through in the scheduler's order. Each job gets its predicted start at home, behind the jobs before it
that stay at home. A job is worth renting for when that start is further from its submission than its wait limit *and*
later than a rented node could be there. Then what is expected to cost least to its end: rented nodes with room, kept
longer for it, or a launch that the budget, the pool and the cool-downs allow. What is prepaid costs nothing more, so a
job that waits takes it before it is late.

With limits by size (`Policy.limits`) it is not the late job itself that is rented for but the cheapest of the larger
jobs that wait before
it: with that one gone all behind it start sooner, for the least money.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

from ironburst.burst import cost, explain, release, runtimes, sanitize
from ironburst.burst.alternatives import Alternatives, run_s
from ironburst.burst.decision import Assign, Decision, Infeasible, Launch, Narrow, Release, Wait, Widen
from ironburst.burst.eligibility import not_rentable, not_startable, until_its_end
from ironburst.burst.limits import Limits
from ironburst.burst.packing import Placement, Plan, could_ever_fit
from ironburst.burst.policy import Policy
from ironburst.burst.renting import Impossible, Renting
from ironburst.burst.reuse import Reused
from ironburst.burst.slots import usable
from ironburst.burst.snapshot import Job, Lease, Pool, Snapshot


def decide(snapshot: Snapshot, policy: Policy) -> Decision:
    """What to rent, hand over, give back or wait for, with a reason for each. Every pending job of the home partition
    is in it.

    It answers for every snapshot: what can't be right in one is left out, with its reason (ironburst.burst.sanitize).
    """
    whole, damaged = sanitize.sound(snapshot)
    home = {job.id for job in snapshot.jobs if policy.home_partition in job.partitions} if damaged else set()
    return _Round(whole, policy, infeasible=[each for each in damaged if each.job in home]).decision()


LAST_CALL_S = 60.0  # before the last moment at which renting still meets a deadline: some ticks
# a job that is late is still left to a start at home that is nearer than a boot, but so long (or a boot) at most
DOUBT_S = 600.0
# jobs that one decision lays over the nodes a second time, at most: beyond that a late job is rented for itself
PLANNED = 20_000


@dataclass
class _Late:
    """Why a job is worth renting for; when it would start at home (None: not known). `large`: others before it may be
    rented for in its place.
    """

    text: str
    start_s: float | None = None
    large: bool = False


@dataclass
class _Round:
    snapshot: Snapshot
    policy: Policy
    assigns: list[Assign] = field(default_factory=list)
    widen: list[Widen] = field(default_factory=list)
    narrow: list[Narrow] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    infeasible: list[Infeasible] = field(default_factory=list)

    def __post_init__(self) -> None:
        now, policy, jobs = self.snapshot.now_s, self.policy, self.snapshot.jobs
        pools = tuple(until_its_end(pool, now) for pool in self.snapshot.pools)
        if any(one is not other for one, other in zip(pools, self.snapshot.pools, strict=True)):
            self.snapshot = replace(self.snapshot, pools=pools)
        self.home = [node for node in self.snapshot.nodes if policy.home_partition in node.partitions]
        running = [job for job in jobs if job.on]
        self.expected_s = runtimes.expected_s(self.snapshot.experience, jobs, now)
        self.plan = Plan(now, [node for node in self.home if node.open], running, policy.overdue_s, self.expected_s)
        self.at_home: list[tuple[Job, Placement]] = []  # in order: what is planned
        self.unplanned = self.plan.copy() if policy.limits else self.plan  # only they lay it anew
        self.planned_again = 0
        self.renting = Renting(self.snapshot, policy, self.expected_s)
        self.instead = Alternatives(self.renting)
        self.nodes = {node.name: node for node in self.snapshot.nodes}
        self.pools = {pool.name: pool for pool in self.snapshot.pools}
        self.rented_in = {pool.partition for pool in self.snapshot.pools}
        self.leases_of: dict[int, list[Lease]] = {}
        for lease in self.snapshot.leases:
            for number in set(lease.jobs):
                self.leases_of.setdefault(number, []).append(lease)
        self.used: set[str] = set()  # leases that a pending job still counts on

    def decision(self) -> Decision:
        pending = [job for job in self.snapshot.jobs if job.pending]
        queue = sorted(pending, key=lambda job: (-job.priority, job.submit_s, job.id))
        for job in queue:
            if self.policy.home_partition in job.partitions:
                self._one(job)
        return Decision(
            tuple(self.renting.launches),
            tuple(self.assigns),
            tuple(self.widen),
            tuple(self.narrow),
            tuple(self._releases()),
            tuple(self.waits),
            tuple(self.infeasible),
        )

    def _one(self, job: Job) -> None:
        if reason := not_startable(job, self.snapshot.now_s):
            self._back_home(job)
            self.waits.append(Wait(job.id, *reason, look_again_s=job.eligible_s if reason[0] == "begin" else None))
            return
        if serving := self._serving(job):
            self._hand_over(job, serving)
            return
        placement = self.plan.earliest(job)
        verdict = self._late(job, placement)
        if isinstance(verdict, Wait) and self._prepaid(job, placement):
            start_s = placement.start if placement else None
            verdict = _Late(f"{verdict.text}; but a node that is paid for anyway can take it sooner", start_s)
        while isinstance(verdict, _Late) and verdict.large and self._rent_smaller(job, verdict):
            placement = self.plan.earliest(job)
            verdict = self._late(job, placement)
        if isinstance(verdict, Wait):
            self.waits.append(verdict)
        elif self._rent(job, verdict):
            return
        self._back_home(job)
        if placement:
            self.plan.place(job, placement)
            self.at_home.append((job, placement))

    def _rent_smaller(self, job: Job, late: _Late) -> bool:
        """Rent for the cheapest larger job before `job` that costs less than it, and lay the others over the nodes
        anew.
        """
        limits, usd = self.policy.limits, self.renting.least_usd(job)
        if limits is None or self.planned_again + len(self.at_home) > PLANNED:
            return False
        found = [
            (others_usd, other.id, other, placement.start)
            for other, placement in self.at_home
            if not limits.small(self._gpu_hours(other))
            and (others_usd := self.renting.least_usd(other)) < usd
            and not not_rentable(other)
            and self.snapshot.now_s - other.since_s >= self.policy.settle_s
        ]
        if not found:
            return False
        _, _, chosen, start = min(found)
        waits, infeasible = len(self.waits), len(self.infeasible)
        if not self._rent(
            chosen, _Late(f"the cheapest job before job {job.id}, for which it makes room: {late.text}", start)
        ):
            del self.waits[waits:], self.infeasible[infeasible:]  # of the try
            return False
        self.waits = [wait for wait in self.waits[:waits] if wait.job != chosen.id] + self.waits[waits:]
        stay = [other for other, _ in self.at_home if other is not chosen]
        self.planned_again += len(stay)
        self.plan, self.at_home = self.unplanned.copy(), []
        for other in stay:
            if placement := self.plan.earliest(other):
                self.plan.place(other, placement)
                self.at_home.append((other, placement))
        return True

    # ---- jobs that have rented nodes
    def _serving(self, job: Job) -> list[Lease]:
        """The leases that the job counts on: enough of them, alive, with room. Else none (and it is decided anew)."""
        if (leases := self.leases_of.get(job.id)) is None:
            return []
        mine = [lease for lease in leases if usable(lease, self.nodes.get(lease.node))]
        mine = [lease for lease in mine if lease.state == "coming" or self._has_room(lease, job)]
        pools = dict.fromkeys(lease.pool for lease in mine)  # it spans one at most
        groups = [[lease for lease in mine if lease.pool == pool] for pool in pools]
        return next((group for group in groups if len(group) >= job.nodes), [])

    def _has_room(self, lease: Lease, job: Job) -> bool:
        pool = self.pools.get(lease.pool)
        if pool is None:
            return False
        free = pool.each
        for other in self.renting.on.get(lease.node, ()):
            free = free - other.each
        return job.each.within(free)

    def _hand_over(self, job: Job, serving: list[Lease]) -> None:
        self.used |= {lease.id for lease in serving}
        names = explain.listed(lease.node for lease in serving)
        if coming := [lease.node for lease in serving if lease.state == "coming"]:
            missing = "" if len(coming) == len(serving) else f" ({explain.listed(coming)} not yet)"
            self.waits.append(Wait(job.id, "coming", f"rented for it, to boot and pass the gate: {names}{missing}"))
            return
        self._widen(job, self.pools[serving[0].pool], [lease.node for lease in serving])

    def _widen(self, job: Job, pool: Pool, nodes: list[str]) -> None:
        """Open the pool's partition to the job, but only the nodes that are its own."""
        partitions = (self.policy.home_partition, pool.partition)
        excluded = tuple(sorted({*self._own_exclusions(job), *(node for node in pool.nodes if node not in nodes)}))
        closed = [name for name in nodes if (node := self.nodes.get(name)) and node.has("DRAIN")]
        names = explain.listed(nodes)
        if set(job.partitions) != set(partitions) or set(job.excluded) != set(excluded) or closed:
            reason = f"rented {'node' if len(nodes) == 1 else 'nodes'} {names} passed the gate"
            self.widen.append(Widen(job.id, partitions, excluded, tuple(nodes), reason))
        self.waits.append(
            Wait(job.id, "widened", f"it may start on {names} or at home, whichever the scheduler finds first")
        )

    def _back_home(self, job: Job) -> None:
        """A pending job without rented nodes is in the home partition only."""
        if rented := [name for name in job.partitions if name in self.rented_in]:
            exclusions = self._own_exclusions(job)
            partitions = tuple(name for name in job.partitions if name not in self.rented_in)
            # a gang may get some of its nodes again, so it keeps the delay
            delayed = job.restarts > 0 and job.nodes == 1 and job.since_s > self.snapshot.now_s
            reason = f"no rented node is left for it in {explain.listed(rented)}"
            self.narrow.append(Narrow(job.id, partitions, exclusions, reason, begin_now=delayed))

    def _own_exclusions(self, job: Job) -> tuple[str, ...]:
        return tuple(name for name in job.excluded if name not in self._rentable)

    @cached_property
    def _rentable(self) -> set[str]:
        return {node for pool in self.snapshot.pools for node in pool.nodes}

    # ---- jobs without
    def _prepaid(self, job: Job, placement: Placement | None) -> bool:
        """Whether it needn't wait: what is reserved costs nothing more."""
        start = math.inf if placement is None else placement.start
        return start > self.snapshot.now_s and self.renting.prepaid_before(job, start) and not not_rentable(job)

    def _late(self, job: Job, placement: Placement | None) -> Wait | _Late:
        verdict = self._late_for_its_wait(job, placement)
        if isinstance(verdict, Wait):
            return self._late_for_its_deadline(job, placement, verdict) if job.deadline_s is not None else verdict
        settled_s = job.since_s + self.policy.settle_s
        if self.snapshot.now_s < settled_s:
            text = f"{verdict.text}; it is rented for if that still holds when it has waited {explain.duration(self.policy.settle_s)}"
            others = self.instead.of_waiting(job, "yet")
            return Wait(
                job.id,
                "settling",
                text,
                settled_s,
                settled_s,
                start_s=verdict.start_s,
                run_s=run_s(job),
                alternatives=others,
            )
        return verdict

    def _late_for_its_deadline(self, job: Job, placement: Placement | None, home: Wait) -> Wait | _Late:
        """`home` if it ends in time there; but somebody may still come before it, so renting is its last moment's
        insurance. Else it is rented for two boots before it must start: one for a second try elsewhere.
        """
        if job.time_limit_s is None or job.deadline_s is None:
            return home
        must_s, start_s = job.deadline_s - job.time_limit_s, placement.start if placement else math.inf
        boot_s, now = self.renting.offers.soonest_s(job), self.snapshot.now_s
        if start_s <= must_s:
            if start_s <= now or not must_s - boot_s - LAST_CALL_S <= now <= must_s - boot_s:
                return home
            last = f"a node that is rented after {explain.at(must_s - boot_s)} would be too late for its deadline"
            return _Late(f"it hasn't started at home yet, and {last}", start_s)
        text = f"its predicted start at home, {explain.at(start_s)}, is too late to end by its deadline {explain.at(job.deadline_s)}"
        rent_s, starts_s = must_s - 2 * boot_s, placement.start if placement else None
        if now >= rent_s:
            return _Late(text, starts_s)
        text = f"{text}; it is rented for at {explain.at(rent_s)} if that still holds"
        others = self.instead.of_waiting(job, "yet")
        return Wait(job.id, "deadline", text, rent_s, rent_s, start_s=starts_s, run_s=run_s(job), alternatives=others)

    def _late_for_its_wait(self, job: Job, placement: Placement | None) -> Wait | _Late:
        if self.policy.limits and placement:
            return self._late_for_its_size(job, placement, self.policy.limits)
        now, since, limit = self.snapshot.now_s, job.since_s, self.policy.wait_limit_s
        if self.policy.limits:
            limit = self.policy.limits.hard_s(self._gpu_hours(job))
        allowed = explain.duration(limit)
        if placement is None:
            if not could_ever_fit(job, self.home):
                return _Late(f"it can never start at home: {self._home_size()}")
            if now - since <= limit:
                text = (
                    f"its nodes at home are down or drained; it has waited {explain.duration(now - since)} of {allowed}"
                )
                limit_s, others = since + limit, self.instead.of_waiting(job, "limit")
                return Wait(job.id, "home_down", text, limit_s, rent_s=limit_s, run_s=run_s(job), alternatives=others)
            waited = f"it has waited {explain.duration(now - since)}, over the limit of {allowed}"
            return _Late(f"{waited}, and its nodes at home are down or drained")
        start = placement.start
        predicted = f"predicted to start at home at {explain.at(start)}, {explain.duration(start - since)} after it was submitted"
        if start - since <= limit:
            text, again = f"{predicted}, within the wait limit of {allowed}", min(max(start, now), since + limit)
            others = self.instead.of_waiting(job, "soon")
            return Wait(job.id, "home_soon", text, again, start_s=start, run_s=run_s(job), alternatives=others)
        return self._sooner_at_home(job, start, limit, predicted) or _Late(
            f"{predicted}, over the wait limit of {allowed}", start
        )

    def _late_for_its_size(self, job: Job, placement: Placement, limits: Limits) -> Wait | _Late:
        now, since, start, size = self.snapshot.now_s, job.since_s, placement.start, self._gpu_hours(job)
        waited, small = now - since, limits.small(size)
        most = limits.timer_s(size) if small else limits.hard_s(size)
        predicted = f"predicted to start at home at {explain.at(round(start))}"
        allowed = f"a job of {size:,.1f} GPU-hours may wait {explain.duration(round(most))}"
        if waited < most and (small or start - since <= limits.predicted_s(size)):
            rent_s = since + most if start > since + most else None
            text, others = f"{predicted}; {allowed}", self.instead.of_waiting(job, "soon")
            return Wait(
                job.id,
                "home_soon",
                text,
                since + most,
                rent_s=rent_s,
                start_s=start,
                run_s=run_s(job),
                alternatives=others,
            )
        if home := self._sooner_at_home(job, start, most, predicted):
            return home
        if waited < most:
            allowed = f"a job of {size:,.1f} GPU-hours is rented for if it is predicted to wait over {explain.duration(limits.predicted_s(size))}"
        return _Late(
            f"{predicted}, {explain.duration(start - since)} after it was submitted; {allowed}", start, large=not small
        )

    def _sooner_at_home(self, job: Job, start_s: float, limit_s: float, predicted: str) -> Wait | None:
        """A late job is left to a start at home that is nearer than a boot, unless it has been so for long or could use
        a node now.
        """
        boot_s, now = self.renting.offers.soonest_s(job), self.snapshot.now_s
        if start_s > now + boot_s or now - job.since_s > limit_s + max(boot_s, DOUBT_S):
            return None
        if self.renting.slots.room_now(job):
            return None
        text = f"{predicted}: sooner than a rented node, which takes {explain.duration(boot_s)} to boot"
        others = self.instead.of_waiting(job, "sooner")
        return Wait(job.id, "home_sooner", text, start_s, start_s=start_s, run_s=run_s(job), alternatives=others)

    def _home_size(self) -> str:
        gpus = max((node.total.gpus for node in self.home), default=0)
        return f"home has {explain.plural(len(self.home), 'node')} of at most {explain.plural(gpus, 'GPU')}"

    def _rent(self, job: Job, late: _Late) -> bool:
        """Find it rented nodes. False: it stays at home, with the reason noted."""
        outcome = self.renting.rent(job, late.text)
        if isinstance(outcome, Impossible):
            why = "; ".join(text for _, text in outcome.reasons)
            self.infeasible.append(Infeasible(job.id, outcome.reasons[0][0], f"{late.text}; but {why}"))
            return False
        if isinstance(outcome, Reused):
            self._reused(job, late, outcome)
            return True
        if isinstance(outcome, Launch):
            text = f"being rented for it: {explain.listed(outcome.nodes)} ({outcome.market}); {late.text}"
            ready_s, usd, others = self.instead.of_rented(job, outcome, late.start_s)
            self.waits.append(
                Wait(job.id, "renting", text, start_s=ready_s, usd=usd, run_s=run_s(job), alternatives=others)
            )
            return True
        others = self.instead.of_refused(job, outcome.launching)
        refusal = outcome.all
        text, again = f"{late.text}; worth renting for, but {refusal.text}", refusal.look_again_s
        self.waits.append(
            Wait(job.id, refusal.codes[0], text, again, start_s=late.start_s, run_s=run_s(job), alternatives=others)
        )
        return False

    def _reused(self, job: Job, late: _Late, reused: Reused) -> None:
        slots, assign = reused.slots, reused.assign
        names = explain.listed(slot.node for slot in slots)
        if assign is None:
            ready_s, text = (
                self.snapshot.now_s + cost.boot_s(slots[0].pool),
                f"it shares what is being rented: {names}; {late.text}",
            )
            self.waits.append(Wait(job.id, "renting", text, start_s=ready_s, run_s=run_s(job)))
            return
        self.assigns.append(assign)
        self.used |= set(assign.leases)
        if any(slot.coming for slot in slots):
            self.waits.append(Wait(job.id, "coming", f"rented already, to boot and pass the gate: {names}"))
        else:
            self._widen(job, slots[0].pool, [slot.node for slot in slots])

    # ---- giving back
    def _releases(self) -> list[Release]:
        if not self.snapshot.leases:
            return []
        busy = self.renting.on
        leases = [
            each
            for each in self.snapshot.leases
            if each.state != "leaving" and each.id not in self.used and each.node not in busy
        ]
        return release.releases(
            self.snapshot, leases, self.nodes, release.due(self.snapshot, self.waits, self.renting, leases)
        )

    def _gpu_hours(self, job: Job) -> float:
        """GPU-hours that it is expected to take: its time limit where nothing better is known; infinite without one, 0
        without GPUs.
        """
        limit_s, gpus = math.inf if job.time_limit_s is None else job.time_limit_s, job.nodes * job.each.gpus
        return gpus * self.expected_s.get(job.id, limit_s) / 3600 if gpus else 0.0
