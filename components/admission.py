"""ValidatingAdmissionPolicies as pure functions: what RBAC lets the controller do, and it still may not.

RBAC knows no smaller right than a patch of a pod, which may change its image, and than a new Secret in kube-system. A
policy judges the calls of one user; whoever else calls isn't looked at. What can't be judged is refused.
"""

import base64
from collections.abc import Sequence
from typing import Any

from ironburst.kubernetes_rights import BOOTSTRAPPERS, SIGNER
from ironburst.nodes.naming import BAD_GPU_TAINT, NOT_READY_TAINT

Spec = Any  # the SDK types its records by the key
SERVERS_OWN = ("managedFields", "resourceVersion", "generation")  # of an object's metadata; every write moves them


def _policy(user: str, group: str, resources: list[str], operations: list[str], *rules: tuple[str, str]) -> Spec:
    """`rules`: expressions that must be true, and what is said where one isn't."""
    return {
        "failure_policy": "Fail",
        "match_constraints": {
            "resource_rules": [
                {"api_groups": [group], "api_versions": ["*"], "operations": operations, "resources": resources}
            ]
        },
        "match_conditions": [{"name": "controller", "expression": f"request.userInfo.username == {_text(user)}"}],
        "validations": [{"expression": rule, "message": said, "reason": "Forbidden"} for rule, said in rules],
    }


def _text(value: str) -> str:
    """A string of CEL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _same(part: str, changing: tuple[str, ...]) -> str:
    """Nothing of a part of the object is another one but these keys: not added, changed or taken away. By name of the
    key, so that a field that a later Kubernetes brings is held, too. `dyn`: else the types allow no loop over fields.
    """
    new, old = f"dyn(object.{part})", f"dyn(oldObject.{part})"
    free = ", ".join(map(_text, changing))
    kept = f"{new}.all(k, k in [{free}] || (k in {old} && {new}[k] == {old}[k]))"
    return f"{kept} && {old}.all(k, k in [{free}] || k in {new})"


def nodes(instances: Sequence[str], rents: bool) -> Spec:
    """Of the nodes that sign in under their instances' ids, as on EKS, those that Pulumi made. An instance that has got
    hold of the nodes' role by another way is no node. `rents`: others may come behind the taint that the controller
    alone takes away, and from those alone that it asked for.
    """
    ids = ", ".join(map(_text, sorted(instances)))
    rule, said = f"object.metadata.name in [{ids}]", "ironburst made no such instance as a node of this cluster"
    if rents:
        waits = f"t.key == {_text(NOT_READY_TAINT)} && t.effect == 'NoSchedule'"
        rule += f" || (has(object.spec.taints) && object.spec.taints.exists(t, {waits}))"
        said += f", and it has no taint {NOT_READY_TAINT}"
    conditions = [{"name": "instance", "expression": "request.userInfo.username.startsWith('system:node:i-')"}]
    return _policy("", "", ["nodes"], ["CREATE"], (rule, said)) | {"match_conditions": conditions}


def device_taints() -> Spec:
    """Of DeviceTaintRules, what nodes make and take away: for a device of their own, and nobody is evicted by it."""
    rule, key = "(request.operation == 'CREATE' ? object : oldObject).spec", _text(BAD_GPU_TAINT)
    selector, user = f"{rule}.deviceSelector", "request.userInfo.username"
    own = f"has({selector}.pool) && has({selector}.device) && {user} == 'system:node:' + {selector}.pool"
    ours = f"{rule}.taint.key == {key} && {rule}.taint.effect == 'NoSchedule'"
    conditions = [{"name": "node", "expression": "'system:nodes' in request.userInfo.groups"}]
    return _policy(
        "",
        "resource.k8s.io",
        ["devicetaintrules"],
        ["CREATE", "UPDATE", "DELETE"],
        ("request.operation != 'UPDATE'", "a node makes and deletes DeviceTaintRules, and changes none"),
        (f"has({rule}.deviceSelector) && {own}", "a node taints the devices of its own pool, by their names"),
        (ours, f"a node taints devices with {BAD_GPU_TAINT}:NoSchedule alone"),
    ) | {"match_conditions": conditions}


def pods(user: str) -> Spec:
    """Of a pod, only its tolerations; the API server itself lets nobody take one away."""
    return _policy(
        user,
        "",
        ["pods"],
        ["CREATE", "UPDATE"],
        ("request.operation == 'UPDATE'", "ironburst's controller makes no pods"),
        (
            f"request.operation != 'UPDATE' || ({_same('spec', ('tolerations',))})",
            "ironburst's controller may change nothing of a pod but its tolerations",
        ),
        (
            f"request.operation != 'UPDATE' || ({_same('metadata', SERVERS_OWN)})",
            "ironburst's controller may change no label, annotation or owner of a pod",
        ),
    )


def workloads(user: str, check: str) -> Spec:
    """Of a Workload's status, only our own check's entry."""
    but_ours = f"filter(c, c.name != {_text(check)})"
    others = [
        f"(has({of}.status.admissionChecks) ? dyn({of}.status.admissionChecks) : dyn([])).{but_ours}"
        for of in ("object", "oldObject")
    ]
    both = "has(object.status) && has(oldObject.status)"
    return _policy(
        user,
        "kueue.x-k8s.io",
        ["workloads/status"],
        ["UPDATE"],
        (
            f"{both} && {_same('status', ('admissionChecks',))}",
            "ironburst's controller may change nothing of a workload's status but its checks",
        ),
        (
            f"{both} && {' == '.join(others)}",
            f"ironburst's controller may answer no check but {check}",
        ),
    )


def queues(user: str) -> Spec:
    """Of the teams' ClusterQueues and their Cohort, only the quotas."""
    return _policy(
        user,
        "kueue.x-k8s.io",
        ["clusterqueues", "cohorts"],
        ["UPDATE"],
        (_same("spec", ("resourceGroups",)), "ironburst's controller may change nothing of a queue but its quotas"),
        (_same("metadata", SERVERS_OWN), "ironburst's controller may change no label, annotation or owner of a queue"),
    )


def node_pools(user: str) -> Spec:
    """Of Karpenter's NodePools, only the limits."""
    said = "ironburst's controller may change nothing of a NodePool but its limits"
    return _policy(
        user,
        "karpenter.sh",
        ["nodepools"],
        ["CREATE", "UPDATE"],
        ("request.operation == 'UPDATE'", "ironburst's controller makes no NodePools"),
        (f"request.operation != 'UPDATE' || ({_same('spec', ('limits',))})", said),
        (f"request.operation != 'UPDATE' || ({_same('metadata', SERVERS_OWN)})", said),
    )


def tokens(user: str) -> Spec:
    """Of Secrets, new bootstrap tokens that rented nodes join with: to authenticate, in our group, for a time. The
    data is compared as it is kept, in base64, which the language can't decode. Nor does it know the time of day: a
    token that is good for years can't be distinguished from one for an hour.
    """
    needed = ("token-id", "token-secret", "expiration", "usage-bootstrap-authentication", "auth-extra-groups")
    names = ", ".join(map(_text, (*needed, "description")))
    has_all = " && ".join(f"{_text(name)} in object.data" for name in needed)
    said = "ironburst's controller may make no Secret but a token that rented nodes join with"

    def holds(key: str, value: str) -> str:
        return f"object.data[{_text(key)}] == {_text(base64.b64encode(value.encode()).decode())}"

    return _policy(
        user,
        "",
        ["secrets"],
        ["CREATE", "UPDATE"],
        ("request.operation == 'CREATE' && request.namespace == 'kube-system'", said),
        ("has(object.type) && object.type == 'bootstrap.kubernetes.io/token'", said),
        ("object.metadata.name.matches('^bootstrap-token-[a-z0-9]{6}$')", said),
        (f"has(object.data) && {has_all} && object.data.all(k, k in [{names}])", f"{said}: these keys, no others"),
        (holds("usage-bootstrap-authentication", "true"), f"{said}: to authenticate"),
        (holds("auth-extra-groups", BOOTSTRAPPERS), f"{said}: in the group {BOOTSTRAPPERS} alone"),
        # 20 characters from 20 on, a time; of any other text, the API server takes an empty one for no end at all
        ("object.data['expiration'].matches('^MjA[A-Za-z0-9+/]{24}=$')", f"{said}: with an expiration"),
    )


def approvals(user: str) -> Spec:
    """Of certificate requests, those of kubelets that showed such a token."""
    asked = (
        f"oldObject.spec.signerName == {_text(SIGNER)} && oldObject.spec.groups.exists(g, g == {_text(BOOTSTRAPPERS)})"
    )
    return _policy(
        user,
        "certificates.k8s.io",
        ["certificatesigningrequests/approval"],
        ["UPDATE"],
        (asked, "ironburst's controller approves requests of rented nodes that join, and no others"),
    )
