"""Another key of munge on a head, a node and a login node with real Slurm: a job runs on, credentials of the former key
are refused, and no host changes its key alone.
"""

import json
import os
import re
import subprocess

import pytest

from ironburst.config import load
from lab import names
from lab.demo.inside import Inside
from lab.system import wait_for
from tests import sites
from tests.lab.test_slurm_packages import GATE
from tests.playbooks import sample

pytestmark = [pytest.mark.lab, pytest.mark.slow]
HOSTS = ("head", "dgx01", "login01")
ROLES = {"head": "slurm_head", "dgx01": "slurm_node", "login01": "slurm_login"}


@pytest.fixture(scope="module")
def site():
    with sites.running(f"t-munge-{os.getpid()}", *HOSTS, hall=names.ADDRESSES | sites.LOGIN) as site:
        for path, text in GATE.items():  # STAND-IN of the role node_health
            site.ssh("dgx01", f"cat > {path} && chmod 755 {path}", stdin=text)
        site.ssh("dgx01", "touch " + " ".join(f"/dev/nvidia{number}" for number in range(8)))
        yield site


@pytest.fixture(scope="module")
def key(site):
    return site.dir / "run" / "munge.key"


@pytest.fixture(scope="module")
def inside(site, key):
    """With the playbooks' own Slurm, and without what needs a GPU."""
    key.write_bytes(b"x" * 64)
    stack = load.read_value(sample.REPOSITORY / "stacks/Pulumi.lab.yaml")
    sites.login_node(stack)
    built = sample.lab_document(munge_key=f"file:{key}", names=HOSTS, declare={"halls": stack["halls"]})
    document = built.model_dump(mode="json") | {"serial": 1}
    for host in document["hosts"]:
        host["roles"] = ["base", ROLES[host["name"]]]
        host["software"]["container_runtimes"] = []
    inside = Inside(site)
    inside.document.write_text(json.dumps(document))
    return inside


def play(inside, book, *options, ok=True):
    """(changed tasks by host, output)"""
    done = subprocess.run(
        inside.argv("ansible-playbook", "-i", "inventory/lab", book, *options),
        capture_output=True,
        text=True,
        timeout=600,
    )
    said = done.stdout + done.stderr
    assert not ok or done.returncode == 0, said[-6000:]
    recap = re.findall(r"^(\w+) +: ok=\d+ +changed=(\d+)", said.rpartition("PLAY RECAP")[2], re.MULTILINE)
    return {host: int(changed) for host, changed in recap}, said


def converged(inside, *options, **more):
    return play(inside, "tests/lab/slurm.yml", *options, **more)


def rotated(inside, *options, **more):
    return play(inside, "playbooks/munge_key.yml", *options, **more)


@pytest.fixture(scope="module")
def job(site, inside):
    """A job that runs all the while."""
    assert converged(inside)[0]["login01"] > 3
    wait_for(lambda: "idle" in site.ssh("head", "sinfo -h -p home -o %T").stdout, 60, "the node", pause=0.5)
    line = "sbatch --parsable -A research --mem=100 -o /dev/null --time=30 --no-requeue --wrap 'sleep 1500'"
    number = site.ssh("login01", f"cd /shared && runuser -u alice -- {line}", timeout=60).stdout.strip()
    wait_for(lambda: state(site, number) == "RUNNING", 60, "the job", pause=0.5)
    return number


def state(site, number):
    return site.ssh("head", f"squeue -h -j {number} -o %T", check=False).stdout.strip()


def test_the_same_key_changes_nothing(inside, job):
    assert converged(inside)[0] == dict.fromkeys(HOSTS, 0)
    assert rotated(inside)[0] == dict.fromkeys(HOSTS, 1), "the copy beside, which goes again"


def test_no_host_changes_its_key_alone(site, inside, key, job):
    before = site.ssh("head", "sha256sum /etc/munge/munge.key").stdout
    key.write_bytes(b"y" * 64)
    for host in HOSTS:
        _, said = converged(inside, "--limit", host, ok=False)
        assert "run playbooks/munge_key.yml" in " ".join(said.split()), said[-3000:]
        assert site.ssh(host, "sha256sum /etc/munge/munge.key").stdout == before
    _, said = rotated(inside, "--limit", "dgx01", ok=False)
    assert "head, Slurm's head, is left out" in " ".join(said.split())


def test_all_change_it_together_under_a_running_job(site, inside, key, job):
    step = site.ssh("dgx01", "pgrep -f 'sleep 1500'").stdout
    site.ssh("dgx01", "munge -n > /root/former")
    assert site.ssh("head", "unmunge", stdin=site.ssh("dgx01", "cat /root/former").stdout, check=False).returncode == 0
    key.write_bytes(b"y" * 64)
    rotated(inside)
    former = site.ssh("head", "unmunge", stdin=site.ssh("dgx01", "cat /root/former").stdout, check=False)
    assert former.returncode != 0 and "Invalid credential" in former.stdout + former.stderr
    for host in HOSTS:
        assert site.ssh("head", "unmunge", stdin=site.ssh(host, "munge -n").stdout).returncode == 0
        assert site.ssh(host, "ls /etc/munge").stdout.split() == ["munge.key"]
    assert state(site, job) == "RUNNING" and site.ssh("dgx01", "pgrep -f 'sleep 1500'").stdout == step
    assert "allocated" in site.ssh("login01", "sinfo -h -p home -o %T -n dgx01").stdout.replace("mixed", "allocated")
    line = "cd /shared && runuser -u alice -- srun -A research --mem=100 --time=1 hostname"
    assert site.ssh("login01", line, timeout=60).stdout.strip() == "dgx01"
    assert converged(inside)[0] == dict.fromkeys(HOSTS, 0)


def test_the_job_ends_as_it_should(site, job):
    site.ssh("dgx01", "pkill -f 'sleep 1500'")
    wait_for(lambda: state(site, job) == "", 60, "the job's end", pause=0.5)
    ended = site.ssh("head", f"sacct -nXP -j {job} -o state").stdout.strip()
    assert ended in ("FAILED", "COMPLETED"), "by its own exit status, not NODE_FAIL or CANCELLED"


def test_a_rented_node_stops_the_change(site, inside, key, job):
    site.ssh("head", "touch /var/spool/ironburst/leases/p5-1; scontrol update nodename=p5-1 state=power_up")
    wait_for(lambda: "#" in site.ssh("head", "sinfo -h -n p5-1 -o %T").stdout, 30, "powering up", pause=0.5)
    key.write_bytes(b"z" * 64)
    _, said = rotated(inside, ok=False)
    assert "Rented nodes (p5-1) have the former key" in " ".join(said.split())
    key.write_bytes(b"y" * 64)
    seen = {site.ssh(host, "sha256sum < /etc/munge/munge.key").stdout for host in HOSTS}
    assert len(seen) == 1, "nothing was changed"
