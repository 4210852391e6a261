"""`ironburst converge` on real hosts: the second run changes nothing, drift is told, busy nodes are left alone, the
gate fails closed.
"""

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from lab.hosts import hardware
from lab.system import wait_for
from tests.playbooks import sample
from tests.sites import NAMES, converge, drivers, munge_key

pytestmark = pytest.mark.lab
GATE = "/usr/local/sbin/ironburst-gate --json"
NEXT_DRIVER = "580.105.08"
STAMP = "/run/ironburst/gate.ok"


def states(receipt):
    return {name: host["state"] for name, host in receipt["hosts"].items()}


def gate(site):
    """(exit status of the gate on dgx01, the texts of what failed)"""
    done = site.ssh("dgx01", GATE, check=False)
    return done.returncode, [
        finding["text"] for finding in json.loads(done.stdout)["findings"] if not finding["passed"]
    ]


def gate_passed(site, node):
    return site.ssh(node, ["test", "-e", STAMP], check=False).returncode == 0


def test_the_first_run_converges_bare_hosts(converged):
    assert states(converged) == dict.fromkeys(NAMES, "converged")
    assert all(host["changed"] > 0 for host in converged["hosts"].values())


def test_unchanged_hosts_are_proved_so_without_ansible(inside, converged):
    again = converge(inside)
    assert states(again) == dict.fromkeys(NAMES, "unchanged") and again["seconds"] < 20


def test_what_was_declared_is_installed_and_runs(site, converged):
    answer = site.ssh(
        "dgx01", "nvidia-smi --query-gpu=driver_version --format=csv,noheader | sort | uniq -c"
    ).stdout.split()
    assert answer == ["8", "580.95.05"]
    assert site.ssh("dgx01", "systemctl is-active slurmd munge containerd").stdout.split() == ["active"] * 3
    held = site.ssh("dgx01", "apt-mark showhold").stdout.split()
    assert {"nvidia-open", "nvidia-fabricmanager", "nvidia-container-toolkit", "slurmd"} <= set(held)
    assert site.ssh("head", "sinfo -h -p home -o '%n %T %G'").stdout.split()[:2] == ["dgx01", "idle"]


def test_drift_is_told_and_left_then_repaired_by_a_second_run_that_changes_nothing_else(site, inside, converged):
    """Ansible runs on the head and a node again: of its tasks only the one of the drifted file changes something."""
    site.ssh("dgx01", "echo '{}' > /etc/ironburst/gate.json")
    told = converge(inside, "--check", "--limit", "dgx01", code=3)
    assert states(told) == {"dgx01": "drifted"}
    assert site.ssh("dgx01", "cat /etc/ironburst/gate.json").stdout.strip() == "{}"
    again = converge(inside, "--always", "--limit", "head,dgx01")["hosts"]
    assert {(host["state"], host["failed"]) for host in again.values()} == {("converged", 0)}
    assert {name: host["changed"] for name, host in again.items()} == {"head": 0, "dgx01": 1}
    assert again["dgx01"]["why"] == ["file /etc/ironburst/gate.json: content is another"]


def submit(site, node, work):
    sbatch = f"sbatch --parsable --no-requeue --gres=gpu:1 -w {node} --wrap '{work}'"
    job = site.ssh("head", f"cd /shared/alice && runuser -u alice -- {sbatch}").stdout.strip()
    wait_for(lambda: state_of(site, job) == "RUNNING", 60, f"job {job} to run")
    return job


def state_of(site, job):
    return (
        site.ssh("head", f"scontrol --oneliner show job {job} | grep -o 'JobState=[A-Z]*'")
        .stdout.strip()
        .removeprefix("JobState=")
    )


def node_of(site, name):
    return site.ssh("head", shlex.join(["scontrol", "--oneliner", "show", "node", name])).stdout


@pytest.mark.slow
def test_what_needs_no_drain_is_repaired_under_a_running_job(site, inside, converged):
    job = submit(site, "dgx01", "sleep 600")
    try:
        site.ssh("dgx01", "rm /etc/security/limits.d/90-ironburst.conf")
        repaired = converge(inside, "--limit", "dgx01")
        assert states(repaired) == {"dgx01": "converged"} and not repaired["hosts"]["dgx01"]["drained"]
        assert site.ssh("dgx01", "test -s /etc/security/limits.d/90-ironburst.conf", check=False).returncode == 0
        assert state_of(site, job) == "RUNNING"
    finally:
        site.ssh("head", f"scancel {job}")
    wait_for(lambda: "IDLE" in node_of(site, "dgx01"), 60, "dgx01 to be idle")


@pytest.mark.slow
def test_a_driver_upgrade_drains_stops_at_a_bad_node_and_goes_on(site, inside, converged):
    """Jobs end by themselves before their node is touched; the bad node stays out with the reason; once a person has
    repaired it and lifted that, the second call completes. The bad node is busy while the first one lasts: idle, it is
    drained by Slurm's health check, and dgx01 would be the last of its partition, which is not taken.
    """
    jobs = [submit(site, "dgx01", "sleep 8"), submit(site, "dgx02", "until test -e end; do sleep 0.2; done")]
    hardware.remove_gpu(site.host("dgx02").hardware_dir, 2)
    sample.publish(inside.document, munge_key=munge_key(site), names=NAMES, driver=NEXT_DRIVER)
    first = converge(inside, code=4)
    assert states(first)["dgx01"] == "converged" and first["hosts"]["dgx01"]["drained"], first["hosts"]
    assert states(first)["dgx02"] in ("failed", "invalid"), first["hosts"]["dgx02"]
    site.ssh("head", "runuser -u alice -- touch /shared/alice/end")
    # of sacct, because slurmctld forgets a job after minutes
    states_of = f"sacct --noheader --allocations --parsable2 --format=State --jobs {','.join(jobs)}"
    both = ["COMPLETED"] * 2
    wait_for(lambda: site.ssh("head", states_of).stdout.split() == both, 60, "the end of the jobs")
    assert "DRAIN" not in node_of(site, "dgx01")
    assert drivers(site, "dgx01") == {"dgx01": {NEXT_DRIVER}}
    wait_for(lambda: "Reason=health: gpus_on_bus: 7 of 8" in node_of(site, "dgx02"), 330, "Slurm's health check")
    machine = site.host("dgx02")
    machine.off()
    machine.start()
    assert machine.wait() == "running"
    wait_for(lambda: gate_passed(site, "dgx02"), 60, "the gate at boot")
    site.ssh("head", "scontrol update nodename=dgx02 state=resume")
    second = converge(inside)
    assert states(second) | {"head": "unchanged"} == {"head": "unchanged", "dgx01": "unchanged", "dgx02": "converged"}
    assert drivers(site, "dgx02") == {"dgx02": {NEXT_DRIVER}} and "DRAIN" not in node_of(site, "dgx02")
    receipt = json.loads((site.dir / "run" / "state" / "receipts" / "dgx01.json").read_text())
    last = receipt["history"][-1]
    assert last["packages"]["nvidia-open"] == ["580.95.05-1 hold", f"{NEXT_DRIVER}-1 hold"] and last["gate"] == "passed"
    assert last["lock"]


def test_no_secret_in_what_is_kept(site, inside, converged):
    secret = (site.dir / "run" / "munge.key").read_bytes()
    kept = [path for path in (site.dir / "run" / "state").rglob("*") if path.is_file()]
    assert len(kept) == len(NAMES) + 1  # receipts and the salt
    assert not [path for path in kept if secret[:16] in path.read_bytes()]
    facts = json.loads((site.dir / "run" / "state" / "receipts" / "dgx01.json").read_text())["state"]
    assert facts["file /etc/munge/munge.key"].startswith("file 0400 munge:munge ")  # watched all the same


@pytest.mark.slow
def test_a_signal_leaves_nothing_on_either_side(site, inside, converged):
    """A task that takes minutes is running when the signal comes: no process of the run is left here, none of the task
    on the host. It is the module that asks the host its name, in check mode, so nothing is changed yet.
    """
    site.ssh("dgx01", "mv /usr/bin/uname /usr/bin/uname.real; install -m755 /dev/stdin /usr/bin/uname", stdin=SLOW)
    command = inside.ironburst(
        "converge", "--document", str(inside.document), "--inventory", "inventory/lab", "--always", "--limit", "dgx01"
    )
    process = subprocess.Popen(
        inside.argv(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        wait_for(lambda: site.ssh("dgx01", "pgrep -f '[s]leep 301'", check=False).stdout.split(), 120, "the long task")
        assert of_run(inside.document)
        for pid in (
            pid for pid in of_run(inside.document) if b"ironburst.cli" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ):
            os.kill(pid, signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
        left = "pgrep -f '[s]leep 301|[A]nsiballZ|[a]nsible|[i]ronburst-modules'"
        assert site.ssh("dgx01", left, check=False).stdout.split() == []
        assert of_run(inside.document) == []
    finally:
        process.kill()
        site.ssh("dgx01", "mv /usr/bin/uname.real /usr/bin/uname")
    again = converge(inside, "--limit", "dgx01")
    assert states(again) == {"dgx01": "unchanged"}, again["hosts"]


SLOW = """#!/bin/sh
# put there by the test: never answers a module
grep -qs ironburst-modules /proc/$PPID/cmdline || exec /usr/bin/uname.real "$@"
setsid sleep 301 & sleep 301
"""


def of_run(document):
    """Processes of this machine, the lab's included, that were given this document: the converge and all that it
    starts.
    """
    pids, mark = [], f"IRONBURST_DOCUMENT={document}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            if mark in (entry / "environ").read_bytes().split(b"\0") and stat[0] != b"Z":
                pids.append(int(entry.name))
        except OSError:
            continue
    return pids


def the_gate_refuses(site, hurt, heal, words):
    """Not passed, for this reason and without a stamp, while dgx01 is hurt; passed again once it is healed."""
    site.ssh("dgx01", hurt)
    try:
        code, failed = gate(site)
        assert code == 1 and any(words in text for text in failed), failed
        assert site.ssh("dgx01", ["test", "-e", STAMP], check=False).returncode == 1
    finally:
        site.ssh("dgx01", heal)
    assert gate(site) == (0, [])


@pytest.mark.parametrize(
    "hurt, heal, words",
    [
        (
            "mv /usr/bin/nvidia-smi /usr/bin/hidden",
            "mv /usr/bin/hidden /usr/bin/nvidia-smi",
            "nvidia-smi is not installed",
        ),
        ("chmod -x /usr/bin/nvidia-smi", "chmod +x /usr/bin/nvidia-smi", "nvidia-smi can't be run"),
        ("mv /usr/bin/lspci /usr/bin/hidden", "mv /usr/bin/hidden /usr/bin/lspci", "lspci is not installed"),
    ],
)
def test_the_gate_fails_closed_without_its_tools(site, converged, hurt, heal, words):
    the_gate_refuses(site, hurt, heal, words)


OVERRIDES = "/etc/lab-gpu.json"  # what the stubs of nvidia-smi and dcgmi show instead


@pytest.mark.parametrize(
    "hurt, heal, words",
    [
        ({"gpus": {"3": {"ecc.errors.uncorrected.volatile.total": "5"}}}, f"rm {OVERRIDES}", "GPU 3: ecc.errors"),
        ({"gpus": {"0": {"pcie.link.width.current": "8"}}}, f"rm {OVERRIDES}", "8 of 16 lanes"),
        ({"gpus": {"1": {"remapped_rows.pending": "Yes"}}}, f"rm {OVERRIDES}", "remapped_rows.pending"),
        ({"inactive_links": {"2": [4]}}, f"rm {OVERRIDES}", "143 of 144 NVLinks"),
        ("systemctl stop nvidia-fabricmanager", "systemctl start nvidia-fabricmanager", "ActiveState is inactive"),
    ],
)
def test_faults_of_a_gpu_keep_jobs_away(site, converged, hurt, heal, words):
    shell = hurt if isinstance(hurt, str) else f"echo {shlex.quote(json.dumps(hurt))} > {OVERRIDES}"
    the_gate_refuses(site, shell, heal, words)


def test_accept_runs_dcgm_and_names_what_the_lab_cannot(site, converged):
    done = site.ssh("dgx01", GATE + " --level accept", check=False)
    findings = {finding["check"]: finding["text"] for finding in json.loads(done.stdout)["findings"]}
    assert done.returncode == 0, findings
    assert findings["dcgm"].startswith("level 2") and findings["nccl"] == "not applicable: the inventory says so"
    site.ssh("dgx01", f"echo {shlex.quote(json.dumps({'dcgm': {'memory': {'3': 'Fail'}}}))} > {OVERRIDES}")
    try:
        done = site.ssh("dgx01", GATE + " --level accept", check=False)
        assert done.returncode == 1 and "memory did not pass (Fail: GPU 3: Fail)" in done.stdout
    finally:
        site.ssh("dgx01", f"rm {OVERRIDES}")
    assert gate(site) == (0, [])


def test_a_node_without_one_gpu_takes_no_job_until_it_is_whole(site, inside, converged):
    machine = site.host("dgx01")
    hardware.remove_gpu(machine.hardware_dir, 2)
    code, failed = gate(site)
    assert code == 1 and any("7" in text and "8" in text for text in failed), failed
    job = site.ssh(
        "head", "cd /shared/alice && runuser -u alice -- sbatch --parsable --gres=gpu:1 --wrap hostname"
    ).stdout.strip()
    state = shlex.join(["scontrol", "--oneliner", "show", "node", "dgx01"])
    wait_for(lambda: "DRAIN" in site.ssh("head", state).stdout, 60, "the prolog to drain dgx01")
    assert site.ssh("head", f"squeue -h -j {job} -o %T").stdout.split() == ["PENDING"]
    site.ssh("head", f"scancel {job}")
    machine.off()
    machine.start()
    assert machine.wait() == "running"
    wait_for(lambda: gate_passed(site, "dgx01"), 60, "the gate at boot")
    assert gate(site) == (0, [])
