"""What the role kubernetes_head gives to kubeadm, judged by the real one where it is built; the program that looks
after the control plane; and how nodes come to their token.
"""

import json
import os
import subprocess
import tarfile
import time

import pytest
import templated
import yaml
from contract import tasks_of
from programs import PLAYBOOKS, load

from lab.kubernetes import binaries
from tests.pki import issue

ROLES = PLAYBOOKS / "roles"
real = pytest.mark.skipif(not binaries.kubeadm_built(), reason="no real kubeadm: python -m lab.kubernetes kubeadm")
PACKAGES = ["kubeadm=1.36.*", "kubelet=1.36.*", "kubectl=1.36.*", "cri-tools"]
CONTROL_PLANE = {
    "head": "kube1",
    "head_address": "10.0.0.5",
    "pod_cidr": "10.244.0.0/16",
    "service_cidr": "10.96.0.0/12",
    "cni": None,
    "image_repository": "",
}
SCHEDULER = {
    "kind": "kubernetes",
    "control_plane": CONTROL_PLANE,
    "api_server": "https://10.0.0.5:6443",
    "ca": "",
    "cluster_dns": "10.96.0.10",
    "cluster_domain": "cluster.local",
    "shared_filesystem": "",
}


def value(name, role="kubernetes_head", found="", **changes):
    """Variable `name` of a role on a host whose kubelet is `found`."""
    packages = {"kubernetes_head": PACKAGES, "kubernetes_node": ["kubelet=1.36.*"], "container_runtime": ["containerd"]}
    variables = {
        "inventory_hostname": "kube1",
        "group_names": ["base", "container_runtime", role],
        "node_kind": "bare_metal",
        "node_software": {"kubernetes": "1.36", "packages": packages},
        "cluster_scheduler": SCHEDULER,
        "cluster_name": "prod",
        "ansible_facts": {"node_seen": {"kubelet": found}},
        "kubernetes_head_kubeadm": {"stdout": f"v{binaries.KUBERNETES}"},
        "role_path": str(ROLES / role),
    }
    return templated.value(role, name, variables, changes)


def declared(**changes):
    return {"cluster_scheduler": {**SCHEDULER, **changes}}


def configuration(**changes):
    """The file as the role writes it."""
    return "---\n".join(
        yaml.safe_dump(json.loads(json.dumps(each))) for each in value("kubernetes_head_configuration", **changes)
    )


@pytest.fixture
def kubeadm(tmp_path):
    """Runs the real one with a configuration: (status, what it said). `pki`: its folder of certificates."""

    def run(*words, text):
        path = tmp_path / "kubeadm.yaml"
        documents = list(yaml.safe_load_all(text))
        documents[1]["certificatesDir"] = str(tmp_path / "pki")
        path.write_text(yaml.safe_dump_all(documents))
        program = binaries.kubeadm() / binaries.KUBEADM.name
        command = [str(program), *words, f"--config={path}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    run.pki = tmp_path / "pki"
    return run


@real
@pytest.mark.parametrize(
    "changes",
    [
        {},
        declared(control_plane={**CONTROL_PLANE, "image_repository": "registry.example.org:5000/k8s"}),
        declared(api_server="https://k8s.example.org"),
        {
            "kubernetes_head_settings": {
                "KubeProxyConfiguration": {"mode": "nftables"},
                "InitConfiguration": {"skipPhases": ["addon/kube-proxy"]},
            }
        },
    ],
)
def test_kubeadm_takes_the_configuration_as_it_is(kubeadm, changes):
    assert kubeadm("config", "validate", text=configuration(**changes)) == (0, "ok\n")


@real
@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        ("pod_cidr", "10.0.0.0/7", "difference is greater than 16"),
        ("pod_cidr", "10.244.0.0/25", "is smaller than the size of node subnet"),
        ("service_cidr", "10.96.0.0/11", "service subnet is too large"),
        ("service_cidr", "10.96.0.0/29", "is too small"),
    ],
)
def test_kubeadm_refuses_the_networks_that_a_stack_may_not_declare(kubeadm, key, given, words):
    """config/checks/control_plane.py says it before; here is why."""
    text = configuration(**declared(control_plane={**CONTROL_PLANE, key: given}))
    code, said = kubeadm("config", "validate", text=text)
    assert code != 0 and words in said


@real
def test_what_is_misspelt_in_the_settings_is_refused_by_kubeadm(kubeadm):
    settings = {"ClusterConfiguration": {"networking": {"podSubnets": "10.0.0.0/16"}}}
    code, said = kubeadm("config", "validate", text=configuration(kubernetes_head_settings=settings))
    assert code != 0 and 'unknown field "networking.podSubnets"' in said


@real
def test_certificates_name_the_head_and_an_authority_that_lies_there_is_taken(kubeadm):
    authority = issue("the site's own", ca=True)
    kubeadm.pki.mkdir()
    (kubeadm.pki / "ca.crt").write_text(authority.pem)
    (kubeadm.pki / "ca.key").write_text(authority.key_pem)
    text = configuration(**declared(api_server="https://k8s.example.org:6443"))
    code, said = kubeadm("init", "phase", "certs", "all", text=text)
    assert code == 0 and "Using existing ca certificate authority" in said
    assert (kubeadm.pki / "ca.crt").read_text() == authority.pem
    (line,) = [line for line in said.splitlines() if "apiserver serving cert" in line]
    assert all(name in line for name in ("k8s.example.org", "kube1", "10.0.0.5", "10.96.0.1"))


def test_the_configuration_says_what_is_declared_and_asks_no_internet():
    init, cluster, kubelet = value("kubernetes_head_configuration")
    assert init["localAPIEndpoint"] == {"advertiseAddress": "10.0.0.5", "bindPort": 6443}
    assert cluster["kubernetesVersion"] == f"v{binaries.KUBERNETES}"  # without: asked of the internet
    assert cluster["controlPlaneEndpoint"] == "10.0.0.5:6443" and "imageRepository" not in cluster
    assert cluster["networking"] == {
        "podSubnet": "10.244.0.0/16",
        "serviceSubnet": "10.96.0.0/12",
        "dnsDomain": "cluster.local",
    }
    assert kubelet["failSwapOn"] is False
    (token,) = init["bootstrapTokens"]
    assert token["ttl"] == "1m0s" and "token" not in token


def test_settings_go_over_what_the_role_writes_and_leave_the_rest():
    more = {
        "ClusterConfiguration": {
            "apiServer": {"extraArgs": [{"name": "v", "value": "3"}]},
            "networking": {"dnsDomain": "k.example.org"},
        }
    }
    _, cluster, _ = value("kubernetes_head_configuration", kubernetes_head_settings=more)
    assert cluster["apiServer"] == {"extraArgs": [{"name": "v", "value": "3"}]}
    assert cluster["networking"] == {
        "podSubnet": "10.244.0.0/16",
        "serviceSubnet": "10.96.0.0/12",
        "dnsDomain": "k.example.org",
    }


@pytest.mark.parametrize(
    ("image", "version", "running", "fits"),
    [
        ("r.example.org/kube-apiserver:v1.36.3", "1.36", "1.36.3", True),
        ("r.example.org/kube-apiserver:v1.36.3", "1.36.3", "1.36.3", True),
        ("r.example.org/kube-apiserver:v1.36.13", "1.36.1", "1.36.13", False),
        ("r.example.org/kube-apiserver:v1.3.6", "1.36", "1.3.6", False),
        ("r.example.org/else:1", "1.36", "", False),
    ],
)
def test_what_runs_is_read_from_its_manifest(image, version, running, fits):
    text = f"spec:\n  containers:\n  - image: {image}\n"
    encoded = subprocess.run(["base64", "-w0"], input=text.encode(), capture_output=True).stdout.decode()
    software = {"node_software": {"kubernetes": version, "packages": {"kubernetes_head": PACKAGES}}}
    seen = {"kubernetes_head_manifest": {"content": encoded}, **software}
    assert value("kubernetes_head_running", **seen) == running and value("kubernetes_head_fits", **seen) is fits


def test_all_packages_of_the_head_are_held():
    assert value("kubernetes_head_hold") == ["kubeadm", "kubelet", "kubectl", "cri-tools"]


def test_every_changing_task_leaves_an_adopted_control_plane_alone():
    """Each task of the role's stages that changes something, or includes what does, asks first whose it is."""
    stages = [ROLES / f"kubernetes_head/tasks/{stage}.yml" for stage in ("install", "configure", "runtime")]
    tasks = [task for file in stages for task in yaml.safe_load(file.read_text()) if "tags" in task]
    assert len(tasks) == 6
    for task in tasks:
        assert "kubernetes_head_state" in json.dumps(task["when"]), task["name"]


@pytest.mark.parametrize(
    ("changes", "found", "asks"),
    [
        ({}, "", True),
        ({}, "own", False),
        ({}, "adopted", False),
        ({"kubernetes_node_rented": True}, "", False),
        ({"kubernetes_node_bootstrap_token": "env:T"}, "", False),
        ({"cluster_scheduler": {**SCHEDULER, "control_plane": None}}, "", False),
        ({"cluster_scheduler": {key: given for key, given in SCHEDULER.items() if key != "control_plane"}}, "", False),
    ],
)
def test_a_node_asks_the_head_for_a_token_only_to_join(changes, found, asks):
    assert value("kubernetes_node_asks_head", role="kubernetes_node", found=found, **changes) is asks


def test_a_nodes_authority_is_the_declared_one_or_the_heads():
    files = 'kubernetes_node_cluster_files[0]["content"]'
    assert value(files, role="kubernetes_node", **declared(ca="DECLARED")) == "DECLARED"
    seen = {"kubernetes_node_authority": {"content": "SEVBRA=="}}
    assert value(files, role="kubernetes_node", **seen) == "HEAD"


def test_tokens_and_keys_are_never_logged():
    for role in ("kubernetes_head", "kubernetes_node"):
        for task in tasks_of(ROLES / role / "tasks" / "main.yml"):
            text = json.dumps(task.raw)
            if "token, create" in text or '"token", "create"' in text or "lookup('secret'" in text:
                assert task.raw.get("no_log") is True, task.where


# ---- the program


class Machine:
    """A head's disk, and stand-ins for crictl, kubeadm and kubectl that write down what they are asked."""

    def __init__(self, root, monkeypatch):
        self.root, self.log = root, root / "log"
        (root / "etc/kubernetes/manifests").mkdir(parents=True)
        (root / "etc/kubernetes/pki").mkdir()
        (root / "etc/kubernetes/pki/ca.key").write_text("KEY")
        (root / "etc/kubernetes/manifests/etcd.yaml").write_text("    - --data-dir=/var/lib/etcd\n")
        (root / "var/lib/etcd").mkdir(parents=True)
        self.left = {"apiserver": 300, "admin.conf": 200}
        self.tool("kubectl", "exit 0")
        snapshot = root / "var/lib/etcd/ironburst-snapshot.db"
        self.tool("crictl", f'case "$*" in *" ps "*) echo etcd-1;; *exec*) echo DATA > {snapshot};; esac')
        self.certificates()
        monkeypatch.setenv("PATH", f"{root}/bin:{os.environ['PATH']}")
        monkeypatch.setenv("IRONBURST_CONTROL_PLANE_ROOT", str(root))
        self.program = load("roles/kubernetes_head/files/ironburst-control-plane.py")

    def tool(self, name, body):
        path = self.root / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.log}\n{body}\n')
        path.chmod(0o755)

    def certificates(self):
        listed = [
            {"name": name, "residualTime": days * 86400, "missing": False, "externallyManaged": False}
            for name, days in self.left.items()
        ]
        listed.append({"name": "super-admin.conf", "residualTime": 0, "missing": True, "externallyManaged": False})
        answer = json.dumps({"certificates": listed, "certificateAuthorities": []})
        self.tool("kubeadm", f"echo '[check-expiration] Reading configuration'\necho '{answer}'")

    def run(self, *words):
        return self.program.main([str(word) for word in words])


@pytest.fixture
def machine(tmp_path, monkeypatch):
    return Machine(tmp_path, monkeypatch)


def test_a_backup_is_one_file_for_root_alone_and_the_newest_are_kept(machine, tmp_path, capsys):
    folder = tmp_path / "backups"
    folder.mkdir()
    for day in range(1, 5):
        (folder / f"control-plane-2026010{day}T000000Z.tar").write_text("old")
    assert machine.run("backup", f"--folder={folder}", "--keep=3") == 0, capsys.readouterr()
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 3 and names[:2] == ["control-plane-20260103T000000Z.tar", "control-plane-20260104T000000Z.tar"]
    newest = folder / names[2]
    assert newest.stat().st_mode & 0o777 == 0o600
    with tarfile.open(newest) as tar:
        assert tar.extractfile("etcd-snapshot.db").read() == b"DATA\n"
        assert tar.extractfile("etc/kubernetes/pki/ca.key").read() == b"KEY"
    assert not list((tmp_path / "var/lib/etcd").iterdir())


def test_a_backup_that_fails_leaves_nothing_and_keeps_the_old_ones(machine, tmp_path, capsys):
    folder = tmp_path / "backups"
    folder.mkdir()
    (folder / "control-plane-20260101T000000Z.tar").write_text("old")
    machine.tool(
        "crictl", 'case "$*" in *" ps "*) echo etcd-1;; *) echo "context deadline exceeded" >&2; exit 1;; esac'
    )
    assert machine.run("backup", f"--folder={folder}", "--keep=1") == 1
    assert "crictl says: context deadline exceeded" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["control-plane-20260101T000000Z.tar"]
    machine.tool("crictl", "exit 0")
    assert machine.run("backup", f"--folder={folder}", "--keep=1") == 1
    assert "no etcd runs here" in capsys.readouterr().err


def test_certificates_are_renewed_only_when_one_ends_soon(machine, capsys):
    assert machine.run("renew", "--days=90") == 0
    assert "nothing to renew: admin.conf is the first to end, in 200 days" in capsys.readouterr().out
    assert "renew all" not in machine.log.read_text()
    machine.left["apiserver"] = 20
    machine.certificates()
    # a pod is another one after it was taken away
    gone = machine.root / "gone"
    machine.tool(
        "crictl",
        f'case "$*" in *rmp*) touch {gone};; *) [ -e {gone} ] && {{ echo new; rm {gone}; }} || echo old;; esac',
    )
    assert machine.run("renew", "--days=90") == 0, capsys.readouterr()
    log = machine.log.read_text()
    assert "kubeadm certs renew all" in log and log.count("rmp --force old") == 4
    assert log.index("component=etcd") < log.index("component=kube-apiserver") < log.index("component=kube-scheduler")


def test_what_is_wrong_is_said_in_one_sentence(machine, tmp_path, capsys):
    folder = tmp_path / "backups"
    folder.mkdir()
    assert machine.run("check", f"--folder={folder}") == 1
    assert "there is no backup of the last two days in" in capsys.readouterr().err
    backup = folder / "control-plane-20260101T000000Z.tar"
    backup.write_text("")
    assert machine.run("check", f"--folder={folder}") == 0
    os.utime(backup, (time.time() - 3 * 86400,) * 2)
    assert machine.run("check", f"--folder={folder}") == 1
    machine.left["apiserver"] = 20
    machine.certificates()
    assert machine.run("check", f"--folder={folder}") == 1
    assert "certificates end within 30 days: apiserver;" in capsys.readouterr().err
    machine.tool("kubeadm", "echo broken >&2; exit 1")
    assert machine.run("check", f"--folder={folder}") == 1
    assert "kubeadm says: broken" in capsys.readouterr().err
