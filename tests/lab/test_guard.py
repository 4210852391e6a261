"""Somebody's work on a real host stops every step that would disturb it: a job of Slurm, an allocation without a step,
a login by ssh, what outlived one, a container, and who has a GPU open. `lab` (slow).
"""

import json
import os
import subprocess
from contextlib import contextmanager

import pytest

from lab.demo.inside import Inside
from lab.system import wait_for
from tests import sites
from tests.playbooks import sample

pytestmark = [pytest.mark.lab, pytest.mark.slow]
# The real files of the roles, each with a step in it
STEPS = [
    "base/runtime",
    "nvidia_driver/reload",
    "nvidia_driver/runtime",
    "mig/change",
    "rdma/reload",
    "container_runtime/runtime",
]
IDLE = ["nvidia_driver/reload", "nvidia_driver/runtime", "container_runtime/runtime"]
FORCED = {
    "base_own_kernel": True,  # the machine's kernel has no iommu=pt: a reboot is due
    "base_reboot": True,
    "mig_compared": {"stdout": "GPU 0 has no MIG, declared is 7 of 1g.10gb", "rc": 3},
    "rdma_stale": ["mlx5_core is loaded in version 5.8, installed is 25.01"],
    "rdma_own_kernel": True,
}
# systemd restarts what is older than what it reads
YOUNG = "/etc/containerd/config.toml /etc/systemd/system/nvidia-persistenced.service.d/ironburst.conf"
NEXT_DRIVER = "580.105.08"
DGX01 = ("--limit", "dgx01", "--share", "100%")  # it is the one node of its partition
ALICE, ACCOUNT = "cd / && runuser -u alice --", "--account=research"  # root may submit nothing
UNITS = "containerd nvidia-persistenced nvidia-dcgm nvidia-fabricmanager slurmd"


@pytest.fixture(scope="module")
def site():
    with sites.running(f"t-guard-{os.getpid()}", "head", "dgx01") as site:
        yield site


@pytest.fixture(scope="module")
def inside(site):
    inside = Inside(site)
    sample.publish(inside.document, munge_key=sites.munge_key(site), names=("head", "dgx01"))
    sites.converge(inside)
    home = "$(getent passwd alice | cut -d: -f6)"
    site.ssh("dgx01", f"mkdir -p {home} && cp -r /root/.ssh {home}/ && chown -R alice: {home} && chmod 755 {home}")
    return inside


def play(inside, steps):
    """{step: why it was refused, "" if it was done}."""
    site = inside.site
    site.ssh("dgx01", f"rm -f /root/guarded.json; touch {YOUNG}")
    values = json.dumps(FORCED | {"guarded_steps": steps})
    inside.run(["ansible-playbook", "-i", "inventory/lab", "tests/lab/guarded.yml", "-e", values])
    return json.loads(site.ssh("dgx01", "cat /root/guarded.json").stdout)


def at_work(site, *restarted):
    """What a disturbed host would have lost: its boot, its services' starts (but those of `restarted`), its GPUs."""
    units = " ".join(unit for unit in UNITS.split() if unit not in restarted)
    return site.ssh(
        "dgx01",
        f"cat /proc/sys/kernel/random/boot_id; systemctl show --property=InvocationID,ActiveState {units};"
        " systemctl show --property=UserspaceTimestampMonotonic; nvidia-smi mig -lgi || true",
    ).stdout


@contextmanager
def unit(site, line, options=""):
    """A process of systemd's on dgx01, as long as the block."""
    site.ssh("dgx01", f"systemd-run --quiet --unit=work {options} {line}")
    try:
        yield
    finally:
        site.ssh("dgx01", "systemctl stop work; systemctl reset-failed work || true", check=False)


@contextmanager
def slurm_job(site):
    submit = f"{ALICE} sbatch {ACCOUNT} --parsable --output=/dev/null --nodelist=dgx01 --wrap='sleep 900'"
    job = site.ssh("head", submit).stdout.strip()
    try:
        wait_for(lambda: site.ssh("dgx01", "pgrep -f 'slurmstepd: '", check=False).stdout, 60, "the job's step")
        yield "Slurm step " + job
    finally:
        site.ssh("head", f"scancel {job}")
        wait_for(lambda: not site.ssh("head", "squeue --noheader").stdout, 60, "the job's end")


@contextmanager
def slurm_allocation(site):
    site.ssh("head", f"{ALICE} salloc {ACCOUNT} --no-shell --nodelist=dgx01 --job-name=held")
    job = site.ssh("head", "squeue --noheader --format=%i").stdout.strip()
    try:
        yield "Slurm job " + job
    finally:
        site.ssh("head", f"scancel {job}")
        wait_for(lambda: not site.ssh("head", "squeue --noheader").stdout, 60, "the allocation's end")


@contextmanager
def login(site):
    """A real session of sshd, with a program in it."""
    argv = site.host("dgx01").ssh_argv("sleep 900")
    argv = [word.replace("root@", "alice@") for word in argv]
    session = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    try:
        wait_for(lambda: site.ssh("dgx01", "pgrep -u alice sleep", check=False).stdout, 60, "the login")
        yield "alice with "
    finally:
        session.terminate()
        session.wait(30)
        site.ssh("dgx01", "pkill -u alice; true")


@contextmanager
def left_behind(site):
    site.ssh("dgx01", "runuser -u alice -- sh -c 'nohup setsid sleep 900 > /dev/null 2>&1 &'")
    try:
        yield "alice with sleep"
    finally:
        site.ssh("dgx01", "pkill -u alice; true")


@contextmanager
def container(site):
    """Named as Docker's shim is: no Docker runs in a lab's host."""
    site.ssh("dgx01", "cp /bin/sleep /usr/local/bin/containerd-shim-runc-v2")
    with unit(site, "/usr/local/bin/containerd-shim-runc-v2 900"):
        yield "a container (containerd-shim"


@contextmanager
def gpu(site):
    """A file in the place of the device, which this machine doesn't have."""
    site.ssh("dgx01", "mv /dev/nvidia0 /dev/hidden && touch /dev/nvidia0")
    try:
        with unit(site, "sleep 900", "--property=StandardInput=file:/dev/nvidia0"):
            yield "with a GPU open"
    finally:
        site.ssh("dgx01", "rm -f /dev/nvidia0; mv /dev/hidden /dev/nvidia0")


@pytest.mark.parametrize("work", [slurm_job, slurm_allocation, login, left_behind, container, gpu])
def test_no_step_is_done_under_somebodys_work(inside, site, work):
    # a restart of containerd disturbs containers alone
    others = [] if work is container else ["container_runtime/runtime"]
    restarted = ["containerd"] if others else []
    with work(site) as who:
        before = at_work(site, *restarted)
        said = play(inside, STEPS)
        assert at_work(site, *restarted) == before
    assert sorted(said) == sorted(STEPS)
    for step in [step for step in STEPS if step not in others]:
        assert who in said[step] and "nothing was changed" in said[step], (step, said[step])


def test_an_idle_host_lets_all_of_them_be_done(inside, site):
    before = at_work(site)
    assert play(inside, IDLE) == dict.fromkeys(IDLE, "")
    assert at_work(site) != before
    assert (
        site.ssh("dgx01", "systemctl is-active containerd nvidia-persistenced nvidia-dcgm").stdout.split()
        == ["active"] * 3
    )


def test_an_idle_host_is_rebooted(inside, site):
    boot = site.ssh("dgx01", "cat /proc/sys/kernel/random/boot_id").stdout
    assert play(inside, ["base/runtime"]) == {"base/runtime": ""}
    assert site.ssh("dgx01", "cat /proc/sys/kernel/random/boot_id").stdout != boot


def test_converge_says_who_is_there_and_leaves_the_host_as_it_was(inside, site):
    with left_behind(site):
        before = at_work(site)
        sample.publish(inside.document, munge_key=sites.munge_key(site), names=("head", "dgx01"), driver=NEXT_DRIVER)
        told = sites.converge(inside, *DGX01, code=4)["hosts"]["dgx01"]
        assert told["state"] == "failed" and "would disturb alice with sleep" in told["error"], told
        assert at_work(site) == before and sites.drivers(site, "dgx01") == {"dgx01": {"580.95.05"}}
    assert sites.converge(inside, *DGX01)["hosts"]["dgx01"]["state"] == "converged"
    assert sites.drivers(site, "dgx01") == {"dgx01": {NEXT_DRIVER}}
