"""Kueue's workloads as jobs of the policy. Pure.

A job is a Workload, whatever pods it has. It waits for us where Kueue has
reserved quota for it on a flavor with our check and asks: the check is Pending. Everywhere else Kueue holds it, or has
let it start at home, and nothing is rented for it.

What Kueue does that isn't obvious (0.19.2, tried):
- The entry of a check stays for some milliseconds after a workload was given a home flavor: the flavors say where it
  is, not the entry.
- An eviction sets all checks back to Pending first; the workload keeps its quota, its condition Admitted and its pods
  until these are gone (a second and more). Who answers Ready then answers for what is just ending.
- Without Active in the AdmissionCheck's status, and without the AdmissionCheck, the whole ClusterQueue is out of
  service, home too. A check without onFlavors is on every flavor, home too.
- With a topology on a flavor Kueue gives that flavor only to workloads that ask for one, and to them no other; where
  all of a ClusterQueue's flavors have one, everybody asks. And it wants to see the nodes first, unless a check of
  ProvisioningRequests is on the flavor: then it places the pods when all checks are Ready, ours too (docs/adr/0101).
- Concurrent Admission (alpha) runs one workload a flavor, and a parent above them. What our check says of the pods
  stays with the variant: the job starts without it, and never reaches its nodes. Nothing is rented in such queues.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ironburst.adapters.kubernetes import queue
from ironburst.adapters.kubernetes.gangs import Gang, grouped
from ironburst.adapters.kubernetes.kueue_views import (
    PENDING,
    READY,
    Check,
    CheckView,
    FlavorView,
    PodSet,
    QueueView,
    WorkloadView,
)
from ironburst.adapters.kubernetes.queue import Objects
from ironburst.adapters.kubernetes.site import SITE_KEY, KubernetesSite
from ironburst.adapters.kubernetes.views import DefaultView, JobView, Owner, PodView
from ironburst.ports import Job

DELAYS = "kueue.x-k8s.io/provisioning-request"  # check controller for which Kueue waits with the topology
RIVALS = (DELAYS, "kueue.x-k8s.io/multikueue")  # check controllers that bring nodes, too
_ELSEWHERE = re.compile(r'Flavor "([^"]+)" does not (?:support TopologyAwareScheduling|contain the requested level)')


@dataclass(frozen=True)
class Queued(Objects):
    """A cluster whose queue is Kueue's, at one moment. `check`: the name of our AdmissionCheck."""

    workloads: Mapping[str, WorkloadView]
    queues: Mapping[str, QueueView]
    cohorts: Mapping[str, QueueView]
    flavors: Mapping[str, FlavorView]
    checks: Mapping[str, CheckView]
    check: str
    local_queues: Mapping[str, DefaultView] = field(default_factory=dict, kw_only=True)

    @cached_property
    def known(self) -> dict[str, WorkloadView]:
        """By the key of their gangs; without variants, for which another workload stands."""
        return {key_of(each): each for each in self.workloads.values() if not each.variant}

    @cached_property
    def owned(self) -> tuple[dict[str, list[PodView]], list[PodView]]:
        """The pods of each workload, by its gang's key, and the pods of none."""
        of: dict[str, str] = {}
        for key, each in self.known.items():
            of |= {each.key: key, **dict.fromkeys(each.owners, key)}
            if each.jobset:
                of[f"jobset {each.key.partition('/')[0]}/{each.jobset}"] = key
        mine: dict[str, list[PodView]] = {}
        others = list[PodView]()
        for pod in self.pods.values():
            own = f"{pod.namespace}/{pod.queued_as}", f"jobset {pod.namespace}/{pod.jobset}"
            names = (*own, pod.uid, pod.owner.uid if pod.owner else "")
            found = next((of[name] for name in names if name in of), "")
            (mine.setdefault(found, []) if found else others).append(pod)
        return mine, others

    @cached_property
    def gangs(self) -> tuple[list[Gang], frozenset[int]]:
        """Workloads, and the pods that are none of Kueue's; no pod twice."""
        mine, others = self.owned
        owned = {uid for each in self.workloads.values() for uid in each.owners}
        jobs = [job for job in self.jobs.values() if job.uid not in owned]
        plain, _ = grouped(others, jobs, self.groups.values())
        made = (self._gang(key, each, mine.get(key, [])) for key, each in self.known.items())
        found = [gang for gang in made if gang]
        counted = Counter(gang.id for gang in (*found, *plain))
        return [*found, *plain], frozenset(id for id, count in counted.items() if count > 1)

    def _gang(self, key: str, now: WorkloadView, pods: list[PodView]) -> Gang | None:
        bound = [pod for pod in pods if pod.node]
        if not bound and (now.finished or not now.active):
            return None
        jobs = tuple(job for job in self.jobs.values() if job.uid in now.owners) if now.owners else ()
        sets = self.cloud_sets(now) or now.sets
        size = sum(each.count for each in sets)
        if not bound:
            waits = self.waits(now)
            pods = [pod for each in sets for pod in [self._waiting(each, now, jobs, waits)] * each.count]
        if not pods:
            return None
        return Gang(key, called(now), tuple(pods), max(size, len(pods)), jobs=jobs, remade=self.ours(now))

    def _waiting(self, each: PodSet, of: WorkloadView, jobs: tuple[JobView, ...], waits: str) -> PodView:
        """A pod of a set that has none yet, or none with a node. What Kueue gives it, it will have: the labels of its
        flavor, and what our check says.
        """
        pools, answer = each.pod.pools, of.checks.get(self.check)
        for flavor in set(each.flavors.values()):
            pools &= self.flavors[flavor].pools if flavor in self.flavors else frozenset()
        owner = next((Owner("Job", job.name, job.uid) for job in jobs), None)
        of_queue = self.local_queues.get(f"{each.pod.namespace}/{of.queue}")
        return replace(
            each.pod,
            owner=owner,
            limit_s=min((limit for limit in (each.pod.limit_s, of.limit_s) if limit is not None), default=None),
            aside_s=of_queue.aside_s if of_queue and each.pod.aside_s is None else each.pod.aside_s,
            waits=waits,
            reason=f"Kueue: {of.said or waits or _held(answer)}",
            pools=pools,
            together=each.pod.together or ("" if waits else SITE_KEY),  # the answer puts all of them on one side
            tolerates=answer.tolerates if answer and answer.state == READY else frozenset(),
        )

    def exactly(self, nodes: Collection[str]) -> frozenset[str] | None:
        """The values of the taints of these rented nodes; None: other nodes have one of them, too."""
        values = frozenset(self.rented[node] for node in nodes)
        return None if any(value in values for name, value in self.rented.items() if name not in nodes) else values

    # ---- what Kueue waits for
    def cloud_sets(self, workload: WorkloadView) -> tuple[PodSet, ...]:
        """Its pod sets that are on a flavor with our check."""
        return tuple(each for each in workload.sets if self.cloud(workload) & set(each.flavors.values()))

    def cloud(self, workload: WorkloadView) -> frozenset[str]:
        """The flavors with our check that it was given quota of."""
        given = frozenset(flavor for each in workload.sets for flavor in each.flavors.values())
        queue_of = self.queues.get(workload.cluster_queue)
        if queue_of is None or self.check not in queue_of.checks:
            return frozenset()
        return given & (queue_of.checks[self.check] or given)

    def ours(self, workload: WorkloadView) -> bool:
        """It has quota on a flavor with our check, so that our Retry takes it back."""
        has = workload.reserved_s is not None and not workload.error and self.check in workload.checks
        return has and bool(self.cloud(workload))

    def waits(self, workload: WorkloadView) -> str:
        """Why nothing is to be answered; empty: it is held for rented nodes, or has been let on them."""
        if workload.error:
            return "unreadable"
        if not workload.active:
            return "it is deactivated"
        if workload.has_variants:
            return "its ClusterQueue has a concurrentAdmissionPolicy"
        if workload.reserved_s is None:
            return f"it waits for quota{self._at_home_alone(workload)}"
        if workload.evicted:
            return "Kueue takes it back"
        if not self.cloud(workload):
            return "it has quota at home"
        if rival := self.rival(workload):
            return f"two controllers launch for it: ironburst and {rival}"
        answer = workload.checks.get(self.check)
        return "" if answer and answer.state in (PENDING, READY) else "Kueue hasn't asked yet"

    def _at_home_alone(self, workload: WorkloadView) -> str:
        """By Kueue's words: the flavor of the cloud that it isn't given."""
        cloud = {flavor for each in self.queues.values() for flavor in each.checks.get(self.check, ())}
        lacks = next((name for name in _ELSEWHERE.findall(workload.said) if name in cloud), "")
        return lacks and f", and never rents: it asks for a topology that flavor {lacks} doesn't have"

    def rival(self, workload: WorkloadView) -> str:
        """Another check that brings nodes for the same workload; not one that is Ready and changes nothing: it manages
        none of its resources.
        """
        for name, answer in workload.checks.items():
            found = self.checks.get(name)
            idle = answer.state == READY and not answer.updates
            if name != self.check and found and found.controller in RIVALS and not idle:
                return name
        return ""


def called(workload: WorkloadView) -> str:
    """By its namespace and its owner's name, as its user knows it."""
    return f"{workload.key.partition('/')[0]}/{workload.called}"


def key_of(workload: WorkloadView) -> str:
    """What its gang is known by for as long as it lives."""
    return f"workload {workload.uid}"


def _held(answer: Check | None) -> str:
    return "let on rented nodes" if answer and answer.state == READY else "held for rented nodes"


def jobs_of(seen: Queued, site: KubernetesSite) -> list[Job]:
    """All jobs: workloads, and pods that are none of Kueue's."""
    gangs, twice = seen.gangs
    found = []
    for gang in gangs:
        if any(pod.gpus or pod.node in site.pool_of for pod in gang.pods) and (
            job := queue.job_of(gang, seen, site, twice=gang.id in twice)
        ):
            workload = seen.known.get(gang.key)
            found.append(_of_workload(job, workload) if workload else _beside(job))
    return found


def _of_workload(job: Job, now: WorkloadView) -> Job:
    """With Kueue's own times: it waits since its quota was reserved, and ends by maximumExecutionTimeSeconds."""
    limits = [each for each in (job.time_limit_s, now.limit_s) if each is not None]
    ends = [] if job.end_s is None else [job.end_s]
    if now.admitted_s is not None and now.limit_s is not None:
        ends.append(now.admitted_s + now.limit_s)
    waiting = job.pending and not job.held
    its = sorted((each.name, each.count, each.pod.alike, tuple(sorted(each.flavors.items()))) for each in now.sets)
    return replace(
        job,
        alike=hashlib.sha256(repr(its).encode()).hexdigest()[:16],
        time_limit_s=min(limits, default=None),
        end_s=min(ends, default=None) if job.on else None,
        eligible_s=now.reserved_s if waiting else None,
        priority=now.priority,
    )


def _beside(job: Job) -> Job:
    """Pods that aren't Kueue's: they have their place at home, and nothing is rented for them."""
    if not job.pending:
        return job
    demand = "a start beside Kueue's queue (no label kueue.x-k8s.io/queue-name)"
    return replace(job, demands="; ".join(filter(None, (demand, job.demands))))


def misdeclared(seen: Queued, controller: str) -> Iterable[str]:
    """Sentences on what keeps Kueue from asking us, or makes it ask for home."""
    declared = seen.checks.get(seen.check)
    if declared is None:
        yield f"there is no AdmissionCheck {seen.check}: `pulumi up` with admin_kubeconfig makes it, or make it by hand"
    elif declared.controller != controller:
        yield (
            f"AdmissionCheck {seen.check} belongs to {declared.controller}, not to {controller}, and launching has one "
            "owner: delete it, so that it is made anew, or set scheduler.queue to pods"
        )
    for name, each in sorted(seen.queues.items()):
        if each.error:
            yield each.error
        if seen.check not in each.checks:
            continue
        if each.variants:
            yield (
                f"ClusterQueue {name} has a concurrentAdmissionPolicy: Kueue then drops the node selector and the "
                "tolerations of our check, so nothing is rented for it; make the queue anew without that"
            )
        cloud = each.checks[seen.check]
        if not cloud:
            yield f"ClusterQueue {name}: check {seen.check} names no onFlavors, so it holds home, too: name the cloud's"
        for group in each.groups:
            order = list(group)
            first = next((at for at, flavor in enumerate(order) if flavor in cloud), len(order))
            if late := [flavor for flavor in order[first:] if flavor not in cloud]:
                yield f"ClusterQueue {name} tries flavor {order[first]} before {late[0]}: put the cloud's flavors last"
        yield from _topologies(name, each, seen)


def _topologies(name: str, queue: QueueView, seen: Queued) -> Iterable[str]:
    """Where some of its flavors have a topology: who then never gets home, or never the cloud."""
    flavors = dict.fromkeys(flavor for group in queue.groups for flavor in group if flavor in seen.flavors)
    placed = [flavor for flavor in flavors if seen.flavors[flavor].topology]
    plain = [flavor for flavor in flavors if flavor not in placed]
    cloud = queue.checks[seen.check] or frozenset(flavors)
    if placed and plain:
        yield (
            f"ClusterQueue {name}: flavor {placed[0]} has a topologyName and {plain[0]} has none, so Kueue gives "
            f"{placed[0]} only to workloads that ask for a topology and {plain[0]} only to others, whatever is free: "
            "give all of its flavors a topologyName, or none"
        )
    delayed = frozenset[str]()
    for check, on in queue.checks.items():
        if check in seen.checks and seen.checks[check].controller == DELAYS:
            delayed |= on or frozenset(flavors)
    if now := [flavor for flavor in placed if flavor in cloud and flavor not in delayed]:
        yield (
            f"ClusterQueue {name}: flavor {now[0]} has a topologyName, so Kueue gives it only when its nodes are "
            "there, and nothing is rented: put a ProvisioningRequest check that manages nothing on it beside ours "
            "(docs/how-to/kubernetes.md#with-topologies)"
        )
