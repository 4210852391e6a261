"""What is kept of a cluster at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

from ironburst.adapters.kubernetes import devices, objects, pods, taints
from ironburst.adapters.kubernetes.cache import Kind
from ironburst.adapters.kubernetes.gangs import Gang, grouped
from ironburst.adapters.kubernetes.site import KubernetesSite
from ironburst.adapters.kubernetes.views import (
    ClaimView,
    DefaultView,
    GroupView,
    JobView,
    NodeView,
    ObjectView,
    PodView,
    StorageClassView,
    VolumeView,
)
from ironburst.ports import WrongShape

LIVE = "status.phase!=Succeeded,status.phase!=Failed"  # field selector: pods that haven't ended
KEPT = {  # what is known of a cluster, by its kind
    "pods": "pods",
    "nodes": "nodes",
    "jobs": "jobs",
    "groups": "podgroups",
    "claims": "persistentvolumeclaims",
    "volumes": "persistentvolumes",
    "namespaces": "namespaces",
    "classes": "storageclasses",
}


def kinds(site: KubernetesSite) -> list[Kind]:
    """What is watched."""
    group = "/apis/scheduling.k8s.io/{}/podgroups"
    return [
        Kind("pods", ("/api/v1/pods",), partial(pods.read_pod, site=site), LIVE),
        Kind("jobs", ("/apis/batch/v1/jobs",), partial(objects.read_job, site=site)),
        Kind("podgroups", (group.format("v1beta1"), group.format("v1alpha2")), objects.read_group, may_lack=True),
        Kind("persistentvolumeclaims", ("/api/v1/persistentvolumeclaims",), objects.read_claim),
        Kind("persistentvolumes", ("/api/v1/persistentvolumes",), partial(objects.read_volume, site=site)),
        Kind(
            "storageclasses",
            ("/apis/storage.k8s.io/v1/storageclasses",),
            partial(objects.read_storage_class, site=site),
        ),
        Kind("namespaces", ("/api/v1/namespaces",), objects.read_default),
        Kind("nodes", ("/api/v1/nodes",), partial(objects.read_node, ours=site.ours)),
        *devices.kinds(site.ours),
    ]


@dataclass(frozen=True)
class Objects:
    """A cluster at one moment, by the objects' keys."""

    pods: Mapping[str, PodView]
    nodes: Mapping[str, NodeView]
    jobs: Mapping[str, JobView]
    groups: Mapping[str, GroupView]
    claims: Mapping[str, ClaimView]
    volumes: Mapping[str, VolumeView]
    namespaces: Mapping[str, DefaultView] = field(default_factory=dict, kw_only=True)
    classes: Mapping[str, StorageClassView] = field(default_factory=dict, kw_only=True)  # of storage

    @cached_property
    def gangs(self) -> tuple[list[Gang], frozenset[int]]:
        """All of them, and the ids that two of them share."""
        return grouped(self.pods.values(), self.jobs.values(), self.groups.values())

    @cached_property
    def jobs_by_uid(self) -> dict[str, JobView]:
        """As owners are named."""
        return {job.uid: job for job in self.jobs.values()}

    @cached_property
    def _launched_by(self) -> dict[str, JobView]:
        """Jobs by the uid of an operator's object that made them, which ends with them: an MPIJob and its launcher."""
        return {job.owner: job for job in self.jobs.values() if job.owner}

    def job_of(self, pod: PodView) -> JobView | None:
        """The Job whose time limit is a pod's, too: its own, or the one that its owner ends with."""
        if pod.owner is None:
            return None
        return self.jobs_by_uid.get(pod.owner.uid) or self._launched_by.get(pod.owner.uid)

    @cached_property
    def daemons(self) -> dict[str, PodView]:
        """A pod of each DaemonSet, by its uid: each node that it may go to will have one."""
        return {pod.owner.uid: pod for pod in self.pods.values() if pod.owner and pod.owner.kind == "DaemonSet"}

    @cached_property
    def rented(self) -> dict[str, str]:
        """The value of each rented node's taint, by its name; without those that have none."""
        return {name: value for name, node in self.nodes.items() if (value := taints.value_of(node))}


def unreadable(seen: Objects) -> tuple[str, ...]:
    """What can't be read, as sentences. Raises WrongShape where that is most pods: another API, not one odd pod."""
    bad = [pod.error for pod in seen.pods.values() if pod.error]
    if len(bad) > max(1, len(seen.pods) // 2):
        raise WrongShape(f"{len(bad)} of {len(seen.pods)} pods can't be read: {bad[0]}")
    others: list[ObjectView] = [*seen.nodes.values(), *seen.jobs.values(), *seen.groups.values()]
    others += [*seen.volumes.values(), *seen.namespaces.values(), *seen.classes.values()]
    twice = [f"two jobs have the id {id}: neither is touched" for id in sorted(seen.gangs[1])]
    return (*bad, *(view.error for view in others if view.error), *twice)
