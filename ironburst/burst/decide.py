"""`decide(snapshot, policy) -> Decision`: a tick of the burst policy, pass by pass.

1. What can't be right in the snapshot is left out (sanitize).
2. The running jobs are laid over home's nodes (home).
3. Each pending job of the home partition, in the scheduler's order:
   it may not start anywhere -> it waits;
   it didn't start on rented nodes that were open to it -> it waits at home;
   it has rented nodes -> they are handed over as they come (handover);
   it isn't late -> it waits at home (lateness);
   a larger job before it is cheaper to rent for -> that one makes room;
   it is late -> what is expected to cost least to its end: rented nodes with room, kept longer for it, or a launch that
   budget, pool and cool-downs allow (renting).
   A job that stays at home keeps its place before those behind it. One that moves between spot and on demand has its
   choice there by what it has to spare for its deadline (by_slack).
4. Running jobs that move go back from on demand to spot.
5. Rented nodes that nobody counts on are given back (release).

What is decided is data; its sentences are put beside it in one place (answers).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from ironburst.burst import release, runtimes, sanitize, sides
from ironburst.burst.answers import Answers, to_spot
from ironburst.burst.decision import Decision, Launch
from ironburst.burst.eligibility import moves, not_rentable, not_startable, until_their_ends
from ironburst.burst.handover import Handover
from ironburst.burst.home import Home
from ironburst.burst.lateness import Late, Lateness, NotYet
from ironburst.burst.packing import Placement
from ironburst.burst.policy import Policy
from ironburst.burst.renting import Renting
from ironburst.burst.reuse import Reused
from ironburst.burst.snapshot import Job, Snapshot
from ironburst.burst.spot import Choice
from ironburst.burst.unexplained import Unexplained


def decide(snapshot: Snapshot, policy: Policy, *, explained: bool = True, sound: bool = False) -> Decision:
    """What to rent, hand over, give back or wait for, with a reason for each. Every pending job of the home partition
    is in it, or of the home partitions where there are two schedulers, and each that was sent to a pool itself. It
    answers for every snapshot, whatever is damaged in it.

    `explained` False: it decides the same, without sentences, figures and alternatives of its waits. `sound`: nothing
    in the snapshot is damaged, as its maker knows.
    """
    one = partial(_decide, explained=explained, sound=sound)
    return sides.decide(snapshot, policy, one) if policy.other_homes else one(snapshot, policy)


def _decide(snapshot: Snapshot, policy: Policy, explained: bool, sound: bool) -> Decision:
    whole, damaged = (snapshot, []) if sound else sanitize.sound(snapshot)
    tick = _Tick(until_their_ends(whole), policy, Answers if explained else Unexplained)
    at_home = {job.id for job in snapshot.jobs if policy.home_partition in job.partitions} if damaged else set()
    for job_id, text in damaged:
        if job_id in at_home:
            tick.answers.damaged(job_id, text)
    for job in tick.queue():
        tick.decide_for(job)
    tick.handover.used.update(lease.id for lease in tick.renting.by_slack.put_back())
    for job in tick.renting.by_slack.on_demand():
        tick.go_to_spot(job)
    for job, partition in tick.sent_to_pools():
        tick.answers.sent_to_pool(job, partition)
    return tick.decision()


class _Tick:
    """The passes, and what they work on."""

    def __init__(self, snapshot: Snapshot, policy: Policy, answers: type[Answers]):
        self.snapshot, self.policy = snapshot, policy
        self._unstarted, self._proven = frozenset(snapshot.unstarted), frozenset(snapshot.proven)
        self._tried = self._on_trial()  # by `alike`
        self._stopped = bool(snapshot.halt and snapshot.halt.stops)
        expected_s = runtimes.expected_s(snapshot.experience, snapshot.jobs, snapshot.now_s)
        self.home = Home(snapshot, policy, expected_s)
        self.renting = Renting(snapshot, policy, expected_s)
        self.handover = Handover(snapshot)
        self.answers = answers(policy, self.home.nodes, self.renting)
        self.lateness = Lateness(
            now_s=snapshot.now_s,
            policy=policy,
            home=self.home.nodes,
            expected_s=expected_s,
            boot_s=self.renting.offers.soonest_s,
            room_now=self.renting.slots.room_now,
        )

    def _on_trial(self) -> dict[str, Job]:
        """Jobs that have rented nodes and don't work there yet, where nobody knows whether jobs like them do."""
        new = [job for job in self.snapshot.jobs if job.alike and job.alike not in self._proven]
        leases = self.snapshot.leases if new else ()
        given = {id for lease in leases for id in lease.jobs} - self._unstarted
        nodes = {lease.node for lease in leases}
        begins = [job for job in new if job.state == "CONFIGURING" and not nodes.isdisjoint(job.on)]
        return {job.alike: job for job in [*begins, *(job for job in new if job.pending and job.id in given)]}

    def queue(self) -> list[Job]:
        """The pending jobs of the home partition, and those that stand before or behind them in another one of its
        jobs, in the scheduler's order.
        """
        partitions = self.home.partitions
        pending = [job for job in self.snapshot.waiting if not partitions.isdisjoint(job.partitions)]
        return sorted(pending, key=lambda job: (-job.priority, job.submit_s, job.id))

    def sent_to_pools(self) -> list[tuple[Job, str]]:
        """The pending jobs that somebody submitted to a partition of rented nodes, not to home, and that partition."""
        pools = {pool.partition for pool in self.snapshot.pools}
        pending = (job for job in self.snapshot.waiting if self.policy.home_partition not in job.partitions)
        sent = ((job, next((name for name in job.partitions if name in pools), "")) for job in pending)
        return [(job, partition) for job, partition in sent if partition]

    def decide_for(self, job: Job) -> None:
        """The passes over one job: the first that fits it decides."""
        if self.policy.home_partition not in job.partitions:
            if not not_startable(job, self.snapshot.now_s):
                self.home.stays(job, self.home.earliest(job))
        elif reason := not_startable(job, self.snapshot.now_s):
            if reason[0] == "begin" and moves(job, self.policy) and (leases := self.handover.serving(job)):
                self.handover.used.update(lease.id for lease in leases)  # it was requeued to go to them
            else:
                self.handover.back_home(job)
            self.answers.cannot_start(job, reason)
        elif job.id in self._unstarted:
            self.handover.back_home(job)
            self.answers.unstarted(job)
            self.home.stays(job, self.home.earliest(job))
        elif not self._stopped and job.id in self.handover.leases_of and (leases := self.handover.serving(job)):
            self.handover.serve(job, leases)
            self.answers.served(job, leases)
        elif first := self._tried.get(job.alike):
            self.handover.back_home(job)
            self.answers.tried(job, first)
            self.home.stays(job, self.home.earliest(job))
        else:
            placement, verdict = self._judge(job)
            if isinstance(verdict, NotYet) and self.renting.with_prepaid and self._sooner_on_prepaid(job, verdict):
                verdict = Late("prepaid", verdict.start_s, because=verdict)
            while isinstance(verdict, Late) and verdict.large and self._make_room(job, verdict):
                placement, verdict = self._judge(job)
            if isinstance(verdict, NotYet) and verdict.code != "deadline":
                self.answers.not_yet(job, verdict)
            elif self._rents(job, verdict):
                return
            self.handover.back_home(job)
            self.home.stays(job, placement)

    def go_to_spot(self, job: Job) -> None:
        """A running job that could: nodes of spot are rented for it, and when they are there it goes to them."""
        by_slack, choice = self.renting.by_slack, self.renting.by_slack.of_running(job)
        if choice is None or choice.do != "spot" or self._stopped:
            return
        if leases := by_slack.on_its_way(job):
            self.handover.move(job, leases)
            return
        self.renting.offers.only(job, spot=True)
        outcome = self.renting.rent(job, to_spot(choice))
        if isinstance(outcome, Reused) and outcome.assign:
            self.handover.keep(outcome.assign)

    def decision(self) -> Decision:
        """All of it, with what is given back."""
        waits = tuple(self.answers.waits)
        return Decision(
            launches=tuple(self.renting.launches),
            assigns=tuple(self.handover.assigns),
            widen=tuple(self.handover.widen),
            narrow=tuple(self.handover.narrow),
            releases=tuple(release.releases(self.snapshot, self.renting, self.handover.used, waits)),
            waits=waits,
            infeasible=tuple(self.answers.infeasible),
            moves=tuple(self.handover.moves),
        )

    def _judge(self, job: Job) -> tuple[Placement | None, Late | NotYet]:
        """Its place at home, and whether it is late there."""
        placement = None if job.larger_than_home or job.over_home_limit else self.home.earliest(job)
        return placement, self.lateness.verdict(job, placement.start if placement else math.inf)

    def _sooner_on_prepaid(self, job: Job, verdict: NotYet) -> bool:
        """Whether it needn't wait: what is prepaid costs nothing more."""
        waits = verdict.start_s > self.snapshot.now_s
        return waits and self.renting.prepaid_before(job, verdict.start_s) and not not_rentable(job, self.policy)

    def _rents(self, job: Job, verdict: Late | NotYet) -> bool:
        """Rent for one that is late, or will be at home for its deadline; False: it stays at home."""
        late = Late("deadline", verdict.start_s) if isinstance(verdict, NotYet) else verdict  # spot may be worth it now
        if choice := self.renting.by_slack.of_waiting(job):
            return self._rents_by_slack(job, late, choice)
        if isinstance(verdict, NotYet):
            self.answers.not_yet(job, verdict)
            return False
        return self._rent(job, verdict)

    def _rents_by_slack(self, job: Job, late: Late, choice: Choice) -> bool:
        """Spot or on demand, and the other one where the first can't be had; or it waits for spot."""
        self.renting.offers.only(job, spot=None)
        if choice.do == "spot":
            self.renting.offers.only(job, spot=True)
            if self._rent(job, late._replace(choice=choice)):
                return True
            self.renting.offers.only(job, spot=None)
            choice = self.renting.by_slack.of_waiting(job, no_spot=True) or choice
        if choice.do == "wait":
            again_s = self.snapshot.now_s + choice.spare_s
            self.answers.not_yet(job, NotYet("spot", late.start_s, again_s, because=late, choice=choice))
            return False
        self.renting.offers.only(job, spot=False)
        rents = self._rent(job, late._replace(choice=choice))
        if not rents and choice.there:
            self.renting.offers.only(job, spot=None)
            rents = self._rent(job, late)
        return rents

    def _rent(self, job: Job, late: Late) -> bool:
        """Find it rented nodes; False: it stays at home."""
        why = self.answers.why(job, late)
        outcome = self.renting.rent(job, why)
        if isinstance(outcome, Launch | Reused):
            self._take(job, late, why, outcome)
            return True
        self.answers.not_rented(job, late, why, outcome)
        return False

    def _take(self, job: Job, late: Late, why: str, got: Launch | Reused) -> None:
        """The job has these nodes."""
        if job.alike and job.alike not in self._proven:
            self._tried[job.alike] = job
        if isinstance(got, Reused) and got.assign:
            self.handover.assign(job, got.assign, got.slots, got.coming)
        if job.larger_than_home and (isinstance(got, Launch) or got.assign is None or got.coming):
            self.handover.back_home(job)  # rented for again at once: what opens there until then is others'
        self.answers.rented(job, late, why, got)

    def _make_room(self, job: Job, late: Late) -> bool:
        """Rent for the cheapest of the larger jobs before `job`, if that costs less than renting for `job`,
        and lay the others over the nodes again. False: no such job, no nodes for it, or no time left.
        """
        if not self.home.may_lay_anew:
            return False
        cheapest = min(self._cheaper(job), default=None)
        if cheapest is None or cheapest[2].alike in self._tried:
            return False
        _, _, cheaper, start_s = cheapest
        makes_room = Late("makes_room", start_s, because=late, room_for=job)
        why = self.answers.why(cheaper, makes_room)
        outcome = self.renting.rent(cheaper, why)
        if not isinstance(outcome, Launch | Reused):
            return False
        self._take(cheaper, makes_room, why, outcome)
        self.home.lay_anew(without=cheaper)
        return True

    def _cheaper(self, job: Job) -> Iterator[tuple[float, int, Job, float]]:
        """(USD, id, job, start at home) of the jobs that could make room for it."""
        limits, usd = self.policy.limits, self.renting.least_usd(job)
        for staying, placement in self.home.staying:
            if (
                limits
                and not limits.small(self.lateness.gpu_hours(staying))
                and (less_usd := self.renting.least_usd(staying)) < usd
                and not not_rentable(staying, self.policy)
                and self.snapshot.now_s - staying.since_s >= self.policy.settle_s
            ):
                yield less_usd, staying.id, staying, placement.start
