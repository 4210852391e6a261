"""playbooks/upgrade.yml and fabric.yml on nodes of a real API server, scheduler and controllers: what is drained,
waited for, and refused before that. The roles in between are stand-ins: what a role does is tested elsewhere.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lab.kubernetes.access import ADMIN, Refused
from lab.kubernetes.nodes import NodeSpec
from lab.system import wait_for
from tests import planes
from tests.playbooks.contract import PLAYBOOKS

pytestmark = [pytest.mark.slow, planes.BUILT]
NODES, SPACE = ("gpu-1", "gpu-2"), "/api/v1/namespaces/default"
GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
# What the roles of a node are here: a mark that it was converged, and a gate that may fail
ROLE = """---
- name: Converge the node
  ansible.builtin.shell: echo "{{ inventory_hostname }} {{ role_name }}" >> "{{ marks }}"
  changed_when: true

- name: The gate
  ansible.builtin.assert:
    that: inventory_hostname not in bad_nodes
    fail_msg: "{{ inventory_hostname }} takes no jobs: 7 of 8 GPUs"
"""


@pytest.fixture(scope="module")
def plane():
    with planes.running("upgrade") as plane:
        for name in NODES:
            plane.add_node(NodeSpec(name, allocatable={"nvidia.com/gpu": "8"}, devices_after_s=0.2))
        wait_for(lambda: all(gpus(plane.api(), name) == "8" for name in NODES), 60, "the GPUs")
        yield plane


@pytest.fixture
def api(plane):
    api = plane.api()
    yield api
    for path in (
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    ):
        for each in api.call("GET", path)["items"]:
            api.call("DELETE", f"{path}/{each['metadata']['name']}")
    for pod in api.call("GET", f"{SPACE}/pods")["items"]:
        end(api, pod["metadata"]["name"])
    for name in NODES:
        free = {"metadata": {"annotations": {"ironburst.io/drain": None}}, "spec": {"unschedulable": None}}
        api.call("PATCH", f"/api/v1/nodes/{name}", free)
    wait_for(lambda: not api.call("GET", f"{SPACE}/pods")["items"], 60, "no pods")


def gpus(api, name):
    return api.call("GET", f"/api/v1/nodes/{name}")["status"]["allocatable"].get("nvidia.com/gpu")


def end(api, name):
    try:
        api.call("DELETE", f"{SPACE}/pods/{name}", {"gracePeriodSeconds": 0})
    except Refused as refused:
        assert refused.status == 404


def node(api, name):
    """(cordoned, why)"""
    found = api.call("GET", f"/api/v1/nodes/{name}")
    return found["spec"].get("unschedulable", False), found["metadata"]["annotations"].get("ironburst.io/drain")


def pod(api, name, place, container=None, **labels):
    spec = {
        "nodeName": place,
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "x", **(container or {})}],
    }
    api.call("POST", f"{SPACE}/pods", {"metadata": {"name": name, "labels": labels}, "spec": spec})


class Site:
    """Two nodes, an inventory, and the real playbooks beside stand-ins of roles and of the bandwidth test."""

    def __init__(self, plane, folder):
        self.folder, self.marks = folder, folder / "marks"
        books = folder / "playbooks"
        for name in ("upgrade.yml", "site.yml", "fabric.yml"):
            books.mkdir(exist_ok=True)
            shutil.copy(PLAYBOOKS / name, books / name)
        (books / "tasks").mkdir()
        (books / "tasks/ib_write_bw.yml").write_text(ROLE.replace("{{ role_name }}", "{{ fabric_device }}"))
        for role in ("base", "container_runtime", "node_health", "kubernetes_node"):
            tasks = books / "roles" / role / "tasks"
            tasks.mkdir(parents=True)
            (tasks / "main.yml").write_text(ROLE)
        shutil.copytree(PLAYBOOKS / "roles/needs", books / "roles/needs")
        meta = ("meta/main.yml", "meta/argument_specs.yml")
        for part in (*meta, "tasks/preflight.yml", "tasks/program.yml", "vars/main.yml", "defaults/main.yml"):
            (to := books / "roles/kubernetes_node" / part).parent.mkdir(exist_ok=True)
            shutil.copy(PLAYBOOKS / "roles/kubernetes_node" / part, to)
        self.variables = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "cluster_name": "t",
            "node_kind": "bare_metal",
            "cluster_regions": {},
            "node_object": "",
            "cluster_schedulers": [{"head": ""}],
            "cluster_scheduler": {
                "kind": "kubernetes",
                "head": "",
                "home_partition": "home",
                "shared_filesystem": "",
                "api_server": plane.layout().server,
                "ca": plane.layout().authority.read_text(),
                "kubeconfig": f"file:{plane.layout().kubeconfig(ADMIN)}",
                "namespace": "ironburst-system",
            },
            "node_software": {"kubernetes": "1.36", "packages": {"kubernetes_node": []}},
            "kubernetes_node_bootstrap_token": "env:JOIN_TOKEN",
            "marks": str(self.marks),
            "bad_nodes": [],
        }

    def start(self, *options, book="upgrade.yml", **changes):
        names = ["base", "node_health", "kubernetes_node"]
        names += ["rdma", "fabric_infiniband"] if book == "fabric.yml" else []
        groups = {group: {"hosts": dict.fromkeys(NODES)} for group in names}
        inventory = {"all": {"vars": self.variables | changes, "children": groups}}
        (self.folder / "inventory.yml").write_text(json.dumps(inventory))
        command = [Path(sys.executable).with_name("ansible-playbook"), "-i", self.folder / "inventory.yml"]
        return subprocess.Popen(
            [*command, self.folder / "playbooks" / book, "-e", "upgrade_poll=1", *options],
            env=os.environ | {"ANSIBLE_CONFIG": str(PLAYBOOKS.parent / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
            cwd=PLAYBOOKS.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *options, code=0, **changes):
        """What it said, on one line."""
        process = self.start(*options, **changes)
        text, _ = process.communicate(timeout=240)
        assert process.returncode == code, text[-4000:]
        return " ".join(text.split())

    def converged(self):
        return self.marks.read_text().splitlines() if self.marks.exists() else []


@pytest.fixture
def site(plane, tmp_path):
    return Site(plane, tmp_path)


def of_node(name):
    return [f"{name} {role}" for role in ("base", "node_health", "kubernetes_node")]


def test_each_node_is_drained_converged_and_given_back(site, api):
    """One after the other. A pod with GPUs is waited for, not evicted; a budget is honoured until it lets a pod go."""
    pod(api, "train", "gpu-1", GPU)
    labels = {"app": "web"}
    budget = {"selector": {"matchLabels": labels}, "minAvailable": 1}
    api.call(
        "POST",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"metadata": {"name": "web"}, "spec": budget},
    )
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    template["spec"]["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [on("gpu-1")]}}
    api.call("POST", "/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "web"}, "spec": spec})
    wait_for(lambda: running(api, "web") == ["gpu-1", "gpu-1"], 60, "the service's pods")
    least, ended = [2], threading.Event()

    def look():
        while not ended.wait(0.1):
            least.append(len(running(api, "web")))

    watcher = threading.Thread(target=look)
    watcher.start()
    process = site.start()
    try:
        wait_for(lambda: node(api, "gpu-1")[0], 120, "the cordon")
        wait_for(lambda: running(api, "web") == ["gpu-2", "gpu-2"], 120, "both pods on the other node")
        assert node(api, "gpu-1") == (True, "ironburst converge: playbooks/upgrade.yml")
        assert api.call("GET", f"{SPACE}/pods/train")["status"]["phase"] == "Running"
        assert site.converged() == [] and process.poll() is None
        end(api, "train")
        text, _ = process.communicate(timeout=240)
    finally:
        ended.set()
        watcher.join()
        process.kill()
    assert process.returncode == 0, text[-4000:]
    assert min(least) >= 1  # the budget
    assert site.converged() == of_node("gpu-1") + of_node("gpu-2")
    assert node(api, "gpu-1") == node(api, "gpu-2") == (False, None)


def on(name):
    return {
        "weight": 100,
        "preference": {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}]},
    }


def running(api, app):
    """Nodes of the pods of a service that run and aren't going."""
    pods = api.call("GET", f"{SPACE}/pods?labelSelector=app%3D{app}")["items"]
    return sorted(
        pod["spec"]["nodeName"]
        for pod in pods
        if pod["status"]["phase"] == "Running" and not pod["metadata"].get("deletionTimestamp")
    )


def test_a_bad_node_stays_out_and_the_next_is_not_begun(site, api):
    said = site.run(code=2, bad_nodes=["gpu-1"])
    assert "gpu-1 takes no jobs: 7 of 8 GPUs" in said
    assert node(api, "gpu-1") == (True, "ironburst converge: playbooks/upgrade.yml")
    assert node(api, "gpu-2") == (False, None) and not any("gpu-2" in mark for mark in site.converged())
    site.run("--limit", "gpu-1")  # repaired: the next call goes on with it
    assert node(api, "gpu-1") == (False, None)


def test_pods_that_do_not_end_keep_their_node_and_it_takes_pods_again(site, api):
    pod(api, "train", "gpu-1", GPU)
    said = site.run("-e", "upgrade_wait=2", code=2)
    assert "gpu-1: its pods did not end in 2 s, it takes pods again: upgrade it later" in said
    assert node(api, "gpu-1") == (False, None) and site.converged() == []
    assert api.call("GET", f"{SPACE}/pods/train")["status"]["phase"] == "Running"


def test_somebody_elses_cordon_stays(site, api):
    api.call("PATCH", "/api/v1/nodes/gpu-2", {"spec": {"unschedulable": True}})
    site.run("--limit", "gpu-2")
    assert node(api, "gpu-2") == (True, None) and site.converged() == of_node("gpu-2")


@pytest.mark.parametrize(
    ("kubelet", "words"),
    [
        ("1.37", "a kubelet is never newer than it, so upgrade the control plane first; nothing was changed"),
        ("1.32.9", "a kubelet is at most three minor versions older, so declare a newer software.kubernetes"),
    ],
)
def test_a_version_that_the_api_server_does_not_take_is_refused_before_the_drain(site, api, kubelet, words):
    said = site.run(code=2, node_software={"kubernetes": kubelet, "packages": {"kubernetes_node": []}})
    assert f"gpu-1 would get kubelet {kubelet}, and the API server is v1.36.3: {words}" in said
    assert node(api, "gpu-1") == (False, None) and site.converged() == []


@pytest.mark.parametrize("kubelet", ["1.33", "1.36.9"])
def test_versions_that_it_takes(site, api, kubelet):
    software = {"kubernetes": kubelet, "packages": {"kubernetes_node": []}}
    site.run("--check", "--limit", "gpu-1", node_software=software)
    assert node(api, "gpu-1") == (False, None) and site.converged() == []


def test_a_node_that_its_cluster_had_before_keeps_its_containerd(site, api):
    base = site.folder / "playbooks/roles/base/tasks/main.yml"
    seen = "{'kubelet': 'adopted', 'packages': []}"
    fact = f'---\n- name: As it looks\n  ansible.builtin.set_fact: {{node_seen: "{{{{ {seen} }}}}", cacheable: true}}\n'
    base.write_text(fact)
    (site.folder / "playbooks/roles/kubernetes_node/tasks/program.yml").write_text("---\n[]\n")
    site.run("--limit", "gpu-1")
    assert site.converged() == ["gpu-1 node_health", "gpu-1 kubernetes_node"]


def test_the_fabric_is_not_stressed_under_a_pod(site, api):
    pod(api, "train", "gpu-1", GPU)
    said = site.run("--tags", "stress", book="fabric.yml", code=2)
    assert "gpu-1: default/train run on it: drain it, or leave it out with --limit" in said
    end(api, "train")
    site.run("--tags", "stress", book="fabric.yml")
    assert "gpu-1 mlx5_0" in site.converged()
