"""Which workloads that are held for rented nodes Kueue would start at home now. Pure.

Kueue never looks at the other flavors again once it has reserved one (0.19.2, tried: home stood empty and the workload
was held). `Retry` gives the quota back, and it looks again, from the first flavor on: half a second later it has
started at home. So Retry is answered where home has room, by what Kueue itself says is reserved, and by the GPUs that
are free on each of home's nodes: quota knows nothing of drained ones, nor that 4 and 4 are no 8, and who starts at home
only by quota waits there for good. Where that was wrong, the workload is held again a moment later. Not counted: what
preemption would free, fair sharing, taints, affinity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ironburst.adapters.kubernetes.kueue_views import PENDING, KueueQuota, PodSet, QueueView, WorkloadView
from ironburst.adapters.kubernetes.site import GPU, KubernetesSite
from ironburst.adapters.kubernetes.workloads import Queued

_At = tuple[str, str, str]  # queue or root of its cohort, flavor, resource
_NONE = KueueQuota(0.0)


@dataclass
class _Room:
    """Of one round: what was there before it, as far as it was asked for, and what those before have taken."""

    known: dict[_At, tuple[float, float]] = field(default_factory=dict)
    taken: dict[_At, float] = field(default_factory=dict)


def start_at_home(seen: Queued, site: KubernetesSite) -> list[WorkloadView]:
    """Those that fit together, in Kueue's order: by priority, then by age."""
    held = [
        each
        for each in seen.workloads.values()
        if not seen.waits(each) and each.checks[seen.check].state == PENDING and each.admitted_s is None
    ]
    room = _Room()
    found, free = list[WorkloadView](), free_gpus(seen, site) if held else {}
    for each in sorted(held, key=lambda each: (-each.priority, each.created_s, each.key)):
        queue, left = seen.queues[each.cluster_queue], dict(free)
        if (chosen := _chosen(each, queue, seen, room, left)) is not None:
            found.append(each)
            free = left
            for flavor, resource, amount in chosen:
                for of in {queue.key, f"cohort {_root(queue, seen)}"}:
                    key = of, flavor, resource
                    room.taken[key] = room.taken.get(key, 0.0) + amount
    return found


def free_gpus(seen: Queued, site: KubernetesSite) -> dict[str, int]:
    """Of each of home's nodes that takes pods, less what is there and what Kueue has let start and has no node yet."""
    home = {name: node for name, node in seen.nodes.items() if name not in site.pool_of}
    free = {
        name: node.gpus * node.replicas  # as Kueue counts them
        for name, node in home.items()
        if node.ready == "True" and not node.cordoned and not node.deleting
    }
    for pod in seen.pods.values():
        if pod.node in free:
            free[pod.node] -= pod.gpus
    let = [pod for key, pods in seen.owned[0].items() if not seen.ours(seen.known[key]) for pod in pods]
    for gpus in sorted((pod.gpus for pod in let if pod.gpus and not pod.node), reverse=True):
        if free:
            roomy = [name for name, left in free.items() if left >= gpus]
            node = min(roomy, key=free.__getitem__) if roomy else max(free, key=free.__getitem__)
            free[node] -= gpus
    return free


def _chosen(
    workload: WorkloadView, queue: QueueView, seen: Queued, room: _Room, free: dict[str, int]
) -> list[tuple[str, str, float]] | None:
    """The flavors of home that it would get, with what it takes of them; None: it doesn't fit. `free`: of each node,
    from which its GPUs are taken.
    """
    cloud = queue.checks[seen.check] or frozenset(name for group in queue.groups for name in group)
    found = list[tuple[str, str, float]]()
    of_gpus = next((group for group in queue.groups if any(GPU in quotas for quotas in group.values())), {})
    for group in queue.groups:
        resources = {resource for flavor in group.values() for resource in flavor}
        for each in workload.sets:
            if not any(each.flavors.get(resource) in cloud for resource in resources):
                continue
            asked = {name: amount for name in resources if (amount := _asked(each, name))}
            home = [flavor for flavor in _before(group, cloud) if _allows(seen, flavor, each)]
            flavor = next((name for name in home if _fits(name, asked, queue, seen, room, found)), None)
            if flavor is None or (group is of_gpus and not _placed(each, flavor, seen, free)):
                return None
            found += [(flavor, name, amount) for name, amount in asked.items()]
    return found


def _placed(each: PodSet, flavor: str, seen: Queued, free: dict[str, int]) -> bool:
    """Whether nodes of the flavor hold all of its pods, each on one node, and where it requires a topology, all in one
    domain; `free` is less by them then. The fullest that suffice are taken.
    """
    labels = {**each.selector, **(seen.flavors[flavor].labels if flavor in seen.flavors else {})}
    domains: dict[str, list[str]] = {}
    for name in sorted(free, key=lambda name: free[name]):
        has = seen.nodes[name].labels
        if labels.items() <= has.items() and (not each.required or each.required in has):
            domains.setdefault(has[each.required] if each.required else "", []).append(name)
    for names in sorted(domains.values(), key=lambda names: sum(free[name] for name in names)):
        rest, taken = each.count, dict[str, int]()
        for name in names:
            pods = min(rest, max(free[name], 0) // each.pod.gpus if each.pod.gpus else rest)
            pods = min(pods, each.pod.most_per_node) if each.pod.most_per_node else pods
            rest, taken[name] = rest - pods, pods * each.pod.gpus
        if not rest:
            free.update({name: free[name] - gpus for name, gpus in taken.items()})
            return True
    return False


def _asked(each: PodSet, resource: str) -> float:
    return each.count * (1.0 if resource == "pods" else each.asks.get(resource, 0.0))


def _before(group: Mapping[str, object], cloud: frozenset[str]) -> Iterator[str]:
    """Flavors that Kueue tries before the cloud's."""
    for flavor in group:
        if flavor in cloud:
            return
        yield flavor


def _allows(seen: Queued, flavor: str, each: PodSet) -> bool:
    """Kueue gives no flavor whose labels are others than the pods name."""
    labels = seen.flavors[flavor].labels if flavor in seen.flavors else {}
    return all(labels.get(key, value) == value for key, value in each.selector.items())


def _fits(
    flavor: str,
    asked: Mapping[str, float],
    queue: QueueView,
    seen: Queued,
    room: _Room,
    also: Iterable[tuple[str, str, float]],
) -> bool:
    own = {(flavor, name): sum(n for f, r, n in also if (f, r) == (flavor, name)) for name in asked}
    return all(
        amount + own[flavor, name] <= _free(flavor, name, queue, seen, room) + 1e-6 for name, amount in asked.items()
    )


def _free(flavor: str, resource: str, queue: QueueView, seen: Queued, room: _Room) -> float:
    """What the queue may still reserve: of its own, and of its cohort within its borrowing limit."""
    at = queue.key, flavor, resource
    if at not in room.known:
        room.known[at] = _before_this_round(flavor, resource, queue, seen)
    together, alone = room.known[at]
    root = f"cohort {_root(queue, seen)}" if queue.cohort else queue.key
    return min(together - room.taken.get((root, flavor, resource), 0.0), alone - room.taken.get(at, 0.0))


def _before_this_round(flavor: str, resource: str, queue: QueueView, seen: Queued) -> tuple[float, float]:
    """What is left to its cohort together, and to the queue alone by its limits."""
    quota = _quota(queue, flavor, resource)
    mine = quota.nominal - queue.reserved.get((flavor, resource), 0.0)
    if not queue.cohort:
        return mine, mine
    root = _root(queue, seen)
    cohorts = [each for name, each in seen.cohorts.items() if _root_of(name, seen) == root]
    free = sum(_quota(each, flavor, resource).nominal for each in cohorts)
    for each in seen.queues.values():
        if each.cohort and _root(each, seen) == root:
            its = _quota(each, flavor, resource)
            left = its.nominal - each.reserved.get((flavor, resource), 0.0)
            free += left if each.key == queue.key or its.lending is None else min(left, its.lending)
    return free, math.inf if quota.borrowing is None else mine + quota.borrowing


def _quota(queue: QueueView, flavor: str, resource: str) -> KueueQuota:
    return next((group[flavor][resource] for group in queue.groups if resource in group.get(flavor, ())), _NONE)


def _root(queue: QueueView, seen: Queued) -> str:
    return _root_of(queue.cohort, seen)


def _root_of(cohort: str, seen: Queued) -> str:
    """The topmost cohort above one; a ring, which Kueue refuses, ends somewhere."""
    for _ in range(len(seen.cohorts) + 1):
        if not (above := seen.cohorts.get(cohort)) or not above.cohort:
            break
        cohort = above.cohort
    return cohort
