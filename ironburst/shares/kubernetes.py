"""Shares as Kubernetes has them without Kueue: objects that the API server and kube-scheduler hold by themselves.

A team is a namespace. A pod says by its priority class what it is: `ironburst-guaranteed`, `ironburst-over-quota`
(which ends for the first), or `ironburst-own` on the team's own nodes. Three ResourceQuotas a namespace bound the GPUs
of each kind, so no team's guaranteed pods are more than its guarantee; a ValidatingAdmissionPolicy keeps GPUs away from
pods that say nothing, which would otherwise stand above the work over quota and under no quota.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ironburst.shares import model
from ironburst.shares.model import Quota, TeamShare

GPU = "nvidia.com/gpu"
GUARANTEED, OVER_QUOTA, OWN = "ironburst-guaranteed", "ironburst-over-quota", "ironburst-own"
TEAM = "ironburst.io/team"
"""label and taint of a node that is one team's alone, label of its namespace"""
POLICY = "ironburst-shares"
EXEMPT = ("kube-system", "gpu-operator", "nvidia-gpu-operator")
"""namespaces of the cluster's own pods with GPUs: validators, exporters"""
KINDS = {GUARANTEED: model.GUARANTEED, OVER_QUOTA: model.OVER, OWN: model.OWN}
"""what a pod of each class counts in"""
LABELS = {"app.kubernetes.io/managed-by": "ironburst", "app.kubernetes.io/part-of": "ironburst-shares"}

Json = dict[str, Any]


def classes() -> list[Json]:
    """The priority classes. A pod without a class has 0: guaranteed work never takes a service's place, and has nothing
    above it but the system's pods. Over quota is below, but not below -10, where Cluster Autoscaler stops caring.
    """
    return [
        _class(GUARANTEED, 0, "PreemptLowerPriority", "within the team's guaranteed GPUs"),
        _class(OWN, 0, "Never", "on the nodes that are the team's alone"),
        _class(OVER_QUOTA, -5, "Never", "on idle GPUs beyond the guarantee; ends when somebody's guarantee needs them"),
    ]


def quantity(number: int) -> str:
    """As Kubernetes writes it back: 2000 is 2k."""
    for suffix, each in (("M", 10**6), ("k", 10**3)):
        if number and number % each == 0:
            return f"{number // each}{suffix}"
    return str(number)


def live(now: Mapping[str, Quota]) -> dict[tuple[str, str], Json]:
    """{(namespace, ResourceQuota): its hard limits} of those that change with the time; the others are as declared."""
    return {
        (account, name): _hard(gpus)
        for account, quota in now.items()
        for name, gpus in ((GUARANTEED, quota.guaranteed), (OVER_QUOTA, quota.over))
    }


def quotas_of(shares: Sequence[TeamShare], own_gpus: Mapping[str, int], now: Mapping[str, Quota]) -> list[Json]:
    """The ResourceQuotas of each namespace. `own_gpus`: {account: GPUs of its own nodes}; `now`: as
    ironburst.shares.quotas says.
    """
    found = []
    for share in shares:
        quota = now[share.account]
        found += [
            _quota(share.account, GUARANTEED, [GUARANTEED], quota.guaranteed),
            _quota(share.account, OVER_QUOTA, [OVER_QUOTA], quota.over),
            _quota(share.account, OWN, [OWN], own_gpus.get(share.account, 0)),
        ]
        if share.most is not None:
            found.append(_quota(share.account, "ironburst-most", [GUARANTEED, OVER_QUOTA], share.most))
    return found


def namespaces(shares: Sequence[TeamShare]) -> list[Json]:
    """The teams' namespaces, with the label that names the team. They may be there already."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": share.account, "labels": {TEAM: share.account}},
        }
        for share in shares
    ]


def node_commands(shares: Sequence[TeamShare]) -> list[list[str]]:
    """What marks the nodes of only one team. Commands: a Node's list of taints can only be applied as a whole,
    and others have theirs in it.
    """
    return [
        ["kubectl", verb, "node", node, f"{TEAM}={share.account}{effect}", "--overwrite"]
        for share in shares
        for node in share.nodes
        for verb, effect in (("label", ""), ("taint", ":NoSchedule"))
    ]


def policy(shares: Sequence[TeamShare]) -> list[Json]:
    """The ValidatingAdmissionPolicy and its binding: a pod with GPUs is some team's, and says which of its GPUs."""
    named = "has(object.spec.priorityClassName) ? object.spec.priorityClassName : ''"
    teams = json.dumps([share.account for share in shares])
    selected = (
        f"has(object.spec.nodeSelector) && '{TEAM}' in object.spec.nodeSelector && "
        f"object.spec.nodeSelector['{TEAM}'] == object.metadata.namespace"
    )
    tolerated = (
        "(has(object.spec.tolerations) ? object.spec.tolerations : []).all(t, "
        f"!has(t.key) || t.key != '{TEAM}' || (has(t.value) && t.value == object.metadata.namespace))"
    )
    rules = [
        (
            f"!variables.gpus || object.metadata.namespace in {teams}",
            "'namespace ' + object.metadata.namespace + ' has no share of the GPUs: ask for one'",
        ),
        (
            f"!variables.gpus || variables.named in {json.dumps([GUARANTEED, OVER_QUOTA, OWN])}",
            f"'a pod with GPUs says whose they are: set priorityClassName to {GUARANTEED}, {OVER_QUOTA} or {OWN}'",
        ),
        (
            f"!variables.gpus || (variables.named == '{OWN}') == ({selected})",
            f"'{OWN} is for the own nodes: it goes with nodeSelector {TEAM}: ' + object.metadata.namespace",
        ),
        (tolerated, f"'the taint {TEAM} is tolerated for the own team alone'"),
    ]
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}
            ],
            "namespaceSelector": {
                "matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(EXEMPT)}
                ]
            },
        },
        # a pod that is there stays as it was judged; its tolerations alone may grow
        "variables": [
            {"name": "gpus", "expression": f"request.operation == 'CREATE' && ({_asks_for_gpus()})"},
            {"name": "named", "expression": named},
        ],
        "validations": [{"expression": rule, "messageExpression": said} for rule, said in rules],
    }
    return [
        _admission("ValidatingAdmissionPolicy", spec),
        _admission("ValidatingAdmissionPolicyBinding", {"policyName": POLICY, "validationActions": ["Deny"]}),
    ]


def objects(shares: Sequence[TeamShare], own_gpus: Mapping[str, int], now: Mapping[str, Quota]) -> list[Json]:
    """All that is applied, in this order; nodes are marked beside (node_commands)."""
    return [*classes(), *namespaces(shares), *quotas_of(shares, own_gpus, now), *policy(shares)]


def _asks_for_gpus() -> str:
    """CEL: whether some container of a pod asks for GPUs. The API server has set requests from limits by then."""
    return " || ".join(
        f"(has(object.spec.{each}) ? object.spec.{each} : []).exists(c, has(c.resources) && "
        f"has(c.resources.requests) && '{GPU}' in c.resources.requests)"
        for each in ("containers", "initContainers")
    )


def _admission(kind: str, spec: Json) -> Json:
    api = "admissionregistration.k8s.io/v1"
    return {"apiVersion": api, "kind": kind, "metadata": {"name": POLICY, "labels": LABELS}, "spec": spec}


def _class(name: str, value: int, preemption: str, description: str) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "labels": LABELS},
        "value": value,
        "preemptionPolicy": preemption,
        "globalDefault": False,
        "description": description,
    }


def _hard(gpus: int) -> Json:
    return {f"requests.{GPU}": quantity(gpus)}


def _quota(namespace: str, name: str, classes: list[str], gpus: int) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace, "labels": LABELS},
        "spec": {
            "hard": _hard(gpus),
            "scopeSelector": {
                "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": classes}]
            },
        },
    }
