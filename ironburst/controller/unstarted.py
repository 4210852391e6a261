"""Rented nodes whose job doesn't start: it gives them up, and a person is told (ironburst.burst.unstarted)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from ironburst import naming
from ironburst.burst import Job, Node, explain, from_json, to_json
from ironburst.burst import unstarted as rule
from ironburst.burst.unstarted import GivesUp, Unstarted
from ironburst.controller import records
from ironburst.controller.ledger import Ledger
from ironburst.controller.site import Site
from ironburst.ports import Observation

_KEY = "unstarted"


def look(site: Site, observation: Observation) -> None:
    """Before a tick decides: who has had rented nodes to no end."""
    if observation.silent:
        return  # whose jobs aren't seen would start anew
    before = _read(site.ledger)
    after, gives_up = rule.look(before, _offered(site, observation), observation.jobs, site.now)
    if after == before:
        return
    with site.ledger.transaction():
        _write(site.ledger, after)
        for each in gives_up:
            site.event("needs_a_person", _told(each), job=each.job.id)


def not_begun(site: Site, job: Job) -> str:
    """It had rented nodes and didn't begin to work there. What has to happen before any are rented for it again."""
    _write(site.ledger, rule.not_begun(_read(site.ledger), job, site.now))
    return "it is made anew" if job.id >= naming.FIRST_POD_JOB else "it is changed, or held and released"


def jobs(ledger: Ledger, queue: Iterable[Job]) -> tuple[int, ...]:
    """Ids of the jobs that none are rented for."""
    known = _read(ledger)
    not_begun = (job.id for job in queue if job.pending and rule.key(job) in known.not_begun)
    return tuple(sorted({*map(int, known.given_up), *not_begun}))


def _read(ledger: Ledger) -> Unstarted:
    try:
        return from_json(Unstarted, json.loads(ledger.noted(_KEY) or "{}"))
    except ValueError:  # of another version: it starts anew
        return Unstarted()


def _write(ledger: Ledger, kept: Unstarted) -> None:
    ledger.note(_KEY, json.dumps(to_json(kept), separators=(",", ":")))


def _offered(site: Site, observation: Observation) -> list[int]:
    """Pending jobs whose rented nodes are up, open, with room, and in a partition that the job may start in."""
    pending = {job.id: job for job in observation.jobs if job.pending and job.since_s <= site.now and not job.held}
    nodes = {node.name: node for node in observation.nodes} if pending else {}
    partitions = {pool.name: pool.partition for pool in site.document.pools}
    room: Counter[int] = Counter()
    for lease in site.ledger.leases() if pending else []:
        node = nodes.get(lease.node)
        if lease.state == records.READY and node and node.open:
            for id in site.ledger.jobs_of(lease.id):
                job = pending.get(id)
                if job and partitions.get(lease.pool) in job.partitions and _has_room(node, job, observation):
                    room[id] += 1
    return [id for id, count in room.items() if count >= pending[id].nodes]


def _has_room(node: Node, job: Job, observation: Observation) -> bool:
    free = node.total
    for there in observation.on(node.name):
        free = free - there.each
    return node.name not in job.excluded and job.each.within(free)


def _told(each: GivesUp) -> str:
    job, says = each.job, each.job.reason or "nothing"
    long = f"rented nodes were open to it for {explain.duration(each.open_s)}"
    again = "nothing more is rented for it until it is changed, or held and released"
    return f"job {naming.called(job.id)} of {job.user} didn't start though {long}; the scheduler says: {says}; {again}"
