"""A live site for faults: what the lab has, as a test needs it, and what must hold after each fault.

The hall is full for good, so that each job of a test is rented for. Nothing here waits for a time: it waits for what is
to happen, with a limit that grows with FAULTS_WAIT (2: twice as long). What a test holds is in its own asserts, in
`assert_settled` (no job lost or run twice, no instance unaccounted for, no launch twice, the next tick goes on) and in
`assert_told` (a sentence says what happened).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from ironburst.controller.ledger import Ledger, LedgerError
from ironburst.nodes import naming
from lab.aws import client
from lab.demo import converge, declare, service
from lab.demo.aws import AWS
from lab.demo.burst import Head
from lab.demo.inside import Inside
from lab.play.faults import MARKETS
from lab.pulumi import binary
from lab.site import Site
from lab.system import LabError

HERE = Path(__file__).parent
PATIENCE = float(os.environ.get("FAULTS_WAIT") or 2)
TYPE = "p5.48xlarge"
NODES = ("p5-1", "p5-2", "p5-3")
HOME = ("dgx01", "dgx02")
PUBLISHED = "/srv/ironburst/lab.json"
SETTINGS = "/etc/slurm/slurm.conf"
PLAN = "/var/lib/ironburst/fault.json"
# Slurm's times are short, and the controller is back at once (its unit: 10 s)
PREPARE = r"""set -e
sed -i '/^SuspendTimeout=/s/=.*/=4/' /etc/slurm/slurm.conf
scontrol reconfigure
mkdir -p /run/systemd/system/ironburst.service.d
cat > /run/systemd/system/ironburst.service.d/faults.conf <<'END'
[Service]
Environment=PYTHONPATH=/opt/ironburst
ExecStart=
ExecStart=/usr/bin/python3 /opt/ironburst/faults.py run
RestartSec=1
END
systemctl daemon-reload
systemctl restart ironburst
"""
JOB = """#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1 --gres=gpu:8 --time={minutes}
#SBATCH --requeue --output={name}.out --open-mode=append
echo "$SLURM_JOB_NODELIST" >> starts-{name}
while [ ! -e go-{name} ]; do sleep 0.2; done
echo "$SLURM_JOB_NODELIST" >> ends-{name}
"""
FILL = (
    "#!/bin/bash\n#SBATCH --job-name=fill --nodes=1 --exclusive --time=6-0 --requeue --output=/dev/null\nsleep 500000\n"
)
ENDED = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY")


def until(look, seconds, what):
    """Look until `look` gives something true, which is returned. LabError after `seconds` times PATIENCE, with what was
    seen last: of (False, seen) the second. Waits are printed: pytest shows them of a test that fails.
    """
    began = time.monotonic()
    end = began + seconds * PATIENCE
    while True:
        seen = look()
        good = seen[0] if isinstance(seen, tuple) else seen
        if good:
            if (waited := time.monotonic() - began) > 0.5:
                print(f"{time.strftime('%H:%M:%S')} after {waited:.1f} s: {what}")
            return seen
        if time.monotonic() > end:
            raise LabError(f"{what}: not within {seconds * PATIENCE:g} s; seen last: {seen}")
        time.sleep(0.4)


def build(site: Site, tied: bool) -> None:
    """As a demo's first steps, and the controller as a service."""

    def say(line):
        print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)

    inside = declare.start_world(site, say, tied=tied)
    declare.declare(inside, binary.path(), say)
    converge.once(inside, "first", say)
    converge.bake(inside, "p5", AWS, say)
    service.install(inside)
    service.start(inside, "controller")


class Live:
    """The site, and what was done since `begin`."""

    def __init__(self, site: Site):
        self.site, self.inside = site, Inside(site)
        self.head = Head(self.inside)
        self.names = (f"{time.time_ns() // 10**7 % 10**8:08}-{n}" for n in itertools.count())
        self.jobs: dict[int, str] = {}
        self.began, self.serial = 0.0, 0

    # ---- once
    def prepare(self):
        folder = self.site.dir / "shared" / "faults"
        folder.mkdir(exist_ok=True)
        shutil.copy(HERE / "controller.py", folder / "faults.py")
        self.head.root("cp /shared/faults/faults.py /opt/ironburst/faults.py")
        published = self.document()
        published["burst"] |= {"tick_s": 1, "settle_s": 1, "cool_down_s": 4, "wait_target": None, "wait_limit_s": 1}
        published["pools"][0] |= {"idle_s": 4, "boot_s": 120}
        self.declared = published
        self.publish(published)
        self.head.root(PREPARE)

    # ---- between two tests
    def begin(self):
        """Everything as it was: no job but those that fill the hall, no fault, nothing rented."""
        self.forward(True)
        self.cloud("DELETE", "/lab/faults")
        self.cloud_sells(None)
        self.head.root(
            f"rm -f {PLAN}; systemctl reset-failed ironburst; systemctl start ironburst slurmctld slurmdbd; true"
        )
        self.publish(self.declared)
        self.head.root(
            "pkill -CONT slurmctld; pkill -CONT slurmdbd; squeue -h -u alice -o '%i %j' | "
            "awk '$2 != \"fill\" { print $1 }' | xargs -r scancel; "
            # a drain that a person set outlives the lease
            "sinfo -h -N -t drain -o %N | sort -u | xargs -r -I{} scontrol update nodename={} state=resume; true"
        )
        self._fill()
        self._forget_refusals()
        self.jobs = {}
        until(self.left_over, 120, "nothing left of the test before")
        self.cloud("DELETE", "/lab/instances")  # an hour is over; a list of many is slow, too
        self.began = time.time()

    def _forget_refusals(self):
        """A quota that was reached, say, closes a market for an hour."""
        with self.ledger():  # the controller's: whoever makes its file owns it
            pass
        with closing(sqlite3.connect(self.inside.ledger, timeout=30, isolation_level=None)) as db:
            db.execute("DELETE FROM cool_downs")

    def _fill(self):
        """A job on each node at home, which takes no other one: nothing that is learnt of jobs gives hope of it."""

        def full():
            queue = self.head.root("squeue -h -u alice -n fill -o '%T %N'").split("\n")[:-1]
            return {line.split()[1] for line in queue if line.startswith("RUNNING")} == set(HOME), queue

        nodes = ",".join(HOME)
        if not full()[0]:
            self.head.root(f"scancel -u alice -n fill; scontrol update nodename={nodes} state=resume 2>/dev/null; true")
            for _ in HOME:
                self.head.alice("sbatch", stdin=FILL)
            until(full, 90, "a full hall")
        self.head.root(f"scontrol update nodename={nodes} state=drain reason=full")

    # ---- jobs
    def submit(self, nodes=1, minutes=15, options=""):
        name = next(self.names)
        script = JOB.format(name=name, nodes=nodes, minutes=minutes)
        job = int(self.head.alice(f"sbatch --parsable {options}", stdin=script))
        self.jobs[job] = name
        return job

    def job_state(self, job):
        shown = self.head.root(f"squeue -h -t all -j {job} -o %T 2>/dev/null || true").strip()
        return shown or self.head.root(f"sacct -n -X -P -o State -j {job}").strip().split("\n")[-1].split(" ")[0]

    def running(self, job, on="p5"):
        def look():
            said = self.head.root(f"squeue -h -j {job} -o '%T %N' 2>/dev/null || true").strip()
            return said.startswith("RUNNING ") and said.split()[1].startswith(on), said

        until(look, 90, f"job {job} running on {on}")
        until(lambda: self.lines("starts", job), 20, f"the script of job {job}")
        return job

    def ran_s(self, job):
        minutes, seconds = self.head.root(f"squeue -h -j {job} -o %M").strip().split(":")  # within its first hour
        return 60 * int(minutes) + int(seconds)

    def rented(self, *states, count=1):
        """The open leases, as soon as `count` of them are in one of `states`."""

        def look():
            leases = self.leases()
            return sum(lease.state in states for lease in leases) >= count, [(each.node, each.state) for each in leases]

        until(look, 60, f"a lease that is {' or '.join(states)}")
        return [lease for lease in self.leases() if lease.state in states]

    def go(self, *jobs):
        for job in jobs or self.jobs:
            (self.folder / f"go-{self.jobs[job]}").touch()

    @property
    def folder(self):
        return self.site.dir / "shared" / "alice"

    def lines(self, kind, job):
        path = self.folder / f"{kind}-{self.jobs[job]}"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    # ---- Slurm
    def slurm_node(self, name):
        """Its states."""
        shown = self.head.root(f"scontrol --oneliner show node {name}")
        return set(re.search(r" State=(\S+)", shown)[1].split("+"))

    @contextmanager
    def slurm_says(self, **settings):
        """Meanwhile slurm.conf has these settings, too."""
        lines = "".join(f"{name}={value}\\n" for name, value in settings.items())
        more = f"cp {SETTINGS} /root/slurm.conf.before; printf '{lines}' >> {SETTINGS}; scontrol reconfigure"
        self.head.root(more)
        try:
            yield
        finally:
            self.head.root(f"cp /root/slurm.conf.before {SETTINGS}; scontrol reconfigure")

    # ---- the controller
    @contextmanager
    def ledger(self):
        """As soon as there is one that can be read."""

        def opened():
            with suppress(LedgerError):
                return Ledger(self.inside.ledger, read_only=True)

        with closing(until(opened, 30, "a ledger")) as ledger:
            yield ledger

    def leases(self, open_only=True):
        with self.ledger() as ledger:
            return ledger.leases(open_only=open_only)

    def document(self):
        return json.loads(self.head.root(f"cat {PUBLISHED}"))

    def publish(self, document):
        """With a serial that wasn't there before: what was closed opens."""
        self.serial = max(int(time.time()), document["serial"] + 1, self.serial + 1)
        self.put(PUBLISHED, json.dumps(document | {"serial": self.serial}))

    def publish_pool(self, **values):
        """The pool with these, until a tick has read them: jobs after this call are rented for by them."""
        self.publish(self.declared | {"pools": [self.declared["pools"][0] | values]})
        self.ticked()

    def put(self, path, text):
        self.head.root(f"cat > {path}.new <<'END_OF_FILE'\n{text}\nEND_OF_FILE\nmv {path}.new {path}")

    def controller(self, verb):
        self.head.root(f"systemctl {verb} ironburst")

    def plans(self, **fault):
        self.put(PLAN, json.dumps(fault))
        self.head.root(f"chown ironburst {PLAN}")

    def ticked(self):
        """Until a tick has gone well that began after this call."""

        def last():
            with self.ledger() as ledger:
                return json.loads(ledger.noted("clock") or "[0, 0, 0]")[2]  # by the host's uptime

        called = time.clock_gettime(time.CLOCK_BOOTTIME)
        until(lambda: last() > called, 60, "the next tick")

    def told(self):
        """What people can read of what happened since `begin`: the journal, and the events."""
        journal = self.head.root(f"journalctl --no-pager -o cat -u ironburst --since @{int(self.began)}")
        rows = []
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{self.inside.ledger}?mode=ro", uri=True)) as db:
            rows = db.execute("SELECT kind, text FROM events WHERE at_s >= ?", (self.began - 1,)).fetchall()
        return "\n".join([journal, *(f"{kind}: {text}" for kind, text in rows)])

    def assert_told(self, pattern):
        """Until it is told; the line."""

        def look():
            found = re.search(f".*(?:{pattern}).*", self.told())
            return found[0] if found else ""

        return until(look, 60, f"somebody tells {pattern!r}")

    # ---- the cloud
    def cloud(self, verb, path, **body):
        with self.site.box.network():
            return client.call(verb, path, body if verb == "POST" else None)

    def cloud_sells(self, count, zones=("us-east-1a", "us-east-1b"), markets=MARKETS):
        for zone, market in itertools.product(zones, markets):
            self.cloud("POST", "/lab/capacity", instance_type=TYPE, zone=zone, market=market, count=count)

    def calls_fail(self, action, code="", times=1, **more):
        self.cloud("POST", "/lab/faults", action=action, code=code, times=times, **more)

    def instances(self, ended=False):
        """Of the pool; each has its client_token and tags."""
        views = self.cloud("GET", "/lab/instances")
        mine = [view for view in views if naming.LEASE_TAG in view["tags"]]
        return [view for view in mine if ended or view["state"] != "terminated"]

    def boto(self, line):
        self.inside.run([sys.executable, "-c", f"import boto3; ec2 = boto3.client('ec2'); {line}"])

    @contextmanager
    def image(self, files):
        """Meanwhile the pool's image has these files, too: {path: text, or a file to copy}; "-> x" is a link."""
        parameter = self.declared["pools"][0]["image"]
        ask = "import boto3, sys; ssm = boto3.client('ssm'); "
        get = ask + "print(ssm.get_parameter(Name=sys.argv[1])['Parameter']['Value'])"
        put = ask + "ssm.put_parameter(Name=sys.argv[1], Value=sys.argv[2], Overwrite=True)"
        usual = self.inside.run([sys.executable, "-c", get, parameter]).strip()
        folder = self.site.dir / "images" / f"faulty-{next(self.names)}"
        for path, text in files.items():
            target = folder / "layer" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(text, Path):
                shutil.copy(text, target)
            elif text.startswith("-> "):
                target.symlink_to(text[3:])
            else:
                target.write_text(text)
        (folder / "image.json").write_text(json.dumps({"id": folder.name, "parent": usual, "baked_from": ""}))
        made = self.cloud("POST", "/lab/images", folder=folder.name, name="faulty")["image_id"]
        self.inside.run([sys.executable, "-c", put, parameter, made])
        try:
            yield
        finally:
            self.inside.run([sys.executable, "-c", put, parameter, usual])

    # ---- hosts
    def host(self, lease):
        return self.site.host(lease.instance_id)

    def cable(self, host, plugged):
        """The network of one host."""
        name = "v" + hashlib.sha256(host.name.encode()).hexdigest()[:8]
        words = ["ip", "link", "set", name, "up" if plugged else "down"]
        subprocess.run([*self.site.box.enter_prefix(), *words], check=True)

    def forward(self, on):
        """The VPN: the lab's router between the hall's and the cloud's network. AWS's API is reached without it."""
        line = f"echo {int(on)} > /proc/sys/net/ipv4/ip_forward"
        subprocess.run([*self.site.box.net_prefix(), "sh", "-c", line], check=True)

    # ---- what must hold
    def left_over(self):
        """(True: nothing is; what is)"""
        if leases := [f"{lease.node} {lease.state}" for lease in self.leases()]:
            return False, leases
        if living := [view["instance_id"] for view in self.instances()]:
            return False, living
        every = {view["instance_id"] for view in self.instances(ended=True)}
        if hosts := [each.name for each in self.site.hosts() if each.name in every]:
            return False, hosts
        shown = self.head.root(f"scontrol --oneliner show node {','.join(NODES)}; ls /var/spool/ironburst/leases")
        states = [set(said.split("+")) for said in re.findall(r" State=(\S+)", shown)]
        moving = {"POWERING_DOWN", "POWERING_UP", "POWER_UP", "POWER_DOWN", "DOWN", "DOWN*"}
        off = [state >= {"DRAIN", "POWERED_DOWN"} and not state & moving for state in states]
        permits = shown.rstrip("\n").split("\n")[len(NODES) :]
        return all(off) and len(off) == len(NODES) and not permits, (states, permits)

    def assert_settled(self, *cancelled, again=(), limit_s=120):
        """Let the jobs end; then nothing was lost, twice, or unaccounted for, and the next tick goes on. `again`: jobs
        whose node the fault takes from under them, or their user's own requeue: they start twice, and end once.
        """
        self.go()
        for job in self.jobs:
            until(lambda job=job: ((state := self.job_state(job)) in ENDED, state), limit_s, f"the end of job {job}")
        until(self.left_over, limit_s, "nothing left over")
        self.ticked()
        states = {job: self.job_state(job) for job in self.jobs}
        assert states == {job: "CANCELLED" if job in cancelled else "COMPLETED" for job in self.jobs}, self.told()
        for job in self.jobs:
            if job not in cancelled:
                assert len(self.lines("ends", job)) == 1, self.told()
                starts = len(self.lines("starts", job))
                assert starts == 1 or (job in again and starts == 2), (starts, self.told())
        self.accounted()

    def accounted(self):
        """Each instance since `begin` is of a launch that is written down, and no launch has more than were asked."""
        mine = self.instances(ended=True)
        known = {lease.instance_id for lease in self.leases(open_only=False)}
        told = self.told()
        unknown = [view["instance_id"] for view in mine if view["instance_id"] not in known]
        assert not [id for id in unknown if id not in told], (unknown, told)
        with self.ledger() as ledger:
            for launch, count in Counter(view["tags"][naming.LEASE_TAG] for view in mine).items():
                try:
                    nodes = ledger.launch(launch).nodes
                except IndexError:  # a ledger that was lost
                    nodes = [view for view in mine if view["tags"][naming.LEASE_TAG] == launch and view["state"]]
                assert count <= len(nodes), (launch, count, nodes, told)
