"""A Kubernetes cluster whose queue is Kueue: we answer an AdmissionCheck of the cloud's flavors (docs/adr/0038).

Nodes, their taints, the record and the claim are as they are with kube-scheduler's queue. What changes is whom a rented
node is opened for: by an answer to Kueue, before the pods are there, and not by a toleration of each pod.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from ironburst.adapters.kubernetes import (
    check_states,
    joining,
    kueue_views,
    objects,
    queue,
    quota_room,
    quotas,
    taints,
    workloads,
)
from ironburst.adapters.kubernetes.blockers import Blocker, blockers, event
from ironburst.adapters.kubernetes.cache import FIRST_S, Cache, Kind
from ironburst.adapters.kubernetes.client import ApiError, Client, checked
from ironburst.adapters.kubernetes.gangs import Gang
from ironburst.adapters.kubernetes.joining import Deliver
from ironburst.adapters.kubernetes.kueue_views import GROUP, PENDING, READY, VERSION, WorkloadView
from ironburst.adapters.kubernetes.queue import KEPT, Objects
from ironburst.adapters.kubernetes.scheduler import Kubernetes
from ironburst.adapters.kubernetes.site import KubernetesPool, KubernetesSite
from ironburst.adapters.kubernetes.views import ObjectView
from ironburst.adapters.kubernetes.workloads import Queued
from ironburst.nodes import naming
from ironburst.ports import Claim, Job, Observation, Quota, SchedulerError, TeamShare

Json = dict[str, Any]
_API = f"/apis/{GROUP}/{VERSION}"
_KEPT = {
    **KEPT,
    "workloads": "workloads",
    "queues": "clusterqueues",
    "cohorts": "cohorts",
    "flavors": "resourceflavors",
    "checks": "admissionchecks",
    "local_queues": "localqueues",
}
_HOME, _LOST, _CHANGED = "there is room at home", "its rented nodes are gone", "it gets other rented nodes"
_EVENT_S = 3600.0  # an API server keeps an Event for an hour
_AGAIN_S = (60.0, 3600.0)  # the first pause after a Retry for home that didn't bring it there, and the longest


def kueue_kinds(site: KubernetesSite) -> list[Kind]:
    """What is watched beside the cluster's own."""
    return [
        Kind("workloads", (f"{_API}/workloads",), partial(kueue_views.read_workload, site=site)),
        Kind("clusterqueues", (f"{_API}/clusterqueues",), kueue_views.read_queue),
        Kind("cohorts", (f"{_API}/cohorts",), kueue_views.read_queue),
        Kind("resourceflavors", (f"{_API}/resourceflavors",), partial(kueue_views.read_flavor, site=site)),
        Kind("admissionchecks", (f"{_API}/admissionchecks",), kueue_views.read_check),
        Kind("localqueues", (f"{_API}/localqueues",), objects.read_default),
    ]


class Kueue(Kubernetes):
    """A Scheduler (ironburst.ports) whose queue is Kueue's. Close it in the end."""

    @staticmethod
    def watched(site: KubernetesSite) -> list[Kind]:
        """The cluster's own, and Kueue's."""
        return [*queue.kinds(site), *kueue_kinds(site)]

    def __init__(
        self,
        client: Client,
        site: KubernetesSite,
        cache: Cache | None = None,
        *,
        deliver: Deliver = joining.refuse,
        first_s: float = FIRST_S,
        clock: Callable[[], float] = time.monotonic,
    ):
        super().__init__(client, site, cache, deliver=deliver, first_s=first_s)
        self._clock = clock
        self._sent: dict[str, tuple[float, int]] = {}  # uids of workloads sent home in vain: when, how often
        self._trouble: tuple[str, ...] = ()  # sentences of the last round of answers
        self._blockers: list[Blocker] = []  # as last observed
        self._told: dict[tuple[str, str], float] = {}  # uids of a holder and of whom an Event says so: when

    # ---- reading
    def objects(self) -> Queued:
        """Also Kueue's."""
        try:
            return Queued(**self._copies(_KEPT), check=self._site.object_name)
        except SchedulerError as error:
            if f"of {GROUP}/{VERSION}" not in str(error):
                raise
            todo = f"install Kueue 0.15 or newer, which serves {VERSION}, or set scheduler.queue to pods"
            raise SchedulerError(f"the cluster has no Kueue that this ironburst knows ({error}): {todo}") from None

    def _jobs(self, seen: Objects) -> list[Job]:
        return workloads.jobs_of(cast(Queued, seen), self._site)

    def observe(self) -> Observation:
        """Also what went wrong with the last answers."""
        found, seen = super().observe(), self.objects()
        views: list[ObjectView] = [*seen.workloads.values(), *seen.local_queues.values()]
        bad = [each.error for each in views if each.error]
        self._blockers = blockers(seen, found.jobs)
        said = (*workloads.misdeclared(seen, naming.check_controller(self._site.name)), *bad, *self._trouble)
        return replace(found, unreadable=(*found.unreadable, *said, *(each.message for each in self._blockers)))

    # ---- answers that nobody decides
    def claim(self, owner: str, said: str, stale_s: float) -> Claim:
        """The controller that holds the site answers Kueue, once a tick: that somebody is there, and who goes home."""
        before = super().claim(owner, said, stale_s)
        if owner and (before.owner in ("", owner) or before.age_s > stale_s):
            self._trouble = tuple(self._answers())
        return before

    def _answers(self) -> list[str]:
        found: list[str] = []
        for act in (self._stand_by, self._take_back, self._send_home, self._tell):
            try:
                act(self.objects())
            except SchedulerError as error:
                found.append(f"Kueue isn't answered: {error}")
        return found

    def _stand_by(self, seen: Queued) -> None:
        """Kueue starts nothing of a ClusterQueue whose check is not Active, not even at home."""
        mine = seen.checks.get(seen.check)
        if mine and not mine.active and mine.controller == naming.check_controller(self._site.name):
            path = f"{_API}/admissionchecks/{checked(seen.check)}/status"
            self._note("admissionchecks", self._client.change(path, lambda raw: check_states.active(raw, self.now())))

    def _take_back(self, seen: Queued) -> None:
        """Workloads that were let on nodes which are gone before any of their pods started."""
        there = set(seen.rented.values())
        started = {key for key, pods in seen.owned[0].items() if any(pod.node for pod in pods)}
        lost = {
            each.key: each
            for each in seen.workloads.values()
            if not seen.waits(each)
            and (answer := each.checks[seen.check]).state == READY
            and not answer.tolerates & there
            and workloads.key_of(each) not in started
        }
        self._each(lost, lambda key: self._retry(lost[key], _LOST))

    def _send_home(self, seen: Queued) -> None:
        """Those that Kueue would start at home now; after a vain try the next one comes later."""
        uids = {each.uid for each in seen.workloads.values()}
        self._sent = {uid: known for uid, known in self._sent.items() if uid in uids}
        due = {each.key: each for each in quota_room.start_at_home(seen, self._site) if self._due(each)}

        def send(key: str) -> None:
            each = due[key]
            self._retry(each, _HOME)
            self._sent[each.uid] = self._clock(), self._sent.get(each.uid, (0.0, 0))[1] + 1

        self._each(due, send)

    def _tell(self, seen: Queued) -> None:
        """Those who wait behind a holder of quota, and its user, see it by `kubectl describe`."""
        del seen
        pairs = {(by.holder.uid, of.uid): (by, of) for by in self._blockers for of in by.told}
        now_s = self._clock()
        self._told = {key: at_s for key, at_s in self._told.items() if key in pairs and now_s - at_s < _EVENT_S}
        for key, (by, of) in pairs.items():
            if key in self._told:
                continue
            path = f"/api/v1/namespaces/{checked(of.key.partition('/')[0])}/events"
            try:
                self._client.create(path, event(of, by, self.now()))
            except ApiError as error:
                if error.status != 409:  # it is there, from before
                    raise
            self._told[key] = now_s

    def _due(self, each: WorkloadView) -> bool:
        at_s, times = self._sent.get(each.uid, (-float("inf"), 0))
        first_s, most_s = _AGAIN_S
        return self._clock() - at_s >= min(first_s * 2.0 ** (times - 1), most_s)

    # ---- answers to the policy
    def place(self, job: int, partitions: Sequence[str], excluded: Sequence[str], *, begin_now: bool = False) -> None:
        """Let a workload that is held on exactly these rented nodes. Kueue takes an answer back only with the quota:
        what was let elsewhere is put into the queue again, and placed from there. It can't start at home meanwhile,
        unlike a job of Slurm's; it would have been sent home before.
        """
        del begin_now
        seen = self.objects()
        gang = self._gang(job, seen)
        now, name = seen.known.get(gang.key), gang.name
        if now is None:
            raise SchedulerError(f"job {job} ({name}) isn't in Kueue's queue: nothing is rented for it")
        started = "some of its pods have a node" if gang.bound(self._site) else ""
        if why := seen.waits(now) or started:
            raise SchedulerError(f"job {job} ({name}) isn't pending for rented nodes: {why}")
        pools = [pool for pool in self._site.pools if pool.partition in partitions]
        wanted = sorted({node for pool in pools for node in pool.nodes} - set(excluded))
        if missing := [node for node in wanted if node not in seen.rented]:
            raise SchedulerError(f"job {job} ({name}) can't be let on {', '.join(missing)}: not in service")
        if now.checks[seen.check].state == READY:
            if not wanted or now.checks[seen.check].tolerates != seen.exactly(wanted):
                self._retry(now, _CHANGED if wanted else _LOST)
        elif wanted:
            self._open(now, gang, seen, pools, wanted)

    def _open(
        self, now: WorkloadView, gang: Gang, seen: Queued, pools: Sequence[KubernetesPool], nodes: Sequence[str]
    ) -> None:
        site = pools[0].partition
        if len(pools) > 1:
            raise SchedulerError(
                f"{gang.name} can't be let on {' and '.join(pool.partition for pool in pools)} at once"
            )
        if any(site not in pod.pools for pod in gang.pods):
            raise SchedulerError(f"{gang.name} can't start in {site}: its node labels or its flavor's say otherwise")
        values = seen.exactly(nodes)
        if values is None or len(values) > check_states.MOST_TOLERATIONS:
            values = frozenset([self._one_value(now, seen, nodes)])
        sets = [each.name for each in seen.cloud_sets(now)]
        self._answer(now, check_states.ready(sets, site, sorted(values)), (PENDING,))

    def _one_value(self, now: WorkloadView, seen: Queued, nodes: Sequence[str]) -> str:
        """Give all of these nodes' taints the same new value."""
        value = taints.shared_value(now.uid, seen.rented.values())

        def change(node: str) -> None:
            before = seen.rented[node]

            def changed(raw: Json) -> Json | None:
                if taints.value_of(objects.read_node(raw)) != before:
                    raise SchedulerError(f"node {node} was given to somebody else at the same time")
                return {"spec": {"taints": taints.with_value(raw["spec"].get("taints") or (), value)}}

            self._note("nodes", self._client.change(self._node(node), changed))

        self._each(nodes, change)
        return value

    def limit(self, shares: Sequence[TeamShare], now: Mapping[str, Quota], gpus: int) -> None:
        """As nominal quotas of the teams' queues. Who goes over them Kueue decides; ResourceQuotas would refuse its
        pods. What is on rented nodes counts in a flavor of its own.
        """
        del now
        quotas.write_queues(self._client, shares, gpus)

    def requeue(self, *jobs: int) -> dict[int, str]:
        """Kueue ends all pods of a workload and puts it into the queue again; other pods are evicted."""
        seen, refused, others = self.objects(), dict[int, str](), list[int]()
        keys = {gang.id: gang.key for gang in seen.gangs[0]}
        for job in jobs:
            now = seen.known.get(keys.get(job, ""))
            if now is None or not seen.ours(now):
                others.append(job)
                continue
            try:
                self._retry(now, "its rented nodes go")
            except SchedulerError as error:
                refused[job] = str(error)
        return {**refused, **(super().requeue(*others) if others else {})}

    def _retry(self, workload: WorkloadView, message: str) -> None:
        self._answer(workload, check_states.retry(message), (PENDING, READY))

    def _answer(self, workload: WorkloadView, answer: Json, only: tuple[str, ...]) -> None:
        """To what is still the same workload, with its quota, which isn't being evicted, and whose check is one of
        `only`; otherwise Kueue has gone on meanwhile, and the next tick sees that. Raises SchedulerError then.
        """
        space, _, name = workload.key.partition("/")
        check = self._site.object_name

        def changed(raw: Json) -> Json:
            now = kueue_views.read_workload(raw, self._site)
            entry = now.checks.get(check)
            same = (now.uid, now.reserved_s, now.sets) == (workload.uid, workload.reserved_s, workload.sets)
            if not same or now.reserved_s is None or now.evicted or entry is None or entry.state not in only:
                raise SchedulerError(f"workload {workload.key} has changed: it isn't answered {answer['state']}")
            return check_states.patch(raw, check, answer, self.now())

        path = f"{_API}/namespaces/{checked(space)}/workloads/{checked(name)}/status"
        try:
            self._note("workloads", self._client.change(path, changed))
        except ApiError as error:
            if error.status == 404 and workload.key in str(error):
                raise SchedulerError(f"workload {workload.key} is gone") from None
            raise
