"""The last task of image.yml: what a build host leaves behind on its disk."""

import subprocess

from tests.playbooks.contract import PLAYBOOKS, load

SCRIPT = PLAYBOOKS / "files/forget_host.sh"
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


def test_it_is_the_last_task_of_a_bake():
    last = load(PLAYBOOKS / "image.yml")[-1]
    assert last["hosts"] == "image" and "forget_host.sh" in last["tasks"][-1]["ansible.builtin.raw"]
