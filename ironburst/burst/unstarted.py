"""Jobs that the scheduler doesn't start on rented nodes that are open to them.

Nobody knows all of a scheduler's reasons (a limit of the partition, a reservation to come, a plugin), so the nodes
themselves are the test: a job that could have started for PATIENCE_S and didn't gives them up. It does so once: they
are no more use to it a second time, until somebody changes it, or holds and releases it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ironburst.burst.eligibility import refused
from ironburst.burst.snapshot import Job
from ironburst.naming import FIRST_POD_JOB

# Five rounds of Slurm's main scheduler, ten of its backfill, as long as they are by default (sched_interval 60 s,
# bf_interval 30 s; the role slurm_head sets 30 s for both): with a long queue one round doesn't reach every job.
PATIENCE_S = 300.0
_HOUR_S, _FORGOTTEN_S = 3600.0, 86400.0


@dataclass(frozen=True)
class Unstarted:
    """What is kept from tick to tick, by job id in decimal."""

    offered_s: dict[str, float] = field(default_factory=dict)  # since when rented nodes are open to it
    given_up: dict[str, str] = field(default_factory=dict)  # its shape when it gave its nodes up
    # jobs that had rented nodes and didn't begin to work there, by `key`
    not_begun: dict[str, NotBegun] = field(default_factory=dict)


@dataclass(frozen=True)
class NotBegun:
    """`asks`: what it asked for when it was seen pending again; empty: it wasn't yet, or that says nothing."""

    asks: str
    seen_s: float  # to the hour


class GivesUp(NamedTuple):
    """A job that gives its rented nodes up."""

    job: Job
    open_s: float  # how long they were open to it


def look(
    before: Unstarted, offered: Collection[int], jobs: Collection[Job], now_s: float
) -> tuple[Unstarted, list[GivesUp]]:
    """`offered`: ids of pending jobs that could start on rented nodes now. What is kept, and who gives up. Pure."""
    pending = {str(job.id): job for job in jobs if job.pending}
    given_up = {
        id: kept
        for id, kept in before.given_up.items()
        if (job := pending.get(id)) and not job.held and shape(job) == kept
    }
    offered_s = {
        str(id): min(before.offered_s.get(str(id), now_s), now_s)
        for id in offered
        if str(id) in pending and str(id) not in given_up
    }
    gives_up = [
        GivesUp(pending[id], now_s - since_s)
        for id, since_s in offered_s.items()
        if now_s - since_s >= PATIENCE_S or refused(pending[id])
    ]
    for job, _ in gives_up:
        given_up[str(job.id)] = shape(job)
        del offered_s[str(job.id)]
    return Unstarted(offered_s, given_up, _not_begun(before.not_begun, jobs, now_s)), gives_up


def not_begun(before: Unstarted, job: Job, now_s: float) -> Unstarted:
    """It had rented nodes, and was stopped before it began to work there."""
    return replace(before, not_begun={**before.not_begun, key(job): NotBegun("", now_s)})


def key(job: Job) -> str:
    """What it has in common with those that its controller makes in its place."""
    return job.origin or str(job.id)


def _not_begun(before: dict[str, NotBegun], jobs: Collection[Job], now_s: float) -> dict[str, NotBegun]:
    kept = {id: each for id, each in before.items() if now_s - each.seen_s < _FORGOTTEN_S}
    for job in jobs:
        if (each := kept.get(key(job))) is None:
            continue
        asks = each.asks
        if job.pending and job.id < FIRST_POD_JOB:  # what pods ask for says little; other images have another key
            asks = repr(_asks(job))
            if job.held or each.asks not in ("", asks):
                del kept[key(job)]
                continue
        kept[key(job)] = NotBegun(asks, now_s // _HOUR_S * _HOUR_S)
    return kept


def shape(job: Job) -> str:
    """What a user or an admin may change of a job, but where it may run: that is the controller's own doing."""
    return repr((*_asks(job), job.account, job.submit_s, job.restarts))


def _asks(job: Job) -> tuple[object, object]:
    size = job.nodes, job.each.gpus, job.each.cpus, job.each.memory_mb, job.time_limit_s, job.deadline_s
    return size, (job.gpu_type, job.demands, job.dependency, job.data, job.licences, job.fabric)
