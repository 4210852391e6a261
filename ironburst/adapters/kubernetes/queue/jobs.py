"""Gangs of pods as jobs of the policy. Pure.

A job's `partitions` are where its pods may start as they are: at home, and in a pool if all of them tolerate the taint
of enough of its nodes; `excluded` are that pool's other nodes. So the policy's own widening and narrowing can be read
back from the cluster.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import is_

from ironburst.adapters.kubernetes import taints
from ironburst.adapters.kubernetes.gangs import Gang
from ironburst.adapters.kubernetes.queue import demands, limits
from ironburst.adapters.kubernetes.queue.seen import Objects
from ironburst.adapters.kubernetes.queue.shape import Shape, shape_of, too_large
from ironburst.adapters.kubernetes.site import KubernetesSite
from ironburst.adapters.kubernetes.views import DefaultView, PodView
from ironburst.nodes.state_times import INCOMPLETE, SOME_END, SOME_WAIT
from ironburst.ports import Job


@dataclass
class Memo:
    """Jobs as they were made last, by the gang's key: most are the same a tick later."""

    rented: dict[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, DefaultView] = field(default_factory=dict)
    jobs: dict[str, tuple[Gang, Job]] = field(default_factory=dict)


def jobs_of(objects: Objects, site: KubernetesSite, memo: Memo | None = None) -> list[Job]:
    """Pods that ask for no GPU are no jobs, but on a rented node they are. `memo`: of the same site; it is brought up
    to date.
    """
    gangs, twice = objects.gangs
    same = memo and memo.rented == objects.rented and memo.namespaces == objects.namespaces
    before = memo.jobs if memo and same else {}
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
        memo.rented, memo.namespaces, memo.jobs = objects.rented, objects.namespaces, kept
    return found


def _same(one: Gang, other: Gang) -> bool:
    """Of the very same views: they never change, an object that changed has a new one."""
    alike = len(one.pods) == len(other.pods) and len(one.jobs) == len(other.jobs) and one.group is other.group
    return alike and all(map(is_, one.pods, other.pods)) and all(map(is_, one.jobs, other.jobs))


def job_of(gang: Gang, objects: Objects, site: KubernetesSite, *, twice: bool = False) -> Job | None:
    """A gang as a job; None: all that is left of it is being deleted before it started."""
    bound = gang.bound(site)
    if not bound and not gang.unbound_workers:
        return None
    first = min(gang.pods, key=lambda pod: pod.created_s)
    shape = shape_of(gang, bound, objects, site)
    waits = _waits(gang, twice)
    partitions, excluded = _places(gang, bound, objects, site)
    limit = limits.limit_s(gang, bound, objects, site)
    lasting = [pod for pod in bound if not pod.deleting]
    begins = bool(lasting) and all(pod.begins for pod in lasting)
    gpu_type = "" if bound else demands.gpu_type(gang, objects, site)
    return Job(
        id=gang.id,
        name=gang.name,
        user=first.user,
        state="PENDING" if not bound else "COMPLETING" if not lasting else "CONFIGURING" if begins else "RUNNING",
        submit_s=first.created_s,
        nodes=shape.nodes,
        each=shape.each,
        time_limit_s=limit,
        partitions=partitions,
        priority=max(pod.priority for pod in gang.pods),
        requeue=gang.remade,
        reason=_reason(gang, bound),
        held=not bound and bool(waits),
        held_by="" if bound or not waits else f": {waits}",
        gpu_type=gpu_type,
        gpu_by_place=bool(gpu_type) and not demands.chooses_gpu(gang),
        demands="" if bound else _demands(gang, shape, objects, site),
        excluded=excluded,
        start_s=min((pod.started_s for pod in bound if pod.started_s is not None), default=None),
        end_s=limits.end_s(bound, objects),
        on=tuple(sorted({pod.node for pod in bound})),
        restarts=math.ceil(sum(job.failed for job in gang.jobs) / gang.size),  # each of its pods counts as failed
        account=first.account,
        origin=first.origin,
        called=gang.name,
        alike=_alike(gang),
    )


def _demands(gang: Gang, shape: Shape, objects: Objects, site: KubernetesSite) -> str:
    found = demands.demands_of(gang, objects, site)
    large = "" if found else too_large(shape, gang, objects, site)
    return "; ".join(dict.fromkeys([*found, *filter(None, [large])]))


def _alike(gang: Gang) -> str:
    """The same while it waits and when it runs; so without its volumes, which are made where it starts."""
    its = sorted(pod.alike for pod in gang.workers)
    return hashlib.sha256(repr((its, gang.size)).encode()).hexdigest()[:16] if all(its) else ""


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
