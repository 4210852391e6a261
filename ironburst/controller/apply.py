"""A decision, checked once more against the newest observation, then carried out item by item."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import replace

from ironburst.burst import Assign, Budget, Decision, Launch, Lease, Narrow, Release, Widen
from ironburst.burst.headroom import Charge, Headroom, charges, named
from ironburst.controller import idle_store, records
from ironburst.controller.site import Image, Site
from ironburst.ports import CloudError, Observation, SchedulerError


def acts(decision: Decision) -> bool:
    return bool(decision.launches or decision.assigns or decision.widen or decision.narrow or decision.releases)


def recheck(
    decision: Decision, observation: Observation, budget: Budget | None, leases: Iterable[Lease], now_s: float
) -> tuple[Decision, list[str]]:
    """Drop what the queue, the nodes or the money have overtaken since. The rest, and what was dropped and why.
    Pure.
    """
    dropped: list[str] = []
    funds, held = Headroom(budget), {lease.id: lease for lease in leases}

    def waits(job: int, what: str) -> bool:
        found = observation.job(job)
        if found is None or not found.pending:
            dropped.append(f"{what} for job {job}: it isn't pending any more")
            return False
        return True

    def paid(what: str, asked: list[Charge]) -> bool:
        if found := funds.short(asked) if budget else None:
            ceiling, needed, left = found
            dropped.append(f"{what}: ${needed:,.2f} would be set aside, ${left:,.2f} of {named(ceiling)} is left")
        elif budget is None:
            dropped.append(f"{what}: no budget is declared")
        else:
            funds.take(asked)
            return True
        return False

    def asked_for(launch: Launch) -> list[Charge]:
        return charges(budget, launch.account, len(launch.nodes) * launch.usd_per_hour, now_s, launch.committed_until_s)

    def kept_for(assign: Assign) -> list[Charge]:
        until_s, mine = assign.committed_until_s, [held[lease] for lease in assign.leases if lease in held]
        return [
            charge
            for lease in mine
            for charge in charges(
                budget, assign.account, lease.usd_per_hour, now_s, until_s, (lease.account, lease.committed_until_s)
            )
        ]

    pending = [each for each in decision.assigns if waits(each.job, "rented nodes")]
    assigns = [each for each in pending if paid(f"rented nodes for job {each.job}", kept_for(each))]
    refused = {each.job for each in decision.assigns} - {each.job for each in assigns}
    launches = []
    for launch in decision.launches:
        jobs = tuple(job for job in launch.jobs if waits(job, "renting"))
        taken = [name for name in launch.nodes if not (node := observation.node(name)) or not node.launchable]
        if jobs and taken:
            dropped.append(f"renting for job {jobs[0]}: {', '.join(taken)} can't be launched now")
        elif jobs and paid(f"renting for job {jobs[0]}", asked_for(launch)):
            launches.append(replace(launch, jobs=jobs))
    releases = []
    for release in decision.releases:
        if observation.on(release.node):
            dropped.append(f"release of {release.node}: a job runs there")
        else:
            releases.append(release)
    checked = replace(
        decision,
        launches=tuple(launches),
        releases=tuple(releases),
        assigns=tuple(assigns),
        widen=tuple(each for each in decision.widen if each.job not in refused and waits(each.job, "widening")),
        narrow=tuple(each for each in decision.narrow if waits(each.job, "narrowing")),
    )
    return checked, dropped


def apply(site: Site, decision: Decision, observation: Observation, images: dict[str, Image]) -> None:
    """Carry it out. Trouble with one item is written down and stops no other; the next tick decides anew."""
    for assign in decision.assigns:
        site.ledger.assign(assign.job, assign.leases, assign.committed_until_s, site.now, assign.account)
    for launch in decision.launches:
        _launch(site, launch, images)
    for item, do in (
        *((each, _widen) for each in decision.widen),
        *((each, _narrow) for each in decision.narrow),
        *((each, _release) for each in decision.releases),
    ):
        try:
            do(site, item, observation)
        except (SchedulerError, CloudError) as error:
            site.event("trouble", str(error), job=getattr(item, "job", None))


def _launch(site: Site, launch: Launch, images: dict[str, Image]) -> None:
    id, pool = secrets.token_hex(6), site.document.pool(launch.pool)
    with site.ledger.transaction():
        site.ledger.add_launch(
            id, launch, pool.instance_type, images[pool.name].id, pool.boot_s, site.document.serial, site.now
        )
        idle_store.launched(site.ledger, pool.name, len(launch.nodes), site.now)
        text = f"{', '.join(launch.nodes)} ({launch.market}), ${launch.committed_usd:,.2f} set aside: {launch.reason}"
        site.event("rent", text, launch=id, job=launch.jobs[0])


def _widen(site: Site, widen: Widen, observation: Observation) -> None:
    mine = [
        lease
        for lease in site.ledger.leases()
        if lease.node in widen.nodes and lease.state in (records.JOINED, records.READY)
    ]
    if drained := [
        lease.node
        for lease in mine
        if (node := observation.node(lease.node)) and node.has("DRAIN") and lease.state == records.JOINED
    ]:
        site.scheduler.resume(drained)
    site.scheduler.place(widen.job, widen.partitions, widen.excluded)
    with site.ledger.transaction():
        for lease in mine:
            if pool := site.pool(lease.pool):
                idle_store.used(site.ledger, pool, lease, site.now)
        site.ledger.update(mine, site.now, state=records.READY, worked=True, idle_since_s=site.now)
        site.event("widened", f"{', '.join(widen.partitions)}: {widen.reason}", job=widen.job)


def _narrow(site: Site, narrow: Narrow, observation: Observation) -> None:
    site.scheduler.place(narrow.job, narrow.partitions, narrow.excluded, begin_now=narrow.begin_now)
    site.event("narrowed", f"{', '.join(narrow.partitions)}: {narrow.reason}", job=narrow.job)


def _release(site: Site, release: Release, observation: Observation) -> None:
    lease = next((each for each in site.ledger.leases() if each.id == release.lease), None)
    if lease is None or lease.state in records.GOING or lease.state == records.REQUESTED:
        return  # an open intent is settled first
    with site.ledger.transaction():
        if pool := site.pool(lease.pool):
            idle_store.given_back(site.ledger, pool, lease, site.now)
        if lease.state == records.READY:
            site.ledger.update([lease], site.now, state=records.RELEASING, end_reason=release.reason)
        else:  # no job can be on it: it is still drained
            site.ledger.update([lease], site.now, state=records.LEAVING, end_reason=release.reason)
        site.event("release", f"{lease.node}: {release.reason}", launch=lease.launch, lease=lease.id)
