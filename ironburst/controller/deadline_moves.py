"""What is known of jobs that move between spot and on demand by their deadline: how much of their work is saved, which
no scheduler says, and what was seen of spot. Kept in the ledger from tick to tick.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace

from ironburst.burst import Job, Policy, Snapshot, from_json, spot, to_json
from ironburst.burst.codec import DataError
from ironburst.burst.eligibility import moves
from ironburst.burst.memory import SpotMarket
from ironburst.controller import policy_view
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import PoolImage, Site
from ironburst.ports import Observation

_KEY = "deadline_moves"


@dataclass(frozen=True)
class Work:
    """Of one job. Seconds."""

    saved_s: float = 0.0  # by the runs that have ended
    start_s: float | None = None  # of the run that goes on; None: none does
    seen_s: float = 0.0  # when it was seen last


@dataclass(frozen=True)
class _Known:
    work: dict[str, Work]  # by job id
    spot: tuple[SpotMarket, ...]


def snapshot(site: Site, policy: Policy, observation: Observation, images: dict[str, PoolImage]) -> Snapshot:
    """What a tick decides from, with it."""
    return known(site.ledger, policy_view.snapshot(site, observation, images), policy, observation)


def known(ledger: Ledger, snapshot: Snapshot, policy: Policy, observation: Observation) -> Snapshot:
    """The snapshot with it. Once a tick; without the key in the stack file nothing is kept."""
    if policy.deadline_moves is None:
        return snapshot
    before = _read(ledger)
    work = {id: each for id, each in before.work.items() if observation.unseen_job(int(id))}
    for job in snapshot.jobs:
        if moves(job, policy):
            work[str(job.id)] = _seen(before.work.get(str(job.id), Work()), job, snapshot.now_s)
    markets = spot.seen(before.spot, snapshot)
    if (now := _Known(work, markets)) != before:
        ledger.note(_KEY, json.dumps(to_json(now), separators=(",", ":")))
    saved = {int(id): each.saved_s for id, each in work.items() if each.saved_s}
    jobs = tuple(replace(job, saved_s=saved[job.id]) if job.id in saved else job for job in snapshot.jobs)
    return replace(snapshot, jobs=jobs, spot=markets)


def goes_to(site: Site, job: Job, lease: LeaseRow) -> bool:
    """Whether a job that is on demand is to go on on this lease of spot."""
    if site.document.burst.deadline_spare_s is None or job.saves_s is None or lease.market != "spot":
        return False
    rented = {other.node for other in site.ledger.leases() if other.market != "spot"}
    return bool(job.on) and rented.issuperset(job.on)


def forget(ledger: Ledger, ids: Collection[int]) -> None:
    """These ids are other jobs' now."""
    before, gone = _read(ledger), {str(id) for id in ids}
    if not gone.isdisjoint(before.work):
        work = {id: each for id, each in before.work.items() if id not in gone}
        ledger.note(_KEY, json.dumps(to_json(replace(before, work=work)), separators=(",", ":")))


def _seen(work: Work, job: Job, now_s: float) -> Work:
    start_s = job.start_s if job.on else None
    if work.start_s is not None and start_s != work.start_s:  # as much of that run as was saved for certain
        every_s = job.saves_s or 0.0
        ran_s = max(0.0, work.seen_s - work.start_s)
        work = Work(work.saved_s + (every_s * (ran_s // every_s) if every_s else ran_s))
    return replace(work, start_s=start_s, seen_s=now_s)


def _read(ledger: Ledger) -> _Known:
    try:
        return from_json(_Known, json.loads(ledger.noted(_KEY) or "{}") or {"work": {}, "spot": []})
    except (ValueError, DataError):  # of a newer ironburst
        return _Known({}, ())
