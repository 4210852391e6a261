"""Slurm as the queue of a Kubernetes cluster, too, by slurm-bridge (docs/adr/0044): jobs and drains are Slurm's, and a
rented node is in service when both sides have it. Never run with a real slurm-bridge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from ironburst.adapters.kubernetes import bridged, taints
from ironburst.adapters.kubernetes.bridged import BridgedNodes
from ironburst.adapters.kubernetes.site import KubernetesSite
from ironburst.adapters.kubernetes.views import NodeView
from ironburst.adapters.slurm import bridge as slurm_bridge
from ironburst.adapters.slurm.answers import Read
from ironburst.adapters.slurm.bridge import Pools
from ironburst.adapters.slurm.scheduler import SPOOL, Slurm
from ironburst.ports import Claim, Job, Node, Observation, Quota, Scheduler, SchedulerError, TeamShare

_NAMED = 3  # pods in a sentence


class Queue(Scheduler, Protocol):
    """Slurm, with slurm-bridge's jobs in its queue, in the controller's terms (slurm_bridge.read_jobs)."""

    pools: Pools  # the nodes of each burst partition, as declared
    pods: Mapping[int, tuple[str, ...]]  # NAMESPACE/NAME of slurm-bridge's jobs, as the queue was last seen

    def exclude(self, job: int, nodes: Sequence[str], *, begin_now: bool) -> None:
        """Set the nodes that a pending job must not be given, and nothing else of it. As `place`."""

    def cancel(self, jobs: Sequence[int]) -> None:
        """End jobs for good."""


class SlurmQueue(Slurm):
    """A real Slurm's."""

    _narrows = False  # slurm-bridge's jobs are told by what their administrator's comment says in JSON

    def __init__(self, prefix: Sequence[str] = (), *, spool: str = SPOOL, timeout_s: float = 60.0):
        super().__init__(prefix, spool=spool, timeout_s=timeout_s)
        self.pools: Pools = {}
        self.pods: Mapping[int, tuple[str, ...]] = {}

    def _read_jobs(self, queue: Any) -> Read:
        self.pods = slurm_bridge.placeholders(queue)
        return slurm_bridge.read_jobs(queue, self.pools, self._job)

    def exclude(self, job: int, nodes: Sequence[str], *, begin_now: bool) -> None:
        """See Queue."""
        begin = ["starttime=now"] if begin_now else []
        self._call("scontrol", "update", f"jobid={int(job)}", f"excnodelist={','.join(nodes)}", *begin)

    def cancel(self, jobs: Sequence[int]) -> None:
        """See Queue."""
        self._call("scancel", *(str(int(job)) for job in jobs))


class Bridged:
    """A Scheduler (ironburst.ports)."""

    def __init__(self, slurm: Queue, cluster: BridgedNodes):
        self._slurm, self._cluster = slurm, cluster
        self._jobs: dict[int, Job] = {}  # of slurm-bridge, as they were last seen
        self._ending: dict[int, Job] = {}  # those that have left Slurm, whose pods may still end
        self._views: Mapping[str, NodeView] | None = {}  # Node objects at the last look; None: there was no answer
        self._raw: dict[str, Node] = {}  # rented nodes at the last look, as Slurm alone says
        self._left = ""  # what could not be tidied in the cluster
        self.declare(cluster.site)

    def declare(self, site: KubernetesSite) -> None:
        """As another document says."""
        self._cluster.declare(site)
        self._slurm.pools = {pool.partition: frozenset(pool.nodes) for pool in site.pools}

    # ---- reading
    def observe(self) -> Observation:
        """Slurm's, with what the cluster has of rented nodes. While the cluster gives no answer nothing comes into
        service, and Slurm's own jobs go on.
        """
        seen, told = self._slurm.observe(), [self._left] if self._left else []
        there = {job.id for job in seen.jobs}
        self._ending |= {id: job for id, job in self._jobs.items() if job.on and id not in there}
        self._jobs = {job.id: job for job in seen.jobs if job.id in self._slurm.pods}
        try:
            self._views, alone = self._cluster.nodes(), self._cluster.unsubmitted()
            told += [_unsubmitted(alone)] if alone else []
            self._ending = {id: job for id, job in self._ending.items() if self._cluster.ending(id)}
        except SchedulerError as error:
            self._views = None
            told.append(f"Kubernetes gives no answer ({error}): no rented node comes into service until it does")
        pool_of = self._cluster.site.pool_of
        self._raw = {node.name: node for node in seen.nodes if node.name in pool_of}
        nodes = [self._node(node) if node.name in pool_of else node for node in seen.nodes]
        told += self._unmanaged(nodes)
        unreadable = (*seen.unreadable, *told)
        # a job that was cancelled is gone from Slurm at once; its pods have their grace time, and keep their nodes
        ending = (replace(job, state="COMPLETING") for job in self._ending.values())
        return replace(seen, jobs=(*seen.jobs, *ending), nodes=tuple(nodes), unreadable=unreadable)

    def _node(self, node: Node) -> Node:
        if self._views is None:
            return bridged.waiting(node)
        view, pool = self._views.get(node.name), self._cluster.site.pool_of[node.name]
        return bridged.joined(node, view, pool, self._cluster.now())

    def _unmanaged(self, nodes: Iterable[Node]) -> list[str]:
        """Nodes that wait for slurm-bridge alone."""
        pool_of, views = self._cluster.site.pool_of, self._views or {}
        waits = [node.name for node in nodes if node.name in views and node.has("DRAIN", "NOT_RESPONDING")]
        said = {name: bridged.lacks(views[name], pool_of[name]) for name in waits}
        return [f"node {name} waits: {why}" for name, why in said.items() if bridged.MANAGED in why]

    # ---- the controller's own
    def claim(self, owner: str, said: str, stale_s: float) -> Claim:
        """Slurm's."""
        return self._slurm.claim(owner, said, stale_s)

    def put_permit(self, nodes: Sequence[str]) -> None:
        """The cluster's first: nothing is rented that it wouldn't let in."""
        self._cluster.permit(nodes)
        self._slurm.put_permit(nodes)

    def remove_permit(self, nodes: Sequence[str]) -> None:
        """A cluster that gives no answer doesn't keep an instance: what it has of the node goes later (`heal`)."""
        self._slurm.remove_permit(nodes)
        try:
            self._cluster.forbid(nodes)
            self._left = ""
        except SchedulerError as error:
            self._left = (
                f"what Kubernetes has of nodes that are given back ({', '.join(nodes)}) is still there: {error}"
            )

    def admit(self) -> Sequence[str]:
        """The munge key lets a node into Slurm; the cluster asks for each."""
        return self._cluster.admit()

    def limit(self, shares: Sequence[TeamShare], now: Mapping[str, Quota], gpus: int) -> None:
        """Slurm's."""
        self._slurm.limit(shares, now, gpus)

    # ---- nodes
    def power_up(self, nodes: Sequence[str]) -> None:
        """Slurm's: the cluster knows a node only when its kubelet registers."""
        self._slurm.power_up(nodes)

    def resume(self, nodes: Sequence[str]) -> None:
        """Slurm's last: a job of slurm-bridge that starts there has its node."""
        self._cluster.open(name for name in nodes if name in self._cluster.site.pool_of)
        self._slurm.resume(nodes)

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Slurm's: it gives slurm-bridge's pods their nodes. slurm-bridge lifts only drains of its own."""
        self._slurm.drain(nodes, reason)

    def release(self, nodes: Sequence[str]) -> None:
        """Slurm's: a job of slurm-bridge ends when its pods have."""
        self._slurm.release(nodes)

    def abandon(self, nodes: Sequence[str], reason: str) -> None:
        """Slurm's: slurm-bridge deletes the pods of jobs that don't run any more."""
        self._slurm.abandon(nodes, reason)

    def heal(self, nodes: Sequence[str]) -> None:
        """Also what the cluster has left of them. Slurm's own are touched only where it calls them DOWN, or still
        ends jobs there: else a powered-down node would be without its drain for a moment.
        """
        self._cluster.delete(name for name in nodes if name in (self._views or {}))
        raw = {name: self._raw.get(name) for name in nodes}
        if down := [name for name, node in raw.items() if not node or node.has("DOWN") or node.has("COMPLETING")]:
            self._slurm.heal(down)

    def beat(self, nodes: Mapping[str, int], at_s: float) -> None:
        """A node whose gate has stopped passing is drained here: Slurm runs no prolog for pods, so nothing else
        would.
        """
        self._slurm.beat(nodes, at_s)
        for name in nodes:
            view, raw = (self._views or {}).get(name), self._raw.get(name)
            if view and raw and not taints.gated(view) and not raw.has("DRAIN"):
                shown = self._node(raw)
                if shown.has("DRAIN"):
                    self._slurm.drain([name], shown.reason)

    def comment(self, said: Mapping[str, str]) -> None:
        """See Scheduler. Those of slurm-bridge's jobs are its own."""
        self._slurm.comment(said)

    # ---- jobs
    def notify(self, job: int, text: str) -> None:
        """See Scheduler. slurm-bridge's jobs have no script that could be told."""
        if job not in self._slurm.pods:
            self._slurm.notify(job, text)

    def end_job(self, job: int) -> None:
        """See Scheduler."""
        self._slurm.end_job(job)

    def place(self, job: int, partitions: Sequence[str], excluded: Sequence[str], *, begin_now: bool = False) -> None:
        """slurm-bridge writes the partitions of its jobs again, so theirs follow from the nodes that are excluded."""
        if job in self._slurm.pods:
            names = slurm_bridge.excluded(self._slurm.pools, partitions, excluded)
            self._slurm.exclude(job, names, begin_now=begin_now)
        else:
            self._slurm.place(job, partitions, excluded, begin_now=begin_now)

    def requeue(self, *jobs: int) -> dict[int, str]:
        """Slurm has no script of slurm-bridge's jobs to run again: they are cancelled, slurm-bridge deletes their pods,
        and whoever made these makes them again.
        """
        theirs, pods = [job for job in jobs if job in self._slurm.pods], self._slurm.pods
        if theirs:
            self._slurm.cancel(theirs)
        refused = dict(self._slurm.requeue(*(job for job in jobs if job not in pods)))
        for job in theirs:
            why = f"job {job} is cancelled, for Slurm can't put slurm-bridge's jobs back into the queue"
            refused[job] = f"{why}: {_remade(pods[job])}"
        return refused


def _remade(pods: Sequence[str]) -> str:
    ends = "ends, and is" if len(pods) == 1 else "end, and are"
    return f"{_some(pods)} {ends} made anew by what made them"


def _unsubmitted(pods: Sequence[str]) -> str:
    has = "has" if len(pods) == 1 else "have"
    return (
        f"{_some(pods)} {has} no job in Slurm yet, so nothing is rented: slurm-bridge makes one only when as many "
        "nodes of the cluster fit, free or not, as are needed together"
    )


def _some(pods: Sequence[str]) -> str:
    more = f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else ""
    return f"pod{'s' if len(pods) > 1 else ''} {', '.join(pods[:_NAMED])}{more}"
