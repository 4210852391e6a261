"""What the controller may do in a Kubernetes cluster, as data: the least that the adapter's calls need.

components/kubernetes_cluster.py declares it as RBAC; the tests hold every call of the adapter against it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "BOOTSTRAPPERS",
    "BRIDGE",
    "CLUSTER",
    "DEVICE_TAINTS",
    "KARPENTER",
    "KUEUE",
    "SIGNER",
    "TOKENS",
    "answering",
    "cluster",
    "namespaced",
    "rendered",
]

Json = dict[str, Any]
BOOTSTRAPPERS = "system:bootstrappers:ironburst"
"""group of whoever shows a token that a rented node joins with"""
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
"""signs the certificates that kubelets show the API server"""


class RbacRule(NamedTuple):
    """One rule of RBAC. `names`: these objects only; none: all."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


# A patch of a pod may change its images, too: Kubernetes has no right that is for tolerations alone. A
# ValidatingAdmissionPolicy bounds it (components/admission.py).
CLUSTER = (
    RbacRule("", ("pods",), ("list", "watch", "patch", "delete")),
    RbacRule("", ("pods/eviction",), ("create",)),
    RbacRule("policy", ("poddisruptionbudgets",), ("list",)),
    RbacRule("", ("nodes",), ("get", "list", "watch", "patch", "delete")),
    RbacRule("", ("namespaces", "persistentvolumeclaims", "persistentvolumes"), ("list", "watch")),
    RbacRule("storage.k8s.io", ("storageclasses",), ("list", "watch")),
    RbacRule("", ("resourcequotas",), ("get", "patch"), ("ironburst-guaranteed", "ironburst-over-quota")),
    RbacRule("batch", ("jobs",), ("list", "watch")),
    RbacRule("resource.k8s.io", ("deviceclasses", "resourceslices", "resourceclaims"), ("list", "watch")),
    RbacRule("scheduling.k8s.io", ("podgroups",), ("list", "watch")),
    # rented nodes join: a ValidatingAdmissionPolicy bounds what Secrets may be made
    RbacRule("certificates.k8s.io", ("certificatesigningrequests",), ("list",)),
    RbacRule("certificates.k8s.io", ("certificatesigningrequests/approval",), ("update",)),
    RbacRule("certificates.k8s.io", ("signers",), ("approve",), (SIGNER,)),
)

# Where slurm-bridge makes Slurm the queue: pods are looked at, and changed by slurm-bridge alone
BRIDGE = (
    RbacRule("", ("pods",), ("list",)),
    RbacRule("", ("nodes",), ("get", "list", "patch", "delete")),
    *(rule for rule in CLUSTER if rule.group == "certificates.k8s.io"),
)

# Of every node, where a bad GPU is to be kept from claims; a policy bounds it to the node's own devices
DEVICE_TAINTS = (RbacRule("resource.k8s.io", ("devicetaintrules",), ("list", "create", "delete")),)

KUEUE = "kueue.x-k8s.io"
"""API group of Kueue's objects"""


def answering(check: str, teams: tuple[str, ...] = ()) -> tuple[RbacRule, ...]:
    """Where Kueue is the queue, and `check` is the name of our AdmissionCheck. A patch of a workload's status may admit
    it, too: a ValidatingAdmissionPolicy bounds it to our own entry. `teams`: with shares, whose queues' quotas follow
    what is in service; a policy bounds that to the quotas.
    """
    quotas = (
        RbacRule(KUEUE, ("clusterqueues",), ("get", "patch"), teams),
        RbacRule(KUEUE, ("cohorts",), ("get", "patch"), ("ironburst",)),
    )
    kept = ("workloads", "clusterqueues", "localqueues", "cohorts", "resourceflavors", "admissionchecks")
    return (
        RbacRule(KUEUE, kept, ("list", "watch")),
        RbacRule("", ("events",), ("create",)),  # who holds quota that others wait for
        RbacRule(KUEUE, ("workloads/status",), ("get", "patch")),
        RbacRule(KUEUE, ("admissionchecks/status",), ("get", "patch"), (check,)),
        *(quotas if teams else ()),
    )


KARPENTER = "karpenter.sh"
"""API group of Karpenter's objects"""


def limiting(node_pools: tuple[str, ...]) -> tuple[RbacRule, ...]:
    """Where Karpenter launches within our budget: these NodePools are ours. A patch of one may change what it launches,
    too: a ValidatingAdmissionPolicy bounds it to the limits.
    """
    if not node_pools:
        return ()
    return (
        RbacRule(KARPENTER, ("nodeclaims", "nodepools"), ("list",)),
        RbacRule(KARPENTER, ("nodepools",), ("patch",), node_pools),
    )


def cluster(
    queue: str,
    check: str,
    node_pools: tuple[str, ...] = (),
    *,
    teams: tuple[str, ...] = (),
    certificates: bool = True,
) -> tuple[RbacRule, ...]:
    """In the whole cluster, by whose the queue is. With Kueue's, no pod is changed: Kueue gives it its tolerations; nor
    a ResourceQuota, but the queues of `teams`, who have shares. `certificates`: nodes ask for them when they join, as
    they do everywhere but on EKS.
    """
    if queue == "slurm-bridge":
        return BRIDGE
    rules = tuple(rule for rule in CLUSTER if certificates or rule.group != "certificates.k8s.io")
    if queue != "kueue":
        return (*rules, *limiting(node_pools))
    pods = RbacRule("", ("pods",), ("list", "watch", "delete"))
    others = (rule for rule in rules if rule.resources not in (("pods",), ("resourcequotas",)))
    return (pods, *others, *answering(check, teams), *limiting(node_pools))


# In kube-system, where bootstrap tokens are
TOKENS = (RbacRule("", ("secrets",), ("create",)),)


def namespaced(object_name: str) -> tuple[RbacRule, ...]:
    """In the controller's own namespace. A name can't be given to `create`."""
    return (
        RbacRule("", ("configmaps",), ("create",)),
        RbacRule("", ("configmaps",), ("get", "update"), (object_name,)),
        RbacRule("coordination.k8s.io", ("leases",), ("create",)),
        RbacRule("coordination.k8s.io", ("leases",), ("get", "update"), (object_name,)),
    )


def rendered(rules: tuple[RbacRule, ...]) -> list[Json]:
    """As `rules` of a ClusterRole or a Role."""
    return [
        {
            "apiGroups": [rule.group],
            "resources": list(rule.resources),
            "verbs": list(rule.verbs),
            **({"resourceNames": list(rule.names)} if rule.names else {}),
        }
        for rule in rules
    ]
