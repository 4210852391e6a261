"""Gangs of pods as jobs of the policy. Pure.

A job's `partitions` are where its pods may start as they are: at home, and in a pool if all of them tolerate the taint
of enough of its nodes; `excluded` are that pool's other nodes. So the policy's own widening and narrowing can be read
back from the cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import is_

from ironburst.adapters.kubernetes import objects, pods, taints
from ironburst.adapters.kubernetes.cache import Kind
from ironburst.adapters.kubernetes.gangs import Gang, grouped
from ironburst.adapters.kubernetes.site import HOSTNAME_KEY, SITE_KEY, KubernetesPool, KubernetesSite
from ironburst.adapters.kubernetes.views import ClaimView, GroupView, JobView, NodeView, ObjectView, PodView, VolumeView
from ironburst.nodes.state_times import INCOMPLETE, SOME_END, SOME_WAIT
from ironburst.ports import Job, Resources, WrongShape

_MIB = 1 << 20
LIVE = "status.phase!=Succeeded,status.phase!=Failed"  # field selector: pods that haven't ended
KEPT = {  # what is known of a cluster, by its kind
    "pods": "pods",
    "nodes": "nodes",
    "jobs": "jobs",
    "groups": "podgroups",
    "claims": "persistentvolumeclaims",
    "volumes": "persistentvolumes",
}


def kinds(site: KubernetesSite) -> list[Kind]:
    """What is watched."""
    group = "/apis/scheduling.k8s.io/{}/podgroups"
    return [
        Kind("pods", ("/api/v1/pods",), partial(pods.read_pod, site=site), LIVE),
        Kind("jobs", ("/apis/batch/v1/jobs",), partial(objects.read_job, site=site)),
        Kind("podgroups", (group.format("v1beta1"), group.format("v1alpha2")), objects.read_group, may_lack=True),
        Kind("persistentvolumeclaims", ("/api/v1/persistentvolumeclaims",), objects.read_claim),
        Kind("persistentvolumes", ("/api/v1/persistentvolumes",), partial(objects.read_volume, site=site)),
        Kind("nodes", ("/api/v1/nodes",), partial(objects.read_node, ours=site.ours)),
    ]


@dataclass(frozen=True)
class Objects:
    """A cluster at one moment, by the objects' keys."""

    pods: Mapping[str, PodView]
    nodes: Mapping[str, NodeView]
    jobs: Mapping[str, JobView]
    groups: Mapping[str, GroupView]
    claims: Mapping[str, ClaimView]
    volumes: Mapping[str, VolumeView]

    @cached_property
    def gangs(self) -> tuple[list[Gang], frozenset[int]]:
        """All of them, and the ids that two of them share."""
        return grouped(self.pods.values(), self.jobs.values(), self.groups.values())

    @cached_property
    def jobs_by_uid(self) -> dict[str, JobView]:
        """As owners are named."""
        return {job.uid: job for job in self.jobs.values()}

    @cached_property
    def rented(self) -> dict[str, str]:
        """The value of each rented node's taint, by its name; without those that have none."""
        return {name: value for name, node in self.nodes.items() if (value := taints.value_of(node))}


@dataclass
class Memo:
    """Jobs as they were made last, by the gang's key: most are the same a tick later."""

    rented: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, tuple[Gang, Job]] = field(default_factory=dict)


def jobs_of(objects: Objects, site: KubernetesSite, memo: Memo | None = None) -> list[Job]:
    """Pods that ask for no GPU are no jobs, but on a rented node they are. `memo`: of the same site; it is brought up
    to date.
    """
    gangs, twice = objects.gangs
    before = memo.jobs if memo and memo.rented == objects.rented else {}
    found: list[Job] = []
    kept: dict[str, tuple[Gang, Job]] = {}
    for gang in gangs:
        known = before.get(gang.key)
        if known and _same(known[0], gang) and gang.id not in twice:
            job: Job | None = known[1]
        elif any(pod.gpus or pod.node in site.pool_of for pod in gang.pods):
            job = job_of(gang, objects, site, twice=gang.id in twice)
        else:
            continue
        if job is not None:
            found.append(job)
            if gang.id not in twice and not any(pod.claims for pod in gang.pods):  # volumes change by themselves
                kept[gang.key] = gang, job
    if memo:
        memo.rented, memo.jobs = objects.rented, kept
    return found


def _same(one: Gang, other: Gang) -> bool:
    """Of the very same views: they never change, an object that changed has a new one."""
    alike = len(one.pods) == len(other.pods) and len(one.jobs) == len(other.jobs) and one.group is other.group
    return alike and all(map(is_, one.pods, other.pods)) and all(map(is_, one.jobs, other.jobs))


def job_of(gang: Gang, objects: Objects, site: KubernetesSite, *, twice: bool = False) -> Job | None:
    """A gang as a job; None: all that is left of it is being deleted before it started."""
    bound = [pod for pod in gang.pods if pod.node]
    if not bound and not gang.unbound:
        return None
    first = min(gang.pods, key=lambda pod: pod.created_s)
    count, each = _shape(gang, bound, site)
    waits = _waits(gang, twice)
    partitions, excluded = _places(gang, bound, objects, site)
    limit = _limit_s(gang, objects)
    lasting = [pod for pod in bound if not pod.deleting]
    begins = bool(lasting) and all(pod.begins for pod in lasting)
    gpu_type = "" if bound else _gpu_type(gang, objects, site)
    return Job(
        id=gang.id,
        name=gang.name,
        user=first.user,
        state="PENDING" if not bound else "COMPLETING" if not lasting else "CONFIGURING" if begins else "RUNNING",
        submit_s=first.created_s,
        nodes=count,
        each=each,
        time_limit_s=limit,
        partitions=partitions,
        priority=max(pod.priority for pod in gang.pods),
        requeue=gang.remade,
        reason=_reason(gang, bound),
        held=not bound and bool(waits),
        held_by="" if bound or not waits else f": {waits}",
        gpu_type=gpu_type,
        gpu_by_place=bool(gpu_type) and not _chooses_gpu(gang),
        demands="" if bound else "; ".join(dict.fromkeys(demands_of(gang, objects, site))),
        excluded=excluded,
        start_s=min((pod.started_s for pod in bound if pod.started_s is not None), default=None),
        end_s=_gone_s(bound) if bound and not lasting else _end_s(bound, objects) if limit is not None else None,
        on=tuple(sorted({pod.node for pod in bound})),
        restarts=math.ceil(sum(job.failed for job in gang.jobs) / gang.size),  # each of its pods counts as failed
        account=first.account,
        origin=first.origin,
    )


# ---- how large it is


def _shape(gang: Gang, bound: list[PodView], site: KubernetesSite) -> tuple[int, Resources]:
    """Nodes, and what it asks of each. On nodes: what it has there on average. Pending: as many pods to a node as one
    holds.
    """
    pods = bound or gang.unbound
    if bound:
        count = len({pod.node for pod in bound})
        return count, _sum(pods, count)
    size = max(gang.size, len(pods))
    most = max(pod.gpus for pod in pods), max(pod.milli_cpus for pod in pods), max(pod.memory for pod in pods)
    alike = all((pod.gpus, pod.milli_cpus, pod.memory) == most for pod in pods)
    if pods[0].together == HOSTNAME_KEY:
        per_node = size
    elif alike and not any(pod.one_per_node for pod in pods):
        per_node = _per_node(most, [pool for pool in site.pools if pool.partition in pods[0].pools])
    else:
        per_node = 1
    count = math.ceil(size / per_node)
    held = math.ceil(size / count)
    return count, Resources(most[0] * held, math.ceil(most[1] * held / 1000), math.ceil(most[2] * held / _MIB))


def _per_node(pod: tuple[int, int, int], pools: Iterable[KubernetesPool]) -> int:
    """How many such pods a node holds, by the pool that holds most; one at least. A job has one shape to the policy: by
    the pool that holds fewest, each pod of a wide gang would rent a large node for itself.
    """
    gpus, milli, memory = pod
    most = 1
    for pool in pools:
        room = ((pool.each.gpus, gpus), (pool.each.cpus * 1000, milli), (pool.each.memory_mb * _MIB, memory))
        most = max(most, min((has // asks for has, asks in room if asks), default=1))
    return most


def _sum(pods: Iterable[PodView], nodes: int) -> Resources:
    gpus = milli = memory = 0
    for pod in pods:
        gpus, milli, memory = gpus + pod.gpus, milli + pod.milli_cpus, memory + pod.memory
    sums = gpus / nodes, milli / nodes / 1000, memory / nodes / _MIB
    return Resources(*map(math.ceil, sums))


# ---- when


def _limit_s(gang: Gang, objects: Objects) -> float | None:
    """The longest of its pods' limits; None: one of them has none. A Job's limit runs while its pods are pending, too:
    they may run shorter, never longer.
    """
    limits = [_pod_limit_s(pod, objects.jobs_by_uid) for pod in gang.pods]
    return None if None in limits else max(limit for limit in limits if limit is not None)


def _pod_limit_s(pod: PodView, jobs: Mapping[str, JobView]) -> float | None:
    job = jobs.get(pod.owner.uid) if pod.owner else None
    limits = [limit for limit in (pod.limit_s, job.limit_s if job else None) if limit is not None]
    return min(limits, default=None)


def _gone_s(bound: list[PodView]) -> float | None:
    """When the grace periods of all that are being deleted are over."""
    return max((pod.gone_s for pod in bound if pod.gone_s is not None), default=None)


def _end_s(bound: list[PodView], objects: Objects) -> float | None:
    """When the last of them ends by its limit; None: not known yet."""
    jobs, ends = objects.jobs_by_uid, []
    for pod in bound:
        job = jobs.get(pod.owner.uid) if pod.owner else None
        own = [pod.started_s + pod.limit_s] if pod.started_s is not None and pod.limit_s is not None else []
        if job and job.limit_s is not None and job.started_s is not None:
            own.append(job.started_s + job.limit_s)
        ends += [min(own)] if own else []
    return max(ends) if len(ends) == len(bound) and ends else None


# ---- why it waits


def _waits(gang: Gang, twice: bool) -> str:
    """Why a pending gang isn't looked at; empty: every pod of it is there, and unschedulable."""
    if twice:
        return "another job has the same id"
    if len(gang.pods) < gang.size:
        return f"{len(gang.pods)} of its {gang.size} pods are there"
    return next((pod.waits for pod in gang.unbound if pod.waits), "")


def _reason(gang: Gang, bound: list[PodView]) -> str:
    waiting = gang.unbound
    if bound:
        return _reason_there(gang, bound)
    if len(gang.pods) < gang.size:
        return f"{INCOMPLETE}: {_waits(gang, False)}"
    shown = next((pod for pod in waiting if pod.waits), waiting[0])
    return shown.reason or f"Waiting: {shown.waits}"


def _reason_there(gang: Gang, bound: list[PodView]) -> str:
    """What its pods that have a node wait for; empty: they work."""
    lasting = [pod for pod in bound if not pod.deleting]
    begin = [pod.begins for pod in lasting if pod.begins]
    ending = len(bound) - len(lasting)
    if begin and len(begin) == len(lasting):
        return begin[0]
    if begin:
        return f"{SOME_WAIT}: {len(begin)} of its {gang.size} pods can't start ({begin[0]})"
    if lasting and ending:
        return f"{SOME_END}: {ending} of its {gang.size} pods are being deleted"
    return f"{INCOMPLETE}: {len(bound)} of its {gang.size} pods have a node" if gang.unbound else ""


# ---- where


def _places(
    gang: Gang, bound: list[PodView], objects: Objects, site: KubernetesSite
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Its partitions, and the nodes of them that it must not be given."""
    pods, rented = bound or gang.unbound, objects.rented
    on = {pod.node for pod in bound}
    partitions, excluded = [site.home_partition], list[str]()
    for pool in site.pools:
        open_to = {
            name for name in pool.nodes if name in rented and taints.open_to_all(pods, rented[name], bool(bound))
        }
        if not open_to and not on & set(pool.nodes):
            continue
        partitions.append(pool.partition)
        anywhere = bound and any(pod.tolerates_all for pod in bound)
        excluded += [] if anywhere else [name for name in pool.nodes if name not in open_to and name not in on]
    return tuple(partitions), tuple(sorted(excluded))


def _pools(gang: Gang, objects: Objects, site: KubernetesSite) -> set[str]:
    """Partitions that the labels of nodes and the volumes of all of its pods allow."""
    allowed = {pool.partition for pool in site.pools}
    for pod in gang.pods:
        allowed &= pod.pools
        for key in pod.claims:
            claim = objects.claims.get(key)
            volume = objects.volumes.get(claim.volume) if claim and claim.volume else None
            if volume and volume.pools is not None:
                allowed &= volume.pools
    return allowed


def _gpu_type(gang: Gang, objects: Objects, site: KubernetesSite) -> str:
    """The type that its labels come down to; empty where that says nothing more. Where all pools have one type, only
    who asks for it says something.
    """
    allowed = _pools(gang, objects, site)
    types = {pool.gpu_type for pool in site.pools if pool.partition in allowed}
    every = {pool.gpu_type for pool in site.pools}
    return types.pop() if len(types) == 1 and (len(every) > 1 or _chooses_gpu(gang)) else ""


def _chooses_gpu(gang: Gang) -> bool:
    return any(pod.chooses_gpu for pod in gang.pods)


def demands_of(gang: Gang, objects: Objects, site: KubernetesSite) -> list[str]:
    """What no rented node can promise its pods."""
    found = [demand for pod in gang.pods for demand in pod.demands]
    found += [demand for pod in gang.pods for key in pod.claims if (demand := _volume(key, objects))]
    found += [pod.error for pod in gang.pods if pod.error]
    if any(pod.tolerates_all for pod in gang.pods):
        found.append("every node whatever its taints, so rented nodes can't be kept for whom they were rented")
    allowed = _pools(gang, objects, site)
    if site.pools and not found:
        of_type = _gpu_type(gang, objects, site)
        meant = {pool.partition for pool in site.pools if not of_type or pool.gpu_type == of_type}
        if not allowed:
            found.append("node labels and volumes that no pool has together")
        elif allowed != meant:
            found.append(f"pool {', '.join(sorted(allowed))} alone, by its node labels or volumes")
    return found + _apart(gang, site)


def _volume(key: str, objects: Objects) -> str:
    claim = objects.claims.get(key)
    if claim is None or not claim.volume:
        return f"the volume claim {key}, which isn't bound yet: where it will be isn't known"
    volume = objects.volumes.get(claim.volume)
    return f"the volume claim {key}, which is bound to home" if volume and volume.pools == frozenset() else ""


def _apart(gang: Gang, site: KubernetesSite) -> list[str]:
    """A gang whose pods may start on both sides at once isn't rented for."""
    if gang.size < 2:
        return []
    keys = {pod.together for pod in gang.pods}
    key = gang.group.topology if gang.group and gang.group.topology else keys.pop() if len(keys) == 1 else ""
    if key == HOSTNAME_KEY:
        return []
    if key not in site.site_keys:
        means = f"required pod affinity or a PodGroup's topology on {SITE_KEY}"
        return [f"{gang.size} pods together, and nothing keeps them on one side: give them {means}"]
    lack = [pool.partition for pool in site.pools if key != SITE_KEY and key not in pool.labels]
    return [f"the topology {key}, which pool {lack[0]} doesn't declare"] if lack else []


def unreadable(seen: Objects) -> tuple[str, ...]:
    """What can't be read, as sentences. Raises WrongShape where that is most pods: another API, not one odd pod."""
    bad = [pod.error for pod in seen.pods.values() if pod.error]
    if len(bad) > max(1, len(seen.pods) // 2):
        raise WrongShape(f"{len(bad)} of {len(seen.pods)} pods can't be read: {bad[0]}")
    others: list[ObjectView] = [
        *seen.nodes.values(),
        *seen.jobs.values(),
        *seen.groups.values(),
        *seen.volumes.values(),
    ]
    twice = [f"two jobs have the id {id}: neither is touched" for id in sorted(seen.gangs[1])]
    return (*bad, *(view.error for view in others if view.error), *twice)
