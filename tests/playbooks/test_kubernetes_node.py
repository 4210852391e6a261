"""What the role kubernetes_node makes of the document, the lock and what a host shows, templated by Ansible itself."""

import json
import re

import jinja2
import pytest
import templated
import yaml
from contract import tasks_of
from programs import PLAYBOOKS

from ironburst.adapters.kubernetes import site

ROLE = PLAYBOOKS / "roles/kubernetes_node"
SCHEDULER = {
    "kind": "kubernetes",
    "api_server": "https://10.0.0.5:6443",
    "ca": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    "cluster_dns": "10.96.0.10",
    "cluster_domain": "cluster.local",
    "shared_filesystem": "",
}


def value(name, role="kubernetes_node", found="", **changes):
    """Variable `name` of a role, where the host's kubelet is `found`."""
    packages = {"kubernetes_node": ["kubelet=1.36.*"], "container_runtime": ["containerd"], "slurm_node": []}
    variables = {
        "inventory_hostname": "gpu01",
        "group_names": ["base", "container_runtime", "kubernetes_node"],
        "node_kind": "bare_metal",
        "node_software": {"kubernetes": "1.36", "packages": packages},
        "cluster_scheduler": SCHEDULER,
        "cluster_burst": {"folders": None},
        "ansible_facts": {"node_seen": {"kubelet": found}},
        "ansible_search_path": [str(PLAYBOOKS / "roles" / role)],
    }
    return templated.value(role, name, variables, changes)


def test_settings_of_kubelet_are_closed_to_strangers():
    settings = value("kubernetes_node_kubelet")
    assert settings["authentication"]["anonymous"] == {"enabled": False}
    assert settings["authorization"] == {"mode": "Webhook"}
    assert settings["clusterDNS"] == ["10.96.0.10"] and settings["clusterDomain"] == "cluster.local"
    assert settings["rotateCertificates"] is True and settings["cgroupDriver"] == "systemd"
    assert "readOnlyPort" not in settings and "staticPodPath" not in settings


def test_a_rented_node_registers_behind_the_controllers_taint():
    assert "registerWithTaints" not in value("kubernetes_node_kubelet")
    taints = value("kubernetes_node_kubelet", kubernetes_node_rented=True)["registerWithTaints"]
    assert taints == [{"key": site.NOT_READY, "effect": "NoSchedule"}]


def test_more_settings_come_from_the_inventory_and_leave_the_rest():
    more = {"maxPods": 64, "authentication": {"webhook": {"cacheTTL": "1m"}}}
    settings = value("kubernetes_node_kubelet", kubernetes_node_settings=more)
    assert settings["maxPods"] == 64
    assert settings["authentication"]["webhook"] == {"enabled": True, "cacheTTL": "1m"}
    assert settings["authentication"]["anonymous"] == {"enabled": False}


@pytest.mark.parametrize(("found", "adopted"), [("own", False), ("adopted", True), ("", False)])
def test_a_node_of_another_hand_is_adopted(found, adopted):
    assert value("kubernetes_node_adopted", found=found) is adopted


def test_an_adopted_node_gets_no_task_that_touches_kubelet():
    """But for those that read, and those of our own program and its timer."""
    touching = {
        "Settings of kubelet",
        "Packages of the node",
        "The node runs with its present settings",
        "What kubelet asks for its certificate with",
    }
    conditions = {}
    for task in tasks_of(ROLE / "tasks/main.yml"):
        conditions[task.raw["name"]] = json.dumps(task.raw.get("when", ""))
    for name in touching:
        assert "not kubernetes_node_adopted" in conditions[name] or "node_seen.kubelet" in conditions[name], name
    live = {
        entry["path"] for entry in yaml.safe_load((ROLE / "vars/main.yml").read_text())["kubernetes_node_own_files"]
    }
    assert not any("kubelet.service.d" in path or "/etc/kubernetes" in path for path in live)


@pytest.mark.parametrize(
    ("found", "installed", "roles"),
    [
        ("adopted", [], ["kubernetes_node"]),
        ("own", ["containerd", "kubelet=1.36.*"], ["container_runtime", "kubernetes_node"]),
        ("", ["containerd", "kubelet=1.36.*"], ["container_runtime", "kubernetes_node"]),
    ],
)
def test_the_site_leaves_the_runtime_of_an_adopted_node_alone(found, installed, roles):
    play = yaml.safe_load((PLAYBOOKS / "site.yml").read_text())[0]
    variables = templated.trusted(play["vars"])
    variables["packages_lines"] = ["x|1|installed|install"]
    assert sorted(value("site_packages", found=found, **variables)) == sorted(installed)
    loop = next(task["loop"] for task in play["tasks"] if "site_role" in json.dumps(task.get("loop_control", "")))
    assert value(loop.strip("{} "), found=found, **variables) == roles


def test_where_bad_gpus_are_tainted_kubelet_starts_behind_a_failed_gate_too():
    scheduler = {"cluster_scheduler": {"device_taints": True}, "kubernetes_node_rented": False}
    assert "ironburst-gate.service" not in value("kubernetes_node_needs", group_names=[], **scheduler)
    assert value("kubernetes_node_wants", **scheduler) == " ironburst-gate.service"


def test_packages_are_held_by_their_names():
    for specs in (["kubelet=1.36.*"], ["kubelet-1.36.*"], ["kubelet-1.36.3-*"]):
        software = {"kubernetes": "1.36", "packages": {"kubernetes_node": specs}}
        assert value("kubernetes_node_hold", node_software=software) == ["kubelet"]


@pytest.mark.parametrize("rented", [True, False])
def test_kubelet_starts_after_its_gate_and_a_rented_one_that_can_not_ends_its_node(rented):
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    changes = {"kubernetes_node_rented": rented, "node_kind": "cloud" if rented else "bare_metal"}
    needs = value("kubernetes_node_needs", group_names=["data_sets"], **changes)
    flags = value("kubernetes_node_flags", **changes)
    values = {"kubernetes_node_rented": rented, "kubernetes_node_needs": needs, "kubernetes_node_flags": flags}
    values["kubernetes_node_wants"] = value("kubernetes_node_wants", **changes)
    unit = environment.from_string((ROLE / "templates/kubelet.service.j2").read_text()).render(values)
    wanted = {"ironburst-gate.service", "ironburst-data.service"}
    wanted |= {"ironburst-metadata.service", "ironburst-join.service"} if rented else set()
    assert set(re.search(r"^Requires=(.*)$", unit, re.MULTILINE)[1].split()) == wanted
    assert wanted | {"containerd.service"} == set(re.search(r"^After=(.*)$", unit, re.MULTILINE)[1].split())
    assert ("OnFailure=ironburst-join-failed.service" in unit) is rented
    assert "containerd" not in re.search(r"^Requires=(.*)$", unit, re.MULTILINE)[1]  # its restart is not kubelet's
    starts = re.findall(r"^ExecStart=(.*(?:\\\n.*)*)$", unit, re.MULTILINE)
    assert starts[0] == "" and len(starts) == 2  # the package's own is taken away
    assert " --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --hostname-override=" in unit


ON_EKS = {
    "cluster_scheduler": {**SCHEDULER, "eks": "ironburst-lab"},
    "cluster_region": "us-east-1",
    "node_kind": "cloud",
    "node_instance_id": "i-0abc",
    "node_object": "i-0abc",
    "node_zone": "us-east-1a",
    "node_address": "10.90.1.4",
}


def files_of(**changes):
    """Path -> content of the files that kubelet's settings are."""
    return {each["path"]: each.get("content") for each in value("kubernetes_node_files", **changes)}


def test_on_eks_a_node_signs_in_by_its_role_under_its_instances_id():
    files, own = files_of(**ON_EKS), value("kubernetes_node_cluster_files", **ON_EKS)
    (user,) = json.loads(files["/etc/kubernetes/kubelet.conf"])["users"]
    assert user["user"]["exec"]["command"] == "/usr/local/sbin/ironburst-eks"
    env = files["/etc/ironburst/node.env"].splitlines()
    assert env[0] == "IRONBURST_NODE=i-0abc"
    assert env[1] == "IRONBURST_NODE_LABELS=ironburst.io/node=gpu01,ironburst.io/site=home"
    known = json.loads(next(each["content"] for each in own if each["path"].endswith("cluster.json")))
    assert known == {
        "node": "i-0abc",
        "api_server": SCHEDULER["api_server"],
        "eks": "ironburst-lab",
        "region": "us-east-1",
    }


def test_on_eks_there_is_no_certificate_to_ask_for_or_renew():
    """EKS signs none for clients: a kubelet that asks waits for ever."""
    settings, flags = value("kubernetes_node_kubelet", **ON_EKS), value("kubernetes_node_flags", **ON_EKS)
    assert settings["rotateCertificates"] is False
    assert "--cloud-provider=external" in flags
    env = files_of(**ON_EKS)["/etc/ironburst/node.env"].splitlines()[2:]
    assert env == ["IRONBURST_PROVIDER_ID=aws:///us-east-1a/i-0abc", "IRONBURST_NODE_IP=10.90.1.4"]
    assert "--provider-id=${IRONBURST_PROVIDER_ID}" in flags and "--node-ip=${IRONBURST_NODE_IP}" in flags
    assert not [flag for flag in flags if "bootstrap" in flag]
    (task,) = [each for each in tasks_of(ROLE / "tasks/main.yml") if each.raw["name"].startswith("What kubelet asks")]
    assert "kubernetes_node_eks" in task.raw["when"]
    provider = json.loads(files_of(**ON_EKS)["/etc/ironburst/image-credentials.yaml"])["providers"][0]
    assert "--image-credential-provider-bin-dir=/usr/local/sbin" in flags and provider["name"] == "ironburst-eks"


def test_an_image_of_eks_holds_nothing_of_one_instance():
    """It is baked before there is one; ironburst-join writes the rest at boot."""
    given = {key: value for key, value in ON_EKS.items() if not key.startswith("node_") or key == "node_kind"}
    files = files_of(**given, kubernetes_node_rented=True)
    assert "/etc/ironburst/image-credentials.yaml" in files
    assert not {"/etc/kubernetes/kubelet.conf", "/etc/ironburst/node.env"} & files.keys()
    settings = value("kubernetes_node_kubelet", **given, kubernetes_node_rented=True)
    assert settings["registerWithTaints"] == [{"key": site.NOT_READY, "effect": "NoSchedule"}]
    names = {each["path"] for each in value("cloud_node_eks_files", role="cloud_node", **given)}
    assert names == {"/usr/local/sbin/ironburst-eks"}


def test_elsewhere_nothing_of_eks_is_written():
    assert (
        files_of()["/etc/ironburst/node.env"] == "IRONBURST_NODE=gpu01\nIRONBURST_NODE_LABELS=ironburst.io/site=home\n"
    )
    assert not [
        path for path in files_of() if path in ("/etc/kubernetes/kubelet.conf", "/etc/ironburst/image-credentials.yaml")
    ]
    assert value("kubernetes_node_name") == "gpu01" and "providerID" not in value("kubernetes_node_kubelet")
    assert "ironburst.io/node" not in files_of()["/etc/ironburst/node.env"]
    assert value("cloud_node_packages", role="cloud_node", cloud_node_rented=False) == ["nftables"]
    assert "python3-boto3" in value("cloud_node_packages", role="cloud_node", cloud_node_rented=False, **ON_EKS)


def test_the_gate_asks_for_no_shared_folder_where_there_is_none():
    assert value("node_health_mounts", role="node_health") == []
    shared = {**SCHEDULER, "shared_filesystem": "/shared"}
    assert value("node_health_mounts", role="node_health", cluster_scheduler=shared) == ["/shared"]


def test_the_gate_of_a_rented_node_asks_for_each_folder_that_jobs_are_promised():
    """Homes, mostly: without the mount a job of alice's would start with an empty $HOME."""
    site = {"cluster_scheduler": {**SCHEDULER, "shared_filesystem": "/shared"}}
    site["cluster_burst"] = {"folders": ["/shared", "/shared/projects", "/home/"]}
    assert value("node_health_mounts", role="node_health", image_build=True, **site) == ["/shared", "/home"]
    assert value("node_health_mounts", role="node_health", **site) == ["/shared"]  # not at home


@pytest.mark.parametrize("kubelet", ["", "ours", "adopted"])
def test_the_roles_of_a_host_run_in_the_declared_order(kubelet):
    """slurmd needs the gate's unit, that needs the driver's; Ansible's `difference` keeps no order."""
    (play, *_) = yaml.safe_load((PLAYBOOKS / "site.yml").read_text())
    roles = play["vars"]["site_roles"]
    (task,) = [each for each in play["tasks"] if each["name"] == "Roles of this host"]
    known = {"group_names": sorted(roles), "ansible_facts": {"node_seen": {"kubelet": kubelet, "packages": []}}}
    given = templated.trusted(play["vars"])
    looped = templated.expression(task["loop"], given | known)
    assert looped == [role for role in roles if role != "container_runtime" or kubelet != "adopted"]


@pytest.mark.parametrize(("gpu", "count"), [(None, 0), ({"model": "H100", "count": 8}, 8)])
def test_a_node_may_have_no_gpus(gpu, count):
    assert value("kubernetes_node_gpus", node_gpu=gpu) == count
