"""Jobs that the scheduler doesn't start on rented nodes that are open to them.

Nobody knows all of a scheduler's reasons (a limit of the partition, a reservation to come, a plugin), so the nodes
themselves are the test: a job that could have started for PATIENCE_S and didn't gives them up. It does so once: they
are no more use to it a second time, until somebody changes it, or holds and releases it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ironburst.burst.eligibility import refused
from ironburst.burst.snapshot import Job

# Five rounds of Slurm's main scheduler, ten of its backfill, as long as they are by default (sched_interval 60 s,
# bf_interval 30 s; the role slurm_head sets 30 s for both): with a long queue one round doesn't reach every job.
PATIENCE_S = 300.0


@dataclass(frozen=True)
class Unstarted:
    """What is kept from tick to tick, by job id in decimal."""

    offered_s: dict[str, float] = field(default_factory=dict)  # since when rented nodes are open to it
    given_up: dict[str, str] = field(default_factory=dict)  # its shape when it gave its nodes up


class GivesUp(NamedTuple):
    """A job that gives its rented nodes up."""

    job: Job
    open_s: float  # how long they were open to it


def look(
    before: Unstarted, offered: Collection[int], jobs: Iterable[Job], now_s: float
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
    return Unstarted(offered_s, given_up), gives_up


def shape(job: Job) -> str:
    """What a user or an admin may change of a job, but where it may run: that is the controller's own doing."""
    size = job.nodes, job.each.gpus, job.each.cpus, job.each.memory_mb, job.time_limit_s, job.deadline_s
    needs = job.gpu_type, job.demands, job.dependency, job.data, job.licences, job.fabric
    return repr((size, needs, job.account, job.submit_s, job.restarts))
