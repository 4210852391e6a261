"""The last task of image.yml: what a build host leaves behind on its disk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.playbooks.contract import PLAYBOOKS, load

SCRIPT, CHECK = PLAYBOOKS / "files/forget_host.sh", PLAYBOOKS / "files/check_image.sh"
KEY = "-----BEGIN EC PRIVATE KEY-----"
GONE = [
    "etc/ssh/ssh_host_ed25519_key",
    "etc/ssh/ssh_host_rsa_key.pub",
    "etc/munge/munge.key",
    "etc/ironburst/node.env",
    "etc/ironburst/cluster.json",
    "etc/kubernetes/kubelet.conf",
    "etc/kubernetes/bootstrap-kubelet.conf",
    "var/lib/kubelet/pki/kubelet-client-current.pem",
    "etc/netplan/50-cloud-init.yaml",
    "var/lib/systemd/random-seed",
    "var/lib/dbus/machine-id",
    "var/lib/cloud/data/instance-id",
    "var/lib/cloud/instances/i-1/user-data.txt",
    "var/log/journal/0123/system.journal",
    "root/.ssh/authorized_keys",
    "root/.ansible/tmp/x",
    "root/.bash_history",
    "home/ubuntu/.ssh/authorized_keys",
    "home/ubuntu/.ansible/tmp/y",
    "tmp/left",
    "var/tmp/left/deeper",
    "var/cache/apt/archives/slurmd_1_amd64.deb",
]
KEPT = [
    "etc/ssh/sshd_config",
    "etc/ironburst/gate.json",
    "usr/bin/slurmd",
    "home/ubuntu/.profile",
    "var/lib/cloud/seed/nocloud/meta-data",
    "tmp/systemd-private-1/tmp/x",
]
EMPTIED = ["etc/machine-id", "var/log/cloud-init-output.log", "var/log/apt/history.log"]


def test_nothing_of_one_machine_stays(tmp_path):
    for name in GONE + KEPT + EMPTIED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("of this machine")
    subprocess.run(["sh", str(SCRIPT), str(tmp_path)], check=True)
    left = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == dict.fromkeys(KEPT, "of this machine") | dict.fromkeys(EMPTIED, "")


def test_a_disk_that_has_little_of_it_is_fine(tmp_path):
    (tmp_path / "etc").mkdir()
    subprocess.run(["sh", str(SCRIPT), str(tmp_path)], check=True)
    assert (tmp_path / "etc/machine-id").read_text() == ""


def test_it_is_the_last_that_a_bake_does_and_then_its_disk_is_checked():
    last = load(PLAYBOOKS / "image.yml")[-1]
    forget, check, answer = last["tasks"]
    assert last["hosts"] == "image" and "forget_host.sh" in forget["ansible.builtin.raw"]
    assert (
        "check_image.sh" in check["ansible.builtin.raw"]
        and check["register"] in answer["ansible.builtin.assert"]["that"]
    )


def checked(root):
    done = subprocess.run(["sh", str(CHECK), str(root)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    return sorted(done.stdout.splitlines())


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("etc/kubernetes/pki/ca.key", KEY, "a private key"),
        ("etc/kubernetes/kubelet.conf", "x", "a way into a Kubernetes cluster"),
        ("etc/kubernetes/bootstrap-kubelet.conf", "x", "a way into a Kubernetes cluster"),
        ("etc/kubernetes/controller-manager.conf", "    client-key-data: LS0t", "a token or key of a cluster"),
        ("etc/cni/net.d/calico-kubeconfig", "    token: eyJhbGciOi", "a token or key of a cluster"),
        ("etc/kubernetes/join.sh", "kubeadm join 10.0.0.5 --token abcdef.0123456789abcdef", "a bootstrap token"),
        ("var/lib/kubelet/pki/kubelet-client-current.pem", KEY, "a private key"),
        ("var/lib/kubelet/pods/1/volumes/token/token", '{"token": "ey"}', "a token or key of a cluster"),
        ("etc/munge/munge.key", "x", "the key of munge"),
        ("etc/ssh/ssh_host_ed25519_key", "x", "a host key"),
        ("root/.kube/config", "x", "somebody's own"),
        ("home/ubuntu/.aws/credentials", "x", "somebody's own"),
        ("home/ubuntu/.docker/config.json", '{"auths": {"r": {"auth": "eDp5"}}}', "a password of a registry"),
        ("home/ubuntu/deploy.sh", "export AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", "a key of AWS"),
        ("etc/machine-id", "0123456789abcdef\n", "this machine's own id"),
    ],
)
def test_a_disk_with_credentials_is_no_image(tmp_path, name, text, reason):
    for path in (*KEPT, "etc/machine-id"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / "etc/kubernetes").mkdir()
    (tmp_path / "etc/kubernetes/kubelet.yaml").write_text("rotateCertificates: true\nclientCAFile: /etc/ca.crt\n")
    assert checked(tmp_path) == []
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    assert checked(tmp_path) == [f"/{name}: {reason}"]


def test_what_the_roles_put_into_an_image_is_no_credential(tmp_path):
    """Their programs and settings, and what is forgotten."""
    for role, folder in (("kubernetes_node", "files"), ("cloud_node", "files"), ("node_health", "files")):
        for path in (PLAYBOOKS / "roles" / role / folder).glob("*.*"):
            (tmp_path / "etc/ironburst").mkdir(parents=True, exist_ok=True)
            (tmp_path / "etc/ironburst" / path.name).write_text(path.read_text())
    for name in GONE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(KEY)
    assert len(checked(tmp_path)) > 5
    subprocess.run(["sh", str(SCRIPT), str(tmp_path)], check=True)
    assert checked(tmp_path) == []


@pytest.mark.parametrize(
    ("kubelet", "files", "sentence"),
    [
        ("Kubernetes v1.36.3", ["loopback"], ""),
        ("Kubernetes v1.35.1", ["loopback"], "image-p5 lacks kubelet 1.36 (it has Kubernetes v1.35.1): look at"),
        ("", [], "image-p5 lacks kubelet 1.36 (it has none), CNI/loopback (package kubernetes-cni): look at"),
    ],
)
def test_an_image_without_what_a_node_of_kubernetes_needs_is_refused(tmp_path, kubelet, files, sentence):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, said in (("kubelet", kubelet), ("containerd", "containerd 2.1")):
        if said:
            (programs / name).write_text(f"#!/bin/sh\necho {said}\n")
            (programs / name).chmod(0o755)
    for name in files:
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    variables = {"node_software": {"kubernetes": "1.36", "packages": {}}, "kubernetes_node_cni": str(tmp_path)}
    role = {"include_role": {"name": str(PLAYBOOKS / "roles/kubernetes_node"), "tasks_from": "image"}}
    play = {"hosts": "image-p5", "connection": "local", "gather_facts": False, "vars": variables, "tasks": [role]}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    done = subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), "-i", "image-p5,", tmp_path / "play.yml"],
        env=os.environ | {"PATH": f"{programs}:/usr/bin:/bin", "ANSIBLE_PYTHON_INTERPRETER": sys.executable},
        cwd=PLAYBOOKS.parent,
        capture_output=True,
        text=True,
    )
    said = " ".join((done.stdout + done.stderr).split()).replace(str(tmp_path), "CNI")
    assert (done.returncode == 0) is (not sentence) and sentence in said, said
