"""Slurm as the queue of a Kubernetes cluster, too, by slurm-bridge (ironburst.ports.Scheduler, docs/adr/0044): jobs and
drains are Slurm's, and a rented node is in service when both sides have it. Never run with a real slurm-bridge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from ironburst.adapters import slurm_bridge
from ironburst.adapters.kubernetes import bridged, taints
from ironburst.adapters.kubernetes.bridged import BridgedNodes
from ironburst.adapters.kubernetes.site import Site
from ironburst.adapters.kubernetes.views import NodeView
from ironburst.adapters.slurm import SPOOL, Slurm
from ironburst.adapters.slurm_json import Read
from ironburst.ports import Job, Node, Observation, SchedulerError

_NAMED = 3  # pods in a sentence


class BridgedSlurm(Slurm):
    """A Scheduler (ironburst.ports)."""

    def __init__(
        self, cluster: BridgedNodes, prefix: Sequence[str] = (), *, spool: str = SPOOL, timeout_s: float = 60.0
    ):
        super().__init__(prefix, spool=spool, timeout_s=timeout_s)
        self._cluster = cluster
        self._pods: dict[int, tuple[str, ...]] = {}  # of slurm-bridge's jobs, as the queue was last seen
        self._jobs: dict[int, Job] = {}  # of slurm-bridge, likewise
        self._ending: dict[int, Job] = {}  # jobs that we cancelled, whose pods may still end
        self._views: Mapping[str, NodeView] | None = {}  # Node objects at the last look; None: there was no answer
        self._raw: dict[str, Node] = {}  # rented nodes at the last look, as Slurm alone says
        self._left: str = ""  # what could not be tidied in the cluster

    def declare(self, site: Site) -> None:
        """As another document says."""
        self._cluster.declare(site)
        self.__dict__.pop("_pools", None)

    @cached_property
    def _pools(self) -> dict[str, frozenset[str]]:
        return {pool.partition: frozenset(pool.nodes) for pool in self._cluster.site.pools}

    # ---- reading
    def observe(self) -> Observation:
        """Slurm's, with what the cluster has of rented nodes. While the cluster gives no answer nothing comes into
        service, and Slurm's own jobs go on.
        """
        seen, told = super().observe(), [self._left] if self._left else []
        self._jobs = {job.id: job for job in seen.jobs if job.id in self._pods}
        try:
            self._views, alone = self._cluster.nodes(), self._cluster.unsubmitted()
            told += [_unsubmitted(alone)] if alone else []
            ending = self._still_ending(seen.jobs)
        except SchedulerError as error:
            self._views, ending = None, list(self._ending.values())
            told.append(f"Kubernetes gives no answer ({error}): no rented node comes into service until it does")
        pool_of, now_s = self._cluster.site.pool_of, self._cluster.now()
        self._raw = {node.name: node for node in seen.nodes if node.name in pool_of}
        nodes = [self._node(node, now_s) if node.name in pool_of else node for node in seen.nodes]
        told += self._unmanaged(nodes)
        unreadable = (*seen.unreadable, *told)
        return replace(seen, jobs=(*seen.jobs, *ending), nodes=tuple(nodes), unreadable=unreadable)

    def _read_jobs(self, queue: Any) -> Read:
        self._pods = slurm_bridge.placeholders(queue)
        return slurm_bridge.read_jobs(queue, self._pools)

    def _node(self, node: Node, now_s: float) -> Node:
        if self._views is None:
            return bridged.waiting(node)
        return bridged.joined(node, self._views.get(node.name), self._cluster.site.pool_of[node.name], now_s)

    def _still_ending(self, jobs: Iterable[Job]) -> list[Job]:
        """A cancelled job is gone from Slurm at once; its pods have their grace time, and keep their nodes so long."""
        there = {job.id for job in jobs}
        self._ending = {id: job for id, job in self._ending.items() if id in there or self._cluster.ending(id)}
        return [replace(job, state="COMPLETING") for id, job in self._ending.items() if id not in there]

    def _unmanaged(self, nodes: Iterable[Node]) -> list[str]:
        """Nodes that wait for slurm-bridge alone."""
        pool_of, views = self._cluster.site.pool_of, self._views or {}
        waits = [node.name for node in nodes if node.name in views and node.has("DRAIN", "NOT_RESPONDING")]
        said = {name: bridged.lacks(views[name], pool_of[name]) for name in waits}
        return [f"node {name} waits: {why}" for name, why in said.items() if bridged.MANAGED in why]

    # ---- nodes
    def put_permit(self, nodes: Sequence[str]) -> None:
        """The cluster's first: nothing is rented that it wouldn't let in."""
        self._cluster.permit(nodes)
        super().put_permit(nodes)

    def remove_permit(self, nodes: Sequence[str]) -> None:
        """Slurm's decides. A cluster that gives no answer doesn't keep an instance: what it has of the node is found
        later (`heal`).
        """
        super().remove_permit(nodes)
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

    def resume(self, nodes: Sequence[str]) -> None:
        """Slurm's last: a job of slurm-bridge that starts there has its node."""
        self._cluster.open(name for name in nodes if name in self._cluster.site.pool_of)
        super().resume(nodes)

    def heal(self, nodes: Sequence[str]) -> None:
        """Also what the cluster has left of them. Slurm's own are touched only where it calls them DOWN itself: else a
        powered-down node would be without its drain for a moment.
        """
        self._cluster.delete(name for name in nodes if name in (self._views or {}))
        super().heal([name for name in nodes if name not in self._raw or self._raw[name].has("DOWN")])

    def beat(self, nodes: Mapping[str, int], at_s: float) -> None:
        """A node whose gate has stopped passing is drained here: Slurm runs no prolog for pods, so nothing else
        would.
        """
        super().beat(nodes, at_s)
        for name in nodes:
            view, raw = (self._views or {}).get(name), self._raw.get(name)
            if view and raw and not taints.gated(view) and not raw.has("DRAIN"):
                shown = self._node(raw, self._cluster.now())
                if shown.has("DRAIN"):
                    super().drain([name], shown.reason)

    # ---- jobs
    def place(self, job: int, partitions: Sequence[str], excluded: Sequence[str], *, begin_now: bool = False) -> None:
        """slurm-bridge writes the partitions of its jobs anew, so theirs are said by the nodes that are excluded."""
        if job not in self._pods:
            super().place(job, partitions, excluded, begin_now=begin_now)
            return
        names = ",".join(slurm_bridge.excluded(self._pools, partitions, excluded))
        begin = ["starttime=now"] if begin_now else []
        self._call("scontrol", "update", f"jobid={int(job)}", f"excnodelist={names}", *begin)

    def requeue(self, *jobs: int) -> dict[int, str]:
        """Slurm has no script of slurm-bridge's jobs to run again: they are cancelled, slurm-bridge deletes their pods,
        and whoever made these makes them anew.
        """
        refused = super().requeue(*(job for job in jobs if job not in self._pods))
        if theirs := [job for job in jobs if job in self._pods]:
            self._call("scancel", *map(str, theirs))
        for job in theirs:
            if job in self._jobs:
                self._ending[job] = self._jobs[job]
            why = f"job {job} is cancelled, for Slurm can't put slurm-bridge's jobs back into the queue"
            refused[job] = f"{why}: {_remade(self._pods[job])}"
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
