"""Jobs in a burst partition that the controller didn't place there: somebody submitted them to it directly.

Each is reported once. A rented node that only such jobs are on takes no other job and goes when they have ended; from
the moment that this is seen, the account of the first of them pays for it, and its ceilings end it, as any other.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from ironburst.controller import money, records, spending
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import Site
from ironburst.nodes import naming
from ironburst.ports import Job, Observation

_KEY = "foreign_jobs"  # that a person was told of, as long as they are in the queue


def look(site: Site, observation: Observation) -> None:
    """After the leases' own steps, before a tick decides."""
    found = _found(site, observation)
    _tell(site, observation, found)
    for lease in site.ledger.leases():
        there = observation.on(lease.node)
        if lease.state == records.READY and there and all(job.id in found for job in there):
            _let_go(site, lease, there)


def _found(site: Site, observation: Observation) -> dict[int, str]:
    """By id, the burst partition that each of them is in. A lost ledger doesn't know what it had placed: such a job is
    ours by how the controller places one, and is decided again.
    """
    partitions = {pool.partition: pool.name for pool in site.document.pools}
    members = {pool.partition: set(pool.nodes) for pool in site.document.pools}
    homes = {pool.partition: site.document.scheduler_of(pool).home_partition for pool in site.document.pools}
    nodes = {node: pool.partition for pool in site.document.pools for node in pool.nodes}
    found = {}
    for job in observation.jobs:
        there = [nodes[node] for node in job.on if node in nodes] if job.on else job.partitions
        partition = next((name for name in there if name in partitions), None)
        if not partition or _placed(job, members[partition], homes[partition]):
            continue
        if partitions[partition] not in {lease.pool for lease in site.ledger.leases_for(job.id)}:
            found[job.id] = partition
    return found


def _placed(job: Job, members: set[str], home: str) -> bool:
    """It waits at home too (users can't submit so, and without a lease it is narrowed in this tick), or it runs and
    excludes all other nodes of the pool.
    """
    others = members - set(job.on)
    return bool(others) and others <= set(job.excluded) if job.on else home in job.partitions


def _tell(site: Site, observation: Observation, found: dict[int, str]) -> None:
    before = set(json.loads(site.ledger.noted(_KEY) or "[]"))
    there = {job.id for job in observation.jobs} | {id for id in before if observation.unseen_job(id)}
    told = before & there | found.keys()
    if told == before:
        return
    with site.ledger.transaction():
        site.ledger.note(_KEY, json.dumps(sorted(told)))
        for job in observation.jobs:
            if job.id in found.keys() - before:
                whose = f"{job.user}, account {job.account}" if job.account else job.user
                where = f"is in {found[job.id]}{' on ' + ','.join(job.on) if job.on else ''}"
                submitted = "submitted there directly, nothing was rented for it"
                text = f"job {job.called or naming.called(job.id)} of {whose} {where}: {submitted}"
                site.event("needs_a_person", text, job=job.id)


def forget(ledger: Ledger, ids: Collection[int]) -> None:
    """These ids are other jobs' now."""
    before = json.loads(ledger.noted(_KEY) or "[]")
    if kept := [id for id in before if id in ids]:
        ledger.note(_KEY, json.dumps([id for id in before if id not in kept]))


def _let_go(site: Site, lease: LeaseRow, there: Sequence[Job]) -> None:
    """Nobody else's money keeps the node; the job there isn't hurt."""
    budget, first = spending.budget_of(site), there[0]
    account = budget.payer(first.account) if budget else ""
    last = money.rates_of(lease, spending.rates(site.ledger, site.now))[-1]
    why = f"only job {first.called or naming.called(first.id)} is on it, which nothing was rented for"
    with site.ledger.transaction():
        if account != last.account:
            site.ledger.rate(lease.id, site.now, account, last.usd_per_hour)
        site.ledger.move([lease], records.RELEASING, site.now, end_reason=why)
        pays = f"; account {account} pays for it from now on" if account else ""
        site.event("release", f"{lease.node}: {why}{pays}", launch=lease.launch, lease=lease.id)
