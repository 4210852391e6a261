"""Rented nodes whose job doesn't start: they are given up, which is reported (ironburst.burst.unstarted)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from ironburst.burst import Job, Node, explain, from_json, to_json
from ironburst.burst import unstarted as rule
from ironburst.burst.slots import Room
from ironburst.burst.snapshot import jobs_on
from ironburst.burst.unstarted import GivesUp, Unstarted
from ironburst.controller import records
from ironburst.controller.ledger import Ledger
from ironburst.controller.site import Site
from ironburst.nodes import naming
from ironburst.ports import Observation

_KEY = "unstarted"


def look(site: Site, observation: Observation) -> None:
    """Before a tick decides: who has had rented nodes to no end."""
    if observation.silent:
        return  # whose jobs aren't seen would start anew
    before = _read(site.ledger)
    offered, beside = _offered(site, observation)
    at_home = _at_home(site, observation, before)
    burst = {name for pool in site.document.pools for name in pool.nodes}
    working = {job.alike for job in observation.jobs if job.alike and job.state == "RUNNING" and burst & {*job.on}}
    after, gives_up = rule.look(before, offered, observation.jobs, site.now, beside, at_home, working)
    if after == before:
        return
    with site.ledger.transaction():
        _write(site.ledger, after)
        for each in gives_up:
            if each.apart or each.home:
                site.event("unstarted", _told(each), job=each.job.id)
            else:
                site.event("needs_a_person", _told(each), job=each.job.id)


def not_begun(site: Site, job: Job) -> str:
    """It had rented nodes and didn't begin to work there. What has to happen before any are rented for it again."""
    _write(site.ledger, rule.not_begun(_read(site.ledger), job, site.now))
    return "it is made anew" if job.id >= naming.FIRST_POD_JOB else "it is changed, or held and released"


def jobs(ledger: Ledger, queue: Iterable[Job]) -> tuple[int, ...]:
    """Ids of the jobs that none are rented for."""
    known = _read(ledger)
    pending = [job for job in queue if job.pending]
    like = (job.id for job in pending if rule.key(job) in known.not_begun or job.alike in known.misfits)
    return tuple(sorted({*map(int, known.given_up), *like}))


def proven(ledger: Ledger, queue: Iterable[Job]) -> tuple[str, ...]:
    """Of what these jobs are alike in, that with which some have started on rented nodes."""
    known = _read(ledger).proven
    return tuple(sorted({job.alike for job in queue if job.alike in known}))


def guessed(ledger: Ledger) -> dict[int, dict[str, Any]]:
    """What is guessed of jobs that didn't start, as fields of Job, by id."""
    kept = _read(ledger)
    found: dict[int, dict[str, Any]] = {int(id): {"exclusive": "node"} for id in kept.apart}
    for id, over in kept.passed_over.items():
        found.setdefault(int(id), {})["passed_over"] = over.nodes
    return found


def forget(ledger: Ledger, ids: Collection[int]) -> None:
    """These ids are other jobs' now."""
    gone, before = set(map(str, ids)), _read(ledger)
    after = Unstarted(
        **{name: {id: of for id, of in kept.items() if id not in gone} for name, kept in vars(before).items()}
    )
    if after != before:
        _write(ledger, after)


def _read(ledger: Ledger) -> Unstarted:
    try:
        return from_json(Unstarted, json.loads(ledger.noted(_KEY) or "{}"))
    except ValueError:  # of another version: it starts anew
        return Unstarted()


def _write(ledger: Ledger, kept: Unstarted) -> None:
    ledger.note(_KEY, json.dumps(to_json(kept), separators=(",", ":")))


def _offered(site: Site, observation: Observation) -> tuple[list[int], set[int]]:
    """Pending jobs whose rented nodes are up, open, with room, and in a partition that the job may start in; and those
    of them that have others on such a node.
    """
    pending = {job.id: job for job in observation.jobs if job.pending and job.since_s <= site.now and not job.held}
    nodes = {node.name: node for node in observation.nodes} if pending else {}
    partitions = {pool.name: pool.partition for pool in site.document.pools}
    room: Counter[int] = Counter()
    beside: set[int] = set()
    for lease in site.ledger.leases() if pending else []:
        node = nodes.get(lease.node)
        if lease.state == records.READY and node and node.open:
            for id in site.ledger.jobs_of(lease.id):
                job = pending.get(id)
                there = observation.on(node.name)
                if job and partitions.get(lease.pool) in job.partitions and _has_room(node, job, there):
                    room[id] += 1
                    beside |= {id} if there else set()
    return [id for id, count in room.items() if count >= pending[id].nodes], beside


def _has_room(node: Node, job: Job, there: Iterable[Job]) -> bool:
    return node.name not in job.excluded and Room.of(node.total, there).fits(job)


def _at_home(site: Site, observation: Observation, before: Unstarted) -> dict[int, tuple[str, ...]]:
    """Of the pending jobs that the scheduler says wait for resources alone, so stand first: the nodes at home that have
    room for them now, where those are enough.
    """
    first = [job for job in observation.jobs if job.pending and job.reason == "Resources" and job.since_s <= site.now]
    if not (first := [job for job in first if not (job.held or job.dependency)]):
        return {}
    rentable = {name for pool in site.document.pools for name in pool.nodes}
    on = jobs_on(observation.jobs)
    nodes = [node for node in observation.nodes if node.open and node.name not in rentable]
    rooms = [(node, room) for node in nodes if (room := Room.of(node.total, on.get(node.name, ()))).free.gpus > 0]
    found = {}
    for job in first if rooms else ():
        over = before.passed_over.get(str(job.id))
        known = replace(job, passed_over=over.nodes if over else ())
        names = tuple(node.name for node, room in rooms if room.fits(known) and node.could_take(known))
        if len(names) >= job.nodes:
            found[job.id] = names
    return found


def _told(each: GivesUp) -> str:
    job, says = each.job, each.job.reason or "nothing"
    long = f"rented nodes were open to it for {explain.duration(each.open_s)}"
    again = "nothing more is rented for it until it is changed, or held and released"
    if each.apart:
        long, again = f"{long}, beside other jobs", "it gets nodes of its own"
    if each.home:
        long = f"{explain.listed(each.home)} at home had room for it for {explain.duration(each.open_s)}"
        again = "it isn't expected there any more"
    name = f"job {job.called or naming.called(job.id)} of {job.user}"
    return f"{name} didn't start though {long}; the scheduler says: {says}; {again}"
