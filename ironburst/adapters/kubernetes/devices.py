"""GPUs that a DRA driver hands out (resource.k8s.io/v1): how many a node has, and who has them. Pure.

A DeviceClass may stand for `nvidia.com/gpu` (extendedResourceName; NVIDIA's own does): pods ask for GPUs as ever, and
nodes without a device plugin announce none. kube-scheduler then looks at their ResourceSlices, and so do we. A node
that announces GPUs has those (KEP 5004: the device plugin's go first).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from ironburst.adapters.kubernetes.cache import Kind
from ironburst.adapters.kubernetes.pods import SHAPES, version_of
from ironburst.adapters.kubernetes.site import GPU
from ironburst.adapters.kubernetes.views import NodeView, PodView

Json = dict[str, Any]
DRIVER = "gpu.nvidia.com"
KINDS = ("deviceclasses", "resourceslices", "resourceclaims")
_OF_EXTENDED = "resource.kubernetes.io/extended-resource-claim"  # annotation of a claim that the scheduler itself made
_API = "/apis/resource.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class DeviceView:
    """A DeviceClass, ResourceSlice or ResourceClaim; of each its own fields."""

    key: str
    uid: str
    version: int
    error: str = ""
    resource: str = ""  # of a class: the extended resource that it stands for
    node: str = ""  # of a slice
    pool: tuple[str, int] = ("", 0)  # of a slice: its pool's name and generation; only the newest one counts
    gpus: int = 0  # of a slice: whole ones that are good; of a claim: those that it was given
    pods: tuple[str, ...] = ()  # of a claim: uids of those that may use it


def kinds(ours: Mapping[str, str]) -> list[Kind]:
    """What is watched. `ours`: names of Node objects that we call otherwise."""
    return [Kind(name, (f"{_API}/{name}",), partial(read_device, ours=ours), may_lack=True) for name in KINDS]


def read_device(raw: Json, ours: Mapping[str, str] = MappingProxyType({})) -> DeviceView:
    """Any of the three. One that can't be read counts for nothing."""
    meta, spec = raw["metadata"], raw.get("spec") or {}
    key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
    names: Json = {"key": key, "uid": meta["uid"], "version": version_of(meta)}
    try:
        if "pool" in spec:
            return DeviceView(**names, **_slice(spec, ours))
        if "devices" in spec or "reservedFor" in (raw.get("status") or {}):
            return DeviceView(**names, **_claim(raw))
        return DeviceView(**names, resource=spec.get("extendedResourceName") or "")
    except SHAPES as error:
        return DeviceView(**names, error=f"{key} of resource.k8s.io can't be read: {error}")


def _slice(spec: Json, ours: Mapping[str, str]) -> Json:
    pool, devices = spec["pool"], spec.get("devices") or () if spec["driver"] == DRIVER else ()
    good = [each for each in devices if _whole(each.get("attributes") or {}) and not _tainted(each)]
    on = spec.get("nodeName") or ""
    return {"node": ours.get(on, on), "pool": (pool["name"], int(pool["generation"])), "gpus": len(good)}


def _whole(attributes: Json) -> bool:
    """Not a MIG device, nor a GPU for virtual machines."""
    kind = attributes.get("type") or attributes.get(f"{DRIVER}/type") or {}
    return bool(kind.get("string") == "gpu")


def _tainted(device: Json) -> bool:
    return any(each.get("effect") in ("NoSchedule", "NoExecute") for each in device.get("taints") or ())


def _claim(raw: Json) -> Json:
    if (raw["metadata"].get("annotations") or {}).get(_OF_EXTENDED) == "true":
        return {}  # its pod says so itself, by what it asks for
    status = raw.get("status") or {}
    given = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    gpus = [each for each in given if each["driver"] == DRIVER and not each.get("adminAccess")]
    users = tuple(sorted(each["uid"] for each in status.get("reservedFor") or () if each.get("resource") == "pods"))
    return {"gpus": len(gpus), "pods": users}


def counted(copies: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of a cluster's objects, whose nodes have the GPUs of the DRA driver where pods get them by asking for
    `nvidia.com/gpu`, and whose running pods have those of their claims (the first of several that share one).
    """
    classes, slices, claims = (copies[name].values() for name in KINDS)
    found = dict(copies)
    if any(each.resource == GPU for each in classes):
        has = _by_node(slices)
        nodes: Mapping[str, NodeView] = copies["nodes"]
        found["nodes"] = {
            key: replace(view, gpus=has[key]) if key in has and not view.gpus else view for key, view in nodes.items()
        }
    of: dict[str, int] = {}
    for claim in claims:
        if claim.pods:
            of[claim.pods[0]] = of.get(claim.pods[0], 0) + claim.gpus
            of |= {uid: 0 for uid in claim.pods if uid not in of}
    if of:
        pods: Mapping[str, PodView] = copies["pods"]
        found["pods"] = {
            key: replace(pod, gpus=of[pod.uid]) if pod.claims_devices and pod.node and pod.uid in of else pod
            for key, pod in pods.items()
        }
    return found


def _by_node(slices: Any) -> dict[str, int]:
    newest: dict[tuple[str, str], int] = {}
    for each in slices:
        pool = each.node, each.pool[0]
        newest[pool] = max(newest.get(pool, 0), each.pool[1])
    has: dict[str, int] = {}
    for each in slices:
        if each.node and each.pool[1] == newest[each.node, each.pool[0]]:
            has[each.node] = has.get(each.node, 0) + each.gpus
    return has
