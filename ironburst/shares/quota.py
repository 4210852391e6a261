"""How many GPUs each team may have now: a guarantee, and a part of what is idle.

- The guarantees are as promised while the shared nodes that are in service have room for all of them. With less they
  shrink in proportion, by the largest remainder: nothing is promised twice. What runs already goes on, and while it
  runs on a node that takes no more jobs, the GPUs that it has there count.
- What isn't kept for guarantees is idle. It is given job by job to the team that would then have the least over
  quota by its weight (weighted max-min, in steps of whole jobs: a gang isn't half over quota). A team's jobs are asked
  in their order, and one that doesn't fit any more isn't waited for.
- What nobody asks for is open to every team that may go over quota, so that a job that comes in the next second
  needs no new numbers.

Ties go to the team that is declared first: the same numbers give the same answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from ironburst.shares.model import Quota, SharedJob, TeamShare


def capacity(nodes: Mapping[str, int], jobs: Iterable[SharedJob]) -> int:
    """GPUs of the shared nodes in service (`nodes`: {name: GPUs}), and those that jobs still have on others."""
    return sum(nodes.values()) + sum(job.each for job in jobs for name in job.on if name not in nodes)


def guarantees(shares: Sequence[TeamShare], gpus: int) -> dict[str, int]:
    """{account: GPUs} that are guaranteed while `gpus` of the shared ones are in service."""
    promised = sum(share.guaranteed for share in shares)
    if promised <= gpus:
        return {share.account: share.guaranteed for share in shares}
    whole = {share.account: share.guaranteed * gpus // promised for share in shares}
    remainder = {share.account: -(share.guaranteed * gpus % promised) for share in shares}
    for account in sorted(remainder, key=lambda each: remainder[each])[: gpus - sum(whole.values())]:
        whole[account] += 1
    return whole


def kinds(shares: Sequence[TeamShare], gpus: int, jobs: Iterable[SharedJob]) -> dict[int, bool]:
    """{job: whether it is, or would be, over quota}. A job that runs stays what it is; of those that wait, each counts
    for the guarantee while that has room for the whole of it.
    """
    room = guarantees(shares, gpus)
    over = {}
    for job in sorted((job for job in jobs if job.account in room), key=_running_first):
        over[job.id] = job.over or (not job.on and job.gpus > room[job.account])
        if not over[job.id]:
            room[job.account] -= job.gpus
    return over


def quotas(shares: Sequence[TeamShare], gpus: int, jobs: Iterable[SharedJob]) -> dict[str, Quota]:
    """{account: what it may have now} while `gpus` of the shared ones are in service and `jobs` run and wait."""
    jobs = sorted((job for job in jobs), key=_running_first)
    sure, over = guarantees(shares, gpus), kinds(shares, gpus, jobs)
    used = dict.fromkeys(sure, 0)
    for job in jobs:
        if job.account in used and not over[job.id]:
            used[job.account] += job.gpus
    idle = gpus - sum(used.values())
    waiting = {
        share.account: deque(job.gpus for job in jobs if job.account == share.account and over[job.id])
        for share in shares
        if share.over_quota
    }
    room = {share.account: (gpus if share.most is None else share.most) - used[share.account] for share in shares}
    given = _given(shares, max(idle, 0), waiting, room)
    rest = max(idle - sum(given.values()), 0)
    return {
        share.account: Quota(
            guaranteed=sure[share.account],
            over=_open(given[share.account] + rest, room[share.account]) if share.over_quota else 0,
            short=share.guaranteed - sure[share.account],
        )
        for share in shares
    }


def _given(
    shares: Sequence[TeamShare], idle: int, waiting: Mapping[str, deque[int]], room: Mapping[str, int]
) -> dict[str, int]:
    """{account: GPUs over quota}: job by job, to who has the least by its weight."""
    given = {share.account: 0 for share in shares}
    asking = [share for share in shares if waiting.get(share.account)]
    while asking:
        share = min(asking, key=lambda each: (given[each.account] + waiting[each.account][0]) / each.weight)
        job = waiting[share.account].popleft()
        if job <= idle and given[share.account] + job <= room[share.account]:
            given[share.account] += job
            idle -= job
        if not waiting[share.account]:
            asking.remove(share)
    return given


def _open(gpus: int, room: int) -> int:
    return max(0, min(gpus, room))


def _running_first(job: SharedJob) -> tuple[bool, float, int]:
    return not job.on, job.order, job.id
