"""Kubernetes objects as their JSON has them, with the fields that an API server of 1.36 shows."""

from __future__ import annotations

import base64
import itertools

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ironburst import kubernetes_rights as rights
from ironburst.adapters.kubernetes.site import GATE, NOT_READY, KubernetesPool, KubernetesSite
from ironburst.kubernetes_rights import BOOTSTRAPPERS, SIGNER
from ironburst.ports import Resources

_uids = itertools.count(1)
CREATED = "2026-11-23T07:00:00Z"
CREATED_S = 1795417200.0
SPOT_LABELS = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "topology.kubernetes.io/zone": "us-east-1a"}
SITE = KubernetesSite(
    "lab",
    (
        KubernetesPool("burst-p5", ("p5-1", "p5-2", "p5-3"), Resources(8, 96, 1_000_000), "h100", SPOT_LABELS),
        KubernetesPool("burst-g6", ("g6-1",), Resources(1, 8, 30_000), "l4", {"nvidia.com/gpu.product": "NVIDIA-L4"}),
    ),
    home_registries=("registry.home.lan:5000",),
)
READY = {"type": "Ready", "status": "True"}
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available.",
}


def uid():
    return f"00000000-0000-4000-8000-{next(_uids):012d}"


def owner(kind, name, of, controller=True):
    return {"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": of, "controller": controller}


def pod(name, *, ns="team-a", gpus=8, node="", owner=None, labels=None, notes=None, conditions=None, cpu="4", **spec):
    requests = {"cpu": cpu, "memory": f"{16 * int(cpu)}Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    tolerations = [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for what in ("not-ready", "unreachable")
    ]
    status = {"phase": "Running" if node else "Pending", "conditions": conditions or [READY if node else UNSCHEDULABLE]}
    if node:
        status["startTime"] = "2026-11-23T07:10:00Z"
    nominated = spec.pop("nominated", "")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": ns,
            "uid": uid(),
            "resourceVersion": "7",
            "creationTimestamp": CREATED,
            "labels": labels or {},
            "annotations": notes or {},
            **({"ownerReferences": [owner]} if owner else {}),
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "restartPolicy": "Never",
            "priority": 0,
            "tolerations": tolerations,
            "containers": [
                {"name": "main", "image": "nvcr.io/nvidia/pytorch:26.10", "resources": {"requests": requests}}
            ],
            **({"nodeName": node} if node else {}),
            **spec,
        },
        "status": status | ({"nominatedNodeName": nominated} if nominated else {}),
    }


def job(name, *, ns="team-a", parallelism=1, completions=1, indexed=False, limit=3600, of=None, labels=None, **more):
    status = {"startTime": CREATED, "active": parallelism, **more.pop("status", {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": ns,
            "uid": uid(),
            "resourceVersion": "5",
            "creationTimestamp": CREATED,
            "labels": labels or {},
            **({"ownerReferences": [of]} if of else {}),
        },
        "spec": {
            "parallelism": parallelism,
            "completions": completions,
            "completionMode": "Indexed" if indexed else "NonIndexed",
            "backoffLimit": 6,
            **({"activeDeadlineSeconds": limit} if limit else {}),
            **more,
        },
        "status": status,
    }


def pods_of(raw, count, *, gpus=8, **more):
    """The pods of a Job."""
    meta = raw["metadata"]
    indexed = raw["spec"]["completionMode"] == "Indexed"
    return [
        pod(
            f"{meta['name']}-{n}",
            ns=meta["namespace"],
            gpus=gpus,
            owner=owner("Job", meta["name"], meta["uid"]),
            **{
                **more,
                "labels": {"job-name": meta["name"], **more.get("labels", {})},
                "notes": {"batch.kubernetes.io/job-completion-index": str(n)} if indexed else {},
            },
        )
        for n in range(count)
    ]


def budget(name, allowed, ns="team-a", **labels):
    """A PodDisruptionBudget as its controller has counted it."""
    return {
        "metadata": {"name": name, "namespace": ns},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed},
    }


def near(name, key="ironburst.io/site"):
    """Affinity to its own kind."""
    term = {"labelSelector": {"matchLabels": {"job-name": name}}, "topologyKey": key}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def gang(name, count, **more):
    """An Indexed Job whose pods start together on one side, and its pods."""
    raw = job(name, parallelism=count, completions=count, indexed=True)
    return raw, pods_of(raw, count, affinity=near(name), **more)


def node(name, *, gpus=8, ready="True", gate=None, taints=(), since=CREATED, notes=None, labels=None, **spec):
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": since, "reason": "KubeletReady"}]
    if gate:
        conditions.append({"type": GATE, "status": gate, "reason": "Gate", "message": "8 GPUs, 4 links"})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": uid(),
            "resourceVersion": "9",
            "creationTimestamp": CREATED,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "annotations": notes or {},
        },
        "spec": {"taints": list(taints), **spec},
        "status": {
            "conditions": conditions,
            "allocatable": {"cpu": "95500m", "memory": "1000Gi", "nvidia.com/gpu": str(gpus), "pods": "110"},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}, {"type": "Hostname", "address": name}],
        },
    }


GATED = {"key": NOT_READY, "effect": "NoSchedule"}


def rented_taint(value):
    return {"key": "ironburst.io/rented", "value": value, "effect": "NoSchedule"}


def may_on_eks(verb, group, resource, namespace, name):
    """As on EKS, where nodes join by no token and get no certificate."""
    ours = namespace != "kube-system" and group != "certificates.k8s.io"
    return ours and may(verb, group, resource, namespace, name)


def may(verb, group, resource, namespace, name):
    """As the ClusterRole and the Roles of rights.py let the controller."""
    there = {SITE.namespace: rights.namespaced(SITE.object_name), "kube-system": rights.TOKENS}
    return any(
        rule.group == group
        and resource in rule.resources
        and verb in rule.verbs
        and (not rule.names or name in rule.names)
        for rule in (*rights.CLUSTER, *there.get(namespace, ()))
    )


_KEY = ec.generate_private_key(ec.SECP256R1())


def pem(common="system:node:p5-1", group="system:nodes", names=()):
    """A certificate request as a kubelet makes it."""
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group), x509.NameAttribute(NameOID.COMMON_NAME, common)]
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if names:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
    return made.sign(_KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def csr(name, request, **spec):
    """As an API server shows what was asked for with a token of ours."""
    its = {
        "request": base64.b64encode(request).decode(),
        "signerName": SIGNER,
        "usages": ["digital signature", "client auth"],
        "username": "system:bootstrap:abcdef",
        "groups": ["system:bootstrappers", BOOTSTRAPPERS, "system:authenticated"],
        **spec,
    }
    meta = {"name": name, "uid": uid()}
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": meta,
        "spec": its,
        "status": {},
    }
