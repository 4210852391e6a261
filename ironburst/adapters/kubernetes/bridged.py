"""The Kubernetes side of rented nodes where slurm-bridge makes Slurm the queue (docs/adr/0044): they join the cluster
as they do where Kubernetes has its own queue, and are opened for slurm-bridge's scheduler, not for single pods.
Written from slurm-bridge's documents and source (1.2), never run with a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ironburst.adapters.kubernetes import joining, nodes, objects, record, taints
from ironburst.adapters.kubernetes.client import ApiError, Client, checked
from ironburst.adapters.kubernetes.joining import Deliver, Joining
from ironburst.adapters.kubernetes.nodes import NodesRecord
from ironburst.adapters.kubernetes.quantities import moment
from ironburst.adapters.kubernetes.site import NOT_READY, KubernetesPool, KubernetesSite
from ironburst.adapters.kubernetes.views import NodeView
from ironburst.nodes import naming
from ironburst.nodes import states as node_states
from ironburst.ports import Node, SchedulerError

Json = dict[str, Any]
MANAGED = "slinky.slurm.net/managed-node"
"""taint that slurm-bridge gives a Node which Slurm knows; it keeps all pods but its own off (NoExecute)"""
JOB_LABEL = "scheduler.slinky.slurm.net/slurm-jobid"
"""label of a pod: its job in Slurm"""
_NODES, _PODS = "/api/v1/nodes", "/api/v1/pods"
_LIVE = "status.phase!=Succeeded,status.phase!=Failed"
_DOWN_S = 300.0  # as long as Kubernetes itself lets pods tolerate that their node is unreachable
_NEW_S = 60.0  # a pod may be so old before slurm-bridge has made its job
_MOST = 500  # pods without a job that are looked at


class BridgedNodes:
    """The rented nodes in the cluster. All methods raise SchedulerError."""

    def __init__(self, client: Client, site: KubernetesSite, deliver: Deliver = joining.refuse):
        """`site.schedulers`: slurm-bridge's."""
        self._client, self._site = client, site
        self._joining = Joining(client, site.boot_s, deliver)

    @property
    def site(self) -> KubernetesSite:
        """What is declared."""
        return self._site

    def declare(self, site: KubernetesSite) -> None:
        """As another document says."""
        self._site = site
        self._joining.lasts(site.boot_s)

    def now(self) -> float:
        """By the API server's clock."""
        return self._client.now()

    # ---- reading
    def nodes(self) -> dict[str, NodeView]:
        """The Node objects of rented nodes, by name."""
        if not self._site.pools:
            return {}
        partitions = ",".join(pool.partition for pool in self._site.pools)
        query = {"labelSelector": f"{naming.SITE_LABEL} in ({partitions})"}
        views = [objects.read_node(raw) for raw in self._client.get(_NODES, query).body["items"] or ()]
        return {view.key: view for view in views if view.key in self._site.pool_of}

    def unsubmitted(self) -> list[str]:
        """Pods of slurm-bridge that wait, and for which it hasn't made a job in Slurm in a minute: it makes none as
        long as fewer nodes of the cluster fit them than they need.
        """
        found: list[Json] = []
        for scheduler in sorted(self._site.schedulers):
            query = {"fieldSelector": f"spec.nodeName=,spec.schedulerName={scheduler},{_LIVE}"}
            query |= {"labelSelector": f"!{JOB_LABEL}", "limit": str(_MOST)}
            found += self._client.get(_PODS, query).body["items"] or ()
        made_s = ((raw["metadata"], moment(raw["metadata"].get("creationTimestamp"))) for raw in found)
        old = (meta for meta, at_s in made_s if self.now() - (at_s or 0.0) > _NEW_S)
        return sorted(f"{meta['namespace']}/{meta['name']}" for meta in old)

    def ending(self, job: int) -> bool:
        """Whether pods of a job still live, which Slurm may not know any more: it was cancelled."""
        query = {"labelSelector": f"{JOB_LABEL}={int(job)}", "fieldSelector": f"spec.nodeName!=,{_LIVE}"}
        return bool(self._client.get(_PODS, query).body["items"])

    # ---- acting
    def permit(self, names: Collection[str]) -> None:
        """These may join. What is left of an earlier permit goes: kubelet adds no taint to a Node that is there."""
        self._joining.token()
        self.delete(names)
        self._record(lambda kept: joining.permitted(kept, kept.permits - set(names)))
        self._record(lambda kept: joining.permitted(kept, kept.permits | set(names)))

    def forbid(self, names: Collection[str]) -> None:
        """They may not join any more, and what the cluster has of them goes."""
        self._record(lambda kept: joining.permitted(kept, kept.permits - set(names)))
        self.delete(names)

    def admit(self) -> Sequence[str]:
        """Approve what nodes with a permit and without a Node object ask for."""
        kept = record.read(self._client, self._site)
        if awaited := kept.permits - self.nodes().keys():
            self._joining.token()  # one that boots late reads it late

        def give(new: Mapping[str, str]) -> None:
            self._record(partial(joining.given, new=new))

        return self._joining.approve(awaited, self._site.pool_of.keys(), kept.given, give)

    def open(self, names: Iterable[str]) -> None:
        """slurm-bridge may use them: the taint that they registered with goes."""
        for name in names:
            self._client.change(f"{_NODES}/{checked(name)}", partial(_opened, self._site.pool_of[name]))

    def delete(self, names: Iterable[str]) -> None:
        """Their Node objects; the cluster ends what pods they had."""
        for name in names:
            try:
                self._client.delete(f"{_NODES}/{checked(name)}")
            except ApiError as error:
                if error.status != 404:
                    raise

    def _record(self, changed: Callable[[NodesRecord], NodesRecord]) -> None:
        record.write(self._client, self._site, changed)


def _opened(pool: KubernetesPool, raw: Json) -> Json | None:
    view = objects.read_node(raw)
    if not taints.gated(view):
        return None
    if why := lacks(view, pool):
        raise SchedulerError(f"node {view.key} isn't ready for pods: {why}")
    rest = [taint for taint in raw["spec"].get("taints") or () if taint["key"] != NOT_READY]
    return {"spec": {"taints": rest}}


def lacks(view: NodeView, pool: KubernetesPool) -> str:
    """Why slurm-bridge can't be given a node yet; empty: it can. slurm-bridge's own taint must be there first: it is
    what keeps other schedulers' pods off.
    """
    if not nodes.passed(view, pool):
        return f"Ready is {view.ready}, its gate is {view.gate or 'unheard'}, it has {view.gpus} GPUs"
    managed = any(key == MANAGED for key, _, _ in view.taints)
    return "" if managed else f"slurm-bridge hasn't given it the taint {MANAGED}: see whether its controllers run"


def joined(node: Node, view: NodeView | None, pool: KubernetesPool, now_s: float) -> Node:
    """A rented node of Slurm's as both sides have it: in service when it is on both. `view` None: the cluster doesn't
    have it. Pure.

    | Slurm | the cluster | shown |
    |---|---|---|
    | powered down | a Node object that is left over | DOWN, too: `heal` deletes it |
    | powering up or down | whatever | as Slurm says |
    | registered, drained | no Node object, or it isn't ready for pods | NOT_RESPONDING: it hasn't joined yet |
    | in service | no Node object, or kubelet isn't ready; for more than 5 minutes | NOT_RESPONDING; DOWN |
    | in service | its gate has stopped passing | DRAIN |
    """
    states = set(node.states)
    if "POWERED_DOWN" in states and not node_states.powering_up(states):
        return _with(node, {"DOWN"}) if view and not view.deleting else node
    if node_states.going_down(states) or node_states.powering_up(states):
        return node
    if view is None or view.error or view.deleting:
        return _with(node, {"NOT_RESPONDING"})
    if taints.gated(view):
        return _with(node, {"NOT_RESPONDING"}) if lacks(view, pool) else node
    if view.ready != "True":
        silent_s = now_s - view.ready_since_s
        if silent_s <= _DOWN_S:
            return _with(node, {"NOT_RESPONDING"})
        down = _with(node, {"NOT_RESPONDING", "DOWN"}, f"ironburst: kubelet isn't ready for {silent_s / 60:.0f} min")
        return replace(down, silent_s=view.ready_since_s)
    if lost := nodes.gate_lost(view, now_s):
        return _with(node, {"DRAIN"}, f"ironburst: its gate stopped passing: {lost}")
    return node


def waiting(node: Node) -> Node:
    """A rented node while the cluster gives no answer: none comes into service. Pure."""
    states = set(node.states)
    up = not node_states.going_down(states) and not node_states.powering_up(states)
    return _with(node, {"NOT_RESPONDING"}) if up and "DRAIN" in states else node


def _with(node: Node, states: Iterable[str], reason: str = "") -> Node:
    """`reason`: where it has none yet."""
    return replace(node, states=tuple(sorted({*node.states, *states})), reason=node.reason or reason)
