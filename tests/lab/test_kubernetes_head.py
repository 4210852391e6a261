"""A cluster that is made here, on real hosts: real systemd, containerd, Ansible and kubeadm, which makes a real control
plane (etcd, API server, scheduler, controller manager), which approves the node that joins. kubelet is a stand-in that
runs static pods as services: the hosts' control groups have no cpu, memory and pids, which a real one needs (kubeadm's
own preflight says so, and is told to go on here), and no image can be pulled.
"""

import json
import os
import re
import subprocess

import pytest

from ironburst.document import build_scheduler
from lab import names
from lab.demo.inside import Inside
from lab.kubernetes import binaries
from tests import sites
from tests.playbooks import sample

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (binaries.built() and binaries.kubeadm_built()),
        reason="the real programs aren't built: make kubernetes, and python -m lab.kubernetes kubeadm",
    ),
]
GATE = """[Unit]
Description=A gate that passes, in the place of the role node_health's
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
"""
GATE_PROGRAM = """#!/bin/sh
echo '{"passed": true, "findings": [{"passed": true, "text": "nothing is looked at here"}]}'
"""
CNI = """apiVersion: v1
kind: ConfigMap
metadata: {name: pod-network, namespace: kube-system}
data: {of: "a manifest of the site's choice"}
"""
KUBECTL = "kubectl --kubeconfig /etc/kubernetes/admin.conf "
BACKUPS = "/var/backups/ironburst-kubernetes"
# Of the lab: see above. An upgrade asks for a Job that ends, and nothing runs it here
NOT_HERE = ["SystemVerification", "ImagePull", "CreateJob"]


@pytest.fixture(scope="module")
def site():
    with sites.running(f"t-khead-{os.getpid()}", "head", "dgx01") as site:
        programs = site.dir / "shared" / "kubernetes"
        programs.mkdir(parents=True)
        for program in (*binaries.folder().iterdir(), *binaries.kubeadm().iterdir()):
            os.link(program, programs / program.name)
        yield site


@pytest.fixture(scope="module")
def inside(site):
    inside = Inside(site)
    inside.cni = site.dir / "run" / "cni.yaml"
    inside.cni.write_text(CNI)
    declare(inside)
    site.ssh("dgx01", "cat > /etc/systemd/system/ironburst-gate.service", stdin=GATE)
    program = "/usr/local/sbin/ironburst-gate"
    site.ssh("dgx01", f"cat > {program}; chmod 755 {program}", stdin=GATE_PROGRAM)
    return inside


def declare(inside, kubernetes="1.36", sha256=None):
    """Publish the document of a cluster that is made on the head, with one node."""
    document = sample.lab_document(names=("head", "dgx01")).model_dump(mode="json")
    head, node = document["hosts"]
    of_head = [f"{name}={kubernetes}.*" for name in ("kubeadm", "kubelet", "kubectl")] + ["cri-tools"]
    roles = {"kubernetes_head": (head, of_head), "kubernetes_node": (node, [f"kubelet={kubernetes}.*"])}
    for role, (host, packages) in roles.items():
        host["roles"] = ["base", "container_runtime", role]
        host["software"] |= {"container_runtimes": ["containerd"], "slurm": None, "kubernetes": kubernetes}
        host["software"]["packages"] = {name: [] for name in host["software"]["packages"]}
        host["software"]["packages"] |= {"container_runtime": ["containerd"], role: packages}
    digest = sha256 or subprocess.run(["sha256sum", inside.cni], capture_output=True, text=True).stdout.split()[0]
    document["scheduler"] |= {
        "kind": "kubernetes",
        "head": "",
        "api_server": f"https://{names.ADDRESSES['head']}:{build_scheduler.API_PORT}",
        "ca": "",
        "cluster_dns": "10.96.0.10",
        "cluster_domain": "cluster.local",
        "control_plane": {
            "head": "head",
            "head_address": names.ADDRESSES["head"],
            "pod_cidr": "10.244.0.0/16",
            "service_cidr": "10.96.0.0/12",
            "cni": {"manifest": str(inside.cni), "sha256": digest},
            "image_repository": "",
        },
    }
    inside.document.write_text(json.dumps(document | {"serial": 1}))


def play(inside, *options, ok=True, book="site.yml", ignored=NOT_HERE, **values):
    """One run of a playbook: (recap of each host, all that it said)."""
    node = {"imagePullPolicy": "Never", "ignorePreflightErrors": ignored}
    values = {"kubernetes_head_settings": {"InitConfiguration": {"nodeRegistration": node}}, **values}
    command = ["ansible-playbook", "-i", "inventory/lab", f"playbooks/{book}", "-e", json.dumps(values), *options]
    done = subprocess.run(inside.argv(*command), capture_output=True, text=True, timeout=900)
    recap = {}
    for host, line in re.findall(r"^(\w+) +: (ok=.*)$", done.stdout.rpartition("PLAY RECAP")[2], re.MULTILINE):
        recap[host] = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}
    said = done.stdout + done.stderr
    assert (done.returncode == 0) == ok, said[-6000:]
    return recap, " ".join(said.split())


def out(site, command, host="head"):
    return site.ssh(host, command).stdout


@pytest.fixture(scope="module")
def refused(inside):
    """Comes first: nothing is on the hosts yet, and the host's control groups are not excused."""
    return play(inside, "--limit=head", ok=False, ignored=[])[1]


@pytest.fixture(scope="module")
def made(refused, inside):
    """A fresh site converges at the first try."""
    return play(inside)


def test_what_kubeadm_finds_at_fault_is_said_in_its_words_and_changes_nothing(refused, inside, site):
    assert "kubeadm made no cluster on head: [ERROR SystemVerification]: missing required cgroups: cpu" in refused
    assert out(site, "test ! -e /etc/kubernetes/manifests && test ! -e /etc/ironburst/kubeadm.yaml && echo clean")


def test_a_cluster_is_made_and_the_node_joins_in_one_run(made, site):
    assert not any(host["failed"] or host["unreachable"] for host in made[0].values())
    nodes = out(site, KUBECTL + "get nodes --output=custom-columns=:.metadata.name,:.metadata.labels --no-headers")
    lines = dict(line.split(None, 1) for line in nodes.splitlines())
    assert set(lines) == {"head", "dgx01"}
    assert "node-role.kubernetes.io/control-plane" in lines["head"] and "ironburst.io/site:home" in lines["dgx01"]
    taints = out(site, KUBECTL + "get node head --output=jsonpath={.spec.taints[*].key}")
    assert "node-role.kubernetes.io/control-plane" in taints.split()
    shown = out(site, "ironburst-kubelet show", "dgx01")
    assert shown.startswith("NodeName=dgx01 State=")
    assert out(site, KUBECTL + "--namespace=kube-system get configmap pod-network --output=jsonpath={.data.of}")


def test_nothing_is_changed_by_a_second_run(made, inside):
    for options in ((), ("--check",)):
        recap, _ = play(inside, *options)
        assert {name: host["changed"] for name, host in recap.items()} == {"head": 0, "dgx01": 0}


def test_tokens_are_short_and_nowhere_to_be_read(made, inside, site):
    """A node's file with it goes when the node has joined; what kubeadm has made lives for minutes."""
    listed = [line.split() for line in out(site, "kubeadm token list").splitlines()[1:]]
    ours = [words for words in listed if words[-3:-1] == ["dgx01", "joins"]]
    assert ours and all(re.fullmatch(r"\d+[ms]", words[1]) for words in ours)
    assert all(words[3] == "authentication" for words in listed)
    for token in (words[0] for words in ours):
        assert token.split(".")[1] not in made[1]
        for host in ("head", "dgx01"):
            found = out(
                site, f"grep -rlsF {token} /etc /run /var/log /var/lib/kubelet /usr/local /root /tmp || true", host
            )
            assert set(found.split()) <= {"/etc/kubernetes/bootstrap-kubelet.conf"}, (host, found)
    there = "! test -e /etc/kubernetes/bootstrap-kubelet.conf || stat -c %a%U /etc/kubernetes/bootstrap-kubelet.conf"
    assert out(site, there, "dgx01") in ("", "600root\n")


def test_secrets_of_the_head_are_roots_alone(made, site):
    world = "find /etc/kubernetes /etc/ironburst /var/backups/ironburst-kubernetes -perm /077 -type f"
    assert not [name for name in out(site, world).split() if name.endswith((".key", ".conf", ".tar", "kubeadm.yaml"))]
    assert out(site, f"stat -c %a {BACKUPS}") == "700\n"


def test_a_backup_holds_etcd_and_the_keys(made, site):
    names_of = out(site, f"tar tf $(ls {BACKUPS}/*.tar | tail -1)").split()
    assert {"etcd-snapshot.db", "etc/kubernetes/pki/ca.key", "etc/kubernetes/pki/etcd/ca.key"} <= set(names_of)
    site.ssh("head", f"cd /root && tar xf $(ls {BACKUPS}/*.tar | tail -1) etcd-snapshot.db")
    status = json.loads(out(site, "/shared/kubernetes/etcdutl snapshot status /root/etcd-snapshot.db --write-out=json"))
    assert status["totalKey"] > 100
    assert out(site, "systemctl is-active ironburst-control-plane.timer") == "active\n"
    site.ssh("head", "systemctl start ironburst-control-plane.service")  # what the timer does


def test_certificates_are_renewed_and_the_api_server_shows_the_new_one(made, site):
    shown = "openssl s_client -connect 127.0.0.1:6443 < /dev/null 2> /dev/null | openssl x509 -noout -serial"
    before = out(site, shown)
    assert "nothing to renew" in out(site, "ironburst-control-plane renew --days=90")
    assert "renewed; " in out(site, "ironburst-control-plane renew --days=400")
    assert out(site, shown) != before
    site.ssh("head", KUBECTL + "get nodes")


def test_a_lost_head_comes_back_from_its_backup(made, inside, site):
    """As docs/how-to/kubernetes.md has it: the keys and etcd's data are put back, and kubeadm makes the rest anew."""
    site.ssh("head", KUBECTL + "create configmap marker --from-literal=of=before")
    site.ssh("head", f"systemctl start ironburst-control-plane && cp $(ls {BACKUPS}/*.tar | tail -1) /root/kept.tar")
    site.ssh("head", "systemctl stop kubelet 'lab-pod-*'; kubeadm reset --force; test ! -e /etc/kubernetes/pki/ca.key")
    peer = f"https://{names.ADDRESSES['head']}:2380"
    restore = "/shared/kubernetes/etcdutl snapshot restore /root/etcd-snapshot.db --data-dir=/var/lib/etcd --name=head "
    restore += f"--initial-cluster=head={peer} --initial-advertise-peer-urls={peer}"
    site.ssh("head", "tar xf /root/kept.tar -C / etc/kubernetes/pki && tar xf /root/kept.tar -C /root etcd-snapshot.db")
    site.ssh("head", f"rm -rf /var/lib/etcd && {restore}")
    _, said = play(inside, "--limit=head", ok=False)
    assert "[ERROR DirAvailable--var-lib-etcd]: /var/lib/etcd is not empty" in said
    play(inside, "--limit=head", ignored=[*NOT_HERE, "DirAvailable--var-lib-etcd"])
    assert out(site, KUBECTL + "get configmap marker --output=jsonpath={.data.of}") == "before"
    assert out(site, "ironburst-kubelet show", "dgx01").startswith("NodeName=dgx01 ")  # by the certificate it had


def test_other_networks_and_another_manifest_are_refused(made, inside):
    document = json.loads(inside.document.read_text())
    document["scheduler"]["control_plane"]["pod_cidr"] = "10.245.0.0/16"
    inside.document.write_text(json.dumps(document))
    _, said = play(inside, "--limit=head", "--tags=validate", ok=False)
    assert "has pod_cidr 10.244.0.0/16, declared is 10.245.0.0/16, and this can't be changed in a cluster" in said
    declare(inside, sha256="0" * 64)
    _, said = play(inside, "--limit=head", "--tags=runtime", ok=False)
    assert "the stack declares another one: look at what has changed in it" in said
    declare(inside)


def test_another_version_comes_by_upgrade_alone_and_one_at_a_time(made, inside, site):
    """The newer kubeadm and the older one are of the same source."""
    declare(inside, "1.38")
    _, said = play(inside, book="upgrade.yml", ok=False)
    assert "head runs Kubernetes 1.36.3, declared is 1.38: kubeadm goes up by one minor version at a time" in said
    declare(inside, "1.37")
    _, said = play(inside, "--limit=head", ok=False)
    assert "head runs Kubernetes 1.36.3, declared is 1.37: upgrade it with playbooks/upgrade.yml" in said
    assert out(site, "kubeadm version --output=short") == "v1.36.3\n"
    before = len(out(site, f"ls {BACKUPS}/*.tar").split())
    recap, _ = play(inside, "--limit=head", book="upgrade.yml")
    assert recap["head"]["changed"] >= 4 and len(out(site, f"ls {BACKUPS}/*.tar").split()) == before + 1
    assert out(site, "kubeadm version --output=short; kubelet --version") == "v1.37.2\nKubernetes v1.37.2\n"
    assert "kube-apiserver:v1.37.2" in out(site, "cat /etc/kubernetes/manifests/kube-apiserver.yaml")
    assert out(site, KUBECTL + "get node head --output=jsonpath={.spec.unschedulable}") == ""
    recap, _ = play(inside, "--limit=head")
    assert recap["head"]["changed"] == 0


def test_a_control_plane_of_another_hand_stays_as_it_is(made, inside, site):
    twice = out(site, "kubeadm init 2>&1 || true")
    assert "[ERROR FileAvailable--etc-kubernetes-manifests-kube-apiserver.yaml]" in twice and "Port 6443 is in" in twice
    site.ssh("head", "rm /etc/ironburst/kubeadm.yaml; systemctl disable --now ironburst-control-plane.timer")
    before = out(site, "find /etc/kubernetes /etc/containerd -type f | xargs sha256sum; apt-mark showhold")
    _, said = play(inside, "--limit=head")
    assert "head had a control plane before: it is left as it is" in said
    assert out(site, "find /etc/kubernetes /etc/containerd -type f | xargs sha256sum; apt-mark showhold") == before
    assert out(site, "systemctl is-enabled ironburst-control-plane.timer || true") == "disabled\n"
