"""Whose logs somebody asks for, who names a node, a lease or a job, by the document and the ledger."""

from __future__ import annotations

from ironburst.controller import job_story
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import LeaseRow
from ironburst.document import ClusterDocument
from ironburst.ports.logs import LogQuery
from ironburst.system.bad_input import BadInput

AROUND_S = 120.0
"""before and after a job: why it didn't start, and what its end did"""
NODE_S = 2 * 3600.0
"""how far back a node's lines go, where nothing is said"""


def queries(
    asked: str, document: ClusterDocument | None, ledger: Ledger | None, now_s: float, since_s: float | None
) -> list[LogQuery]:
    """Of a node of the document, a lease or an instance of the ledger, or a job: one for each of its runs. `since_s`:
    how long ago at most; None: as long as the lease or the job was there, of a node NODE_S. Raises BadInput.
    """
    earliest_s = 0.0 if since_s is None else now_s - since_s
    leases = ledger.leases(open_only=False) if ledger else []
    for lease in leases:
        if asked in (lease.id, lease.instance_id):
            return [_of_lease(lease, now_s, earliest_s)]
    if asked in _nodes(document) or any(asked == lease.node for lease in leases):
        return [LogQuery((asked,), now_s - (NODE_S if since_s is None else since_s), now_s)]
    if ledger is None:
        raise BadInput(f"{asked!r} is no node of the document, and without a ledger no lease or job is known")
    return [each for each in _of_job(ledger, asked, now_s, earliest_s) if each.to_s > each.from_s]


def _nodes(document: ClusterDocument | None) -> set[str]:
    if document is None:
        return set()
    return {host.name for host in document.hosts} | {node for pool in document.pools for node in pool.nodes}


def _of_lease(lease: LeaseRow, now_s: float, earliest_s: float) -> LogQuery:
    end_s = now_s if lease.to_s is None else lease.to_s + AROUND_S
    return LogQuery((lease.node,), max(lease.made_s, earliest_s), min(end_s, now_s), lease.id)


def _of_job(ledger: Ledger, asked: str, now_s: float, earliest_s: float) -> list[LogQuery]:
    runs = ledger.runs_called(asked)
    numbers = [] if runs else job_story.numbers(ledger, asked)
    runs = runs or [run for job in numbers for run in ledger.runs_of(job)]
    times = [(run.nodes, run.start_s, run.end_s) for run in runs]
    if not times:  # none on GPUs that was measured
        rows = [row for row in map(ledger.job, numbers) if row]
        times = [(row.ran_on, row.start_s, row.last_s) for row in rows if row.ran_on and row.start_s is not None]
        if not rows:
            raise BadInput(f"{asked!r} is no node, no lease and no job that the controller of this ledger has seen")
    if not times:
        raise BadInput(f"job {asked} hasn't run: `ironburst explain {asked}` says what it waits for")
    found = []
    for nodes, start_s, end_s in times:
        until_s = now_s if end_s is None else min(end_s + AROUND_S, now_s)
        found.append(LogQuery(tuple(nodes.split(",")), max(start_s - AROUND_S, earliest_s), until_s))
    return found
