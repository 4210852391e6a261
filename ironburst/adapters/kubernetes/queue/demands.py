"""Where a gang may start, and what no rented node can promise it. Pure.

Its workers decide (gangs.Gang). A launcher may stay at home: what it insists on counts only where home doesn't have it.
"""

from __future__ import annotations

from ironburst.adapters.kubernetes import affinity
from ironburst.adapters.kubernetes.gangs import Gang
from ironburst.adapters.kubernetes.queue.seen import Objects
from ironburst.adapters.kubernetes.site import HOSTNAME_KEY, SITE_KEY, KubernetesSite
from ironburst.adapters.kubernetes.views import PodView


def allowed(gang: Gang, objects: Objects, site: KubernetesSite) -> set[str]:
    """Partitions that the labels of nodes and the volumes of all of its workers allow."""
    found = {pool.partition for pool in site.pools}
    for pod in gang.workers:
        found &= _reached(pod, objects)
    if kept := _keeps(gang, site):
        found &= {pool.partition for pod in kept if (pool := site.pool_of.get(pod.node))}
    return found


def _keeps(gang: Gang, site: KubernetesSite) -> list[PodView]:
    """Of the pods that ran before, those whose side its own pods have to share, by required affinity to their kind."""
    keys = (HOSTNAME_KEY, *site.site_keys)
    kinds = {pod.alike for pod in gang.unbound_workers if any(key in keys for key, _ in pod.near)}
    return [pod for pod in gang.beside if pod.alike in kinds]


def _reached(pod: PodView, objects: Objects) -> frozenset[str]:
    """Partitions that a pod's own node labels and volumes allow."""
    found = pod.pools
    for key in pod.claims:
        claim = objects.claims.get(key)
        volume = objects.volumes.get(claim.volume) if claim and claim.volume else None
        source = volume or (objects.classes.get(claim.storage_class) if claim and not claim.volume else None)
        if source and source.pools is not None:
            found &= source.pools
    return found


def goes_along(launcher: PodView, gang: Gang, objects: Objects, site: KubernetesSite) -> bool:
    """Whether a launcher may start on the nodes that are rented for the workers."""
    return not _insists(launcher, objects) and bool(allowed(gang, objects, site) & _reached(launcher, objects))


def gpu_type(gang: Gang, objects: Objects, site: KubernetesSite) -> str:
    """The type that its labels come down to; empty where that says nothing more. Where all pools have one type, only
    who asks for it says something.
    """
    may = allowed(gang, objects, site)
    types = {pool.gpu_type for pool in site.pools if pool.partition in may}
    every = {pool.gpu_type for pool in site.pools}
    return types.pop() if len(types) == 1 and (len(every) > 1 or chooses_gpu(gang)) else ""


def chooses_gpu(gang: Gang) -> bool:
    """Whether it says which GPUs it takes."""
    return any(pod.chooses_gpu for pod in gang.workers)


def demands_of(gang: Gang, objects: Objects, site: KubernetesSite) -> list[str]:
    """What no rented node can promise its pods."""
    found = [demand for pod in gang.workers for demand in _insists(pod, objects)]
    found += [pod.error for pod in gang.pods if pod.error]
    if any(pod.tolerates_all for pod in gang.pods):
        found.append("every node whatever its taints, so rented nodes can't be kept for whom they were rented")
    may = allowed(gang, objects, site)
    if any(pod.node not in site.pool_of for pod in _keeps(gang, site)):
        found.append("its side of others of its kind, by required pod affinity, and they run at home")
    if site.pools and not found:
        of_type = gpu_type(gang, objects, site)
        meant = {pool.partition for pool in site.pools if not of_type or pool.gpu_type == of_type}
        if not may:
            found.append("node labels and volumes that no pool has together")
        elif may != meant:
            found.append(f"pool {', '.join(sorted(may))} alone, by its node labels or volumes")
    return found + _launchers(gang, objects, site) + _apart(gang, site)


def _insists(pod: PodView, objects: Objects) -> list[str]:
    return [*pod.demands, *(demand for key in pod.claims if (demand := _volume(key, objects)))]


def _volume(key: str, objects: Objects) -> str:
    claim = objects.claims.get(key)
    if claim is None or not claim.volume:
        its = objects.classes.get(claim.storage_class) if claim else None
        if its and its.waits:  # its volume is made where the pod starts
            return f"the volume claim {key}, whose class {its.key} makes none there" if its.pools == frozenset() else ""
        return f"the volume claim {key}, which isn't bound yet: where it will be isn't known"
    volume = objects.volumes.get(claim.volume)
    if volume is None or volume.pools != frozenset():
        return ""
    where = f"{volume.where}, where no pool's nodes are for sure" if volume.where else "home"
    return f"the volume claim {key}, which is bound to {where}"


def _launchers(gang: Gang, objects: Objects, site: KubernetesSite) -> list[str]:
    """Launchers that wait and can go nowhere but home, and those at home that keep the workers there."""
    found = []
    for pod in gang.launchers:
        name = f"its pod {pod.name}"
        if not pod.node and not goes_along(pod, gang, objects, site):
            on = "; ".join(_insists(pod, objects)) or "nodes that its other pods can't have"
            found.append(f"{name}, which asks for no GPU, on {on}: home has no room for that")
        elif pod.node and pod.node not in site.pool_of and _kept_with(pod, gang, site):
            with_it = "required pod affinity keeps the others with it: let that select the pods with GPUs alone"
            found.append(f"{name} runs at home, and {with_it}")
    return found


def _kept_with(launcher: PodView, gang: Gang, site: KubernetesSite) -> bool:
    keys = (HOSTNAME_KEY, *site.site_keys)
    terms = [term for pod in gang.unbound_workers for term in pod.near if term[0] in keys]
    return any(affinity.selects(selector, launcher.labels) for _, selector in terms)


def _apart(gang: Gang, site: KubernetesSite) -> list[str]:
    """A gang whose workers may start on both sides at once isn't rented for."""
    count = gang.size - len(gang.launchers)
    if count < 2:
        return []
    if keys_apart := sorted({key for pod in gang.workers for key in pod.spread}):
        return [f"topology spread ({', '.join(keys_apart)}) of {count} pods that rented nodes have on one side"]
    keys = {pod.together for pod in gang.workers}
    key = gang.group.topology if gang.group and gang.group.topology else keys.pop() if len(keys) == 1 else ""
    if key == HOSTNAME_KEY:
        return []
    if key not in site.site_keys:
        # PodGroups need gates that are off by default, and that EKS doesn't offer (by_instance)
        group = "" if site.by_instance else " or a PodGroup's topology"
        means = f"required pod affinity{group} on {SITE_KEY}"
        return [f"{count} pods together, and nothing keeps them on one side: give them {means}"]
    lack = [pool.partition for pool in site.pools if key != SITE_KEY and key not in pool.labels]
    return [f"the topology {key}, which pool {lack[0]} doesn't declare"] if lack else []
