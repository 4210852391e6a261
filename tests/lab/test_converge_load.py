"""Four nodes that are never idle: an upgrade over them, and converges at random. No job may be killed, requeued or lost
(slow).
"""

import os
import random
import shlex
import threading

import pytest

from lab import hall
from lab.demo.inside import Inside
from lab.hosts import hardware
from lab.system import wait_for
from tests import sites
from tests.playbooks import sample

pytestmark = [pytest.mark.lab, pytest.mark.slow]
RUNS = int(os.environ.get("CONVERGE_RUNS", "50"))
SEED = int(os.environ.get("CONVERGE_SEED", "20261121"))
DRIVERS = ("580.95.05", "580.105.08")
NODES = 4
NAMES = list(hall.addresses(NODES))[1:]
LIVE = ("/etc/security/limits.d/90-ironburst.conf", "/etc/profile.d/ironburst-cuda.sh", "/etc/ironburst/gate.json")
DRAIN = ("/etc/modprobe.d/ironburst-nouveau.conf", "/etc/default/grub.d/90-ironburst.cfg")


class Background(threading.Thread):
    """Something that goes on beside a converge, from `with` to its end."""

    def __init__(self, site):
        super().__init__(daemon=True)
        self.site, self.done = site, threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join(60)


class Load(Background):
    """Submits short jobs of alice, of two GPUs each, so that the nodes are never idle; remembers them all."""

    def __init__(self, site, random):
        super().__init__(site)
        self.random, self.jobs = random, []

    def run(self):
        while not self.done.wait(0.5):
            waiting = self.site.ssh(
                "head", "squeue --noheader --states=pending --format=%i | wc -l", check=False
            ).stdout.strip()
            if waiting.isdigit() and int(waiting) < 2 * NODES:
                lengths = [self.random.randint(3, 25) for _ in range(2 * NODES)]
                lines = [f"sbatch --parsable --no-requeue --gres=gpu:2 --wrap 'sleep {seconds}'" for seconds in lengths]
                command = f"cd /shared/alice && runuser -u alice -- sh -c {shlex.quote('; '.join(lines))}"
                self.jobs += [
                    job for job in self.site.ssh("head", command, check=False).stdout.split() if job.isdigit()
                ]


def accounting(site, jobs):
    """{job: (state, restarts)} by Slurm's own accounting."""
    rows = site.ssh(
        "head", f"sacct --noheader --parsable2 --allocations --jobs={','.join(jobs)} --format=JobID,State,Restarts"
    ).stdout
    return {row.split("|")[0]: tuple(row.split("|")[1:3]) for row in rows.split()}


class Saboteur(Background):
    """Takes a GPU from the second node that a converge takes out of service: it was good when the converge began."""

    def __init__(self, site):
        super().__init__(site)
        self.out, self.node = [], None

    def run(self):
        while not self.done.wait(0.2) and self.node is None:
            rows = self.site.ssh("head", "sinfo --noheader --Node --format='%N %T'", check=False).stdout.split("\n")
            out = [row.split()[0] for row in rows if "drain" in row]
            self.out += [name for name in out if name not in self.out]
            if len(self.out) > 1:
                hardware.remove_gpu(self.site.host(self.out[1]).hardware_dir, 2)
                self.node = self.out[1]


class Hall:
    """Head and four nodes, converged."""

    def __init__(self, site):
        self.site, self.inside = site, Inside(site)
        self.publish(DRIVERS[0])
        self.converge()

    def publish(self, driver):
        sample.publish(self.inside.document, munge_key=sites.munge_key(self.site), nodes=NODES, driver=driver)

    def converge(self, *options, code=0):
        return sites.converge(self.inside, *options, code=code)["hosts"]

    def drivers(self):
        return sites.drivers(self.site, *NAMES)

    def states(self):
        rows = self.site.ssh("head", "sinfo --noheader --Node --format='%N %T'").stdout.splitlines()
        return {name: state for name, state in map(str.split, rows) if name in NAMES}

    def hurt(self, jobs):
        """Jobs that did not run to their end in one go, once the queue is empty, by Slurm's own accounting: {job:
        (state, restarts)}.
        """
        wait_for(lambda: not self.site.ssh("head", "squeue --noheader").stdout.strip(), 300, "the last jobs", pause=1)
        ended = accounting(self.site, jobs)
        assert set(ended) == set(jobs), "the accounting knows every job"
        return {job: how for job, how in ended.items() if how != ("COMPLETED", "0")}


@pytest.fixture(scope="module")
def hall_of_four():
    with sites.running(f"t-load-{os.getpid()}", *hall.addresses(NODES), hall=hall.addresses(NODES)) as site:
        yield Hall(site)


def test_a_driver_upgrade_over_four_busy_nodes(hall_of_four, capsys):
    """One command; jobs go on elsewhere; a node that fails its gate stops it; a second call completes."""
    site = hall_of_four.site
    with Load(site, random.Random(SEED)) as load:
        wait_for(
            lambda: set(hall_of_four.states().values()) <= {"allocated", "mixed"}, 120, "four busy nodes", pause=0.5
        )
        hall_of_four.publish(DRIVERS[1])
        before = len(load.jobs)
        with Saboteur(site) as saboteur:
            first = hall_of_four.converge(code=4)
        assert first[saboteur.node]["state"] == "failed" and first[saboteur.node]["error"], first
        assert first[saboteur.out[0]]["state"] == "converged" and first[saboteur.out[0]]["drained"]
        left = [name for name in NAMES if name not in saboteur.out]
        assert len(left) == 2 and {first[name]["state"] for name in left} == {"not started"}, first
        during = hall_of_four.drivers()
        assert during[saboteur.out[0]] == {DRIVERS[1]} and [during[name] for name in left] == [{DRIVERS[0]}] * 2
        states = hall_of_four.states()
        assert "drain" in states[saboteur.node] and not any(
            "drain" in states[name] for name in NAMES if name != saboteur.node
        ), states
        assert len(load.jobs) > before, "jobs went on while the nodes were changed"

        machine = site.host(saboteur.node)  # its GPU is back after a start
        machine.off()
        machine.start()
        assert machine.wait() in ("running", "degraded")  # half upgraded, so its gate may refuse it at boot
        second = hall_of_four.converge()
        assert {second[name]["state"] for name in (saboteur.node, *left)} == {"converged"}, second
    assert hall_of_four.drivers() == {name: {DRIVERS[1]} for name in NAMES}
    assert not any("drain" in state for state in hall_of_four.states().values())
    hurt = hall_of_four.hurt(load.jobs)
    with capsys.disabled():
        print(f"\nupgrade over 4 busy nodes, stopped at {saboteur.node}: {len(load.jobs)} jobs, hurt: {hurt or 'none'}")
    assert hurt == {}


def test_plain_ansible_upgrades_busy_nodes(hall_of_four, capsys):
    """playbooks/upgrade.yml, two nodes at a time: drained, upgraded, through their gates and back, and no job is
    hurt.
    """
    now = hall_of_four.drivers()[NAMES[0]]
    wanted = next(driver for driver in DRIVERS if {driver} != now)
    with Load(hall_of_four.site, random.Random(SEED)) as load:
        wait_for(
            lambda: set(hall_of_four.states().values()) <= {"allocated", "mixed"}, 120, "four busy nodes", pause=0.5
        )
        hall_of_four.publish(wanted)
        settings = ("-e", "upgrade_share=2", "-e", "upgrade_poll=1")
        playbook = ("ansible-playbook", "-i", "inventory/lab", "playbooks/upgrade.yml", *settings)
        hall_of_four.inside.run(playbook, log="upgrade")
    assert hall_of_four.drivers() == {name: {wanted} for name in NAMES}
    assert not any("drain" in state for state in hall_of_four.states().values())
    hurt = hall_of_four.hurt(load.jobs)
    with capsys.disabled():
        print(f"\nplaybooks/upgrade.yml over 4 busy nodes: {len(load.jobs)} jobs, hurt: {hurt or 'none'}")
    assert hurt == {} and load.jobs


def test_no_job_is_hurt(hall_of_four, capsys):
    site, dice = hall_of_four.site, random.Random(SEED)
    upgrades, drained, kinds = 0, 0, []
    with Load(site, random.Random(SEED)) as load:
        for number in range(RUNS):
            kind = dice.choice(["upgrade", "live", "live", "drain", "head", "nothing"])
            kinds.append(kind)
            if kind == "upgrade":
                upgrades += 1
                hall_of_four.publish(DRIVERS[upgrades % 2])
            elif kind in ("live", "drain"):
                path = dice.choice(LIVE if kind == "live" else DRAIN)
                for name in dice.sample(NAMES, dice.randint(1, 2)):
                    site.ssh(name, f"echo '# drift' >> {path}")
            elif kind == "head":
                site.ssh("head", "echo '# drift' >> /etc/slurm/gres.conf")
            hosts = hall_of_four.converge("--share", dice.choice(["1", "2", "50%"]))
            drained += sum(host["drained"] for host in hosts.values())
            assert {host["state"] for host in hosts.values()} <= {"converged", "unchanged"}, (number, kind, hosts)
    hurt = hall_of_four.hurt(load.jobs)
    with capsys.disabled():
        print(f"\n{RUNS} runs ({', '.join(kinds)}), {drained} drains, {len(load.jobs)} jobs, hurt: {hurt or 'none'}")
    assert hurt == {}
    assert len(load.jobs) >= RUNS and drained > 0
