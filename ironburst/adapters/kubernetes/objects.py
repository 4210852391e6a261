"""Nodes, Jobs, PodGroups, claims and volumes as their JSON has them, to what is kept of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ironburst.adapters.kubernetes import affinity
from ironburst.adapters.kubernetes.pods import SHAPES, owner_of, read_pod, version_of
from ironburst.adapters.kubernetes.quantities import duration, moment, quantity, seconds
from ironburst.adapters.kubernetes.site import DRAIN, GATE, GPU, TIME_LIMIT, KubernetesSite
from ironburst.adapters.kubernetes.views import (
    ClaimView,
    DefaultView,
    GroupView,
    JobView,
    NodeView,
    PodView,
    StorageClassView,
    VolumeView,
)
from ironburst.nodes.naming import NODE_LABEL

Json = dict[str, Any]
NO_OTHERS: Mapping[str, str] = MappingProxyType({})
_ENDED = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget", "Suspended")  # conditions: it makes no pods


def _names(raw: Json) -> Json:
    meta = raw["metadata"]
    key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
    return {"key": key, "uid": meta["uid"], "version": version_of(meta)}


def _error(kind: str, names: Json, error: Exception) -> str:
    detail = f"no field {error}" if isinstance(error, KeyError) else str(error)
    return f"{kind} {names['key']} can't be read: {detail}"


def read_node(raw: Json, ours: Mapping[str, str] = NO_OTHERS) -> NodeView:
    """A Node. One that can't be read takes no job. `ours`: names of Node objects that we call otherwise."""
    names = _names(raw)
    names["key"] = ours.get(names["key"], names["key"])
    try:
        meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
        conditions = {each["type"]: each for each in status.get("conditions") or ()}
        ready, gate = conditions.get("Ready", {}), conditions.get(GATE, {})
        has = status.get("allocatable") or {}
        created_s = seconds(meta["creationTimestamp"])
        replicas = _replicas(meta.get("labels") or {})
        addresses = {each["type"]: each["address"] for each in status.get("addresses") or ()}
        return NodeView(
            **names,
            created_s=created_s,
            deleting=bool(meta.get("deletionTimestamp")),
            cordoned=bool(spec.get("unschedulable")),
            drain=(meta.get("annotations") or {}).get(DRAIN),
            taints=tuple((each["key"], each.get("value") or "", each["effect"]) for each in spec.get("taints") or ()),
            ready=ready.get("status") or "Unknown",
            ready_since_s=moment(ready.get("lastTransitionTime")) or created_s,
            gate=gate.get("status") or "",
            gate_said=gate.get("message") or gate.get("reason") or "",
            gate_at_s=moment(gate.get("lastHeartbeatTime")),
            gpus=int(quantity(has.get(GPU, 0))) // replicas,
            replicas=replicas,
            milli_cpus=round(quantity(has.get("cpu", 0)) * 1000),
            memory=round(quantity(has.get("memory", 0))),
            address=addresses.get("InternalIP", ""),
            says=(meta.get("labels") or {}).get(NODE_LABEL, ""),
            labels=meta.get("labels") or {},
        )
    except SHAPES as error:
        return NodeView(**names, error=_error("node", names, error))


def _replicas(labels: Json) -> int:
    """How many pods share a GPU that the device plugin announces so often, by feature discovery's labels."""
    shared = labels.get(f"{GPU}.sharing-strategy", "none") != "none" or f"{labels.get(f'{GPU}.product')}".endswith(
        "-SHARED"
    )
    return max(1, int(labels.get(f"{GPU}.replicas") or 1)) if shared else 1


def read_job(raw: Json, site: KubernetesSite) -> JobView:
    """A batch/v1 Job."""
    names = _names(raw)
    name = raw["metadata"]["name"]
    try:
        meta, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
        owner, labels = owner_of(meta), meta.get("labels") or {}
        limit = spec.get("activeDeadlineSeconds")
        return JobView(
            **names,
            name=name,
            jobset=owner.name if owner and owner.kind == "JobSet" else labels.get("jobset.sigs.k8s.io/jobset-name", ""),
            owner=owner.uid if owner else "",
            parallelism=int(spec.get("parallelism", 1)),
            completions=spec.get("completions"),
            indexed=spec.get("completionMode") == "Indexed",
            limit_s=None if limit is None else float(limit),
            started_s=moment(status.get("startTime")),
            failed=int(status.get("failed") or 0),
            succeeded=int(status.get("succeeded") or 0),
            spares_disrupted=_spares_disrupted(spec.get("podFailurePolicy") or {}),
            backoff_limit=int(spec.get("backoffLimit", 6)),
            template=_template(raw, site),
        )
    except SHAPES as error:
        return JobView(**names, name=name, error=_error("job", names, error), backoff_limit=-1)


def _template(raw: Json, site: KubernetesSite) -> PodView | None:
    """Pods that were evicted or failed are made again after 10 s and more: until then their Job still waits, or it
    would look as if it had ended.
    """
    meta, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    ended = any(each["type"] in _ENDED and each["status"] == "True" for each in status.get("conditions") or ())
    if ended or spec.get("suspend") or status.get("active") or not status.get("startTime"):
        return None
    template = spec["template"]
    made = {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
    owners = [{"kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}]
    own = template.get("metadata") or {}
    labels = {"labels": own.get("labels") or {}, "annotations": own.get("annotations") or {}}
    when = {"creationTimestamp": meta["creationTimestamp"], "ownerReferences": owners}
    return read_pod({"metadata": {**made, **labels, **when}, "spec": template["spec"]}, site)


def _spares_disrupted(policy: Json) -> bool:
    """The first rule that fits counts: whether it is one that ignores the condition DisruptionTarget."""
    for rule in policy.get("rules") or ():
        patterns = rule.get("onPodConditions") or ()
        if any(each["type"] == "DisruptionTarget" and each.get("status", "True") == "True" for each in patterns):
            return bool(rule["action"] == "Ignore")
    return False


def read_group(raw: Json) -> GroupView:
    """A PodGroup of scheduling.k8s.io, v1alpha2 or v1beta1: they share these fields."""
    names = _names(raw)
    try:
        spec = raw["spec"]
        gang = (spec.get("schedulingPolicy") or {}).get("gang")
        domains = (spec.get("schedulingConstraints") or {}).get("topology") or ()
        return GroupView(
            **names, least=int(gang["minCount"]) if gang else 0, topology=domains[0]["key"] if domains else ""
        )
    except SHAPES as error:
        return GroupView(**names, error=_error("PodGroup", names, error))


def read_default(raw: Json) -> DefaultView:
    """A Namespace, or a LocalQueue of Kueue."""
    names = _names(raw)
    text = (raw["metadata"].get("annotations") or {}).get(TIME_LIMIT)
    try:
        return DefaultView(**names, aside_s=duration(text) if text is not None else None)
    except ValueError as error:
        kind = "queue" if "/" in names["key"] else "namespace"
        return DefaultView(**names, error=f"{kind} {names['key']}: its annotation {TIME_LIMIT}: {error}")


def read_claim(raw: Json) -> ClaimView:
    """A PersistentVolumeClaim."""
    bound = (raw.get("status") or {}).get("phase") == "Bound"
    spec = raw.get("spec") or {}
    volume = spec.get("volumeName") or "" if bound else ""
    return ClaimView(**_names(raw), volume=volume, storage_class=spec.get("storageClassName") or "")


def read_storage_class(raw: Json, site: KubernetesSite) -> StorageClassView:
    """A StorageClass. Without a provisioner it has only the volumes that a person made, which are at home."""
    names = _names(raw)
    made = raw.get("provisioner") != "kubernetes.io/no-provisioner"
    waits = raw.get("volumeBindingMode") == "WaitForFirstConsumer" and made
    terms = [
        {"matchExpressions": [{**each, "operator": "In"} for each in term.get("matchLabelExpressions") or ()]}
        for term in raw.get("allowedTopologies") or ()
    ]
    try:
        pools = affinity.reached_from({"required": {"nodeSelectorTerms": terms}} if terms else None, site)
        return StorageClassView(**names, waits=waits, pools=pools)
    except SHAPES as error:
        return StorageClassView(**names, error=_error("storage class", names, error))


def read_volume(raw: Json, site: KubernetesSite) -> VolumeView:
    """A PersistentVolume; hostPath ones are at one node of home, whatever they say."""
    names = _names(raw)
    try:
        spec = raw["spec"]
        at_home = "hostPath" in spec or "local" in spec
        kept = spec.get("nodeAffinity")
        pools = frozenset[str]() if at_home else affinity.reached_from(kept, site)
        return VolumeView(**names, pools=pools, where="" if at_home else affinity.said(kept))
    except SHAPES as error:
        return VolumeView(**names, error=_error("volume", names, error), pools=frozenset())
