"""States that last longer than they are believed (ironburst.nodes.state_times): reported, and ended step by step.

Since when each lasts is kept in the ledger, so that a controller that starts again doesn't begin to wait again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from operator import is_
from typing import NamedTuple

from ironburst.burst import Job, Node, explain, from_json, to_json
from ironburst.controller import leases, records, unstarted
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import Site
from ironburst.nodes import naming, state_times
from ironburst.nodes.state_times import StateTime, Then
from ironburst.ports import Observation

_KEY = "lasting"
_LOOKED_AT = (records.JOINED, records.READY, records.RELEASING)
_ENDS = (Then.REQUEUE, Then.FORCE)


@dataclass(frozen=True)
class _Kept:
    since_s: float
    steps: int = 0  # that were taken
    away_s: float | None = None  # since when it isn't seen


@dataclass(frozen=True)
class _Ledgered:
    of: dict[str, _Kept] = field(default_factory=dict)


class _State(NamedTuple):
    """A state of a job or a node. `lease`: None for a job that pends."""

    name: str
    row: StateTime
    job: Job | None
    lease: LeaseRow | None

    @property
    def key(self) -> str:
        where = f"{self.lease.id}/" if self.lease else ""
        return f"{where}{self.job.id if self.job else 'node'}/{self.row.takes_turns or self.name}"


def look(site: Site, observation: Observation) -> bool:
    """After the leases' own steps. Whether one of them goes."""
    states = {state.key: state for state in _states(site, observation)}
    kept = _kept(site, states)
    due = [state for key, state in states.items() if _then(site, state, kept[key]) in _ENDS]
    ending = {(state.lease.id, state.job.id) for state in due if state.lease and state.job}
    changed = False
    for key, state in states.items():
        lease, then = state.lease, _then(site, state, kept[key])
        if then is None:
            continue
        works = lease and any((lease.id, job.id) not in ending for job in observation.on(lease.node))
        if works and then in _ENDS:
            then = Then.DRAIN
            if lease and lease.state == records.RELEASING:
                continue  # it waits for the others
        else:
            kept[key] = replace(kept[key], steps=_due(site, state, kept[key]))
        changed |= _act(site, state, then, kept[key])
    _write(site.ledger, kept)
    return changed


def believed(site: Site, observation: Observation) -> Observation:
    """As a tick decides from it: a promise of room at home counts for a while."""
    kept = _read(site.ledger)
    jobs = []
    for job in observation.jobs:
        if job.pending and job.held and job.reason:
            name, row = state_times.of_pending(job.reason_word)
            lasts = kept.get(_State(name, row, job, None).key)
            if lasts and any(then == Then.RENT for _, then in row.steps[: lasts.steps]):
                job = replace(job, held=False)
        jobs.append(job)
    return observation if all(map(is_, jobs, observation.jobs)) else replace(observation, jobs=tuple(jobs))


def _states(site: Site, observation: Observation) -> Iterator[_State]:
    """Those that have steps, of leases that nothing else ends, and of jobs that pend."""
    for lease in site.ledger.leases():
        if lease.state not in _LOOKED_AT or observation.unseen(lease.node):
            continue
        jobs, node = observation.on(lease.node), observation.node(lease.node)
        for job in jobs:
            name, row = state_times.of_job(job.state, job.reason_word)
            if row.steps:
                yield _State(name, row, job, lease)
        for name in _of_node(node, jobs) if node else ():
            if (row := state_times.NODE.get(name, StateTime())).steps:
                yield _State(name, row, None, lease)
    for job in observation.jobs:
        if job.pending and job.id >= naming.FIRST_POD_JOB:
            name, row = state_times.of_pending(job.reason_word)
            if row.steps:
                yield _State(name, row, job, None)


def _of_node(node: Node, jobs: list[Job]) -> Iterator[str]:
    for name in node.states:
        waits_for_jobs = name == "COMPLETING" or state_times.NODE.get(name, StateTime()).takes_turns == "POWER_DOWN"
        if not (jobs and waits_for_jobs):
            yield name


def _lasts_s(site: Site, state: _State, kept: _Kept) -> float:
    """Below 0: its time hasn't begun."""
    from_s, job = kept.since_s, state.job
    if job and job.state == "COMPLETING":
        slurm = site.document.scheduler_of_kind("slurm")
        if job.id >= naming.FIRST_POD_JOB:
            from_s = max(from_s, job.end_s or from_s)  # its grace period is over then
        elif slurm:
            from_s += slurm.kill_wait_s
    elif job and state.row.works:
        pool = site.document.pool(state.lease.pool) if state.lease else None
        longest_s = from_s + pool.max_run_s if pool else from_s
        from_s = max(from_s, longest_s if job.end_s is None else job.end_s)
    return site.now - from_s


def _due(site: Site, state: _State, kept: _Kept) -> int:
    """How many of its steps are due, or were taken."""
    lasts_s = _lasts_s(site, state, kept)
    return max(kept.steps, sum(lasts_s >= after_s for after_s, _ in state.row.steps))


def _then(site: Site, state: _State, kept: _Kept) -> Then | None:
    """What is to be done now: of steps that became due together the last one."""
    due = _due(site, state, kept)
    return state.row.steps[due - 1][1] if due > kept.steps else None


def _act(site: Site, state: _State, then: Then, kept: _Kept) -> bool:
    """Tell, and do it. Whether the lease goes."""
    job, lease = state.job, state.lease
    lasted = f"for {explain.duration(site.now - kept.since_s)}"
    said = job.reason if job and job.reason and job.reason_word == state.name else state.name
    what = f"job {job.called or naming.called(job.id)} of {job.user}" if job else f"node {lease.node if lease else ''}"
    where = f" on {lease.node}" if job and lease else ""
    why = f"{what} has been {said}{where} {lasted}"
    again = ""
    with site.ledger.transaction():
        if then in _ENDS and job and not state.row.again:
            again = f"; nothing more is rented for it until {unstarted.not_begun(site, job)}"
        ids = {"launch": lease.launch, "lease": lease.id} if lease else {}
        site.event("needs_a_person", f"{why}: {_told(state.row, then)}{again}", job=job.id if job else None, **ids)
        if lease is None or then in (Then.TELL, Then.RENT):
            return False
        to = records.LEAVING if then == Then.FORCE else records.RELEASING
        if lease.state == records.JOINED:
            leases.give_up(site, lease, why)
        elif then == Then.REQUEUE:
            leases.interrupt(site, lease, why)
        elif to != lease.state:
            site.ledger.move([lease], to, site.now, end_reason=why)
        else:
            return False
    return True


def _told(row: StateTime, then: Then) -> str:
    """What is done; of one who is told, what will be."""
    later = next((step for step in row.steps if step[1] != Then.TELL), None)
    if then != Then.TELL:
        return then
    return f"look at it; after {explain.duration(later[0])} {later[1]}" if later else "look at it, it is paid for"


# ---- since when


def _kept(site: Site, states: dict[str, _State]) -> dict[str, _Kept]:
    """What lasts, by its key; what came back soon enough lasts still."""
    now, before = site.now, _read(site.ledger)
    kept = {}
    for key in states:
        old = before.get(key, _Kept(now))
        kept[key] = replace(old, since_s=min(old.since_s, now), away_s=None)  # the clock may have been put back
    for key, old in before.items():
        away_s = min(now if old.away_s is None else old.away_s, now)
        if key not in kept and now - away_s < _GAPS.get(key.rpartition("/")[2], 0.0):
            kept[key] = replace(old, away_s=away_s)
    return kept


def forget(ledger: Ledger, ids: Collection[int]) -> None:
    """These ids are other jobs' now."""
    gone = set(map(str, ids))
    _write(
        ledger,
        {key: kept for key, kept in _read(ledger).items() if key.rpartition("/")[0].rpartition("/")[2] not in gone},
    )


_GAPS = {row.takes_turns or name: row.gap_s for name, row in state_times.POD.items()}


def _read(ledger: Ledger) -> dict[str, _Kept]:
    try:
        return from_json(_Ledgered, json.loads(ledger.noted(_KEY) or "{}")).of
    except ValueError:  # of another version: it starts anew
        return {}


def _write(ledger: Ledger, kept: dict[str, _Kept]) -> None:
    text = json.dumps(to_json(_Ledgered(kept)), separators=(",", ":"))
    if text != (ledger.noted(_KEY) or '{"of":{}}'):
        ledger.note(_KEY, text)
