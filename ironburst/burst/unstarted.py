"""Jobs that the scheduler doesn't start on rented nodes that are open to them.

Nobody knows all of a scheduler's reasons (a limit of the partition, a reservation to come, a plugin), so the nodes
themselves are the test: a job that could have started for PATIENCE_S and didn't gives them up. It does so once: they
are no more use to it a second time, until somebody changes it, or holds and releases it. Two reasons are guessed
first: one that didn't start beside other jobs may have to be alone (an exclusive partition, a label, a plugin), and
gets nodes of its own; one that didn't start at home though there was room isn't expected on those nodes any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ironburst.burst.eligibility import refused
from ironburst.burst.snapshot import Job
from ironburst.nodes.naming import FIRST_POD_JOB

# Five rounds of Slurm's main scheduler, ten of its backfill, as long as they are by default (sched_interval 60 s,
# bf_interval 30 s; the role slurm_head sets 30 s for both): with a long queue one round doesn't reach every job.
PATIENCE_S = 300.0
_HOUR_S, _DAY_S, _FORGOTTEN_S = 3600.0, 86400.0, 86400.0
_PROVEN_S = 30 * _DAY_S  # what nobody submitted for so long is tried again
# A job that waits for resources alone stands first: each round of the main scheduler reaches it. Three of them.
HOME_PATIENCE_S = 180.0


@dataclass(frozen=True)
class PassedOver:
    """Nodes at home that a job didn't start on, and its shape then."""

    shape: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Unstarted:
    """What is kept from tick to tick, by job id in decimal."""

    offered_s: dict[str, float] = field(default_factory=dict)  # since when rented nodes are open to it
    given_up: dict[str, str] = field(default_factory=dict)  # its shape when it gave its nodes up
    apart: dict[str, str] = field(default_factory=dict)  # the same when it was given nodes of its own
    home_s: dict[str, float] = field(default_factory=dict)  # since when there is room for it at home
    passed_over: dict[str, PassedOver] = field(default_factory=dict)
    # by Job.alike: until when none are rented for such jobs; when one was seen at work on rented nodes last, to the day
    misfits: dict[str, float] = field(default_factory=dict)
    proven: dict[str, float] = field(default_factory=dict)
    # jobs that had rented nodes and didn't begin to work there, by `key`
    not_begun: dict[str, NotBegun] = field(default_factory=dict)


@dataclass(frozen=True)
class NotBegun:
    """`asks`: what it asked for when it was seen pending again; empty: it wasn't yet, or that says nothing."""

    asks: str
    seen_s: float  # to the hour


class GivesUp(NamedTuple):
    """A job that gives its rented nodes up; to have others for itself (`apart`), or nodes at home (`home`)."""

    job: Job
    open_s: float  # how long they were open to it
    apart: bool = False
    home: tuple[str, ...] = ()


def look(
    before: Unstarted,
    offered: Collection[int],
    jobs: Collection[Job],
    now_s: float,
    beside: Collection[int] = (),
    at_home: Mapping[int, tuple[str, ...]] | None = None,
    working: Collection[str] = (),
) -> tuple[Unstarted, list[GivesUp]]:
    """`offered`: ids of pending jobs that could start on rented nodes now; `beside`: of these, those that others are
    on; `at_home`: nodes there with room for a pending job now, enough of them; `working`: `alike` of those that work on
    rented nodes. What is kept, and who gives up. Pure.
    """
    pending = {str(job.id): job for job in jobs if job.pending}

    def same(id: str, kept: str) -> bool:
        return (job := pending.get(id)) is not None and not job.held and shape(job) == kept

    given_up = {id: kept for id, kept in before.given_up.items() if same(id, kept)}
    apart = {id: kept for id, kept in before.apart.items() if same(id, kept)}
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
    for n, each in enumerate(gives_up):
        id = str(each.job.id)
        if each.job.id in beside and id not in apart and not refused(each.job):
            gives_up[n] = each._replace(apart=True)
        (apart if gives_up[n].apart else given_up)[id] = shape(each.job)
        del offered_s[id]
    passed_over = {id: kept for id, kept in before.passed_over.items() if same(id, kept.shape)}
    at_home = {id: nodes for id, nodes in (at_home or {}).items() if str(id) in pending}
    home_s = {str(id): min(before.home_s.get(str(id), now_s), now_s) for id in at_home}
    for number, nodes in at_home.items():
        id, open_s = str(number), now_s - home_s[str(number)]
        if open_s >= HOME_PATIENCE_S:
            known = passed_over[id].nodes if id in passed_over else ()
            passed_over[id] = PassedOver(shape(pending[id]), tuple(sorted({*known, *nodes})))
            gives_up.append(GivesUp(pending[id], open_s, home=nodes))
            del home_s[id]
    kept = _not_begun(before.not_begun, jobs, now_s)
    day_s = now_s // _DAY_S * _DAY_S
    proven = {each: at_s for each, at_s in before.proven.items() if day_s - at_s < _PROVEN_S}
    proven |= dict.fromkeys(working, day_s)
    lost = [each.job.alike for each in gives_up if not each.apart and not each.home]
    misfits = {each: until_s for each, until_s in before.misfits.items() if now_s < until_s}
    misfits |= {alike: now_s + _FORGOTTEN_S for alike in lost if alike}
    misfits = {each: until_s for each, until_s in misfits.items() if each not in proven}
    return Unstarted(offered_s, given_up, apart, home_s, passed_over, misfits, proven, kept), gives_up


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
