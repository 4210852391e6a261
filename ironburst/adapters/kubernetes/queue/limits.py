"""How long a gang may run, and when it ends. Pure.

What has no limit of its own is a service: Kubernetes refuses activeDeadlineSeconds in the template of a Deployment or a
StatefulSet, and so of a LeaderWorkerSet. It is rented for by its annotation, or its namespace's, which says for how
long money is set aside at first; then it has no end (ironburst.controller.renewing).
"""

from __future__ import annotations

from ironburst.adapters.kubernetes.gangs import Gang
from ironburst.adapters.kubernetes.queue.seen import Objects
from ironburst.adapters.kubernetes.site import KubernetesSite
from ironburst.adapters.kubernetes.views import PodView


def limit_s(gang: Gang, bound: list[PodView], objects: Objects, site: KubernetesSite) -> float | None:
    """The longest of the limits of its pods that may be on rented nodes; None: one of them has none, or it has started
    and nothing ends it. A Job's limit runs while its pods are pending, too: they may run shorter, never longer.
    """
    at_home = {pod.uid for pod in gang.launchers if pod.node and pod.node not in site.pool_of}
    longest = 0.0
    for pod in gang.pods:
        if pod.uid in at_home:
            continue
        limit = hard_s(pod, objects)
        if limit is None and not bound:
            limit = _aside_s(pod, objects)
        if limit is None:
            return None
        longest = max(longest, limit)
    return longest


def hard_s(pod: PodView, objects: Objects) -> float | None:
    """When Kubernetes itself ends it."""
    job = objects.job_of(pod)
    return min((each for each in (pod.limit_s, job.limit_s if job else None) if each is not None), default=None)


def _aside_s(pod: PodView, objects: Objects) -> float | None:
    namespace = objects.namespaces.get(pod.namespace)
    return pod.aside_s if pod.aside_s is not None or namespace is None else namespace.aside_s


def end_s(bound: list[PodView], objects: Objects) -> float | None:
    """When the last of them ends: by its limit, or when the grace periods of all that are being deleted are over. None:
    not known yet, or it has no end.
    """
    if bound and all(pod.deleting for pod in bound):
        return max((pod.gone_s for pod in bound if pod.gone_s is not None), default=None)
    ends = []
    for pod in bound:
        job = objects.job_of(pod)
        own = [pod.started_s + pod.limit_s] if pod.started_s is not None and pod.limit_s is not None else []
        if job and job.limit_s is not None and job.started_s is not None:
            own.append(job.started_s + job.limit_s)
        ends += [min(own)] if own else []
    return max(ends) if len(ends) == len(bound) and ends else None
