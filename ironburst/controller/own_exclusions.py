"""Rentable nodes that users exclude from their jobs themselves (`sbatch --exclude`). A widened job excludes others for
us; which of them its user wrote is kept here, so that he gets back what he wrote, and no such node is rented for it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ironburst.controller.ledger import Ledger
from ironburst.controller.site import Site
from ironburst.ports import Job, Observation

_KEY = "own_exclusions"


class _Excluded(NamedTuple):
    own: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()  # that we let it on when it was widened: who excludes one of these is its user


def look(site: Site, observation: Observation) -> None:
    """Before a tick decides."""
    rentable = {name for pool in site.document.pools for name in pool.nodes}
    partitions = {pool.partition for pool in site.document.pools}
    before = _read(site.ledger)
    now = {id: kept for id, kept in before.items() if observation.unseen_job(id)}
    for job in observation.jobs:
        if partitions.isdisjoint(job.partitions):
            kept = _home(tuple(name for name in job.excluded if name in rentable), before.get(job.id, _Excluded()))
        else:
            kept = _seen(job, before.get(job.id, _Excluded()))
        if kept != _Excluded():
            now[job.id] = kept
    if now != before:
        _write(site.ledger, now)


def _home(excluded: tuple[str, ...], before: _Excluded) -> _Excluded:
    """Of one that is open to no rented nodes. Where its user has narrowed it, ours are still there."""
    theirs = tuple(name for name in excluded if name in (*before.own, *before.opened))
    return before._replace(own=theirs) if before.opened and theirs != excluded else _Excluded(excluded)


def _seen(job: Job, before: _Excluded) -> _Excluded:
    """Of a widened one. On its nodes nothing of it changes."""
    if job.on:
        return before
    theirs = {*before.own, *before.opened}
    return before._replace(own=tuple(name for name in job.excluded if name in theirs))


def opened(ledger: Ledger, job: int, nodes: Sequence[str]) -> None:
    """The job was widened to these rented nodes."""
    kept = _read(ledger)
    kept[job] = kept.get(job, _Excluded())._replace(opened=tuple(nodes))
    _write(ledger, kept)


def forget(ledger: Ledger, ids: Collection[int]) -> None:
    """These ids are other jobs' now."""
    before = _read(ledger)
    if not before.keys().isdisjoint(ids):
        _write(ledger, {id: kept for id, kept in before.items() if id not in ids})


def read(ledger: Ledger) -> dict[int, tuple[str, ...]]:
    """The nodes by job."""
    return {id: kept.own for id, kept in _read(ledger).items() if kept.own}


def _read(ledger: Ledger) -> dict[int, _Excluded]:
    said = json.loads(ledger.noted(_KEY) or "{}")
    return {int(id): _Excluded(tuple(own), tuple(names)) for id, (own, names) in said.items()}


def _write(ledger: Ledger, kept: dict[int, _Excluded]) -> None:
    ledger.note(_KEY, json.dumps({str(id): each for id, each in kept.items()}, separators=(",", ":")))
