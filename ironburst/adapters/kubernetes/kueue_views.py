"""What is kept of Kueue's objects (kueue.x-k8s.io/v1beta2), and how their JSON is read. Pure.

Source: Kueue's API reference, v1beta2, as of 0.19.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ironburst.adapters.kubernetes.affinity import labels_of
from ironburst.adapters.kubernetes.pods import SHAPES, read_pod, requests, version_of
from ironburst.adapters.kubernetes.quantities import moment, quantity, seconds
from ironburst.adapters.kubernetes.site import RENTED, SITE_KEY, KubernetesSite
from ironburst.adapters.kubernetes.views import PodView

Json = dict[str, Any]
Amounts = Mapping[str, float]  # by resource
GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
PENDING, READY, RETRY = "Pending", "Ready", "Retry"  # states of a check; Rejected ends a workload, and is never ours
_PARENT = f"{GROUP}/concurrent-admission-parent"  # label of a Workload that stands for its variants


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of a workload that are alike. `pod`: its template, as a pod that waits."""

    name: str
    count: int
    pod: PodView
    asks: Amounts  # each of its pods, by resource
    selector: Mapping[str, str]  # node labels that it names itself
    flavors: Mapping[str, str] = field(default_factory=dict)  # resource: the flavor that Kueue gave it
    required: str = ""  # node label that all of its pods must share (topologyRequest.required); empty: none


class Check(NamedTuple):
    """An entry of status.admissionChecks. Its retryCount isn't read: it comes and goes between Kueue's own writes."""

    state: str
    message: str = ""
    site: str = ""  # ironburst.io/site of the nodes that its pods may start on
    tolerates: frozenset[str] = frozenset()  # values of the taint of rented nodes
    updates: bool = False  # it changes the pods


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """A Workload that hasn't finished."""

    key: str  # namespace/name
    uid: str
    version: int
    error: str = ""
    name: str = ""
    created_s: float = 0.0
    owners: frozenset[str] = frozenset()  # uids: a Job, a JobSet, the pods of a group
    called: str = ""  # as its user calls it: by the name of its owner
    jobset: str = ""  # name of the JobSet that owns it
    variant: bool = False  # of another Workload (Concurrent Admission), which stands for it
    has_variants: bool = False
    active: bool = True
    finished: bool = False
    priority: int = 0
    limit_s: float | None = None  # what is left of maximumExecutionTimeSeconds
    queue: str = ""  # its LocalQueue
    cluster_queue: str = ""  # where quota is reserved for it
    reserved_s: float | None = None  # since when; None: it waits for quota
    admitted_s: float | None = None
    evicted: bool = False  # Kueue takes it back: it keeps its quota until its pods are gone
    said: str = ""  # Kueue's words on why it waits
    sets: tuple[PodSet, ...] = ()
    checks: Mapping[str, Check] = field(default_factory=dict)


class KueueQuota(NamedTuple):
    """Of one resource of a flavor. None: no limit."""

    nominal: float
    borrowing: float | None = None
    lending: float | None = None


@dataclass(frozen=True, slots=True)
class QueueView:
    """A ClusterQueue, or a Cohort with quota of its own (without checks and reservations)."""

    key: str
    uid: str
    version: int
    error: str = ""
    cohort: str = ""  # it belongs to; of a Cohort: its parent
    groups: tuple[Mapping[str, Mapping[str, KueueQuota]], ...] = ()  # flavors in their order, each by resource
    reserved: Mapping[tuple[str, str], float] = field(default_factory=dict)  # (flavor, resource)
    checks: Mapping[str, frozenset[str]] = field(default_factory=dict)  # flavors of a check; none: all of them
    variants: bool = False  # it tries the flavors side by side (Concurrent Admission)


@dataclass(frozen=True, slots=True)
class FlavorView:
    """A ResourceFlavor. `pools`: partitions whose nodes have its labels."""

    key: str
    uid: str
    version: int
    error: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    pools: frozenset[str] = frozenset()
    topology: str = ""  # name of the Topology that Kueue places its pods by; empty: it places none


@dataclass(frozen=True, slots=True)
class CheckView:
    """An AdmissionCheck."""

    key: str
    uid: str
    version: int
    error: str = ""
    controller: str = ""
    active: bool = False


def _names(raw: Json) -> Json:
    meta = raw["metadata"]
    key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
    return {"key": key, "uid": meta["uid"], "version": version_of(meta)}


def _said(raw: Json, names: Json, error: Exception) -> str:
    detail = f"no field {error}" if isinstance(error, KeyError) else str(error)
    return f"{raw.get('kind') or 'object'} {names['key']} of Kueue can't be read: {detail}"


# ---- workloads


def read_workload(raw: Json, site: KubernetesSite) -> WorkloadView:
    """A Workload; one that can't be read is never answered."""
    names = _names(raw)
    try:
        return WorkloadView(**names, **_workload(raw, site))
    except SHAPES as error:
        return WorkloadView(**names, name=raw["metadata"]["name"], error=_said({"kind": "Workload"}, names, error))


def _workload(raw: Json, site: KubernetesSite) -> Json:
    meta, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    on = {name: moment(each["lastTransitionTime"]) for name, each in conditions.items() if each["status"] == "True"}
    owners = meta.get("ownerReferences") or ()
    admission = status.get("admission") or {}
    given = {each["name"]: each for each in admission.get("podSetAssignments") or ()}
    waits = conditions.get("QuotaReserved") or {}
    limit, spent = spec.get("maximumExecutionTimeSeconds"), status.get("accumulatedPastExecutionTimeSeconds") or 0
    return {
        "name": meta["name"],
        "created_s": seconds(meta["creationTimestamp"]),
        "owners": frozenset(each["uid"] for each in owners),
        "called": next((each["name"] for each in owners if each.get("controller")), meta["name"]),
        "jobset": next((each["name"] for each in owners if each["kind"] == "JobSet"), ""),
        "variant": any(each["kind"] == "Workload" for each in owners),
        "has_variants": (meta.get("labels") or {}).get(_PARENT) == "true",
        "active": spec.get("active", True) is not False,
        "finished": "Finished" in on,
        "priority": int(spec.get("priority") or 0),
        "limit_s": None if limit is None else max(float(limit) - spent, 0.0),
        "queue": spec.get("queueName") or "",
        "cluster_queue": admission.get("clusterQueue") or "",
        "reserved_s": on.get("QuotaReserved"),
        "admitted_s": on.get("Admitted"),
        "evicted": "Evicted" in on,
        "said": " ".join(str(waits.get("message") or "").split()) if "QuotaReserved" not in on else "",
        "sets": tuple(_pod_set(each, given.get(each["name"]) or {}, raw, site) for each in spec["podSets"]),
        "checks": {each["name"]: _check(each) for each in status.get("admissionChecks") or ()},
    }


def _pod_set(declared: Json, given: Json, workload: Json, site: KubernetesSite) -> PodSet:
    meta, template = workload["metadata"], declared["template"]
    own = template.get("metadata") or {}
    about = {
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "creationTimestamp": meta["creationTimestamp"],
        "labels": own.get("labels") or {},
        "annotations": own.get("annotations") or {},
    }
    spec = {**template["spec"], "priority": workload["spec"].get("priority") or 0}
    pod = read_pod({"metadata": about, "spec": spec}, site)
    if pod.error:
        raise ValueError(pod.error)
    count = given.get("count")
    return PodSet(
        declared["name"],
        int(declared.get("count", 1) if count is None else count),
        pod,
        requests(template["spec"]),
        template["spec"].get("nodeSelector") or {},
        dict(given.get("flavors") or {}),
        (declared.get("topologyRequest") or {}).get("required") or "",
    )


def _check(raw: Json) -> Check:
    updates = raw.get("podSetUpdates") or ()
    selected = {(each.get("nodeSelector") or {}).get(SITE_KEY, "") for each in updates}
    values = [
        toleration.get("value") or ""
        for each in updates
        for toleration in each.get("tolerations") or ()
        if toleration.get("key") == RENTED
    ]
    return Check(
        raw["state"],
        raw.get("message") or "",
        selected.pop() if len(selected) == 1 else "",
        frozenset(values),
        bool(updates),
    )


# ---- queues, flavors, checks


def read_queue(raw: Json) -> QueueView:
    """A ClusterQueue or a Cohort."""
    names = _names(raw)
    try:
        spec, status = raw.get("spec") or {}, raw.get("status") or {}
        rules = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
        return QueueView(
            **names,
            cohort=spec.get("cohortName") or spec.get("parentName") or "",
            groups=tuple(_group(each) for each in spec.get("resourceGroups") or ()),
            reserved={
                (flavor["name"], each["name"]): quantity(each.get("total", 0))
                for flavor in status.get("flavorsReservation") or ()
                for each in flavor.get("resources") or ()
            },
            checks={rule["name"]: frozenset(rule.get("onFlavors") or ()) for rule in rules},
            variants=bool(spec.get("concurrentAdmissionPolicy")),
        )
    except SHAPES as error:
        return QueueView(**names, error=_said(raw, names, error))


def _group(raw: Json) -> dict[str, dict[str, KueueQuota]]:
    return {
        flavor["name"]: {each["name"]: _quota(each) for each in flavor.get("resources") or ()}
        for flavor in raw.get("flavors") or ()
    }


def _quota(raw: Json) -> KueueQuota:
    limits = (raw.get("borrowingLimit"), raw.get("lendingLimit"))
    borrowing, lending = (None if limit is None else quantity(limit) for limit in limits)
    return KueueQuota(quantity(raw.get("nominalQuota", 0)), borrowing, lending)


def read_flavor(raw: Json, site: KubernetesSite) -> FlavorView:
    """A ResourceFlavor: Kueue puts its labels into the pods' node selectors."""
    spec = raw.get("spec") or {}
    wanted = spec.get("nodeLabels") or {}
    fitting = [pool.partition for pool in site.pools if wanted.items() <= labels_of(pool).items()]
    topology = spec.get("topologyName") or ""
    return FlavorView(**_names(raw), labels=wanted, pools=frozenset(fitting), topology=topology)


def read_check(raw: Json) -> CheckView:
    """An AdmissionCheck."""
    conditions = (raw.get("status") or {}).get("conditions") or ()
    active = any(each["type"] == "Active" and each["status"] == "True" for each in conditions)
    return CheckView(**_names(raw), controller=(raw.get("spec") or {}).get("controllerName") or "", active=active)
