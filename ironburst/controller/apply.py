"""A decision, checked once more against the newest observation, then carried out item by item."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from ironburst.burst import Assign, Budget, Decision, Job, Launch, Lease, Move, Narrow, Node, Release, Widen
from ironburst.burst.headroom import Charge, Headroom, charges, named
from ironburst.controller import idle_store, own_exclusions, policy_view, records, spending
from ironburst.controller.site import PoolImage, Site
from ironburst.nodes import naming
from ironburst.nodes import states as node_states
from ironburst.ports import CloudError, Observation, SchedulerError

T = TypeVar("T")


def acts(decision: Decision) -> bool:
    """Whether anything is to be done."""
    changes = decision.launches, decision.assigns, decision.widen, decision.narrow, decision.releases, decision.moves
    return any(changes)


def recheck(
    decision: Decision,
    observation: Observation,
    budget: Budget | None,
    leases: Iterable[Lease],
    now_s: float,
    spare: Collection[str] = (),
    jobs: Iterable[Job] = (),
) -> tuple[Decision, list[str]]:
    """Drop what the queue, the nodes or the money have overtaken since. `spare`, `jobs`: as the snapshot had them.
    The rest, and what was dropped and why. Pure.
    """
    check = _Recheck(observation, budget, {lease.id: lease for lease in leases}, now_s, spare)
    before = {job.id: _written(job) for job in jobs}
    assigns = check.assigns(decision.assigns)
    unpaid = {assign.job for assign in decision.assigns} - {assign.job for assign in assigns}
    launches = tuple(kept for launch in decision.launches if (kept := check.launch(launch)))
    releases = tuple(release for release in decision.releases if check.is_free(release))
    widen = tuple(
        item for item in decision.widen if item.job not in unpaid and check.unchanged(item.job, "widening", before)
    )
    narrow = tuple(item for item in decision.narrow if check.unchanged(item.job, "narrowing", before))
    moves = tuple(item for item in decision.moves if check.runs_on(item))
    checked = replace(
        decision, launches=launches, assigns=assigns, widen=widen, narrow=narrow, releases=releases, moves=moves
    )
    return checked, check.dropped


def _written(job: Job) -> tuple[object, ...]:
    """What the controller writes of a job, and its user may, too."""
    return job.partitions, job.excluded, job.eligible_s


class _Recheck:
    """What is left of the money, and what was dropped so far: the order of the questions matters."""

    def __init__(
        self,
        observation: Observation,
        budget: Budget | None,
        leases: dict[str, Lease],
        now_s: float,
        spare: Collection[str],
    ):
        self._observation, self._budget, self._leases, self._now_s = observation, budget, leases, now_s
        self._spare = spare
        self._headroom = Headroom(budget)
        self.dropped: list[str] = []

    def _called(self, id: int) -> str:
        job = self._observation.job(id)
        return (job.called if job else "") or naming.called(id)

    def waits(self, id: int, what: str, running: bool = False) -> bool:
        """`running`: it needn't wait, for it runs."""
        job = self._observation.job(id)
        if running and job and job.state == "RUNNING":
            return True
        if job is None and self._observation.unseen_job(id):
            self.dropped.append(f"{what} for job {self._called(id)}: its scheduler gives no answer any more")
            return False
        if job is None or not job.pending:
            self.dropped.append(f"{what} for job {self._called(id)}: it isn't pending any more")
            return False
        return True

    def unchanged(self, id: int, what: str, before: Mapping[int, tuple[object, ...]]) -> bool:
        """And nobody has written meanwhile what we would write: it is decided again from that."""
        if not self.waits(id, what):
            return False
        job = self._observation.job(id)
        if job is None or id not in before or _written(job) == before[id]:
            return True
        self.dropped.append(f"{what} for job {self._called(id)}: it was changed meanwhile")
        return False

    def runs_on(self, move: Move) -> bool:
        """The run that is to end is still the one that was decided on, and its nodes are there."""
        job, nodes = self._observation.job(move.job), [self._observation.node(name) for name in move.nodes]
        if job is None or job.state != "RUNNING" or job.start_s != move.start_s:
            self.dropped.append(f"moving job {self._called(move.job)}: it doesn't run as it did")
            return False
        if any(node is None or node_states.going_down(node.states) for node in nodes):
            self.dropped.append(f"moving job {self._called(move.job)}: a node that it was to go to is going")
            return False
        return True

    def assigns(self, assigns: Iterable[Assign]) -> tuple[Assign, ...]:
        pending = [assign for assign in assigns if self.waits(assign.job, "rented nodes", assign.running)]
        return tuple(
            assign
            for assign in pending
            if self._pays(f"rented nodes for job {self._called(assign.job)}", self._kept_for(assign))
        )

    def launch(self, launch: Launch) -> Launch | None:
        """For the jobs that still wait; None: it is dropped."""
        jobs = tuple(job for job in launch.jobs if self.waits(job, "renting", launch.running))
        nodes = [(name, self._observation.node(name)) for name in launch.nodes]
        taken = [name for name, node in nodes if node is None or not (node.launchable or self._kept_up(node))]
        if jobs and taken:
            self.dropped.append(f"renting for job {self._called(jobs[0])}: {', '.join(taken)} can't be launched now")
        elif jobs and self._pays(f"renting for job {self._called(jobs[0])}", self._asked_for(launch)):
            return replace(launch, jobs=jobs)
        return None

    def _kept_up(self, node: Node) -> bool:
        return node.name in self._spare and node.coming_up

    def is_free(self, release: Release) -> bool:
        if self._observation.on(release.node):
            self.dropped.append(f"release of {release.node}: a job runs there")
            return False
        if self._observation.unseen(release.node):
            self.dropped.append(f"release of {release.node}: its scheduler gives no answer any more")
            return False
        return True

    def _pays(self, what: str, asked: list[Charge]) -> bool:
        if self._budget is None:
            self.dropped.append(f"{what}: no budget is declared")
            return False
        if short := self._headroom.short(asked):
            ceiling, needed, left = short
            text = f"{what}: ${needed:,.2f} would be set aside, ${left:,.2f} of {named(ceiling)} is left"
            self.dropped.append(text)
            return False
        self._headroom.take(asked)
        return True

    def _asked_for(self, launch: Launch) -> list[Charge]:
        usd_per_hour = len(launch.nodes) * launch.usd_per_hour
        return charges(self._budget, launch.account, usd_per_hour, self._now_s, launch.committed_until_s)

    def _kept_for(self, assign: Assign) -> list[Charge]:
        leases = [self._leases[id] for id in assign.leases if id in self._leases]
        return [charge for lease in leases for charge in self._kept(lease, assign)]

    def _kept(self, lease: Lease, assign: Assign) -> list[Charge]:
        before = lease.account, lease.committed_until_s
        until_s = assign.committed_until_s
        return charges(self._budget, assign.account, lease.usd_per_hour, self._now_s, until_s, before)


def apply(site: Site, decision: Decision, observation: Observation, images: dict[str, PoolImage]) -> None:
    """Carry it out. Trouble with one item is written down and stops no other; the next tick decides again."""
    for assign in decision.assigns:
        spending.assign(site.ledger, assign.job, assign.leases, assign.committed_until_s, site.now, assign.account)
    for launch in decision.launches:
        _launch(site, launch, images)
    for widen in _in_time(site, _resumed(site, decision.widen, observation)):
        with _trouble(site, widen.job):
            _widen(site, widen)
    for narrow in _in_time(site, decision.narrow):
        with _trouble(site, narrow.job):
            _narrow(site, narrow)
    for move in _in_time(site, decision.moves):
        with _trouble(site, move.job):
            _move(site, move)
    for release in decision.releases:
        with _trouble(site, None):
            _release(site, release)


def _in_time(site: Site, items: Sequence[T]) -> Iterator[T]:
    """One call of the scheduler each: at least one, and no more than the tick has time for. The next tick decides again
    about the others; notices come first in it.
    """
    for n, item in enumerate(items):
        if n and site.late:
            return
        yield item


def _resumed(site: Site, widens: Sequence[Widen], observation: Observation) -> Sequence[Widen]:
    """Undrain the nodes of all, in one call. Those whose nodes are open: what a person or a check drained stays so."""
    joined = {lease.node for lease in site.ledger.leases() if lease.state == records.JOINED}
    nodes = {name: observation.node(name) for widen in widens for name in widen.nodes}
    held = {name for name, node in nodes.items() if node and (node.held_by_person or node.verdict)}
    drained = [name for name, node in nodes.items() if name in joined - held and node and node.has("DRAIN")]
    try:
        if drained:
            site.scheduler.resume(drained)
    except SchedulerError as error:
        site.event("trouble", str(error))
        return [widen for widen in widens if not set(widen.nodes) & set(drained) and not set(widen.nodes) & held]
    return [widen for widen in widens if not set(widen.nodes) & held]


@contextmanager
def _trouble(site: Site, job: int | None) -> Iterator[None]:
    try:
        yield
    except (SchedulerError, CloudError) as error:
        site.event("trouble", str(error), job=job)


def _launch(site: Site, launch: Launch, images: dict[str, PoolImage]) -> None:
    id, pool = secrets.token_hex(6), site.document.pool(launch.pool)
    assert pool  # it was decided from this document
    kind = launch.instance_type or pool.instance_type
    with site.ledger.transaction():
        site.ledger.add_launch(id, launch, kind, images[pool.name].id, pool.boot_s, site.document.serial, site.now)
        idle_store.launched(site.ledger, pool.name, len(launch.nodes), site.now)
        what = f"{', '.join(launch.nodes)} ({launch.market} {kind})"
        text = f"{what}, ${launch.committed_usd:,.2f} set aside: {launch.reason}"
        site.event("rent", text, launch=id, job=launch.jobs[0])
    site.spare.difference_update(launch.nodes)


def _widen(site: Site, widen: Widen) -> None:
    mine = [
        lease
        for lease in site.ledger.leases()
        if lease.node in widen.nodes and lease.state in (records.JOINED, records.READY)
    ]
    site.scheduler.place(widen.job, widen.partitions, widen.excluded)
    with site.ledger.transaction():
        for lease in mine:
            if pool := policy_view.pool_of(site, lease):
                idle_store.used(site.ledger, pool, lease, site.now)
        own_exclusions.opened(site.ledger, widen.job, widen.nodes)
        site.ledger.move(mine, records.READY, site.now, worked=True, idle_since_s=site.now)
        site.event("widened", f"{', '.join(widen.partitions)}: {widen.reason}", job=widen.job)


def _narrow(site: Site, narrow: Narrow) -> None:
    site.scheduler.place(narrow.job, narrow.partitions, narrow.excluded, begin_now=narrow.begin_now)
    site.event("narrowed", f"{', '.join(narrow.partitions)}: {narrow.reason}", job=narrow.job)


def _move(site: Site, move: Move) -> None:
    """Its nodes wait for it, so it is let on them when it is pending."""
    if refused := site.scheduler.requeue(move.job):
        site.event("trouble", refused[move.job], job=move.job)
    else:
        site.event("moved", f"back into the queue: {move.reason}", job=move.job)


def _release(site: Site, release: Release) -> None:
    lease = next((lease for lease in site.ledger.leases() if lease.id == release.lease), None)
    if lease is None or lease.state in records.GOING or lease.state == records.REQUESTED:
        return  # an open intent is answered first
    with site.ledger.transaction():
        if pool := policy_view.pool_of(site, lease):
            idle_store.given_back(site.ledger, pool, lease, site.now)
        if lease.state == records.READY:
            site.ledger.move([lease], records.RELEASING, site.now, end_reason=release.reason)
        else:  # no job can be on it: it is still drained
            site.ledger.move([lease], records.LEAVING, site.now, end_reason=release.reason)
        site.event("release", f"{lease.node}: {release.reason}", launch=lease.launch, lease=lease.id)
