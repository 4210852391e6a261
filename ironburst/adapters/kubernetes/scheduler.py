"""A Kubernetes cluster as the controller's scheduler: kube-scheduler is the queue (docs/adr/0033).

Pods are read from a cache that follows the cluster; what is to be changed is changed one object at a time, each time on
the condition that it is still what was read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from ironburst.adapters.kubernetes import (
    devices,
    evictions,
    instances,
    joining,
    nodes,
    objects,
    pods,
    queue,
    quotas,
    record,
    taints,
)
from ironburst.adapters.kubernetes.cache import FIRST_S, Cache
from ironburst.adapters.kubernetes.client import JSON_PATCH, ApiError, Client, checked
from ironburst.adapters.kubernetes.gangs import Gang
from ironburst.adapters.kubernetes.instances import Names
from ironburst.adapters.kubernetes.joining import Deliver, Joining
from ironburst.adapters.kubernetes.nodes import NodesRecord, gate_lost
from ironburst.adapters.kubernetes.queue import Objects
from ironburst.adapters.kubernetes.site import BEAT, DRAIN, KubernetesSite
from ironburst.adapters.kubernetes.views import PodView
from ironburst.ports import Claim, Job, Observation, Quota, SchedulerError, TeamShare

Json = dict[str, Any]
T = TypeVar("T")
_NODES, _PODS = "/api/v1/nodes", "/api/v1/pods"
_AT_ONCE = 8  # requests side by side
_SETTLE_S = 1.0  # after a cordon, until kube-scheduler has surely seen it
_RELEASED, _UNUSED = "release", "no lease"  # why we cordoned it; the policy knows these words as ours
_GATE_LOST = "ironburst: its gate stopped passing"


class Kubernetes:
    """A Scheduler (ironburst.ports) whose queue is kube-scheduler's. Close it in the end."""

    watched = staticmethod(queue.kinds)

    def __init__(
        self,
        client: Client,
        site: KubernetesSite,
        cache: Cache | None = None,
        *,
        deliver: Deliver = joining.refuse,
        first_s: float = FIRST_S,
    ):
        self._client, self._site, self._first_s = client, site, first_s
        self._joining = Joining(client, site.boot_s, deliver)
        self._cache = cache or Cache(client, self.watched(site))
        self._writing = threading.Lock()
        self._memo, self._names = queue.Memo(), Names(site)
        self._cordoned: dict[str, float] = {}  # nodes that we released, and since when (monotonic)

    def declare(self, site: KubernetesSite) -> None:
        """As another document says. What is kept of pods depends on the pools: all is read again then."""
        if site == self._site:
            return
        self._cache.close()
        self._site, self._memo, self._names = site, queue.Memo(), Names(site)
        self._cache = Cache(self._client, self.watched(site))
        self._joining.lasts(site.boot_s)

    def close(self) -> None:
        """End the watches."""
        self._cache.close()

    def now(self) -> float:
        """By the API server's clock."""
        return self._client.now()

    # ---- reading
    def observe(self) -> Observation:
        """The queue, all nodes, and the permits."""
        kept, seen = self._read(), self.objects()
        jobs = self._jobs(seen)
        bound = [pod for pod in seen.pods.values() if pod.node]
        has = queue.for_jobs(seen, self._site)
        shown = nodes.nodes_of(seen.nodes, bound, kept, self._site, self._client.now(), has)
        counted = {gang.id: kind for gang in seen.gangs[0] if (kind := gang.pods[0].share)}
        return Observation(tuple(jobs), tuple(shown), kept.permits, queue.unreadable(seen), counted)

    def objects(self) -> Objects:
        """What the cluster has now. Raises SchedulerError where that isn't known."""
        return Objects(**self._copies(queue.KEPT))

    def _copies(self, kept: Mapping[str, str]) -> dict[str, Any]:
        """By their names in Objects: {name there: kind}."""
        if not self._names.known:
            self._read()
        copies = self._names.declared(devices.counted(cast(Mapping[str, Any], self._cache.copies(self._first_s))))
        return {name: copies[kind] for name, kind in kept.items()}

    def _read(self) -> NodesRecord:
        kept = record.read(self._client, self._site)
        self._names.learn(kept)
        return kept

    def _jobs(self, seen: Objects) -> list[Job]:
        return queue.jobs_of(seen, self._site, self._memo)

    # ---- the controller's own
    def claim(self, owner: str, said: str, stale_s: float) -> Claim:
        """As a Lease; its age is by the API server's clock."""
        return record.claim(self._client, self._site, owner, said, stale_s)

    def put_permit(self, nodes: Sequence[str]) -> None:
        """In the record; what they join with is there before."""
        if not self._site.by_instance:
            self._joining.token()
        self._record(lambda kept: joining.permitted(kept, kept.permits | set(nodes)))

    def remove_permit(self, nodes: Sequence[str]) -> None:
        """Also of nodes that have none."""
        self._record(lambda kept: joining.permitted(kept, kept.permits - set(nodes)))

    def admit(self) -> Sequence[str]:
        """Approve what nodes with a permit and without a Node object ask for. One that joins by itself is believed."""
        kept = self._read()
        if self._site.by_instance:
            new, odd = instances.joined(self.objects().nodes, kept.permits, self._site)
            if new:
                self._record(lambda kept: replace(kept, objects={**kept.objects, **new}))
            return odd
        if awaited := kept.permits - self.objects().nodes.keys():
            self._joining.token()  # one that boots late reads it late

        def give(new: Mapping[str, str]) -> None:
            self._record(partial(joining.given, new=new))

        return self._joining.approve(awaited, self._site.pool_of.keys(), kept.given, give)

    def power_up(self, nodes: Sequence[str]) -> None:
        """In the record: Kubernetes knows a node only when its kubelet registers."""
        if unknown := sorted(set(nodes) - self._site.pool_of.keys()):
            raise SchedulerError(f"no pool declares {', '.join(unknown)}")
        self._record(lambda kept: replace(kept, up=kept.up | set(nodes)))

    def heal(self, nodes: Sequence[str]) -> None:
        """Delete what is left of nodes that nobody asked for and that don't answer: their pods, and the Nodes."""
        self._each(nodes, lambda name: self._abandon(name, _UNUSED))

    # ---- nodes
    def resume(self, nodes: Sequence[str]) -> None:
        """Lift the cordon; a rented node whose gate has passed gets its lease's taint in the same write."""
        self._each(nodes, self._resume)

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Cordon, with the reason in an annotation. A person's cordon stays a person's; a declared node without a Node
        object is behind its drain anyway.
        """
        self._each(nodes, lambda name: self._cordon(name, reason))

    def release(self, nodes: Sequence[str]) -> None:
        """Cordon; once no pod of a workload is left, delete the Node. It takes two calls at least, and the controller
        calls as long as the node is there.
        """
        self._each(nodes, self._release)

    def abandon(self, nodes: Sequence[str], reason: str) -> None:
        """Cordon, delete the pods of workloads that are there, and the Node."""
        self._each(nodes, lambda name: self._abandon(name, reason))

    def limit(self, shares: Sequence[TeamShare], now: Mapping[str, Quota], gpus: int) -> None:
        """As ResourceQuotas."""
        del shares, gpus  # each team has both, whatever its share is
        quotas.write(self._client, now)

    def comment(self, said: Mapping[str, str]) -> None:
        """Does nothing: pods have no place for it."""

    def notify(self, job: int, text: str) -> None:
        """Does nothing: the same."""

    def end_job(self, job: int) -> None:
        """Not here: whoever made its pods would make them again."""
        del job
        raise SchedulerError("pods are ended by whoever made them")

    def beat(self, nodes: Mapping[str, int], at_s: float) -> None:
        """In an annotation of each Node. A node whose gate has stopped passing is cordoned here, for nothing else comes
        by once a minute.
        """
        seen = self.objects().nodes

        def one(name: str) -> None:
            words = f"ironburst,at={int(at_s)},left={int(nodes[name])}"
            self._note("nodes", self._client.patch(self._node(name), {"metadata": {"annotations": {BEAT: words}}}).body)
            view = seen.get(name)
            if view and taints.value_of(view) and gate_lost(view, self.now()) and not view.cordoned:
                self._cordon(name, _GATE_LOST)

        self._each(nodes, one)

    def _resume(self, name: str) -> None:
        pool = self._site.pool_of.get(name)

        def changed(raw: Json) -> Json | None:
            view, spec = objects.read_node(raw), raw.get("spec") or {}
            patch: Json = {}
            if pool and (taints.gated(view) or not taints.value_of(view)):
                if not nodes.passed(view, pool):
                    has = f"Ready is {view.ready}, its gate is {view.gate or 'unheard'}, it has {view.gpus} GPUs"
                    raise SchedulerError(f"node {name} isn't ready for jobs: {has}")
                patch["taints"] = taints.with_value(spec.get("taints") or (), taints.first_value(view.uid))
            if view.cordoned:
                patch["unschedulable"] = None
            if not patch and view.drain is None:
                return None
            return {"metadata": {"annotations": {DRAIN: None}}, "spec": patch}

        self._note("nodes", self._client.change(self._node(name), changed))

    def _cordon(self, name: str, reason: str) -> bool:
        """Whether there is a Node object."""

        def changed(raw: Json) -> Json | None:
            view = objects.read_node(raw)
            if view.cordoned and view.drain in (None, reason):
                return None
            return {"metadata": {"annotations": {DRAIN: reason}}, "spec": {"unschedulable": True}}

        try:
            self._note("nodes", self._client.change(self._node(name), changed))
        except ApiError as error:
            if error.status != 404 or name not in self._site.pool_of:
                raise
            return False
        return True

    def _release(self, name: str) -> None:
        view = self.objects().nodes.get(name)
        if view is None or not view.cordoned:
            self._cordoned.pop(name, None)
            if not self._cordon(name, _RELEASED):
                self._gone([name])
                return
        if time.monotonic() - self._cordoned.setdefault(name, time.monotonic()) < _SETTLE_S or view is None:
            return
        if any(pod.node == name and pod.workload for pod in self.objects().pods.values()) or self._on(name):
            return
        self._delete(name, view.uid)

    def _abandon(self, name: str, reason: str) -> None:
        if self._cordon(name, reason):
            for pod in self._on(name):
                self._ended(partial(self._client.delete, _pod(pod), {"preconditions": {"uid": pod.uid}}))
            view = self.objects().nodes.get(name)
            self._delete(name, view.uid if view else "")
        self._gone([name])

    def _on(self, name: str) -> list[PodView]:
        """The pods of workloads on a node, as the server has them now: what is done next can't be undone."""
        query = {"fieldSelector": f"spec.nodeName={checked(self._names.object_of(name))},{queue.LIVE}"}
        found = [pods.read_pod(raw, self._site) for raw in self._client.get(_PODS, query).body["items"] or ()]
        return [pod for pod in found if pod.workload]

    def _delete(self, name: str, uid: str) -> None:
        self._ended(partial(self._client.delete, self._node(name), {"preconditions": {"uid": uid}} if uid else None))
        self._cache.forget("nodes", self._names.key_of(name))
        self._cordoned.pop(name, None)
        self._gone([name])

    def _ended(self, delete: Callable[[], object]) -> None:
        """What is gone, or another one by now, is gone."""
        try:
            delete()
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def _gone(self, nodes: Iterable[str]) -> None:
        names = set(nodes)
        self._record(lambda kept: instances.gone(kept, names))

    # ---- jobs
    def place(self, job: int, partitions: Sequence[str], excluded: Sequence[str], *, begin_now: bool = False) -> None:
        """Let all pods of a pending job tolerate exactly these pools' nodes but the excluded ones. What it tolerated
        beyond that is taken back by another taint on the node; the other jobs there get a toleration of that first.
        `begin_now`: there is no delay to lift.
        """
        del begin_now
        seen = self.objects()
        gang = self._gang(job, seen)
        waiting = gang.unbound
        if not waiting or gang.bound(self._site):
            raise SchedulerError(f"job {job} ({gang.name}) isn't pending")
        pools = [pool for pool in self._site.pools if pool.partition in partitions]
        wanted = {name for pool in pools for name in pool.nodes} - set(excluded)
        if missing := sorted(wanted - seen.rented.keys()):
            raise SchedulerError(f"job {job} ({gang.name}) can't be let on {', '.join(missing)}: not in service")
        had = {name for name, value in seen.rented.items() if any(value in pod.tolerates for pod in waiting)}
        for name in sorted(had - wanted):
            self._withdraw(name, job, seen)
        self._tolerate(waiting, [seen.rented[name] for name in sorted(wanted)])

    def _withdraw(self, node: str, job: int, seen: Objects) -> None:
        """Take a node from a job, and leave it to the others that wait for it."""
        before = seen.rented[node]
        after = taints.next_value(before)
        others = [gang for gang in seen.gangs[0] if gang.id != job]
        self._tolerate([pod for gang in others for pod in gang.unbound if before in pod.tolerates], [after])

        def changed(raw: Json) -> Json | None:
            if taints.value_of(objects.read_node(raw)) != before:
                return None
            return {"spec": {"taints": taints.with_value(raw["spec"].get("taints") or (), after)}}

        self._note("nodes", self._client.change(self._node(node), changed))

    def _tolerate(self, waiting: Iterable[PodView], values: Sequence[str]) -> None:
        lacking = {pod.key: (pod, [each for each in values if each not in pod.tolerates]) for pod in waiting}

        def one(key: str) -> None:
            pod, lacks = lacking[key]
            new = [taints.toleration(value) for value in lacks]
            # the uid: not a pod of the same name that was made since
            same: Json = {"op": "test", "path": "/metadata/uid", "value": pod.uid}
            added: list[Json] = [{"op": "add", "path": "/spec/tolerations/-", "value": each} for each in new]
            added = added if pod.lists_tolerations else [{"op": "add", "path": "/spec/tolerations", "value": new}]
            self._note("pods", self._client.patch(_pod(pod), [same, *added], JSON_PATCH).body)

        self._each([key for key, (_, lacks) in lacking.items() if lacks], one)

    def requeue(self, *jobs: int) -> dict[int, str]:
        """Evict all pods of each job that its controller makes again, or none of it."""
        seen, refused, failed = self.objects(), dict[int, str](), list[ApiError]()
        for job in jobs:
            try:
                gang = self._gang(job, seen)
                if not gang.remade:
                    raise SchedulerError(f"job {job} ({gang.name}): nothing would make its pods anew")
                there = [pod for pod in gang.pods if pod.node and not pod.deleting]
                evictions.evict(self._client, f"job {job} ({gang.name})", there)
            except SchedulerError as error:
                refused[job] = str(error)
                failed += [error] if isinstance(error, ApiError) else []
        if failed and len(failed) == len(jobs):
            raise failed[0]
        return refused

    def _gang(self, job: int, seen: Objects) -> Gang:
        gangs, twice = seen.gangs
        if job in twice:
            raise SchedulerError(f"job {job} is two jobs with the same id: neither is touched")
        if found := next((gang for gang in gangs if gang.id == job), None):
            return found
        raise SchedulerError(f"job {job} isn't in the queue any more")

    # ---- requests
    def _node(self, name: str) -> str:
        return f"{_NODES}/{checked(self._names.object_of(name))}"

    def _record(self, changed: Callable[[NodesRecord], NodesRecord]) -> None:
        with self._writing:  # one after the other: they would only refuse each other
            record.write(self._client, self._site, changed)

    def _note(self, kind: str, raw: Json) -> None:
        self._cache.note(kind, raw)

    def _each(self, names: Iterable[str], act: Callable[[str], object]) -> None:
        """Act on each, some side by side, all of them whatever fails. Raises the first failure, with how many more."""

        def tried(name: str) -> SchedulerError | None:
            try:
                act(name)
            except SchedulerError as error:
                return error
            return None

        todo = list(dict.fromkeys(names))
        with ThreadPoolExecutor(max(1, min(_AT_ONCE, len(todo)))) as pool:
            failed = [error for error in pool.map(tried, todo) if error]
        if failed:
            more = f" (and {len(failed) - 1} more of {len(todo)})" if len(failed) > 1 else ""
            raise SchedulerError(f"{failed[0]}{more}") from None


def _pod(pod: PodView) -> str:
    return f"/api/v1/namespaces/{checked(pod.namespace)}/pods/{checked(pod.name)}"
