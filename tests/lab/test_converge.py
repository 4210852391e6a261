"""`ironburst converge` on real hosts: the second run changes nothing, drift is told, busy nodes are left alone, the gate fails closed."""

import json
import os
import shlex

import pytest

from lab import hardware
from lab.box import wait_for
from lab.demo.inside import Inside
from tests import sites
from tests.playbooks import sample

pytestmark = pytest.mark.lab
GATE = "/usr/local/sbin/ironburst-gate --json"
STAMP = "/run/ironburst/gate.ok"


@pytest.fixture(scope="module")
def site():
    with sites.running(f"t-conv-{os.getpid()}", "head", "dgx01") as site:
        yield site


@pytest.fixture(scope="module")
def inside(site):
    inside = Inside(site)
    key = site.dir / "run" / "munge.key"
    key.write_bytes(b"x" * 64)
    sample.publish(inside.document, munge_key=f"file:{key}", names=("head", "dgx01"))
    return inside


@pytest.fixture(scope="module")
def converged(inside):
    """The hosts after the first run, and its receipt."""
    return converge(inside)


def converge(inside, *options, code=0):
    command = inside.ironburst("converge", "--document", str(inside.document), "--inventory", "inventory/lab", "--json", *options)
    return json.loads(inside.run(command, ok=(code,)))


def states(receipt):
    return {name: host["state"] for name, host in receipt["hosts"].items()}


def gate(site):
    """(exit status of the gate on dgx01, the texts of what failed)"""
    done = site.ssh("dgx01", GATE, check=False)
    return done.returncode, [finding["text"] for finding in json.loads(done.stdout)["findings"] if not finding["passed"]]


def test_the_second_run_changes_nothing(inside, converged):
    assert states(converged) == {"head": "converged", "dgx01": "converged"}
    assert all(host["changed"] > 0 for host in converged["hosts"].values())
    again = converge(inside, "--always")
    assert {name: (host["changed"], host["failed"]) for name, host in again["hosts"].items()} == {"head": (0, 0), "dgx01": (0, 0)}


def test_what_was_declared_is_installed_and_runs(site, converged):
    answer = site.ssh("dgx01", "nvidia-smi --query-gpu=driver_version --format=csv,noheader | sort | uniq -c").stdout.split()
    assert answer == ["8", "580.95.05"]
    assert site.ssh("dgx01", "systemctl is-active slurmd munge containerd").stdout.split() == ["active"] * 3
    held = site.ssh("dgx01", "apt-mark showhold").stdout.split()
    assert {"nvidia-open", "nvidia-fabricmanager", "nvidia-container-toolkit", "slurmd"} <= set(held)
    assert site.ssh("head", "sinfo -h -p home -o '%n %T %G'").stdout.split()[:2] == ["dgx01", "idle"]


def test_drift_is_told_and_left_then_repaired(site, inside, converged):
    site.ssh("dgx01", "echo '{}' > /etc/ironburst/gate.json")
    told = converge(inside, "--check", "--limit", "dgx01", code=3)
    assert states(told) == {"dgx01": "drifted"}
    assert site.ssh("dgx01", "cat /etc/ironburst/gate.json").stdout.strip() == "{}"
    repaired = converge(inside, "--limit", "dgx01")
    assert states(repaired) == {"dgx01": "converged"} and repaired["hosts"]["dgx01"]["changed"] == 1
    assert repaired["hosts"]["dgx01"]["why"] == ["file /etc/ironburst/gate.json: content is another"]


def test_a_busy_node_is_left_alone(site, inside, converged):
    job = site.ssh("head", "cd /shared/alice && runuser -u alice -- sbatch --parsable --gres=gpu:1 --wrap 'sleep 600'").stdout.strip()
    try:
        wait_for(lambda: "RUNNING" in site.ssh("head", f"squeue -h -j {job} -o %T").stdout, 60, f"job {job} to run")
        left = converge(inside, "--limit", "dgx01", code=5)
        assert states(left) == {"dgx01": "busy"}
        assert "RUNNING" in site.ssh("head", f"squeue -h -j {job} -o %T").stdout
    finally:
        site.ssh("head", f"scancel {job}")
    wait_for(lambda: not site.ssh("head", f"squeue -h -j {job} -o %T").stdout.strip(), 60, f"job {job} to end")


@pytest.mark.parametrize(
    "hurt, heal, words",
    [
        ("mv /usr/bin/nvidia-smi /usr/bin/hidden", "mv /usr/bin/hidden /usr/bin/nvidia-smi", "nvidia-smi is not installed"),
        ("chmod -x /usr/bin/nvidia-smi", "chmod +x /usr/bin/nvidia-smi", "nvidia-smi can't be run"),
        ("mv /usr/bin/lspci /usr/bin/hidden", "mv /usr/bin/hidden /usr/bin/lspci", "lspci is not installed"),
    ],
)
def test_the_gate_fails_closed_without_its_tools(site, converged, hurt, heal, words):
    site.ssh("dgx01", hurt)
    try:
        code, failed = gate(site)
        assert code == 1 and any(words in text for text in failed), failed
        assert site.ssh("dgx01", ["test", "-e", STAMP], check=False).returncode == 1
    finally:
        site.ssh("dgx01", heal)
    assert gate(site) == (0, [])


def test_a_node_without_one_gpu_takes_no_job_until_it_is_whole(site, inside, converged):
    machine = site.host("dgx01")
    hardware.remove_gpu(machine.hardware_dir, 2)
    code, failed = gate(site)
    assert code == 1 and any("7" in text and "8" in text for text in failed), failed
    job = site.ssh("head", "cd /shared/alice && runuser -u alice -- sbatch --parsable --gres=gpu:1 --wrap hostname").stdout.strip()
    state = shlex.join(["scontrol", "--oneliner", "show", "node", "dgx01"])
    wait_for(lambda: "DRAIN" in site.ssh("head", state).stdout, 60, "the prolog to drain dgx01")
    assert site.ssh("head", f"squeue -h -j {job} -o %T").stdout.split() == ["PENDING"]
    site.ssh("head", f"scancel {job}")
    machine.off()
    machine.start()
    assert machine.wait() == "running"
    wait_for(lambda: site.ssh("dgx01", ["test", "-e", STAMP], check=False).returncode == 0, 60, "the gate at boot")
    assert gate(site) == (0, [])
