"""Pods that start together, and which they are. Pure.

In this order: a native PodGroup with a gang policy; a group of a LeaderWorkerSet; all pods of a JobSet; an Indexed Job
that starts all of its indexes; all pods of a controller that isn't known here (an operator's own kind), but for those
that it adds when the others have started. Every other pod is by itself.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ironburst.adapters.kubernetes.site import KubernetesSite
from ironburst.adapters.kubernetes.views import EACH_FOR_ITSELF, GroupView, JobView, PodView
from ironburst.nodes.naming import FIRST_POD_JOB


@dataclass(frozen=True)
class Gang:
    """Pods that are one job to the policy. `size`: how many there should be. That of a Job which has none at the moment
    has its template as a pod, which waits.
    """

    key: str  # that it is known by for as long as it lives
    name: str
    pods: tuple[PodView, ...]
    size: int
    group: GroupView | None = None
    jobs: tuple[JobView, ...] = ()  # that its pods belong to
    remade: bool = False  # its controller makes its pods anew when they are evicted
    beside: tuple[PodView, ...] = ()  # pods with GPUs that ran before its own were added

    @cached_property
    def id(self) -> int:
        """52 bits of a hash, above Slurm's ids: 100,000 of them meet with a probability of one in a million (`grouped`
        tells).
        """
        number = int(hashlib.sha256(self.key.encode()).hexdigest()[:13], 16)
        return number if number >= FIRST_POD_JOB else number + FIRST_POD_JOB

    @cached_property
    def workers(self) -> tuple[PodView, ...]:
        """Those with GPUs, by which it is known where the gang is; all of them where none has any."""
        return tuple(pod for pod in self.pods if pod.gpus) or self.pods

    @cached_property
    def launchers(self) -> tuple[PodView, ...]:
        """The others, which ask for no GPU: MPI launchers, Ray heads, drivers. They start wherever there is room,
        mostly at home and first, and wait for the workers.
        """
        return tuple(pod for pod in self.pods if not pod.gpus) if len(self.workers) < len(self.pods) else ()

    @cached_property
    def unbound(self) -> list[PodView]:
        """Its pods that wait for a node."""
        return [pod for pod in self.pods if not pod.node and not pod.deleting]

    @cached_property
    def unbound_workers(self) -> list[PodView]:
        """Of these the workers."""
        return [pod for pod in self.workers if not pod.node and not pod.deleting]

    def bound(self, site: KubernetesSite) -> list[PodView]:
        """Its pods that have a node, but launchers at home: these don't say that the gang has started, or where."""
        launchers = {pod.uid for pod in self.launchers}
        return [pod for pod in self.pods if pod.node and (pod.uid not in launchers or pod.node in site.pool_of)]


# kinds of keys whose size their controllers say; others add pods to what runs
_KNOWN = ("podgroup", "leaderworkerset", "jobset", "job", "pod")
_MADE_WITHIN_S = 60.0  # an operator's first pods


@dataclass
class _Members:
    name: str
    pods: list[PodView] = field(default_factory=list)
    beside: tuple[PodView, ...] = ()


def grouped(
    pods: Iterable[PodView], jobs: Iterable[JobView], groups: Iterable[GroupView]
) -> tuple[list[Gang], frozenset[int]]:
    """The pods of workloads as gangs, and the ids that two of them share: neither is to be acted on."""
    of_uid = {job.uid: job for job in jobs}
    of_set: dict[str, list[JobView]] = {}
    for job in of_uid.values():
        if job.jobset:
            of_set.setdefault(f"{job.key.partition('/')[0]}/{job.jobset}", []).append(job)
    of_key = {group.key: group for group in groups}
    members: dict[str, _Members] = {}
    for pod in pods:
        if pod.workload:
            key, name = _key(pod, of_uid, of_key)
            members.setdefault(key, _Members(name)).pods.append(pod)
    for job in of_uid.values():  # between two tries
        if job.template and not job.jobset and (job.together or job.parallelism == 1):
            key, name = _key(job.template, of_uid, of_key)
            members.setdefault(key, _Members(name, [job.template]))
    for key in [key for key in members if key.split(" ", 1)[0] not in _KNOWN]:
        members |= _grown(key, members[key])
    gangs = [_gang(key, each, of_uid, of_set, of_key) for key, each in members.items()]
    counted = Counter(gang.id for gang in gangs)
    return gangs, frozenset(id for id, count in counted.items() if count > 1)


def _key(pod: PodView, jobs: Mapping[str, JobView], groups: Mapping[str, GroupView]) -> tuple[str, str]:
    """What a pod's gang is known by, and its name."""
    place, owner = pod.namespace, pod.owner
    if pod.group:
        group = groups.get(f"{place}/{pod.group}")
        if group is None or group.least or group.error:
            return f"podgroup {place}/{pod.group}", f"{place}/{pod.group}"
    if pod.leader_set:
        name, index, _ = pod.leader_set
        return f"leaderworkerset {place}/{name}/{index}", f"{place}/{name}-{index}"
    if pod.jobset:
        return f"jobset {place}/{pod.jobset}", f"{place}/{pod.jobset}"
    if owner is None:
        return f"pod {pod.uid}", pod.key
    if owner.kind == "Job":
        job = jobs.get(owner.uid)
        if job is None or job.together or job.parallelism == 1 or job.completions == 1:
            return f"job {owner.uid}", f"{place}/{owner.name}"
        if job.indexed and pod.index:
            return f"job {owner.uid} index {pod.index}", f"{place}/{owner.name}-{pod.index}"
    elif owner.kind not in EACH_FOR_ITSELF:
        return f"{owner.kind.lower()} {owner.uid}", f"{place}/{owner.name}"
    return f"pod {pod.uid}", pod.key


def _grown(key: str, of: _Members) -> dict[str, _Members]:
    """Without the pods with GPUs that were added later, and these: each by itself, or with those of its replica. They
    start beside what runs: a RayCluster's autoscaler adds one when somebody waits for it, and takes it away again.
    """
    workers = [pod for pod in of.pods if pod.gpus]
    started_s = min((pod.started_s for pod in workers if pod.node and pod.started_s is not None), default=None)
    if started_s is None:
        return {key: of}
    since_s = max(started_s, min(pod.created_s for pod in workers) + _MADE_WITHIN_S)
    late = {pod.uid for pod in workers if pod.created_s > since_s}
    found = {key: _Members(of.name, [pod for pod in of.pods if pod.uid not in late])}
    beside = tuple(pod for pod in found[key].pods if pod.gpus and pod.node)
    for pod in of.pods:
        if pod.uid in late:
            own, name = (pod.replica, pod.replica) if pod.replica else (pod.uid, pod.name)
            its = found.setdefault(f"{key} grown {own}", _Members(f"{pod.namespace}/{name}", beside=beside))
            its.pods.append(pod)
    return found


def _gang(
    key: str,
    members: _Members,
    of_uid: Mapping[str, JobView],
    of_set: Mapping[str, list[JobView]],
    of_key: Mapping[str, GroupView],
) -> Gang:
    pods = members.pods
    first, uids = pods[0], dict.fromkeys(pod.owner.uid for pod in pods if pod.owner)
    jobs = tuple(job for uid in uids if (job := of_uid.get(uid)))
    kind, group, size = key.split(" ", 1)[0], None, len(pods)
    if kind == "podgroup":
        group = of_key.get(f"{first.namespace}/{first.group}")
        size = max(size, group.least if group else size + 1)  # without its PodGroup none of them starts
    elif kind == "leaderworkerset" and first.leader_set:
        size = max(size, first.leader_set[2])
    elif kind == "jobset":
        jobs = tuple(of_set.get(f"{first.namespace}/{first.jobset}", ()))
        missing = max(0, first.jobset_jobs - len(jobs))
        size = max(size, sum(job.parallelism - job.succeeded for job in jobs) + missing)
    elif kind == "job" and jobs and jobs[0].together:
        size = max(size, jobs[0].parallelism - jobs[0].succeeded)
    remade = _remade(kind, pods, of_uid)
    return Gang(key, members.name, tuple(pods), size, group, jobs, remade, members.beside)


def _remade(kind: str, pods: list[PodView], jobs: Mapping[str, JobView]) -> bool:
    """Whether all of them are made again when they are evicted: by a Job that has tries left, or by a controller that
    always does.
    """
    of_job: dict[str, int] = {}
    for pod in pods:
        if pod.owner is None:
            return False
        if pod.owner.kind == "Job":
            of_job[pod.owner.uid] = of_job.get(pod.owner.uid, 0) + 1
        elif pod.owner.kind not in EACH_FOR_ITSELF and not (kind == "leaderworkerset" and pod.owner.kind == "Pod"):
            return False
    return all(uid in jobs and jobs[uid].survives(count) for uid, count in of_job.items())
