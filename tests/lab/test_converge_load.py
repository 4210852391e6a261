"""Converges and upgrades at random while jobs are submitted all the time: no job may be killed, requeued or lost (slow)."""

import json
import os
import random
import threading

import pytest

from lab import hall
from lab.box import wait_for
from lab.demo.inside import Inside
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


class Load(threading.Thread):
    """Submits short jobs of alice, of one GPU each, so that the nodes are never idle; remembers them all."""

    def __init__(self, site, random):
        super().__init__(daemon=True)
        self.site, self.random, self.done, self.jobs = site, random, threading.Event(), []

    def run(self):
        while not self.done.wait(1.0):
            waiting = self.site.ssh("head", "squeue --noheader --states=pending --format=%i | wc -l", check=False).stdout.strip()
            if waiting.isdigit() and int(waiting) < 2 * NODES:
                seconds = self.random.randint(3, 25)
                command = f"cd /shared/alice && runuser -u alice -- sbatch --parsable --no-requeue --gres=gpu:2 --wrap 'sleep {seconds}'"
                job = self.site.ssh("head", command, check=False).stdout.strip()
                if job.isdigit():
                    self.jobs.append(job)


def converge(inside, *options):
    command = inside.ironburst("converge", "--document", str(inside.document), "--inventory", "inventory/lab", "--json", *options)
    return json.loads(inside.run(command))["hosts"]


def accounting(site, jobs):
    """{job: (state, restarts)} by Slurm's own accounting."""
    rows = site.ssh(
        "head", f"sacct --noheader --parsable2 --allocations --jobs={','.join(jobs)} --format=JobID,State,Restarts"
    ).stdout
    return {row.split("|")[0]: tuple(row.split("|")[1:3]) for row in rows.split()}


def test_no_job_is_hurt(capsys):
    dice = random.Random(SEED)
    with sites.running(f"t-load-{os.getpid()}", *hall.addresses(NODES), hall=hall.addresses(NODES)) as site:
        inside = Inside(site)
        key = site.dir / "run" / "munge.key"
        key.write_bytes(b"x" * 64)

        def publish(driver):
            sample.publish(inside.document, munge_key=f"file:{key}", nodes=NODES, driver=driver)

        publish(DRIVERS[0])
        converge(inside)
        load = Load(site, random.Random(SEED))
        load.start()
        upgrades, drained, kinds = 0, 0, []
        try:
            for number in range(RUNS):
                kind = dice.choice(["upgrade", "live", "live", "drain", "head", "nothing"])
                kinds.append(kind)
                if kind == "upgrade":
                    upgrades += 1
                    publish(DRIVERS[upgrades % 2])
                elif kind in ("live", "drain"):
                    path = dice.choice(LIVE if kind == "live" else DRAIN)
                    for name in dice.sample(NAMES, dice.randint(1, 2)):
                        site.ssh(name, f"echo '# drift' >> {path}")
                elif kind == "head":
                    site.ssh("head", "echo '# drift' >> /etc/slurm/gres.conf")
                hosts = converge(inside, "--share", dice.choice(["1", "2", "50%"]))
                drained += sum(host["drained"] for host in hosts.values())
                assert {host["state"] for host in hosts.values()} <= {"converged", "unchanged"}, (number, kind, hosts)
        finally:
            load.done.set()
            load.join(60)
        wait_for(lambda: not site.ssh("head", "squeue --noheader").stdout.strip(), 300, "the last jobs", pause=1)
        ended = accounting(site, load.jobs)
        hurt = {job: how for job, how in ended.items() if how != ("COMPLETED", "0")}
        with capsys.disabled():
            print(f"\n{RUNS} runs ({', '.join(kinds)}), {drained} drains, {len(ended)} jobs, hurt: {hurt or 'none'}")
        assert len(ended) == len(load.jobs) and hurt == {}
        assert len(ended) >= RUNS and drained > 0
