"""What is asked of the cluster where slurm-bridge is the queue, answered by a real API server to a user with the
declared rights alone. slurm-bridge itself is not there: its label and its taint are written here.
"""

import pytest
import yaml

from ironburst.adapters.kubernetes import Access, BridgedNodes, Client, KubernetesPool, KubernetesSite, bridged
from ironburst.kubernetes_rights import BRIDGE, TOKENS, namespaced, rendered
from ironburst.ports import Resources, SchedulerError
from tests import planes

pytestmark = [pytest.mark.slow, planes.BUILT]
SPACE, USER, NAME = "ironburst-system", "ironburst-controller", "slurm-bridge-scheduler"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SITE = KubernetesSite(
    "lab", (KubernetesPool("burst-p5", ("p5-1", "p5-2"), Resources(8, 8, 1000)),), schedulers=frozenset((NAME,))
)
GATED = {"key": "ironburst.io/not-ready", "effect": "NoSchedule"}
MANAGED = {"key": bridged.MANAGED, "value": NAME, "effect": "NoExecute"}


plane, api = planes.fixtures("bridge")


def allow(api, where, rules):
    kind = f"namespaces/{where}/roles" if where else "clusterroles"
    of = "Role" if where else "ClusterRole"
    meta = {"name": "ironburst-lab"}
    subject = {"kind": "ServiceAccount", "name": USER, "namespace": SPACE}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": of, "name": "ironburst-lab"}
    api.call("POST", f"{RBAC}/{kind}", {"metadata": meta, "rules": rendered(rules)})
    binding = {"metadata": meta, "roleRef": reference, "subjects": [subject]}
    api.call("POST", f"{RBAC}/{kind.replace('roles', 'rolebindings')}", binding)


@pytest.fixture(scope="module")
def tokens():
    return []


@pytest.fixture(scope="module")
def cluster(plane, api, tokens, tmp_path_factory):
    """As the controller's own user."""
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
    api.call("POST", f"/api/v1/namespaces/{SPACE}/serviceaccounts", {"metadata": {"name": USER}})
    for where, rules in (("", BRIDGE), (SPACE, namespaced("ironburst-lab")), ("kube-system", TOKENS)):
        allow(api, where, rules)
    asked = api.call("POST", f"/api/v1/namespaces/{SPACE}/serviceaccounts/{USER}/token", {"spec": {}})
    config = yaml.safe_load(plane.layout().kubeconfig("admin").read_text())
    config["users"] = [{"name": each["name"], "user": {"token": asked["status"]["token"]}} for each in config["users"]]
    path = tmp_path_factory.mktemp("user") / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return BridgedNodes(Client(Access(path)), SITE, tokens.append)


def node(api, name, *taints, gate="True", gpus="8"):
    meta = {"name": name, "labels": {"ironburst.io/site": "burst-p5"}}
    api.call("POST", "/api/v1/nodes", {"metadata": meta, "spec": {"taints": list(taints)}})
    status = {
        "allocatable": {"nvidia.com/gpu": gpus},
        "capacity": {"nvidia.com/gpu": gpus},
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "t", "message": "t"},
            {"type": "ironburst.io/GatePassed", "status": gate, "reason": "t", "message": "t"},
        ],
    }
    # no GET and PUT: Kubernetes' own controllers write to a new node in between
    api.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": status})


def taints(api, name):
    return [each["key"] for each in api.call("GET", f"/api/v1/nodes/{name}")["spec"].get("taints", [])]


def pod(api, name, *, scheduler=NAME, node="", job=""):
    spec = {
        "schedulerName": scheduler,
        "containers": [{"name": "c", "image": "x"}],
        **({"nodeName": node} if node else {}),
    }
    meta = {"name": name, "labels": {bridged.JOB_LABEL: job} if job else {}}
    api.call("POST", "/api/v1/namespaces/default/pods", {"metadata": meta, "spec": spec})


def test_a_node_is_opened_when_it_is_ready_and_slurm_bridge_has_it(api, cluster):
    node(api, "p5-1", GATED)
    assert set(cluster.nodes()) == {"p5-1"}
    with pytest.raises(SchedulerError, match="slurm-bridge hasn't given it the taint"):
        cluster.open(["p5-1"])
    raw = api.call("GET", "/api/v1/nodes/p5-1")
    raw["spec"]["taints"].append(MANAGED)
    api.call("PUT", "/api/v1/nodes/p5-1", raw)
    cluster.open(["p5-1"])
    assert bridged.MANAGED in taints(api, "p5-1") and "ironburst.io/not-ready" not in taints(api, "p5-1")
    cluster.open(["p5-1"])  # again is fine
    cluster.delete(["p5-1", "p5-1"])
    assert cluster.nodes() == {}


def test_pods_are_found_by_scheduler_and_label(api, cluster, monkeypatch):
    monkeypatch.setattr(bridged, "_NEW_S", -60.0)
    pod(api, "alone")
    pod(api, "others", scheduler="somebody-else")
    pod(api, "submitted", job="17")
    pod(api, "bound", job="18", node="dgx01")
    assert cluster.unsubmitted() == ["default/alone"]
    assert not cluster.ending(17) and cluster.ending(18) and not cluster.ending(19)
    monkeypatch.undo()
    assert cluster.unsubmitted() == [], "it is new"


def test_permits_are_kept_and_bring_a_token(api, cluster, tokens):
    cluster.permit(["p5-2"])
    assert len(tokens) == 1
    assert cluster.admit() == []
    kept = api.call("GET", f"/api/v1/namespaces/{SPACE}/configmaps/ironburst-lab")["data"]["nodes"]
    assert "p5-2" in kept
    cluster.forbid(["p5-2"])
    assert "p5-2" not in api.call("GET", f"/api/v1/namespaces/{SPACE}/configmaps/ironburst-lab")["data"]["nodes"]


def test_it_may_change_no_pod(cluster):
    with pytest.raises(SchedulerError, match=r"patch pods alone in namespace default|may not|forbidden"):
        cluster._client.patch("/api/v1/namespaces/default/pods/alone", {"metadata": {"labels": {"a": "b"}}})
