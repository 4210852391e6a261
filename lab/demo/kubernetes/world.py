"""Step 1: the world is set up; and the cluster as its administrator and its users see it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from ironburst.adapters.kubernetes import joining
from ironburst.nodes.naming import SITE_LABEL, cluster_object, image_parameter
from lab import names
from lab.demo.aws import ALLOW_SPOT, CREATE_SECRET, Aws
from lab.demo.cloud import control
from lab.demo.inside import Boxed
from lab.demo.kubernetes.pods import NAMESPACE
from lab.demo.kubernetes.record import Record
from lab.hosts.box import Box
from lab.kubernetes.access import ADMIN
from lab.kubernetes.control_plane import ControlPlane
from lab.kubernetes.nodes import NodeSpec
from lab.pulumi import binary
from lab.system import wait_for

STACK, POOL = "lab-kubernetes", "p5"
USER = "ironburst"  # as whom the controller signs in at the cluster
PORT = 6443
KUBECONFIGS = {USER: "/run/ironburst/kubeconfig", ADMIN: "/run/ironburst/admin.kubeconfig"}  # as the stack names them
KUBE_NAMESPACE = "ironburst-system"
JOIN_SECRET = "ironburst/lab-kubernetes/join-token"
IMAGE = "ami-0ba5e0000000000a2"  # of rented nodes
HOME = ("dgx01", "dgx02")
HOME_HAS = {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "8"}
PUT_PARAMETER = (
    "import boto3, sys; name, value = sys.argv[1:];"
    "boto3.client('ssm').put_parameter(Name=name, Value=value, Type='String')"
)
NAMED = (  # where the declaration makes objects of the stack's name
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
)
Say = Callable[[str], None]
Json = dict[str, Any]


def start(box: Box, say: Say) -> Boxed:
    """Box, BMCs, cloud and control plane; then what an operator prepares once in an account and in a cluster."""
    box.up(tied=True)
    inside = Boxed(box, STACK, box.dir / "run" / "ledger.sqlite", Aws((JOIN_SECRET, STACK)))
    inside.env["PATH"] = os.pathsep.join([str(binary.kubernetes_plugin(box.root)), inside.env["PATH"]])
    inside.spawn([sys.executable, "-m", "lab.bmc", "--prefix", box.prefix], "bmc")
    inside.spawn([sys.executable, "-m", "lab.kubernetes.instances", "--prefix", box.prefix], "aws")
    up = ["up", "--prefix", box.prefix, "--address", names.HALL_GATEWAY, "--port", str(PORT), "--user", USER]
    inside.run([sys.executable, "-m", "lab.kubernetes", *up, "--known-authority"], log="kubernetes")
    plane = ControlPlane(box.prefix)
    for user, path in KUBECONFIGS.items():
        inside.run(["install", "-D", "--mode=0600", str(plane.layout().kubeconfig(user)), path])
    say("etcd, kube-apiserver, kube-scheduler and kube-controller-manager run")
    with box.network():
        prepare(plane)
    say(f"{' and '.join(HOME)} are its nodes (kwok, no kubelet: stand-ins); the controller's user has no right yet")
    inside.run([sys.executable, "-c", "from lab.aws.client import wait_ready; wait_ready(60)"])
    wait_for(lambda: "ready" in inside.log("bmc").read_text(), 30, f"the BMCs (see {inside.log('bmc')})")
    inside.run([sys.executable, "-c", ALLOW_SPOT])
    control(inside, "POST", "/lab/images", image_id=IMAGE, name="ironburst-p5")
    inside.run([sys.executable, "-c", PUT_PARAMETER, image_parameter(STACK, POOL), IMAGE])
    inside.run([sys.executable, "-c", CREATE_SECRET, JOIN_SECRET], stdin="none.yet")
    say("Redfish BMCs and the AWS API (moto, a stand-in) answer; its instances act as nodes of the cluster (stand-ins)")
    return inside


def prepare(plane: ControlPlane) -> None:
    """Home's nodes, and the users' namespace."""
    for name in HOME:
        labels = {SITE_LABEL: "home", "topology.kubernetes.io/zone": "hall-a"}
        plane.add_node(NodeSpec(name, labels, HOME_HAS))
    plane.api().call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})


class Cluster:
    """The cluster, seen by an administrator in the lab's network; `record` follows its pods."""

    def __init__(self, prefix: str):
        self.plane = ControlPlane(prefix)
        self.api = self.plane.api()
        self.record = Record(self.plane.api())
        self._jobs = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"

    def close(self) -> None:
        """Follow its pods no more."""
        self.record.close()

    def submit(self, manifest: Json, dry: bool = False) -> Json:
        """Make a Job; the object. LabError."""
        return self.api.call("POST", self._jobs + ("?dryRun=All" if dry else ""), manifest)

    def cancel(self, name: str) -> None:
        """Delete a Job and its pods."""
        body = {"propagationPolicy": "Foreground"}
        self.api.call("DELETE", f"{self._jobs}/{name}", body)

    def jobs(self) -> list[Json]:
        """All Jobs that there are."""
        return list(self.api.call("GET", self._jobs)["items"])

    def pods(self) -> list[Json]:
        """All pods of users."""
        return list(self.api.call("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"])

    def nodes(self) -> list[Json]:
        """All Node objects."""
        return list(self.api.call("GET", "/api/v1/nodes")["items"])

    def leftovers(self) -> dict[str, list[str]]:
        """What the story should have taken away, by kind: names."""
        alive = [pod for pod in self.pods() if pod["status"].get("phase") not in ("Succeeded", "Failed")]
        requests = self.api.call("GET", joining.REQUESTS)["items"]
        return {
            "nodes": [name for node in self.nodes() if (name := node["metadata"]["name"]) not in HOME],
            "pods": [pod["metadata"]["name"] for pod in alive],
            "unanswered requests": [each["metadata"]["name"] for each in requests if not each.get("status")],
            "declared objects": [name for path in NAMED for name in self._names(path) if cluster_object(STACK) in name],
            "namespaces": [name for name in self._names("/api/v1/namespaces") if name == KUBE_NAMESPACE],
        }

    def _names(self, path: str) -> list[str]:
        return [each["metadata"]["name"] for each in self.api.call("GET", path)["items"]]

    def not_as_before(self) -> tuple[str, ...]:
        """Nodes of home that take no job, and what the controller still keeps of rented ones."""
        wrong = [
            f"node {node['metadata']['name']}"
            for node in self.nodes()
            if node["metadata"]["name"] not in HOME or node["spec"].get("unschedulable") or node["spec"].get("taints")
        ]
        path = f"/api/v1/namespaces/{KUBE_NAMESPACE}/configmaps/{cluster_object(STACK)}"
        kept = self.api.call("GET", path)["data"]["nodes"]
        return (*wrong, *([f"record {kept}"] if any(json.loads(kept).values()) else []))
