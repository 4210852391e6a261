"""What a scheduler that holds the shares does: which jobs start, and which work over quota ends for them.

The schedulers do this themselves (ironburst.shares.slurm, .kubernetes, .kueue write what they need for it). This is
what they are compared with: the same rules, on nodes with GPUs and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ironburst.shares.model import SharedJob, TeamShare
from ironburst.shares.quota import capacity, guarantees, quotas


@dataclass(frozen=True)
class Round:
    """What one look at the queue leads to."""

    started: tuple[SharedJob, ...]  # with their nodes
    ended: tuple[SharedJob, ...]  # over quota; they wait again


def schedule(shares: Sequence[TeamShare], nodes: Mapping[str, int], jobs: Iterable[SharedJob]) -> Round:
    """One look at the queue. `nodes`: {name: GPUs} of the shared nodes in service.

    Work within a guarantee comes first, and ends work over quota where it fits nowhere else; then idle GPUs go to
    work over quota, within each team's quota.
    """
    queue = sorted(jobs, key=lambda job: (job.order, job.id))
    running = {job.id: job for job in queue if job.on}
    started: list[SharedJob] = []
    ended: list[SharedJob] = []
    for job in queue:
        if job.on or not _guaranteed(job, shares, nodes, running.values()):
            continue
        place = _place(job, nodes, running.values(), make_room=True)
        if place:
            victims = [other for other in running.values() if other.id in place.ended]
            ended += victims
            for victim in victims:
                del running[victim.id]
            running[job.id] = replace(job, on=place.on)
            started.append(running[job.id])
    stopped = {job.id for job in ended}
    for job in _over_quota_order(shares, nodes, [job for job in queue if job.id not in stopped], running):
        place = _place(job, nodes, running.values(), make_room=False)
        if place:
            running[job.id] = replace(job, on=place.on, over=True)
            started.append(running[job.id])
    return Round(tuple(started), tuple(ended))


def deprived(shares: Sequence[TeamShare], nodes: Mapping[str, int], jobs: Iterable[SharedJob]) -> tuple[SharedJob, ...]:
    """The waiting jobs for which a guarantee is broken: within what their team is guaranteed, and there is room for
    them on idle GPUs and on those of work over quota. The scheduler must have had its rounds.
    """
    jobs = sorted(jobs, key=lambda job: (job.order, job.id))
    running = [job for job in jobs if job.on]
    sure = dict(nodes)  # GPUs that no guarantee's work is on
    for job in running:
        for name in job.on if not job.over else ():
            sure[name] = sure.get(name, 0) - job.each
    return tuple(
        job
        for job in jobs
        if not job.on
        and _guaranteed(job, shares, nodes, running)
        and sum(gpus >= job.each for gpus in sure.values()) >= job.nodes
    )


def _guaranteed(
    job: SharedJob, shares: Sequence[TeamShare], nodes: Mapping[str, int], running: Collection[SharedJob]
) -> bool:
    """Whether a waiting job is within its team's guarantee."""
    sure = guarantees(shares, capacity(nodes, running))
    if job.over:
        return False  # it waits for idle GPUs alone
    used = sum(other.gpus for other in running if other.account == job.account and not other.over)
    return used + job.gpus <= sure.get(job.account, 0) and _under_most(job, shares, running)


def _under_most(job: SharedJob, shares: Sequence[TeamShare], running: Iterable[SharedJob]) -> bool:
    most = next((share.most for share in shares if share.account == job.account), 0)
    return most is None or job.gpus + sum(other.gpus for other in running if other.account == job.account) <= most


def _over_quota_order(
    shares: Sequence[TeamShare], nodes: Mapping[str, int], queue: Sequence[SharedJob], running: Mapping[int, SharedJob]
) -> list[SharedJob]:
    """The waiting jobs that may start over quota, as they are asked: who has least by its weight comes first."""
    now = [running.get(job.id, job) for job in queue]
    quota = quotas(shares, capacity(nodes, now), now)
    over = {
        share.account: sum(job.gpus for job in running.values() if job.over and job.account == share.account)
        for share in shares
    }
    weight = {share.account: share.weight for share in shares}
    waiting = [job for job in now if not job.on and job.account in weight]
    chosen = []
    while waiting:
        job = min(waiting, key=lambda each: ((over[each.account] + each.gpus) / weight[each.account], each.order))
        waiting.remove(job)
        if over[job.account] + job.gpus <= quota[job.account].over:
            over[job.account] += job.gpus
            chosen.append(job)
    return chosen


@dataclass(frozen=True)
class _Place:
    on: tuple[str, ...]
    ended: frozenset[int]


def _place(job: SharedJob, nodes: Mapping[str, int], running: Iterable[SharedJob], *, make_room: bool) -> _Place | None:
    """Nodes for a job: the fullest that have room, so that whole nodes stay free; with `make_room` also those that
    have it without the work over quota there, the fewest jobs first, and of these the newest.
    """
    held: dict[str, list[SharedJob]] = {name: [] for name in nodes}
    for other in running:
        for name in other.on:
            held.setdefault(name, []).append(other)
    free = {name: total - sum(other.each for other in held[name]) for name, total in nodes.items()}
    options = []
    for name in nodes:
        ended: list[SharedJob] = []
        if make_room and free[name] < job.each:
            for other in sorted((each for each in held[name] if each.over), key=lambda each: (-each.order, -each.id)):
                if free[name] + sum(each.each for each in ended) < job.each:
                    ended.append(other)
        if free[name] + sum(each.each for each in ended) >= job.each:
            options.append((len(ended), free[name], name, frozenset(each.id for each in ended)))
    options.sort(key=lambda option: option[:3])
    if len(options) < job.nodes:
        return None
    chosen = options[: job.nodes]
    return _Place(tuple(option[2] for option in chosen), frozenset[int]().union(*(option[3] for option in chosen)))
