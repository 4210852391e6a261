"""What a node says to its cluster beside kubelet, against a real API server (Node authorizer, NodeRestriction). Its
certificate is a real one, by a signing request; kubelet itself is not there.
"""

import json
import time
from types import SimpleNamespace

import pytest
from programs import load

from lab.kubernetes.access import Api, Refused
from lab.kubernetes.binaries import KUBERNETES
from lab.kubernetes.kubelet import BOOTSTRAP, CERTIFICATE, CSRS, Kubelet
from lab.kubernetes.nodes import NodeSpec
from lab.system import wait_for
from tests import planes
from tests.pki import issue

pytestmark = [pytest.mark.slow, planes.BUILT]
TOKEN, GROUP, GATE = ("abcdef", "0123456789abcdef"), "system:bootstrappers:ironburst", "ironburst.io/GatePassed"
REPORT = {"passed": True, "findings": [{"check": "gpus", "passed": True, "text": "8 GPUs"}]}
TOLERATES = [{"operator": "Exists"}]
CONTAINER = [{"name": "c", "image": "registry.example.org/x"}]


@pytest.fixture(scope="module")
def plane():
    with planes.running("node") as plane:
        api = plane.api()
        group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": GROUP}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-bootstrapper"}
        body = {"metadata": {"name": "ironburst-join"}, "subjects": [group], "roleRef": role}
        api.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body)
        join_token(api)
        yield plane


def join_token(api):
    """The one that Node joins with."""
    data = {"token-id": TOKEN[0], "token-secret": TOKEN[1], "usage-bootstrap-authentication": "true"}
    secret = {"type": "bootstrap.kubernetes.io/token", "stringData": data | {"auth-extra-groups": GROUP}}
    meta = {"metadata": {"name": f"bootstrap-token-{TOKEN[0]}"}}
    api.call("POST", "/api/v1/namespaces/kube-system/secrets", secret | meta)


@pytest.fixture
def api(plane):
    return plane.api()


class Node:
    """A node's disk with its certificate, and the program on it."""

    def __init__(self, plane, name, root, patch):
        self.name, self.root, self.path = name, root, f"/api/v1/nodes/{name}"
        join = load("roles/cloud_node/files/ironburst-join.py")
        (root / "etc/ironburst").mkdir(parents=True)
        (root / "etc/ironburst/cluster-ca.crt").write_text(plane.layout().authority.read_text())
        (root / BOOTSTRAP).parent.mkdir()
        (root / BOOTSTRAP).write_bytes(join.kubeconfig(plane.layout().server, {"token": ".".join(TOKEN)}))
        self.kubelet = Kubelet(root, name)
        request = self.kubelet.request()
        body = plane.api().call("GET", f"{CSRS}/{request}")
        said = {"type": "Approved", "status": "True", "reason": "Test", "message": "by hand"}
        plane.api().call("PUT", f"{CSRS}/{request}/approval", body | {"status": {"conditions": [said]}})
        wait_for(lambda: self.kubelet.signed(request), 30, "the certificate")
        patch.setenv("IRONBURST_KUBELET_ROOT", str(root))
        patch.setenv("IRONBURST_KUBELET_GATE", str(root / "gate"))
        self.program = load("roles/kubernetes_node/files/ironburst-kubelet.py")
        self.cluster(name, plane.layout().server)
        self.gate(REPORT)

    def cluster(self, name, server, **more):
        said = {"node": name, "api_server": server, **more}
        (self.root / "etc/ironburst/cluster.json").write_text(json.dumps(said))

    def gate(self, report):
        (self.root / "gate").write_text(
            f"#!/bin/sh\necho '{json.dumps(report)}'\nexit {0 if report['passed'] else 1}\n"
        )
        (self.root / "gate").chmod(0o755)

    def ready(self, api):
        """The types of its conditions, once it is ready."""
        conditions = {each["type"]: each["status"] for each in api.call("GET", self.path)["status"]["conditions"]}
        return conditions.keys() if conditions["Ready"] == "True" else None

    def condition(self, api):
        conditions = api.call("GET", self.path)["status"]["conditions"]
        return next((each for each in conditions if each["type"] == GATE), None)


@pytest.fixture
def node(plane, api, tmp_path, monkeypatch):
    node = Node(plane, "gpu-1", tmp_path, monkeypatch)
    node.kubelet.register(NodeSpec("gpu-1", {}, {"cpu": "8"}), {})
    yield node
    for each in api.call("GET", "/api/v1/pods")["items"]:
        path = f"/api/v1/namespaces/default/pods/{each['metadata']['name']}"
        api.call("DELETE", path, {"gracePeriodSeconds": 0})
    api.call("DELETE", node.path)


def start(api, name, node):
    spec = {"nodeName": node, "containers": CONTAINER, "tolerations": TOLERATES}
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
    return api.call("POST", "/api/v1/namespaces/default/pods", body)["metadata"]["uid"]


@pytest.fixture
def service(api, node):
    """A DaemonSet; the uid of its pod on the node."""
    labels = {"app": "cni"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": CONTAINER, "tolerations": TOLERATES}}
    body = {"metadata": {"name": "cni"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    path = "/apis/apps/v1/namespaces/default/daemonsets"
    api.call("POST", path, body)

    def bound():
        pods = api.call("GET", "/api/v1/pods")["items"]
        return next((pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName") == "gpu-1"), None)

    yield wait_for(bound, 30, "the DaemonSet's pod")
    api.call("DELETE", f"{path}/cni")


def test_the_gates_word_becomes_a_condition_and_others_stay(node, api):
    before = wait_for(lambda: node.ready(api), 30, "what kwok says in kubelet's place, all at once")
    assert node.program.main(["gate"]) == 0
    first = node.condition(api)
    assert (first["status"], first["reason"]) == ("True", "GatePassed")
    node.gate({"passed": False, "findings": [{"check": "gpus", "passed": False, "text": "7 of 8 GPUs"}]})
    assert node.program.main(["gate"]) == 0
    second = node.condition(api)
    assert (second["status"], second["message"]) == ("False", "7 of 8 GPUs")
    (node.root / "gate").unlink()
    assert node.program.main(["gate"]) == 0
    assert node.condition(api)["status"] == "Unknown" and "can't be run" in node.condition(api)["message"]
    after = {each["type"] for each in api.call("GET", node.path)["status"]["conditions"]}
    assert after == before | {GATE}


def test_the_node_may_appear_only_after_the_gate(plane, api, tmp_path, monkeypatch, capsys):
    node = Node(plane, "gpu-2", tmp_path, monkeypatch)
    assert node.program.main(["gate"]) == 1
    assert "GatePassed is True" in (said := capsys.readouterr().err) and "answers 404" in said
    pauses = []

    def appear(seconds):  # in the place of the pause
        pauses.append(seconds)
        node.kubelet.register(NodeSpec("gpu-2", {}, {"cpu": "8"}), {})

    clock = SimpleNamespace(**{name: getattr(time, name) for name in ("monotonic", "strftime", "gmtime")}, sleep=appear)
    monkeypatch.setattr(node.program, "time", clock)
    assert node.program.main(["gate", "--wait", "60"]) == 0 and pauses == [node.program.PAUSE_S]
    assert node.condition(api)["status"] == "True"
    api.call("DELETE", node.path)


def test_the_secret_to_join_goes_with_the_first_word_and_only_where_it_is_ours(node):
    bootstrap = node.root / "etc/kubernetes/bootstrap-kubelet.conf"
    bootstrap.write_text("token")
    assert node.program.main(["gate"]) == 0 and bootstrap.exists()  # kubeadm's, on an adopted node
    (node.root / "etc/ironburst/kubelet.yaml").touch()
    assert node.program.main(["gate"]) == 0 and not bootstrap.exists()
    assert (node.root / CERTIFICATE).exists()


def test_the_heartbeat_and_what_runs_here(node, api, service, capsys):
    api.call("PATCH", node.path, {"metadata": {"annotations": {"ironburst.io/beat": "ironburst,at=7,left=600"}}})
    assert node.program.main(["show"]) == 0
    assert capsys.readouterr().out == f"NodeName=gpu-1 State=IDLE Comment=ironburst,at=7,left=600 Others={service}\n"
    assert node.program.main(["idle"]) == 0
    start(api, "train", "gpu-1")
    start(api, "elsewhere", "gpu-9")
    assert node.program.main(["show"]) == 0
    assert "State=ALLOCATED" in (said := capsys.readouterr().out) and said.endswith(f"Others={service}\n")
    assert node.program.main(["idle"]) == 1
    assert "pods run here: default/train\n" in capsys.readouterr().err


def test_it_closes_itself(node, api):
    assert node.program.main(["cordon"]) == 0
    assert api.call("GET", node.path)["spec"]["unschedulable"] is True


def test_its_rights_are_of_this_node_alone(node, api, plane, capsys):
    """The API server refuses another name: a wrong cluster.json can't write anybody else's condition."""
    api.call("POST", "/api/v1/nodes", {"metadata": {"name": "gpu-9"}})
    node.cluster("gpu-9", plane.layout().server)
    for verb in ("gate", "show", "cordon"):
        assert node.program.main([verb]) == 1
        assert "answers 403" in capsys.readouterr().err
    found = api.call("GET", "/api/v1/nodes/gpu-9")
    assert not found["status"].get("conditions") and "unschedulable" not in found["spec"]
    api.call("DELETE", "/api/v1/nodes/gpu-9")
    own = Api(plane.layout().server, plane.layout().authority, certificate=node.root / CERTIFICATE)
    with pytest.raises(Refused, match="forbidden"):  # nor may it take away its taint by itself
        own.call("PATCH", node.path, {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})


def test_a_server_that_is_not_the_clusters_is_not_spoken_to(node, plane, capsys):
    server = plane.layout().server
    node.cluster("gpu-1", server.rpartition(":")[0] + ":1")
    assert node.program.main(["show"]) == 1 and "doesn't answer" in capsys.readouterr().err
    node.cluster("gpu-1", server)
    (node.root / "etc/ironburst/cluster-ca.crt").write_text(issue("another cluster", ca=True).pem)
    assert node.program.main(["show"]) == 1 and "certificate verify failed" in capsys.readouterr().err


def test_the_version_of_the_api_server_is_told_to_strangers_and_to_kubelet(node, plane, tmp_path):
    module, layout = load("plugins/modules/api_version.py"), plane.layout()
    for certificate in (tmp_path / "none", node.root / CERTIFICATE):
        assert module.version(layout.server, layout.authority.read_text(), 10, str(certificate)) == f"v{KUBERNETES}"


def test_a_node_is_ready_when_its_cluster_says_so(node, api, capsys):
    wait_for(
        lambda: node.program.main(["ready"]) == 1 and "GatePassed is unheard" in capsys.readouterr().err, 30, "Ready"
    )
    assert node.program.main(["gate"]) == 0 and node.program.main(["ready", "--gpus", "8"]) == 0  # claims hand them out
    offered = {"status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "7"}}}
    api.call("PATCH", f"{node.path}/status", offered)
    assert node.program.main(["ready", "--gpus", "8"]) == 1 and "offers 7 of 8 GPUs" in capsys.readouterr().err


def test_the_processes_of_its_services_are_known_by_their_pods(node, api, service, capsys):
    """The pods are the API server's, the processes are a folder's."""
    job = start(api, "train", "gpu-1")
    for pid, uid in (("11", service), ("12", job)):
        folder = node.root / "proc" / pid
        (folder / "fd").mkdir(parents=True)
        (folder / "fd/3").symlink_to("/dev/nvidia0")
        (folder / "cgroup").write_text(f"0::/kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice/a.scope\n")
    assert node.program.main(["services"]) == 0 and capsys.readouterr().out == "11\n"
    assert node.program.main(["free"]) == 1 and f"of uid {job}: drain the node first" in capsys.readouterr().err
