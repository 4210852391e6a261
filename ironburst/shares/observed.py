"""From what the controller sees of a site to the numbers that the scheduler is to hold: quota follows real capacity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ironburst import burst
from ironburst.shares.model import OVER, OWN, Quota, SharedJob, TeamShare
from ironburst.shares.quota import capacity, quotas

COMING = ("Waiting", "Nominated")
"""reasons of pods that nothing is rented for, and that want GPUs now: kube-scheduler makes room for them or hasn't seen
them yet, or a Job makes them anew, as one does whose pods the API server refused
"""


def quotas_now(
    shares: Sequence[TeamShare],
    home_partition: str,
    nodes: Sequence[burst.Node],
    jobs: Sequence[burst.Job],
    kinds: Mapping[int, str],
) -> tuple[dict[str, Quota], int]:
    """({account: what it may have now}, GPUs of the shared nodes that are there). `kinds`: what jobs count in by their
    scheduler's word (ironburst.shares.model); a job that isn't there waits for either.

    A node that takes no jobs counts with the GPUs that are still in use there. What a team has on rented nodes is added
    to its quota of that kind: the scheduler counts it there, and it takes nothing from home. What is on a team's own
    nodes, or waits for them, is nobody else's business.
    """
    home = {node.name: node for node in nodes if home_partition in node.partitions}
    there = {name: node.total.gpus for name, node in home.items() if node.open}
    accounts = {share.account for share in shares}
    ours = [
        job
        for job in jobs
        if job.account in accounts and kinds.get(job.id) != OWN and (job.on or (job.pending and not _later(job)))
    ]
    rented = [job for job in ours if not set(job.on) <= set(home)]
    seen = [
        SharedJob(job.id, job.account, job.nodes, job.each.gpus, job.since_s, job.on, kinds.get(job.id) == OVER)
        for job in ours
        if job not in rented and home_partition in job.partitions
    ]
    gpus = capacity(there, seen)
    found = quotas(shares, gpus, seen)
    for job in rented:
        quota = found[job.account]
        gpus = job.nodes * job.each.gpus
        if kinds.get(job.id) == OVER:
            found[job.account] = replace(quota, over=quota.over + gpus)
        else:
            found[job.account] = replace(quota, guaranteed=quota.guaranteed + gpus)
    return found, gpus


def _later(job: burst.Job) -> bool:
    """Whether a waiting job asks for nothing yet."""
    held = job.held and job.reason_word not in COMING
    return held or bool(job.dependency) or job.reason_word == "BeginTime"
