"""Nodes of the lab's cluster: "kwok node, no kubelet: stand-in"."""

import hashlib
import ipaddress
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.kubernetes.access import Api
from lab.kubernetes.binaries import KUBERNETES
from lab.kubernetes.commands import ALIVE
from lab.kubernetes.stages import NOTE
from lab.system import LabError

DEVICES = f"{NOTE}devices"  # annotation, JSON: what device plugins will report
WHAT = "kwok node, no kubelet: stand-in"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
ADDRESSES = ipaddress.ip_network("198.18.0.0/15")  # for benchmarks: nobody has them
SMALL = {"cpu": "8", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110"}
NOT_READY = {
    "type": "Ready",
    "status": "False",
    "reason": "KubeletNotReady",
    "message": "[container runtime not ready]",
}


@dataclass(frozen=True)
class NodeSpec:
    """A node as its kubelet would register it.

    `allocatable`: Kubernetes quantities, {"cpu": "192", "memory": "2Ti", "nvidia.com/gpu": "8"}; what has a slash in
    its name comes from a device plugin, `devices_after_s` seconds after the node is ready. `taints`: as kubelet's
    --register-with-taints, "key=value:Effect". `provider_id`: "aws:///us-east-1a/i-0123456789abcdef0".
    `address`: "": one that only it has.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[str] = ()
    provider_id: str = ""
    devices_after_s: float = 1
    address: str = ""


def taint_of(text: str) -> dict[str, str]:
    """The taint of "key=value:Effect" or "key:Effect"; LabError if it isn't one."""
    pair, colon, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    if not (colon and key and effect in EFFECTS):
        raise LabError(f"taint {text!r}: write key=value:Effect, Effect one of {', '.join(EFFECTS)}")
    return {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}


def address_of(name: str) -> str:
    """The address of a node: the same for the same name."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    return str(ADDRESSES[1 + number % (ADDRESSES.num_addresses - 2)])


def manifest(node: NodeSpec) -> dict[str, Any]:
    """The Node object of a kubelet's registration: not ready yet, and without devices."""
    own = {name: amount for name, amount in (SMALL | dict(node.allocatable)).items() if "/" not in name}
    devices = {name: amount for name, amount in node.allocatable.items() if "/" in name}
    later = {DEVICES: json.dumps(devices), f"{DEVICES}-after": f"{node.devices_after_s}"} if devices else {}
    system = {"kubernetes.io/hostname": node.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "labels": system | {ALIVE: "true"} | dict(node.labels),
            "annotations": {f"{NOTE}what": WHAT} | later,
        },
        "spec": {
            "taints": [taint_of(text) for text in node.taints],
            **({"providerID": node.provider_id} if node.provider_id else {}),
        },
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": node.address or address_of(node.name)},
                {"type": "Hostname", "address": node.name},
            ],
            "capacity": own,
            "allocatable": own,
            "conditions": [NOT_READY],
            "nodeInfo": {
                "kubeletVersion": f"v{KUBERNETES}",
                "containerRuntimeVersion": "kwok://stand-in",
                "osImage": WHAT,
                "operatingSystem": "linux",
                "architecture": "amd64",
                "kernelVersion": "",
                "kubeProxyVersion": "",
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
            },
        },
    }


def register(kubelet: Api, node: NodeSpec) -> None:
    """Register a node with its own rights (`kubelet`: a client that acts as it). Refused by NodeRestriction if it may
    not give itself a label, and if there is a node of this name.
    """
    kubelet.call("POST", "/api/v1/nodes", manifest(node))
