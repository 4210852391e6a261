"""Faults of a host of the hall while it is converged. The playbooks run over the lab's real ssh."""

import json
import subprocess
import threading

import pytest

from ironburst.adapters.slurm.scheduler import Slurm
from lab.hosts.host import ENTER
from tests.faults.live.live import until
from tests.sites import converge

pytestmark = [pytest.mark.lab, pytest.mark.slow]
HOST = "dgx02"
PACKAGE = "infiniband-diags"
LOST = f"dpkg --remove --force-depends {PACKAGE} 2>/dev/null || true"
HOLDS = """import fcntl, time
file = open("/var/lib/dpkg/lock-frontend", "w")
fcntl.lockf(file, fcntl.LOCK_EX)
time.sleep(1000)
"""
BOOT = "cat /proc/sys/kernel/random/boot_id"


@pytest.fixture
def idle(live):
    """A host without jobs: each test converges it again."""
    live.head.root("scancel --full -u alice; scontrol update nodename=dgx01,dgx02 state=resume; true")
    slurm = Slurm(live.inside.argv(*live.inside.head_prefix()))
    until(lambda: not slurm.observe().on(HOST), 60, "an idle host")
    yield live
    live.head.root(f"scontrol update nodename={HOST} state=resume 2>/dev/null; true")


def ssh(live, line, **more):
    return live.site.ssh(HOST, line, **more)


def by_console(live, line):
    """Without ssh."""
    argv = [*live.site.box.enter_prefix(), "sh", "-c", ENTER, "enter", str(live.site.host(HOST).dir), line]
    return subprocess.run(argv, check=True, text=True, capture_output=True, stdin=subprocess.DEVNULL).stdout


class Converging(threading.Thread):
    """`ironburst converge` of the host, beside the test."""

    def __init__(self, live, *options):
        super().__init__()
        command = live.inside.ironburst(
            "converge", "--document", str(live.inside.document), "--inventory", "inventory/lab", "--json", *options
        )
        self.argv = live.inside.argv(*command, "--limit", HOST)
        self.said = ""
        self.start()

    def run(self):
        self.process = subprocess.Popen(
            self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for line in self.process.stderr:
            self.said += line
        self.out = self.process.stdout.read()
        self.process.wait()

    def at(self, word):
        until(lambda: word in self.said or not self.is_alive(), 120, f"converge at {word}")
        assert self.is_alive(), self.said

    def ends(self):
        """(exit code, what it says of the host)"""
        self.join(600)
        return self.process.returncode, json.loads(self.out)["hosts"][HOST]


def converged(live):
    """It takes up, and the next one changes nothing."""
    done = converge(live.inside, "--limit", HOST)["hosts"][HOST]
    assert done["state"] in ("converged", "unchanged"), done
    if done["state"] == "converged":
        assert converge(live.inside, "--limit", HOST)["hosts"][HOST]["state"] == "unchanged"
    assert ssh(live, f"dpkg-query -W -f '${{db:Status-Status}}' {PACKAGE}").stdout == "installed"  # and held


def test_a_host_reboots_in_mid_converge(idle):
    boot = ssh(idle, BOOT).stdout
    run = Converging(idle, "--always")
    run.at(f"{HOST}: nvidia_driver")
    ssh(idle, "systemctl reboot --force --force", check=False)
    code, said = run.ends()
    assert (code, said["state"]) in ((4, "unreachable"), (4, "failed"), (0, "converged")), (code, said)
    assert said["error"] or code == 0, said
    until(lambda: ssh(idle, BOOT, check=False).stdout not in ("", boot), 60, "the reboot")
    idle.site.wait([HOST])
    converged(idle)


def test_apt_is_locked_by_somebody_else_for_a_while(idle):
    """unattended-upgrades, say: it is waited for."""
    ssh(idle, LOST)
    ssh(idle, "cat > /root/holds.py; systemd-run --quiet --unit=holds python3 /root/holds.py", stdin=HOLDS)
    run = Converging(idle)
    run.at(f"{HOST}: rdma")
    ssh(idle, "systemctl stop holds")
    code, said = run.ends()
    assert (code, said["state"]) == (0, "converged"), said
    converged(idle)


def test_the_disk_of_a_host_is_full(idle):
    """A small one where apt puts its packages: the converge fails with apt's words, and the next one takes up."""
    ssh(idle, f"{LOST}; rm -f /var/cache/apt/archives/*.deb; mount -t tmpfs -o size=64k tmpfs /var/cache/apt/archives")
    try:
        code, said = Converging(idle).ends()
        assert (code, said["state"]) == (4, "failed"), said
        assert "space" in said["error"], said
    finally:
        ssh(idle, "umount /var/cache/apt/archives")
    converged(idle)


def test_a_host_no_longer_takes_our_ssh_key(idle):
    """It was installed anew, or somebody has changed its authorized_keys."""
    keys = "/root/.ssh/authorized_keys"
    by_console(idle, f"mv {keys} {keys}.away; pkill -f sshd-session; true")
    try:
        code, said = Converging(idle).ends()
        assert (code, said["state"]) == (4, "unreachable"), said
        assert "Permission denied" in said["error"], said
    finally:
        by_console(idle, f"mv {keys}.away {keys}")
    converged(idle)
