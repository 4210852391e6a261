"""Pods as their JSON has them, to what is kept of them (PodView). Pure.

Resources are summed as kube-scheduler does (component-helpers/resource PodRequests of Kubernetes 1.36): containers and
sidecars together, or the most that any moment of the initialisation needs; pod-level CPUs and memory instead of the
containers'; and the overhead of the runtime class.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from ironburst.adapters.kubernetes import affinity
from ironburst.adapters.kubernetes.pods.alike import alike
from ironburst.adapters.kubernetes.quantities import duration, moment, quantity, seconds
from ironburst.adapters.kubernetes.site import GPU, HOSTNAME_KEY, RENTED, TIME_LIMIT, KubernetesPool, KubernetesSite
from ironburst.adapters.kubernetes.views import EACH_FOR_ITSELF, Owner, PodView
from ironburst.shares.kubernetes import KINDS

Json = dict[str, Any]
SHAPES = (KeyError, TypeError, ValueError, AttributeError)  # what reading an unknown shape raises
_OF_PODS = ("cpu", "memory")  # beside huge pages: what a pod as a whole may ask for
_PLAIN = ("cpu", "memory", "ephemeral-storage", "pods", GPU)
_ON_ANY_NODE = ("emptyDir", "configMap", "secret", "projected", "downwardAPI", "csi", "nfs", "image", "gitRepo")
_SETS = "leaderworkerset.sigs.k8s.io"
_JOBSET = "jobset.sigs.k8s.io"
_KUEUE = "kueue.x-k8s.io"
_REPLICA = "ray.io/worker-group-replica-name"  # of KubeRay's groups of several hosts
_CLASSES = "deviceclass.resource.kubernetes.io/"  # of resources that are claimed from devices of this class
_STARTS = ("ContainerCreating", "PodInitializing")  # kubelet's words while nothing is wrong yet
_MOST_REASON = 200  # characters: it names a reason for every kind of node


def read_pod(raw: Json, site: KubernetesSite) -> PodView:
    """A pod. One that can't be read keeps its node: it must not look idle."""
    meta = raw["metadata"]
    on = (raw.get("spec") or {}).get("nodeName") or ""
    names = {
        "key": f"{meta['namespace']}/{meta['name']}",
        "uid": meta["uid"],
        "version": version_of(meta),
        "namespace": meta["namespace"],
        "name": meta["name"],
        "node": site.ours.get(on, on),
    }
    try:
        return PodView(**names, **_fields(raw, site))
    except SHAPES as error:
        detail = f"no field {error}" if isinstance(error, KeyError) else str(error)
        said = f"pod {names['key']} can't be read ({detail}): nothing is rented for it"
        return PodView(**names, error=said, waits="unreadable")


def version_of(meta: Json) -> int:
    """The resourceVersion; 0 where it is no number."""
    version = str(meta.get("resourceVersion", ""))
    return int(version) if version.isdigit() else 0


def owner_of(meta: Json) -> Owner | None:
    """The controller among the owners."""
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller"):
            return Owner(owner["kind"], owner["name"], owner["uid"])
    return None


def _fields(raw: Json, site: KubernetesSite) -> Json:
    meta, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    asked, owner = requests(spec), owner_of(meta)
    tolerates, everything = _tolerated(spec.get("tolerations") or ())
    waits, reason = _scheduled(spec, status)
    aside_s, wrong = _aside(notes)
    others, strange = _others(spec, labels, site)
    gpus = _gpus(asked)
    claims = bool(spec.get("resourceClaims")) and not gpus
    gpus = gpus or int(claims)
    return {
        "workload": (owner is None or owner.kind not in ("DaemonSet", "Node"))
        and "kubernetes.io/config.mirror" not in notes,
        "deleting": bool(meta.get("deletionTimestamp")),
        "created_s": seconds(meta["creationTimestamp"]),
        "started_s": moment(status.get("startTime")),
        "limit_s": _limit(spec),
        "aside_s": aside_s,
        "gpus": gpus,
        "claims_devices": claims,
        "milli_cpus": round(asked.get("cpu", 0.0) * 1000),
        "memory": round(asked.get("memory", 0.0)),
        "owner": owner,
        "group": (spec.get("schedulingGroup") or {}).get("podGroupName") or "",
        "leader_set": _leader_set(labels, notes),
        "jobset": labels.get(f"{_JOBSET}/jobset-name", ""),
        "jobset_jobs": int(labels.get(f"{_JOBSET}/global-replicas") or notes.get(f"{_JOBSET}/global-replicas") or 0),
        "replica": labels.get(_REPLICA, ""),
        "index": notes.get("batch.kubernetes.io/job-completion-index", ""),
        "gone_s": moment(meta.get("deletionTimestamp")),
        "waits": waits or wrong,
        "reason": reason,
        "begins": _begins(status) if spec.get("nodeName") else "",
        "alike": alike(spec, labels, asked) if gpus else "",
        "origin": _origin(owner, spec),
        "priority": int(spec.get("priority") or 0),
        "account": (labels.get(site.account_label) if site.account_label else "") or meta["namespace"],
        "user": (labels.get(site.user_label) if site.user_label else "") or meta["namespace"],
        "tolerates": tolerates,
        "tolerates_all": everything,
        "lists_tolerations": bool(spec.get("tolerations")),
        "demands": (*_demands(spec, asked, others["pools"], site), *strange),
        "chooses_gpu": affinity.chooses_gpu(spec),
        **others,
        "labels": {} if gpus or (owner and owner.kind in EACH_FOR_ITSELF) else labels,
        "claims": tuple(_claims(meta, spec)),
        "queued_as": notes.get(f"{_KUEUE}/workload") or labels.get(f"{_KUEUE}/pod-group-name", ""),
        "share": KINDS.get(spec.get("priorityClassName") or "", ""),
    }


def _others(spec: Json, labels: Json, site: KubernetesSite) -> tuple[Json, list[str]]:
    """Where it may start, and how it stands to other pods; and what of that no rented node can promise."""
    kin = spec.get("affinity") or {}
    near, strangers_near = affinity.own_terms(kin.get("podAffinity"), labels)
    apart, strangers_apart = affinity.own_terms(kin.get("podAntiAffinity"), labels)
    keys_apart = [key for key, _ in apart]
    spread = affinity.spread_over(spec, labels, affinity.pools_for(spec, site), site)
    strange = [*spread.demands, *(f"pod affinity ({key})" for key in strangers_near)]
    wider = [key for key in keys_apart if key != HOSTNAME_KEY]  # a new node has none of its kind, a zone may
    strange += [f"pod anti-affinity ({key})" for key in (*strangers_apart, *wider)]
    fields = {
        "pools": spread.pools,
        "together": _narrowest([key for key, _ in near], site),
        "near": tuple(near),
        "most_per_node": 1 if HOSTNAME_KEY in keys_apart else spread.most_per_node,
        "spread": spread.keys,
    }
    return fields, strange


def requests(spec: Json) -> dict[str, float]:
    """What a pod asks of its node, by resource: CPUs, bytes, pieces."""
    total: dict[str, float] = {}
    for container in spec["containers"]:
        _add(total, _requests(container))
    sidecars: dict[str, float] = {}
    most: dict[str, float] = {}
    for container in spec.get("initContainers") or ():
        asked = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(total, asked)
            _add(sidecars, asked)
            then = sidecars
        else:
            _add(asked, sidecars)
            then = asked
        for name, amount in then.items():
            most[name] = max(most.get(name, 0.0), amount)
    for name, amount in most.items():
        total[name] = max(total.get(name, 0.0), amount)
    total |= {name: amount for name, amount in _requests(spec).items() if name in _OF_PODS or "hugepages-" in name}
    for name, text in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, 0.0) + quantity(text)
    return total


def _requests(of: Json) -> dict[str, float]:
    """In a pod the API server has made requests of limits that stand alone; in the template of a Job it hasn't."""
    resources = of.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: quantity(text) for name, text in asked.items()}


def _add(to: dict[str, float], more: dict[str, float]) -> None:
    for name, amount in more.items():
        to[name] = to.get(name, 0.0) + amount


def _gpus(asked: dict[str, float]) -> int:
    """Whole GPUs. Parts of GPUs count as GPUs, and a pending claim as one (`_fields`), only so that the reason why
    nothing is rented is theirs and not "no GPU".
    """
    return int(
        sum(amount for name, amount in asked.items() if name == GPU or _is_part(name) or name.startswith(_CLASSES))
    )


def _is_part(name: str) -> bool:
    return name.startswith("nvidia.com/mig-") or name == f"{GPU}.shared"


def _limit(spec: Json) -> float | None:
    limit = spec.get("activeDeadlineSeconds")
    return None if limit is None else float(limit)


def _aside(notes: Json) -> tuple[float | None, str]:
    """What its annotation says, and what is wrong with that."""
    if (text := notes.get(TIME_LIMIT)) is None:
        return None, ""
    try:
        return duration(text), ""
    except ValueError as error:
        return None, f"its annotation {TIME_LIMIT}: {error}"


def _leader_set(labels: Json, notes: Json) -> tuple[str, str, int] | None:
    if not (name := labels.get(f"{_SETS}/name")):
        return None
    return name, labels[f"{_SETS}/group-index"], int(notes.get(f"{_SETS}/size") or 1)


def _scheduled(spec: Json, status: Json) -> tuple[str, str]:
    """Why nothing is to be done for it, and the scheduler's words. Only `Unschedulable` is ours."""
    if spec.get("nodeName"):
        return "", ""
    if spec.get("schedulingGates"):
        return "SchedulingGated", "SchedulingGated"
    condition: Json = next((each for each in status.get("conditions") or () if each["type"] == "PodScheduled"), {})
    word, said = condition.get("reason") or "", " ".join(str(condition.get("message") or "").split())
    reason = f"{word}: {said[:_MOST_REASON]}" if said else word
    if condition.get("status") != "False" or not word:
        return "the scheduler hasn't looked at it yet", reason
    if word != "Unschedulable":
        return word, reason
    if nominated := status.get("nominatedNodeName"):
        return f"the scheduler makes room for it on {nominated}", f"Nominated: {nominated}"
    return "", reason


def _begins(status: Json) -> str:
    """What a pod that has a node waits for, in kubelet's word and what it says behind it; empty: it works. An init
    container that runs works, too.
    """
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    states = [each.get("state") or {} for each in containers]
    waiting = [state["waiting"] for state in states if "waiting" in state]
    said = next((each for each in waiting if each.get("reason") not in (*_STARTS, None)), None)
    if said is None:
        if status.get("phase") != "Pending" or any("running" in state for state in states):
            return ""
        said = next((each for each in waiting if each.get("reason")), {"reason": _STARTS[0]})
    behind = " ".join(str(said.get("message") or "").split())[:_MOST_REASON]
    return f"{said['reason']}: {behind}" if behind else str(said["reason"])


def _origin(owner: Owner | None, spec: Json) -> str:
    """What the pods that a controller makes one after the other have in common; empty: nothing makes it again."""
    images = [each.get("image") or "" for each in (*spec["containers"], *(spec.get("initContainers") or ()))]
    return hashlib.sha256(" ".join((owner.uid, *images)).encode()).hexdigest()[:16] if owner else ""


def _tolerated(tolerations: Any) -> tuple[frozenset[str], bool]:
    """Values of the taint of rented nodes that it tolerates, and whether it tolerates that taint whatever its value."""
    values: list[str] = []
    everything = False
    for each in tolerations:
        key, effect = each.get("key") or "", each.get("effect") or "NoSchedule"
        if effect != "NoSchedule" or key not in ("", RENTED):
            continue
        if each.get("operator") == "Exists":
            everything = True
        elif key == RENTED:
            values.append(each.get("value") or "")
    return frozenset(values), everything


def _narrowest(keys: list[str], site: KubernetesSite) -> str:
    """The topology key that binds most: one node, then a place."""
    known = (HOSTNAME_KEY, *reversed(site.site_keys))
    return next((key for key in known if key in keys), keys[0] if keys else "")


# ---- what no rented node can promise


def _demands(spec: Json, asked: dict[str, float], pools: frozenset[str], site: KubernetesSite) -> list[str]:
    """Also of pods that are in no queue of ours, for a person who asks why."""
    found = []
    if (scheduler := spec.get("schedulerName", "default-scheduler")) not in site.schedulers:
        found.append(f"the scheduler {scheduler}")
    found += [f"a part of a GPU ({name})" for name in sorted(asked) if _is_part(name)]
    claims = [f"the resource claim {claim['name']}" for claim in spec.get("resourceClaims") or ()]
    found += [f"{claim} (rented nodes offer GPUs as {GPU}, and no devices to claims)" for claim in claims]
    if site.pools and not pools:
        found.append(f"nodes that no pool has ({_selector(spec) or 'by its topology spread'})")
    found += _resources(asked, [pool for pool in site.pools if pool.partition in pools])
    found += [
        f"the volume {volume['name']} ({why})" for volume in spec.get("volumes") or () if (why := _at(volume, site))
    ]
    containers = [*spec["containers"], *(spec.get("initContainers") or ())]
    if ports := sorted(
        {port["hostPort"] for each in containers for port in each.get("ports") or () if port.get("hostPort")}
    ):
        found.append(f"host ports ({', '.join(map(str, ports))})")
    registries = {registry(each.get("image") or "") for each in containers}
    found += [f"an image of {host}, which only home reaches" for host in site.home_registries if host in registries]
    return found


def _resources(asked: dict[str, float], pools: list[KubernetesPool]) -> list[str]:
    known = [name for name in sorted(asked) if name not in _PLAIN and not name.startswith("hugepages-")]
    others = [name for name in known if not _is_part(name) and asked[name] > 0]
    lacking = [name for name in others if not any(asked[name] <= pool.resources.get(name, 0) for pool in pools)]
    has = {name: max((pool.resources.get(name, 0) for pool in pools), default=0) for name in lacking}
    return [
        f"{asked[name]:.0f} of the resource {name} (a rented node has {has[name]})"
        if has[name]
        else f"the resource {name}"
        for name in lacking
    ]


def _selector(spec: Json) -> str:
    plain = [f"{key}={value}" for key, value in sorted((spec.get("nodeSelector") or {}).items())]
    return ", ".join(plain) or ("required node affinity" if affinity.requires(spec) else "")


def _at(volume: Json, site: KubernetesSite) -> str:
    """What binds a volume of a pod to home; claims are looked up later."""
    if path := (volume.get("hostPath") or {}).get("path"):
        return "" if f"{path}/".startswith(site.host_paths) else f"hostPath {path}"
    kinds = [kind for kind in volume if kind != "name"]
    known = (*_ON_ANY_NODE, "persistentVolumeClaim", "ephemeral")
    return next((kind for kind in kinds if kind not in known), "")


def _claims(meta: Json, spec: Json) -> list[str]:
    found = []
    for volume in spec.get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            found.append(f"{meta['namespace']}/{claim['claimName']}")
        elif "ephemeral" in volume:
            found.append(f"{meta['namespace']}/{meta['name']}-{volume['name']}")
    return found


def registry(image: str) -> str:
    """The host of an image's name; without one it is Docker's."""
    host, slash, _ = image.partition("/")
    return host if slash and re.search(r"[.:]|^localhost$", host) else "docker.io"
