"""The declared fabric in a real slurmctld with real slurmds: gangs are placed below one leaf, rented nodes take jobs
beside it, another fabric is taken over under a running job. Two hosts are rented nodes by name; their slurmd is started
here by hand. The gate is a stand-in, and no GPU is needed.
"""

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from ironburst.config import load
from lab import hall, names
from lab.demo.inside import Inside
from lab.system import wait_for
from tests import sites
from tests.playbooks import sample

pytestmark = [pytest.mark.lab, pytest.mark.slow]
OWNED = ("dgx01", "dgx02", "dgx03", "dgx04")
RENTED = {"p5-1": "rented1", "p5-2": "rented2"}
"""name in Slurm: host"""
HALL = hall.addresses(len(OWNED)) | {name: f"10.78.0.{31 + n}" for n, name in enumerate(RENTED.values())}
GATE = "; ".join(
    f"printf '#!/bin/sh\\n' > /usr/local/sbin/ironburst-{name}; chmod 755 /usr/local/sbin/ironburst-{name}"
    for name in ("prolog", "epilog", "health")
)
UNIT = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n"
SLURMD = f"""set -e
umask 077; cat > /root/munge.key; umask 022
echo 'deb [trusted=yes] {names.REPOSITORY_URL}/debian stable main' > /etc/apt/sources.list.d/lab.list
exec < /dev/null
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update && apt-get -qq install -y slurmd slurm-client munge > /dev/null
systemctl disable -q --now slurmd
install -o munge -g munge -m 0400 /root/munge.key /etc/munge/munge.key && systemctl restart munge
mkdir -p /var/lib/slurm/slurmd /var/log/slurm
"""
CROSSED = {"leaf1": ("dgx01", "dgx03"), "leaf2": ("dgx02", "dgx04")}
ALONG = {"leaf1": ("dgx01", "dgx02"), "leaf2": ("dgx03", "dgx04")}


def declared(leaves, spine=True):
    """The lab's hall with four nodes, below these leaves."""
    value = load.read_value(sample.REPOSITORY / "stacks/Pulumi.lab.yaml")
    declared_hall = value["halls"][0]
    head, nodes = declared_hall["nodes"]
    for each in (head, nodes):
        for key in ("macs", "serials", "bmc"):
            del each[key]
    nodes |= {"names": "dgx[01-04]", "addresses": "10.78.0.[11-14]", "units": [1, 9, 17, 25]}
    link = {"type": "dac", "speed": "NDR", "length_m": 2}
    ends = [(f"{node}/ib1", f"{leaf}/{n}") for leaf, its in leaves.items() for n, node in enumerate(its, 1)]
    ends += [(f"{leaf}/64", f"spine1/{n}") for n, leaf in enumerate(leaves, 1)] if spine else []
    switches = [{"names": leaf, "kind": "leaf", "ports": 64} for leaf in leaves]
    declared_hall["switches"] = [*switches, {"names": "spine1", "kind": "spine", "ports": 64}]
    declared_hall["cables"] = [link | {"ends": list(pair)} for pair in ends]
    return {"halls": value["halls"]}


class Cluster:
    """Head, four owned nodes, two that are rented."""

    def __init__(self, site):
        self.site, self.inside, self.serial = site, Inside(site), 0
        self.key = sites.munge_key(site)
        for name in (*OWNED, *RENTED.values()):
            site.ssh(
                name,
                f"{GATE}; cat > /etc/systemd/system/ironburst-gate.service; touch $(seq -f /dev/nvidia%g 0 7)",
                stdin=UNIT,
            )
        with ThreadPoolExecutor() as pool:  # it boots from an image, which has them
            list(pool.map(lambda host: site.ssh(host, SLURMD, stdin="x" * 64, timeout=600), RENTED.values()))

    def converge(self, *options, **declaration):
        """Declare, and converge head and nodes: the changed tasks of the head, and what was said."""
        document = sample.lab_document(munge_key=self.key, declare=declared(**declaration))
        data = document.model_dump(mode="json")
        self.serial += 1
        data["serial"] = self.serial
        data["hosts"] = [host for host in data["hosts"] if host["name"] in ("head", *OWNED)]
        for host in data["hosts"]:
            host |= {"roles": ["base", "slurm_head" if host["name"] == "head" else "slurm_node"], "mig": None}
        self.inside.document.write_text(json.dumps(data))
        command = self.inside.argv("ansible-playbook", "-i", "inventory/lab", "tests/lab/slurm.yml", *options)
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        said = done.stdout + done.stderr
        assert done.returncode == 0, said[-6000:]
        return int(re.search(r"^head +: ok=\d+ +changed=(\d+)", said, re.MULTILINE)[1]), said

    def head(self, line, **options):
        return self.site.ssh("head", line, timeout=60, **options).stdout.strip()

    def submit(self, nodes, *options, check=True):
        """A job with all GPUs of so many nodes: its id, or why it wasn't taken."""
        line = f"sbatch --parsable -A research -N{nodes} --gres=gpu:8 -t 9 {' '.join(options)} --wrap 'srun sleep 600'"
        done = self.site.ssh("head", f"cd /shared && runuser -u alice -- {line} -o /dev/null", check=check, timeout=60)
        return done.stdout.strip() or done.stderr

    def runs_on(self, job):
        """Its nodes, once it runs."""
        wait_for(lambda: self.state(job) == "RUNNING", 60, f"job {job}: {self.reason(job)}", pause=0.5)
        return set(self.head(f"scontrol show hostnames $(squeue -h -j {job} -o %N)").split())

    def state(self, job):
        return self.head(f"squeue -h -j {job} -o %T")

    def reason(self, job):
        return self.head(f"squeue -h -j {job} -o %r")

    def cancel(self, *jobs):
        self.head(f"scancel {' '.join(jobs)}")
        wait_for(lambda: "COMPLETING" not in self.head("squeue -h -o %T"), 60, "the jobs' end", pause=0.5)

    def rent(self):
        """Both rented nodes, as the controller does it."""
        both = ",".join(RENTED)
        self.head(f"cd /var/spool/ironburst/leases; touch {' '.join(RENTED)}")
        self.head(f"scontrol update nodename={both} state=power_up")
        states = f"sinfo -h -N -p burst-p5 -n {both} -O StateComplete:80"
        # one that registers before Slurm has called the ResumeProgram isn't taken for booted
        wait_for(lambda: self.head(states).count("powering_up") == len(RENTED), 60, "Slurm's power-up", pause=0.5)
        for name, host in RENTED.items():
            start = f"systemd-run --quiet --unit=rented slurmd -D -b -N {name} --conf-server {names.ADDRESSES['head']}"
            self.site.ssh(host, start)
        wait_for(lambda: set(self.head(states).split()) == {"idle+cloud+drain"}, 60, "the rented nodes", pause=0.5)
        self.head(f"scontrol update nodename={both} state=resume")

    def move(self, job):
        """A held job to the burst partition, as the controller does it."""
        self.head(f"scontrol update jobid={job} partition=burst-p5 && scontrol release {job}")


@pytest.fixture(scope="module")
def cluster():
    with sites.running(f"t-topology-{os.getpid()}", *HALL, hall=HALL) as site:
        yield Cluster(site)


@pytest.fixture(scope="module")
def crossed(cluster):
    cluster.converge(leaves=CROSSED)
    wait_for(lambda: cluster.head("sinfo -h -p home -o '%T %D'") == "idle 4", 60, "the nodes", pause=0.5)
    return cluster


@pytest.fixture(scope="module")
def rented(crossed):
    crossed.rent()
    return crossed


def test_gangs_land_below_one_leaf_each(crossed):
    """By their numbers they would land on dgx01 and dgx02."""
    first, second = crossed.submit(2), crossed.submit(2)
    assert {frozenset(crossed.runs_on(job)) for job in (first, second)} == {frozenset(its) for its in CROSSED.values()}
    crossed.cancel(first, second)
    larger = crossed.submit(3)
    assert len(crossed.runs_on(larger)) == 3, "over the spine"
    crossed.cancel(larger)
    one = crossed.submit(1, "--switches=1")
    assert len(crossed.runs_on(one)) == 1
    crossed.cancel(one)


def test_a_second_converge_changes_nothing(crossed):
    changed, said = crossed.converge(leaves=CROSSED)
    assert changed == 0, re.findall(r"TASK \[([^\n]*)\][^\n]*\nchanged", said)
    assert "switches lack access" not in crossed.head("cat /var/log/slurm/slurmctld.log")


def test_rented_nodes_take_jobs_and_gangs(rented):
    alone, gang = rented.submit(1, "--hold"), rented.submit(2, "--hold")
    rented.move(alone)
    assert rented.runs_on(alone) <= set(RENTED)
    rented.cancel(alone)
    rented.move(gang)
    assert rented.runs_on(gang) == set(RENTED)
    both = rented.submit(2)
    rented.head(f"scontrol update jobid={both} partition=home,burst-p5")
    assert rented.runs_on(both) in map(set, CROSSED.values()), "no job spans home and cloud"
    rented.cancel(gang, both)


def test_another_fabric_is_taken_over_under_a_running_job(rented):
    running = rented.submit(1)
    (busy,) = rented.runs_on(running)
    assert rented.converge("--limit", "head", leaves=ALONG)[0] > 0
    pair = next(set(its) for its in ALONG.values() if busy not in its)
    gang = rented.submit(2)
    assert rented.runs_on(gang) == pair
    assert rented.state(running) == "RUNNING" and rented.runs_on(running) == {busy}
    rented.cancel(running, gang)


def test_a_node_that_no_switch_has_takes_no_job(rented):
    """Why every node is in the tree: the same file without the pool's line."""
    rented.head("sed -i /SwitchName=p5/d /etc/slurm/topology.conf && scontrol reconfigure")
    wait_for(lambda: "p5" not in rented.head("scontrol show topology"), 30, "the file", pause=0.5)
    job = rented.submit(1, "--hold")
    rented.move(job)
    wait_for(lambda: rented.reason(job) == "BadConstraints", 60, f"job {job} to be refused a node", pause=0.5)
    assert rented.state(job) == "PENDING"
    assert rented.converge("--limit", "head", leaves=ALONG)[0] > 0
    assert rented.runs_on(job) <= set(RENTED)
    rented.cancel(job)


def test_a_gang_that_no_tree_holds_is_refused(rented):
    """Two leaves without a spine: jobs stay below one of them."""
    rented.converge("--limit", "head", leaves=ALONG, spine=False)
    assert "opology configuration is not available" in rented.submit(3, check=False)
    gang = rented.submit(2)
    assert rented.runs_on(gang) in map(set, ALONG.values())
    rented.cancel(gang)


def test_without_a_fabric_slurm_places_as_before(rented):
    running = rented.submit(1)
    rented.runs_on(running)
    rented.converge("--limit", "head", leaves={})
    assert "SwitchName" not in rented.head("scontrol show topology 2>&1; true")
    gang = rented.submit(3)
    assert len(rented.runs_on(gang)) == 3 and rented.state(running) == "RUNNING"
    rented.cancel(running, gang)
