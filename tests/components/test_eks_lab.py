"""What makes a cluster of EKS another one, on a real API server: nodes that sign in by a token, under their instances'
ids, and that only those that Pulumi made are nodes. EKS itself isn't there: its users are the lab's.
"""

import json

import pytest

from ironburst.adapters.kubernetes import Access, Kubernetes, KubernetesNodes, KubernetesSite
from ironburst.adapters.kubernetes.client import Client
from lab.kubernetes.nodes import NodeSpec, register
from lab.system import wait_for
from tests import planes
from tests.components.projects import done
from tests.components.test_kubernetes_lab import ADMISSION, made_engine, refused
from tests.playbooks.programs import load

pytestmark = [pytest.mark.slow, planes.BUILT]
PROGRAM = """
import json, os
import pulumi
from components.kubernetes_cluster import KubernetesCluster
from ironburst.config.scheduler_models import Kubernetes

given = json.loads(os.environ["DECLARED"])
KubernetesCluster(
    "lab",
    scheduler=Kubernetes.model_validate(given["scheduler"]),
    kubeconfig=given["admin"],
    user="ironburst-controller",
    instances=[pulumi.Output.from_input(name) for name in given["instances"]],
    rents=True,
)
"""
OURS, FOREIGN = "i-0123456789abcdef0", "i-0fedcba9876543210"
REPORT = {"passed": True, "findings": [{"check": "gpus", "passed": True, "text": "8 GPUs"}]}


@pytest.fixture(scope="module")
def plane():
    with planes.running("eks") as plane:
        yield plane


@pytest.fixture(scope="module")
def up(plane, tmp_path_factory):
    """The cluster's side is declared, by Pulumi's own kubeconfig."""
    plane.add_user(f"system:node:{OURS}", ["system:nodes"])
    scheduler = {"kind": "kubernetes", "kubeconfig": "env:NOBODYS", "eks": {}}
    admin = plane.layout().kubeconfig("admin").read_text()
    declared = {"scheduler": scheduler, "admin": admin, "instances": [OURS]}
    engine = made_engine(plane, tmp_path_factory.mktemp("stack"), program=PROGRAM, declared=declared)
    done(engine("up", "--yes", "--skip-preview"))
    done(engine("preview", "--expect-no-changes"))
    return engine


def node_of(plane, name):
    """The API as a node that signs in under this name."""
    return plane.api(impersonate=(f"system:node:{name}", "system:nodes"))


def test_only_instances_that_pulumi_made_are_nodes(plane, up):
    api = plane.api()
    body = {"metadata": {"name": FOREIGN}}

    def said():
        try:
            node_of(plane, FOREIGN).call("POST", "/api/v1/nodes", body)
        except Exception as error:
            return str(error)
        api.call("DELETE", f"/api/v1/nodes/{FOREIGN}")
        return ""

    # a policy is in force a moment after it is made
    assert "ironburst made no such instance as a node" in wait_for(said, 30, "the policy")
    register(node_of(plane, OURS), NodeSpec(OURS, {}, {"cpu": "8"}))
    assert api.call("GET", f"/api/v1/nodes/{OURS}")["metadata"]["name"] == OURS
    # one that was rented comes behind the taint alone, which it can't take away
    taints = [{"key": "ironburst.io/not-ready", "effect": "NoSchedule"}]
    rented = node_of(plane, FOREIGN)
    rented.call("POST", "/api/v1/nodes", body | {"spec": {"taints": taints}})
    assert "is not allowed to modify taints" in refused(
        lambda: rented.call("PATCH", f"/api/v1/nodes/{FOREIGN}", {"spec": {"taints": []}})
    )
    # under another name than its own none of them comes, whoever it is: NodeRestriction
    assert "is not allowed to modify node" in refused(
        lambda: node_of(plane, FOREIGN).call("POST", "/api/v1/nodes", {"metadata": {"name": "dgx01"}})
    )
    register(node_of(plane, "ip-10-90-1-4.ec2.internal"), NodeSpec("ip-10-90-1-4.ec2.internal", {}, {"cpu": "8"}))


def test_nobody_joins_by_a_token(plane, up):
    bindings = plane.api().call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings")["items"]
    groups = [each.get("name") for binding in bindings for each in binding.get("subjects") or ()]
    assert "system:bootstrappers:ironburst" not in groups
    names = [
        each["metadata"]["name"]
        for each in plane.api().call("GET", f"{ADMISSION}/validatingadmissionpolicies")["items"]
    ]
    assert "ironburst-lab-nodes" in names


def test_a_node_speaks_by_the_token_of_its_role(plane, up, tmp_path, monkeypatch):
    api = plane.api()
    if OURS not in [each["metadata"]["name"] for each in api.call("GET", "/api/v1/nodes")["items"]]:
        register(node_of(plane, OURS), NodeSpec(OURS, {}, {"cpu": "8"}))
    text = plane.layout().kubeconfig(f"system:node:{OURS}").read_text()
    credential = {"status": {"token": text.split("token: ")[1].split()[0]}}
    for name, said in (("eks", credential), ("gate", REPORT)):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{json.dumps(said)}'\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "etc/ironburst").mkdir(parents=True)
    (tmp_path / "etc/ironburst/cluster-ca.crt").write_text(plane.layout().authority.read_text())
    known = {"node": OURS, "api_server": plane.layout().server, "eks": "ironburst-lab", "region": "us-east-1"}
    (tmp_path / "etc/ironburst/cluster.json").write_text(json.dumps(known))
    monkeypatch.setenv("IRONBURST_KUBELET_ROOT", str(tmp_path))
    monkeypatch.setenv("IRONBURST_KUBELET_GATE", str(tmp_path / "gate"))
    (tmp_path / "etc/kubernetes").mkdir()
    user = {"exec": {"command": str(tmp_path / "eks"), "args": ["token"]}}
    kubelet = load("roles/cloud_node/files/ironburst-join.py").kubeconfig(plane.layout().server, user)
    (tmp_path / "etc/kubernetes/kubelet.conf").write_bytes(kubelet)
    program = load("roles/kubernetes_node/files/ironburst-kubelet.py")
    assert program.main(["gate"]) == 0
    conditions = {
        each["type"]: each["status"] for each in api.call("GET", f"/api/v1/nodes/{OURS}")["status"]["conditions"]
    }
    assert conditions["ironburst.io/GatePassed"] == "True"
    assert program.main(["show"]) == 0 and program.main(["cordon"]) == 0

    site = KubernetesSite("lab", ours={OURS: "fixed-1"})
    nodes = KubernetesNodes(Kubernetes(Client(Access(plane.layout().kubeconfig("admin"))), site), site)
    try:
        assert nodes.occupancy()["fixed-1"].drained
        nodes.resume(["fixed-1"])
        wait_for(lambda: not nodes.occupancy()["fixed-1"].drained, 30, "the cordon lifted")
    finally:
        nodes.close()
    assert "unschedulable" not in api.call("GET", f"/api/v1/nodes/{OURS}")["spec"]
