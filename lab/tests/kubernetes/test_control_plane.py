"""The lab's Kubernetes, started: what a program that uses it may count on. `make kubernetes` builds what it needs."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import requests
import yaml

from lab.kubernetes import binaries
from lab.kubernetes.access import Refused
from lab.kubernetes.commands import ALIVE, ORDER, Options
from lab.kubernetes.control_plane import ControlPlane
from lab.kubernetes.nodes import NodeSpec
from lab.system import CHECKOUT, LabError, wait_for
from tests import planes

pytestmark = [pytest.mark.slow, planes.BUILT]
LIMIT_S = 60
GRACE_S = 8
NAMESPACE = "/api/v1/namespaces/default"


plane, api = planes.fixtures("kube", Options(users={"watcher": ["watchers"]}, grace_s=GRACE_S, toleration_s=5))


@pytest.fixture
def node(request, plane, api):
    """A node of eight GPUs for this test alone: its pods name it."""
    name = f"gpu-{request.node.name.removeprefix('test_').replace('_', '-')[:40].rstrip('-')}"
    plane.add_node(NodeSpec(name, allocatable={"nvidia.com/gpu": "8"}, devices_after_s=0.2))
    wait_for(lambda: gpus(api, name) == "8", LIMIT_S, f"the GPUs of {name}")
    yield name
    api.call("DELETE", f"/api/v1/nodes/{name}")


def gpus(api, node):
    return api.call("GET", f"/api/v1/nodes/{node}")["status"]["allocatable"].get("nvidia.com/gpu")


def condition(thing, kind="Ready"):
    """(status, reason) of a condition."""
    found = {each["type"]: (each["status"], each.get("reason")) for each in thing["status"].get("conditions", [])}
    return found.get(kind, (None, None))


def pod(api, name, node=None, gpus=0, annotations=None, **spec):
    """Make a pod in the namespace default."""
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    selector = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    body = {
        "metadata": {"name": name, "annotations": {f"lab.ironburst/{k}": v for k, v in (annotations or {}).items()}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "work", "image": "work", "resources": resources}],
            **selector,
            **spec,
        },
    }
    api.call("POST", f"{NAMESPACE}/pods", body)


def look(api, name):
    return api.call("GET", f"{NAMESPACE}/pods/{name}")


def until(api, name, phase):
    """The pod, once it is in this phase."""
    return wait_for(
        lambda: (it := look(api, name))["status"]["phase"] == phase and it, LIMIT_S, f"pod {name} {phase}", 0.1
    )


def gone(api, path):
    try:
        api.call("GET", path)
    except Refused as refusal:
        return refusal.status == 404
    return False


def test_it_is_up_and_known_by_its_certificate(plane):
    state = plane.status()
    assert state["up"] and list(state["programs"]) == list(ORDER)
    path = plane.layout().kubeconfig("admin")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(plane.folder.stat().st_mode) == 0o700
    token = yaml.safe_load(path.read_text())["users"][0]["user"]["token"]
    headers = {"Authorization": f"Bearer {token}"}
    authority = str(plane.layout().authority)
    assert requests.get(f"{plane.layout().server}/version", headers=headers, verify=authority).json()["major"] == "1"
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(f"{plane.layout().server}/version", headers=headers)


def test_kubectl_works_with_the_kubeconfig(plane):
    kubectl = binaries.folder() / "kubectl"
    argv = [str(kubectl), "--kubeconfig", str(plane.layout().kubeconfig("admin")), "version"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert f"Server Version: v{binaries.KUBERNETES}" in done.stdout


def test_one_pod_of_eight_gpus_runs_and_the_other_waits(node, api):
    for name in ("first", "second"):
        pod(api, name, node, gpus=8)
    running = until(api, "first", "Running")
    assert running["spec"]["nodeName"] == node and condition(running) == ("True", None)
    refused = ("False", "Unschedulable")
    waiting = wait_for(
        lambda: condition(it := look(api, "second"), "PodScheduled") == refused and it, LIMIT_S, "a verdict"
    )
    assert waiting["status"]["phase"] == "Pending" and "nodeName" not in waiting["spec"]
    (verdict,) = [each for each in waiting["status"]["conditions"] if each["type"] == "PodScheduled"]
    assert "Insufficient nvidia.com/gpu" in verdict["message"]
    # the second comes in when the first has gone
    api.call("DELETE", f"{NAMESPACE}/pods/first?gracePeriodSeconds=1")
    until(api, "second", "Running")
    api.call("DELETE", f"{NAMESPACE}/pods/second?gracePeriodSeconds=1")
    wait_for(lambda: gone(api, f"{NAMESPACE}/pods/second"), LIMIT_S, "the end of second")


def test_a_node_is_ready_before_it_has_its_gpus(plane, api):
    plane.add_node(NodeSpec("slow", allocatable={"nvidia.com/gpu": "8"}, devices_after_s=3600))
    path = "/api/v1/nodes/slow"
    wait_for(lambda: condition(api.call("GET", path))[0] == "True", LIMIT_S, "the node ready")
    wait_for(lambda: not api.call("GET", path)["spec"].get("taints"), LIMIT_S, "its taint gone")
    assert gpus(api, "slow") is None
    api.call("DELETE", path)


def test_a_node_may_not_give_itself_a_role(plane):
    with pytest.raises(Refused, match="is not allowed to set the following labels") as refusal:
        plane.add_node(NodeSpec("proud", {"node-role.kubernetes.io/control-plane": ""}))
    assert refusal.value.status == 403


def test_a_user_may_do_what_rbac_says_and_no_more(plane, api):
    watcher = plane.api("watcher")
    with pytest.raises(Refused, match='User "watcher" cannot list resource "pods" in API group ""') as refusal:
        watcher.call("GET", f"{NAMESPACE}/pods")
    assert (refusal.value.status, refusal.value.reason) == (403, "Forbidden")
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    api.call("POST", f"{rbac}/roles", {"metadata": {"name": "watch"}, "rules": rules})
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "watchers"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "watch"}
    api.call("POST", f"{rbac}/rolebindings", {"metadata": {"name": "watch"}, "roleRef": role, "subjects": [group]})
    # the authorizer sees new rights a moment later
    wait_for(lambda: allowed(watcher, "GET", f"{NAMESPACE}/pods"), LIMIT_S, "the right to list")
    with pytest.raises(Refused, match='cannot delete resource "pods"'):
        watcher.call("DELETE", f"{NAMESPACE}/pods/any")


def allowed(api, method, path):
    try:
        api.call(method, path)
    except Refused as refusal:
        if refusal.status == 403:
            return False
        raise
    return True


def test_a_user_can_come_later(plane):
    path = plane.add_user("late", ["watchers"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    asked = plane.api("late").call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert asked["status"]["userInfo"]["username"] == "late" and "watchers" in asked["status"]["userInfo"]["groups"]
    with pytest.raises(LabError, match="has a user 'late' already"):
        plane.add_user("late")


def test_pods_are_judged_and_given_an_account(api):
    """PodSecurity and ServiceAccount, as on any cluster."""
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "strict", "labels": label}})
    spec = {"containers": [{"name": "work", "image": "work", "securityContext": {"privileged": True}}]}
    account = "/api/v1/namespaces/strict/serviceaccounts/default"
    wait_for(lambda: not gone(api, account), LIMIT_S, "the account of the namespace")
    with pytest.raises(Refused, match='violates PodSecurity "restricted') as refusal:
        api.call("POST", "/api/v1/namespaces/strict/pods", {"metadata": {"name": "root"}, "spec": spec})
    assert refusal.value.status == 403
    with pytest.raises(Refused, match='serviceaccount "nobody" not found'):
        pod(api, "stranger", serviceAccountName="nobody")
    pod(api, "plain")
    (volume,) = look(api, "plain")["spec"]["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    api.call("DELETE", f"{NAMESPACE}/pods/plain")


def test_the_api_server_killed_and_started_again_keeps_all(plane, api):
    server = plane.layout().server
    before = api.call("POST", f"{NAMESPACE}/configmaps", {"metadata": {"name": "kept"}, "data": {"a": "b"}})
    plane.kill("kube-apiserver")
    assert "kube-apiserver" not in plane.running() and not plane.status()["up"]
    with pytest.raises(LabError, match="had no answer"):
        api.call("GET", f"{NAMESPACE}/configmaps/kept")
    plane.start("kube-apiserver")
    after = api.call("GET", f"{NAMESPACE}/configmaps/kept")
    assert plane.layout().server == server and after["metadata"]["uid"] == before["metadata"]["uid"]
    # the others have noticed, and work on
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "after"}})
    account = "/api/v1/namespaces/after/serviceaccounts/default"
    wait_for(lambda: not gone(api, account), LIMIT_S, "an account for a new namespace")


def test_work_ends_as_its_annotations_say(node, api):
    pod(api, "good", node, annotations={"run-seconds": "1"})
    pod(api, "bad", node, annotations={"run-seconds": "1", "exit-code": "3"})
    pod(api, "late", node, annotations={"run-seconds": "3600"}, activeDeadlineSeconds=1)
    pod(api, "quick", node, annotations={"run-seconds": "1"}, activeDeadlineSeconds=3600)
    pod(api, "endless", node)
    state = {name: until(api, name, "Succeeded")["status"] for name in ("good", "quick")}
    state |= {name: until(api, name, "Failed")["status"] for name in ("bad", "late")}
    ends = {name: each["containerStatuses"][0]["state"]["terminated"] for name, each in state.items()}
    assert {name: (end["exitCode"], end["reason"]) for name, end in ends.items()} == {
        "good": (0, "Completed"),
        "quick": (0, "Completed"),
        "bad": (3, "Error"),
        "late": (137, "Error"),
    }
    assert state["late"]["reason"] == "DeadlineExceeded" and "reason" not in state["bad"]
    assert look(api, "endless")["status"]["phase"] == "Running"
    for name in ("good", "bad", "late", "quick", "endless"):
        api.call("DELETE", f"{NAMESPACE}/pods/{name}?gracePeriodSeconds=0")


def test_images_take_their_time(node, api):
    pod(api, "pulling", node, annotations={"pull-seconds": "3600"})
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    wait_for(
        lambda: [each["state"] for each in look(api, "pulling")["status"].get("containerStatuses", [])] == [waiting],
        LIMIT_S,
        "the pod at its node",
    )
    assert look(api, "pulling")["status"]["phase"] == "Pending"
    api.call("DELETE", f"{NAMESPACE}/pods/pulling")
    wait_for(lambda: gone(api, f"{NAMESPACE}/pods/pulling"), LIMIT_S, "the end of a pod that never ran")


def test_a_deleted_pod_has_its_grace_period(node, api):
    for name, annotations in (("stubborn", {}), ("polite", {"stop-seconds": "1"})):
        pod(api, name, node, annotations=annotations)
        until(api, name, "Running")
        api.call("DELETE", f"{NAMESPACE}/pods/{name}?gracePeriodSeconds=3600")
    wait_for(lambda: gone(api, f"{NAMESPACE}/pods/polite"), LIMIT_S, "the polite pod's end")
    stubborn = look(api, "stubborn")
    assert stubborn["status"]["phase"] == "Running" and stubborn["metadata"]["deletionGracePeriodSeconds"] == 3600
    api.call("DELETE", f"{NAMESPACE}/pods/stubborn?gracePeriodSeconds=0")


def test_a_job_is_done_when_its_pods_are(node, api):
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    spec = {"restartPolicy": "Never", "nodeName": node, "containers": [{"name": "work", "image": "work"}]}
    template = {"metadata": {"annotations": {"lab.ironburst/run-seconds": "1"}}, "spec": spec}
    job = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "template": template}
    api.call("POST", jobs, {"metadata": {"name": "two"}, "spec": job})
    wait_for(lambda: api.call("GET", f"{jobs}/two")["status"].get("succeeded") == 2, LIMIT_S, "both pods")
    wait_for(lambda: condition(api.call("GET", f"{jobs}/two"), "Complete")[0] == "True", LIMIT_S, "the job")
    assert not api.call("GET", f"{jobs}/two")["status"].get("failed")
    api.call("DELETE", f"{jobs}/two", {"propagationPolicy": "Background"})


def test_an_unreachable_node_is_unknown_and_its_pods_do_nothing(node, plane, api):
    # a zone whose nodes are all lost is treated otherwise: nobody's pods are evicted
    for n in range(2):
        plane.add_node(NodeSpec(f"other-{n}"))
        wait_for(lambda n=n: condition(api.call("GET", f"/api/v1/nodes/other-{n}"))[0] == "True", LIMIT_S, "ready")
    path = f"/api/v1/nodes/{node}"
    pod(api, "working", node, annotations={"run-seconds": f"{GRACE_S}"})
    until(api, "working", "Running")
    api.call("PATCH", path, {"metadata": {"labels": {ALIVE: None}}})
    unknown = ("Unknown", "NodeStatusUnknown")
    wait_for(lambda: condition(api.call("GET", path)) == unknown, LIMIT_S, "the node unknown")
    tainted = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    wait_for(
        lambda: any(each.items() >= tainted.items() for each in api.call("GET", path)["spec"].get("taints", [])),
        LIMIT_S,
        "its taint",
    )
    evicted = wait_for(
        lambda: (it := look(api, "working"))["metadata"].get("deletionTimestamp") and it, LIMIT_S, "the eviction"
    )
    # its work is done and it is deleted: only its node could say so
    assert evicted["status"]["phase"] == "Running" and condition(evicted)[0] == "False"
    errors = [line for line in plane.log("kwok").read_text().splitlines() if "its node is unreachable" in line]
    assert any("working" in line for line in errors)  # the end of its time was let pass
    api.call("PATCH", path, {"metadata": {"labels": {ALIVE: "true"}}})
    wait_for(lambda: condition(api.call("GET", path))[0] == "True", LIMIT_S, "the node back")
    wait_for(lambda: gone(api, f"{NAMESPACE}/pods/working"), LIMIT_S, "the pod's end")
    for n in range(2):
        api.call("DELETE", f"/api/v1/nodes/other-{n}")


def test_what_is_not_on_by_default_can_be_asked_for():
    plane = ControlPlane(f"t-kube-gates-{os.getpid()}")
    gates = {"GenericWorkload": True, "GangScheduling": True}
    try:
        plane.up(Options(feature_gates=gates, runtime_config={"scheduling.k8s.io/v1alpha2": "true"}), tied=True)
        resources = plane.api().call("GET", "/apis/scheduling.k8s.io/v1alpha2")["resources"]
        assert "podgroups" in {each["name"] for each in resources}
    finally:
        plane.down()


STARTER = "import sys; from lab.kubernetes.control_plane import ControlPlane; print(ControlPlane(sys.argv[1]).up())"


def test_down_leaves_nothing_of_a_lab_whose_starter_was_killed():
    prefix = f"t-kube-lost-{os.getpid()}"
    plane = ControlPlane(prefix)
    starter = subprocess.Popen([sys.executable, "-c", STARTER, prefix], cwd=CHECKOUT, start_new_session=True)
    try:
        wait_for(lambda: "kube-apiserver" in plane.running(), LIMIT_S, "the API server's start")
        starter.send_signal(signal.SIGKILL)
        starter.wait(LIMIT_S)
        pids = plane.running().values()
        assert plane.down() == list(ORDER[:2])
    finally:
        starter.kill()
        plane.down()
    assert plane.running() == {} and not any(alive(pid) for pid in pids)
    assert not plane.folder.parent.exists()


def test_the_commands():
    prefix = f"t-kube-cli-{os.getpid()}"

    def lab(*arguments):
        argv = [sys.executable, "-m", "lab.kubernetes", *arguments, "--prefix", prefix]
        return subprocess.run(argv, cwd=CHECKOUT, capture_output=True, text=True, timeout=5 * LIMIT_S)

    try:
        up = lab("up")
        assert up.returncode == 0, up.stderr
        assert up.stdout.strip().endswith(f".lab/{prefix}/kubernetes/admin.kubeconfig")
        pids = ControlPlane(prefix).running().values()
        assert lab("up").stderr.startswith(f"lab: the control plane of lab '{prefix}' is already up")
        assert lab("node", "gpu-1", "--gpus", "8", "--label", "a=b").returncode == 0
        assert lab("user", "alice", "--group", "ml").stdout.strip().endswith("alice.kubeconfig")
        assert lab("status").returncode == 0
    finally:
        down = lab("down")
    assert down.stdout == f"ended: {', '.join(ORDER)}\n"
    assert not any(alive(pid) for pid in pids)
    assert lab("status").returncode == 3
    assert lab("down").stdout == f"nothing of Kubernetes ran in lab {prefix}\n"


def alive(pid):
    """True but for a process that is gone, or that only waits for this machine's init to take note."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
