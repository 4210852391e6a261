"""Step 1: the world is set up; and the cluster as its administrator and its users see it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ironburst.adapters.kubernetes import joining, rights
from ironburst.naming import SITE_LABEL, image_parameter
from lab import names
from lab.demo.declare import ALLOW_SPOT, CREATE_SECRET, control
from lab.demo.inside import Boxed
from lab.demo.kubernetes.pods import NAMESPACE
from lab.demo.kubernetes.record import Record
from lab.hosts.box import Box
from lab.kubernetes.control_plane import ControlPlane
from lab.kubernetes.nodes import NodeSpec
from lab.system import wait_for

STACK, POOL = "lab-kubernetes", "p5"
USER = "ironburst"  # as whom the controller signs in at the cluster
PORT = 6443
KUBECONFIG = "/run/ironburst/kubeconfig"  # as the stack names it
KUBE_NAMESPACE = "ironburst-system"
JOIN_SECRET = "ironburst/lab-kubernetes/join-token"
IMAGE = "ami-0ba5e0000000000a2"  # of rented nodes
HOME = ("dgx01", "dgx02")
HOME_HAS = {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "8"}
PUT_PARAMETER = (
    "import boto3, sys; name, value = sys.argv[1:];"
    "boto3.client('ssm').put_parameter(Name=name, Value=value, Type='String')"
)
RBAC = "/apis/rbac.authorization.k8s.io/v1"
Say = Callable[[str], None]
Json = dict[str, Any]


def start(box: Box, say: Say) -> Boxed:
    """Box, BMCs, cloud and control plane; then what an operator prepares once in an account and in a cluster."""
    box.up(tied=True)
    inside = Boxed(box, STACK, box.dir / "run" / "ledger.sqlite")
    inside.spawn([sys.executable, "-m", "lab.bmc", "--prefix", box.prefix], "bmc")
    inside.spawn([sys.executable, "-m", "lab.kubernetes.instances", "--prefix", box.prefix], "aws")
    up = ["up", "--prefix", box.prefix, "--address", names.HALL_GATEWAY, "--port", str(PORT), "--user", USER]
    inside.run([sys.executable, "-m", "lab.kubernetes", *up, "--known-authority"], log="kubernetes")
    plane = ControlPlane(box.prefix)
    source = str(plane.layout().kubeconfig(USER))
    inside.run(["install", "-D", "--mode=0600", source, KUBECONFIG])
    say("etcd, kube-apiserver, kube-scheduler and kube-controller-manager run")
    with box.network():
        prepare(plane)
    say(f"{' and '.join(HOME)} are its nodes (kwok, no kubelet: stand-ins); the controller's user has its rights alone")
    inside.run([sys.executable, "-c", "from lab.aws.client import wait_ready; wait_ready(60)"])
    wait_for(lambda: "ready" in inside.log("bmc").read_text(), 30, f"the BMCs (see {inside.log('bmc')})")
    inside.run([sys.executable, "-c", ALLOW_SPOT])
    control(inside, "POST", "/lab/images", image_id=IMAGE, name="ironburst-p5")
    inside.run([sys.executable, "-c", PUT_PARAMETER, image_parameter(STACK, POOL), IMAGE])
    inside.run([sys.executable, "-c", CREATE_SECRET, JOIN_SECRET], stdin="none.yet")
    say("Redfish BMCs and the AWS API (moto, a stand-in) answer; its instances act as nodes of the cluster (stand-ins)")
    return inside


def prepare(plane: ControlPlane) -> None:
    """Home's nodes, the namespaces, and who may what: of the controller and of nodes that come."""
    for name in HOME:
        labels = {SITE_LABEL: "home", "topology.kubernetes.io/zone": "hall-a"}
        plane.add_node(NodeSpec(name, labels, HOME_HAS))
    api = plane.api()
    for name in (NAMESPACE, KUBE_NAMESPACE):
        api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    for path, body in permissions():
        api.call("POST", RBAC + path, body)


def permissions() -> list[tuple[str, Json]]:
    """(path, object) of RBAC: the rights of `rights.py` for the controller, and no more; joining nodes may ask for a
    certificate, and nothing approves it but the controller.
    """
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": joining.GROUP}
    made = [
        ("/clusterroles", {"metadata": {"name": USER}, "rules": rights.rendered(rights.CLUSTER)}),
        ("/clusterrolebindings", _binding(USER, user, "ClusterRole", USER)),
        ("/clusterrolebindings", _binding("ironburst-join", group, "ClusterRole", "system:node-bootstrapper")),
    ]
    for namespace, rules in {
        KUBE_NAMESPACE: rights.namespaced(f"ironburst-{STACK}"),
        "kube-system": rights.TOKENS,
    }.items():
        role = {"metadata": {"name": USER}, "rules": rights.rendered(rules)}
        made += [
            (f"/namespaces/{namespace}/roles", role),
            (f"/namespaces/{namespace}/rolebindings", _binding(USER, user, "Role", USER)),
        ]
    return made


def _binding(name: str, subject: Json, kind: str, role: str) -> Json:
    of = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    return {"metadata": {"name": name}, "subjects": [subject], "roleRef": of}


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
        }

    def not_as_before(self) -> tuple[str, ...]:
        """Nodes of home that take no job, and what the controller still keeps of rented ones."""
        wrong = [
            f"node {node['metadata']['name']}"
            for node in self.nodes()
            if node["metadata"]["name"] not in HOME or node["spec"].get("unschedulable") or node["spec"].get("taints")
        ]
        path = f"/api/v1/namespaces/{KUBE_NAMESPACE}/configmaps/ironburst-{STACK}"
        kept = self.api.call("GET", path)["data"]["nodes"]
        return (*wrong, *([f"record {kept}"] if kept != '{"up": [], "permits": []}' else []))
