"""Rentable nodes that users exclude from their jobs themselves (`sbatch --exclude`). A widened job excludes others for
us; which of them its user wrote is kept here, so that he gets back what he wrote, and no such node is rented for it.
"""

from __future__ import annotations

import json

from ironburst.controller.ledger import Ledger
from ironburst.controller.site import Site
from ironburst.ports import Observation

_KEY = "own_exclusions"


def look(site: Site, observation: Observation) -> None:
    """Before a tick decides: all that a job excludes that isn't widened is its user's."""
    rentable = {name for pool in site.document.pools for name in pool.nodes}
    partitions = {pool.partition for pool in site.document.pools}
    before = read(site.ledger)
    now = {id: names for id, names in before.items() if observation.unseen_job(id)}
    for job in observation.jobs:
        if job.on or not partitions.isdisjoint(job.partitions):
            names = before.get(job.id, ())
        else:
            names = tuple(name for name in job.excluded if name in rentable)
        if names:
            now[job.id] = names
    if now != before:
        site.ledger.note(_KEY, json.dumps({str(id): names for id, names in now.items()}))


def read(ledger: Ledger) -> dict[int, tuple[str, ...]]:
    """The nodes by job."""
    return {int(id): tuple(names) for id, names in json.loads(ledger.noted(_KEY) or "{}").items()}
