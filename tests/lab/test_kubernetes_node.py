"""The role kubernetes_node on a real host: real systemd, containerd and Ansible. kubelet is a stub that starts, and
joins nothing; a real one has been tried by hand (docs/adr/0034).
"""

import json
import os
import re
import subprocess
import sys

import pytest

from lab.demo.inside import Inside
from lab.kubernetes import authority
from lab.system import CHECKOUT
from tests import sites
from tests.playbooks import sample

pytestmark = [pytest.mark.lab, pytest.mark.slow]
PORT = 6443
GATE = """[Unit]
Description=A gate that passes, in the place of the role node_health's
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
"""
TOKEN = "abcdef.0123456789abcdef"
SETTINGS = "/etc/ironburst/kubelet.yaml"


@pytest.fixture(scope="module")
def site():
    with sites.running(f"t-kube-{os.getpid()}", "head") as site:
        yield site


@pytest.fixture(scope="module")
def inside(site):
    inside, files = Inside(site), authority.files("10.78.0.1")
    document = sample.lab_document(names=("head",)).model_dump(mode="json")
    head = document["hosts"][0]
    head["roles"] = ["base", "container_runtime", "kubernetes_node"]
    head["software"] |= {"container_runtimes": ["containerd"], "slurm": None, "kubernetes": "1.36"}
    head["software"]["packages"] = {name: [] for name in head["software"]["packages"]}
    head["software"]["packages"] |= {"container_runtime": ["containerd"], "kubernetes_node": ["kubelet=1.36.*"]}
    document["scheduler"] |= {
        "kind": "kubernetes",
        "api_server": f"https://10.78.0.1:{PORT}",
        "ca": files["ca.crt"],
        "cluster_dns": "10.96.0.10",
        "cluster_domain": "cluster.local",
    }
    inside.document.write_text(json.dumps(document | {"serial": 1}))
    site.ssh("head", "cat > /etc/systemd/system/ironburst-gate.service", stdin=GATE)
    # tells its version, and nothing more: the node can't be in a cluster here, and says so
    folder = site.dir / "run" / "api"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    server = ["-m", "tests.version_server", str(folder), "10.78.0.1", str(PORT), "200", "v1.36.3"]
    site.spawn([sys.executable, *server], "api", {"PYTHONPATH": str(CHECKOUT)})
    return inside


def play(inside, *options, ok=True, **values):
    """One run of site.yml, without the last stage unless `options` ask for it: (recap, output)."""
    values = {"kubernetes_node_bootstrap_token": "env:JOIN_TOKEN", **values}
    stages = options or ("--tags", "preflight,install,configure,runtime")
    command = ["env", f"JOIN_TOKEN={TOKEN}", "ansible-playbook", "-i", "inventory/lab", "playbooks/site.yml"]
    done = subprocess.run(
        inside.argv(*command, "-e", json.dumps(values), *stages), capture_output=True, text=True, timeout=300
    )
    recap = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", done.stdout.rpartition("PLAY RECAP")[2])}
    assert (done.returncode == 0) == ok, done.stdout[-6000:] + done.stderr[-2000:]
    said = " ".join((done.stdout + done.stderr).split())
    return recap, said.partition("fatal:")[2] or said


@pytest.fixture(scope="module")
def applied(inside):
    return play(inside)[0]


def out(site, command):
    return site.ssh("head", command).stdout


def test_a_host_that_is_in_no_cluster_needs_a_token(inside):
    """Comes first: nothing is on the host yet."""
    _, said = play(inside, ok=False, kubernetes_node_bootstrap_token="")
    assert "head is in no Kubernetes cluster: join it as" in said
    assert "or give a reference to a bootstrap token of it as kubernetes_node_bootstrap_token" in said


def test_a_kubelet_that_the_api_server_does_not_take_is_refused_before_anything_is_there(inside, site):
    document = json.loads(inside.document.read_text())
    software = document["hosts"][0]["software"]
    software["kubernetes"] = "1.37"
    inside.document.write_text(json.dumps(document | {"serial": 2}))
    _, said = play(inside, ok=False)
    assert "head would get kubelet 1.37, and the API server is v1.36.3: a kubelet is never newer than it" in said
    site.ssh("head", "test ! -e /etc/ironburst/kubelet.yaml")
    software["kubernetes"] = "1.36"
    inside.document.write_text(json.dumps(document | {"serial": 3}))


def test_everything_is_applied_once(inside, applied):
    assert applied["changed"] >= 6 and applied["failed"] == 0
    assert play(inside)[0]["changed"] == 0
    assert play(inside, "--check", "--tags", "preflight,install,configure,runtime")[0]["changed"] == 0


def test_kubelet_is_the_locked_one_and_starts_after_its_gate(site, applied):
    assert out(site, "kubelet --version") == "Kubernetes v1.36.3\n"  # 1.37 is there, too
    assert "kubelet" in out(site, "apt-mark showhold").split()
    assert (
        out(site, "systemctl is-active kubelet ironburst-gate ironburst-gate-condition.timer").split() == ["active"] * 3
    )
    line = out(site, "tr '\\0' ' ' < /proc/$(systemctl show --property=MainPID --value kubelet)/cmdline")
    assert "--hostname-override=head --node-labels=ironburst.io/site=home" in line
    assert "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf" in line
    settings = json.loads(out(site, f"cat {SETTINGS}"))
    assert settings["clusterDNS"] == ["10.96.0.10"] and settings["authentication"]["anonymous"] == {"enabled": False}
    assert "registerWithTaints" not in settings  # of rented nodes
    assert out(site, "sysctl -n net.ipv4.ip_forward") == "1\n"


def test_only_root_reads_the_token(inside, site, applied):
    """It is in its file, and in nothing that Ansible says or that the journal keeps."""
    place = "/etc/kubernetes/bootstrap-kubelet.conf"
    assert out(site, f"stat -c '%a %U' {place}") == "600 root\n" and TOKEN in out(site, f"cat {place}")
    site.ssh("head", f"rm {place}")
    said = play(inside, "--tags", "preflight,install,configure,runtime", "--diff", "-vv")[1]
    assert "kubelet asks for its certificate" in said and TOKEN in out(site, f"cat {place}")
    secret = TOKEN.partition(".")[2]
    assert secret not in said and secret not in out(site, "journalctl --no-pager")
    grep = f"grep --recursive --files-with-matches {TOKEN} /etc /run /var/lib /var/log /usr/local /root || true"
    assert out(site, grep).split() == ["/etc/kubernetes/bootstrap-kubelet.conf"]


def test_containerd_speaks_cri_with_nvidias_runtime(site, applied):
    config = out(site, "containerd config dump")
    assert 'default_runtime_name = "nvidia"' in config and 'BinaryName = "/usr/bin/nvidia-container-runtime"' in config
    plugins = [line.split() for line in out(site, "ctr plugins ls").splitlines()]
    assert [line[-1] for line in plugins if line[:2] == ["io.containerd.grpc.v1", "cri"]] == ["ok"]


def test_a_node_that_did_not_come_is_told_with_what_to_look_at(inside, applied):
    _, said = play(inside, "--tags", "validate", ok=False, kubernetes_node_join_tries=1)
    assert "head is not in the cluster as head: ironburst-kubelet: kubelet has no certificate yet" in said
    assert "`kubectl get csr`" in said


def test_settings_do_not_change_where_nobody_can_say_what_runs(inside, site, applied):
    """The node has joined, and its API server doesn't answer."""
    site.ssh("head", "mkdir -p /var/lib/kubelet/pki && touch /var/lib/kubelet/pki/kubelet-client-current.pem")
    before = out(site, f"cat {SETTINGS}")
    _, said = play(inside, ok=False, kubernetes_node_settings={"maxPods": 64})
    assert "a setting of kubelet on head is to change: drain the node, then run this again; nothing was changed" in said
    assert out(site, f"cat {SETTINGS}") == before


def test_a_node_of_another_hand_stays_as_it_is(inside, site, applied):
    """There is a kubelet.conf, and none of our settings."""
    theirs = "/etc/kubernetes/kubelet.conf /etc/containerd/config.toml"
    site.ssh("head", f"systemctl stop kubelet; rm {SETTINGS}; echo theirs | tee {theirs}; apt-mark unhold kubelet")
    show = "systemctl show --property=MainPID,ActiveEnterTimestamp kubelet containerd"
    units = out(site, show)
    _, said = play(inside, kubernetes_node_settings={"maxPods": 64}, kubernetes_node_bootstrap_token="")
    assert out(site, f"cat {theirs}") == "theirs\ntheirs\n" and out(site, show) == units
    site.ssh("head", f"test ! -e {SETTINGS}")
    assert "kubelet" not in out(site, "apt-mark showhold").split() and "Container packages" not in said
