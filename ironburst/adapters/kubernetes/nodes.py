"""Node objects, and what we keep of declared nodes that have none, as nodes in the words of the policy. Pure.

| what is there | states beside CLOUD |
|---|---|
| no Node object, not asked for | DRAIN IDLE POWERED_DOWN |
| no Node object, asked for | DRAIN IDLE NOT_RESPONDING POWERING_UP |
| registered, its gate hasn't passed, or its GPUs aren't there yet | DRAIN IDLE NOT_RESPONDING POWERING_UP |
| gate passed, still with the taint that it registered with | DRAIN IDLE, "no lease" |
| in service | IDLE, MIXED or ALLOCATED |
| its gate has stopped passing, or it is cordoned | DRAIN |
| kubelet has too little memory, disk or process ids, or no network | FAIL |
| its kubelet isn't ready; for more than 5 minutes | NOT_RESPONDING; DOWN |
| the latter, and not asked for: left over | DOWN DRAIN POWERED_DOWN |
| its Node object is being deleted | DRAIN POWERING_DOWN |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ironburst.adapters.kubernetes import taints
from ironburst.adapters.kubernetes.site import GPU, KubernetesPool, KubernetesSite
from ironburst.adapters.kubernetes.views import NodeView, PodView
from ironburst.ports import Node, Resources

_DOWN_S = 300.0  # as long as Kubernetes itself lets pods tolerate that their node is unreachable
_SILENT_S = 600.0  # of a gate
_MIB = 1 << 20
_UNUSED = "no lease"  # of a node that waits behind its drain for nobody; the controller knows it by this word
# kubelet's and the node controller's own taints: Ready and the cordon say the same
_BUILT_IN = "node.kubernetes.io/"
_PRESSURE = [_BUILT_IN + what for what in ("memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable")]


@dataclass(frozen=True)
class NodesRecord:
    """What Slurm would keep of nodes and Kubernetes doesn't."""

    up: frozenset[str] = frozenset()  # asked for: an instance may be on its way
    permits: frozenset[str] = frozenset()
    given: Mapping[str, str] = field(default_factory=dict)  # node with a permit: uid of the request that is approved
    objects: Mapping[str, str] = field(default_factory=dict)  # node: what its object is called, where it joins so


def nodes_of(
    nodes: Mapping[str, NodeView],
    pods: Iterable[PodView],
    record: NodesRecord,
    site: KubernetesSite,
    now_s: float,
    new: Mapping[str, Resources] = MappingProxyType({}),
) -> list[Node]:
    """All Node objects, and the declared nodes that have none. `pods`: those that are bound. `now_s`: by the API
    server's clock, as its own times are. `new`: what a new node has for jobs, by partition; none: as declared.
    """
    on: dict[str, list[PodView]] = {}
    for pod in pods:
        on.setdefault(pod.node, []).append(pod)
    has = {pool.partition: new.get(pool.partition, pool.each) for pool in site.pools}
    found = [_node(node, on.get(name, ()), name in record.up, site, now_s, has) for name, node in nodes.items()]
    gone = [(name, pool) for name, pool in site.pool_of.items() if name not in nodes]
    return found + [_absent(name, pool, record, has[pool.partition]) for name, pool in gone]


def _absent(name: str, pool: KubernetesPool, record: NodesRecord, has: Resources) -> Node:
    coming = ("NOT_RESPONDING", "POWERING_UP") if name in record.up else ("POWERED_DOWN",)
    states = tuple(sorted(("CLOUD", "DRAIN", "IDLE", *coming)))
    return Node(name, (pool.partition,), has, states, _UNUSED)


def _node(
    view: NodeView,
    on: Iterable[PodView],
    asked_for: bool,
    site: KubernetesSite,
    now_s: float,
    new: Mapping[str, Resources],
) -> Node:
    name, pool = view.key, site.pool_of.get(view.key)
    if view.error:
        return Node(name, (pool.partition,) if pool else (), Resources(0), ("UNKNOWN",))
    jobs = [pod for pod in on if pod.workload and (pod.gpus or pool)]
    others = [pod for pod in on if not (pod.workload and (pod.gpus or pool))]
    total, busy = _room(view, others), math.ceil(sum(pod.gpus for pod in jobs) / view.replicas)
    base = "IDLE" if not jobs else "ALLOCATED" if busy >= max(view.gpus, 1) else "MIXED"
    flags, reason = _flags(view, pool, now_s)
    if "DOWN" in flags:
        base = "DOWN"
        if pool and not asked_for:  # what is left of a lease: `heal` deletes it
            flags |= {"DRAIN", "POWERED_DOWN"}
    if pool:
        flags |= {"CLOUD"}
        if "POWERING_UP" in flags:
            total = new[pool.partition]
    partitions = (pool.partition,) if pool else (site.home_partition,) if _of_home(view) else ()
    silent_s = view.ready_since_s if base == "DOWN" else None
    return Node(name, partitions, total, tuple(sorted({base, *flags})), reason, view.address, silent_s=silent_s)


def _room(view: NodeView, others: Iterable[PodView]) -> Resources:
    """What is left to jobs: pods that are no jobs (services, DaemonSets) have their part."""
    milli, memory = view.milli_cpus, view.memory
    for pod in others:
        milli, memory = milli - pod.milli_cpus, memory - pod.memory
    return Resources(view.gpus, max(milli, 0) // 1000, max(memory, 0) // _MIB)


def _of_home(view: NodeView) -> bool:
    """Ordinary pods may start there: no taint but those for GPUs, and those that its states say."""
    return all(
        effect == "PreferNoSchedule" or key == GPU or key.startswith(_BUILT_IN) for key, _, effect in view.taints
    )


def _flags(view: NodeView, pool: KubernetesPool | None, now_s: float) -> tuple[set[str], str]:
    flags, reason = set[str](), ""
    if view.cordoned:
        flags, reason = {"DRAIN"}, "cordoned" if view.drain is None else view.drain
    if pool and (taints.gated(view) or not taints.value_of(view)):
        flags, reason = flags | {"DRAIN"}, reason or _UNUSED
        if not passed(view, pool):
            flags |= {"NOT_RESPONDING", "POWERING_UP"}
    elif pool and (lost := gate_lost(view, now_s)):
        flags, reason = flags | {"DRAIN"}, reason or f"ironburst: its gate stopped passing: {lost}"
    if pool and (under := [key.removeprefix(_BUILT_IN) for key, _, _ in view.taints if key in _PRESSURE]):
        flags, reason = flags | {"FAIL"}, reason or f"ironburst: {', '.join(under)}"
    if view.ready != "True" and "POWERING_UP" not in flags:
        flags |= {"NOT_RESPONDING"}
        if now_s - view.ready_since_s > _DOWN_S:
            flags, reason = (
                flags | {"DOWN"},
                reason or f"ironburst: not ready for {(now_s - view.ready_since_s) / 60:.0f} min",
            )
    if view.deleting:
        flags = (flags - {"POWERING_UP"}) | {"DRAIN", "POWERING_DOWN"}
    return flags, reason


def gate_lost(view: NodeView, now_s: float) -> str:
    """Why a node in service has no gate any more that passes; empty: it has. Its last word doesn't count for ever: it
    is renewed once a minute.
    """
    if view.gate != "True":
        return view.gate_said or "no word"
    silent_s = now_s - view.gate_at_s if view.gate_at_s is not None else 0.0
    return f"no word for {silent_s / 60:.0f} min" if silent_s > _SILENT_S else ""


def passed(view: NodeView, pool: KubernetesPool) -> bool:
    """It may take jobs: its kubelet is ready, its gate has passed, and the device plugin has announced its GPUs, which
    comes some seconds after the rest.
    """
    return view.ready == "True" and view.gate == "True" and view.gpus >= pool.each.gpus
